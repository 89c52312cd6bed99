"""The base of all that programs print as JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """A result as JSON. The model is its only description; `model_json_schema` gives its schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> str:
        """Return it as JSON for people and programs."""
        return self.model_dump_json(indent=2)
