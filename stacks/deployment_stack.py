"""What the stacks of a deployment have in common."""

from collections.abc import Mapping

import aws_cdk as cdk
from constructs import Construct

from config.settings import Part, Settings
from config.stack_identity import StackIdentity
from ultracluster.roles import apply_roles


class DeploymentStack(cdk.Stack):
    """A stack of a deployment, with the name, place and protection that the settings say."""

    def __init__(
        self, scope: Construct, settings: Settings, part: Part, *, tags: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(
            scope,
            settings.stack_name(part),
            stack_name=settings.stack_name(part),
            env=cdk.Environment(account=settings.account, region=settings.region),
            termination_protection=part in settings.termination_protection,
            description=StackIdentity(settings.name, part).description,
            synthesizer=cdk.DefaultStackSynthesizer(qualifier=settings.bootstrap.qualifier),
            tags=tags,
        )
        apply_roles(self, settings.roles)
