"""The base of everything that is declared once for both the settings and the construct library."""

from pydantic import BaseModel, ConfigDict

from ultracluster.domain.violations import Violation


class Spec(BaseModel):
    """Immutable values. A docstring below a field describes it in the JSON schema and in messages."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    def violation(self, field: str, allowed: str, reason: str) -> Violation:
        """Return that the value of a field breaks a rule."""
        return Violation((field,), getattr(self, field), allowed, reason)
