"""AWS::CloudFormation::Stack: a stack that is a resource of another one.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-stack.html
"""

from __future__ import annotations

from emulator.cloudformation.engine import Engine, RequestError
from emulator.cloudformation.stacks import Request, Stack
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError


class NestedStack(Model):
    """A nested stack. Ref gives its ARN, and `Outputs.X` its outputs."""

    mutable = None

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create(self, context: Context, properties: Properties) -> Physical:
        """Create the stack, and wait until it is complete."""
        try:
            stack = self._engine.create_nested(
                context.stack_id, context.logical_id, context.name, self._request(context, properties)
            )
        except RequestError as error:
            raise ResourceError(error.message) from None
        if stack.status != "CREATE_COMPLETE":
            message = f"Embedded stack {stack.id} was not successfully created: {stack.reason}"
            raise ResourceError(message, Physical(stack.id))
        return _physical(stack)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Update the stack, and wait until it is complete."""
        try:
            stack, done = self._engine.update_nested(physical.ref, self._request(context, properties))
        except RequestError as error:
            raise ResourceError(error.message) from None
        if stack.status != done:
            reason = next(
                each["ResourceStatusReason"]
                for each in reversed(stack.events)
                if each["ResourceStatus"] == "UPDATE_ROLLBACK_IN_PROGRESS"
            )
            raise ResourceError(
                f"Embedded stack {stack.id} was not successfully updated. Currently in {stack.status} with reason: "
                f"{reason}"
            )
        return _physical(stack)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the stack, and wait until it is gone."""
        stack = self._engine.delete_nested(physical.ref)
        if stack.status != "DELETE_COMPLETE":
            raise ResourceError(f"Embedded stack {stack.id} was not successfully deleted: {stack.reason}")

    def _request(self, context: Context, properties: Properties) -> Request:
        return Request(
            template=self._engine.stored_text(properties.pop("TemplateURL"), context.region),
            parameters=properties.pop("Parameters", {}),
            tags={tag["Key"]: tag["Value"] for tag in properties.pop("Tags", [])},
        )


def _physical(stack: Stack) -> Physical:
    return Physical(stack.id, {f"Outputs.{output.key}": output.value for output in stack.outputs.values()})
