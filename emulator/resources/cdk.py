"""What the CDK adds to templates."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.resources.model import Context, Model, Physical, Properties


class Metadata(Model):
    """AWS::CDK::Metadata: nothing but a list of the constructs in use."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make nothing."""
        properties.pop("Analytics")
        return Physical(context.name)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change nothing."""
        changed.discard("Analytics")
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete nothing."""


MODELS: Mapping[str, Model] = {"AWS::CDK::Metadata": Metadata()}
