"""The base of all results that commands print as JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """A result: its fields are the keys of the JSON that is printed, and the model gives their schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> str:
        """Return the JSON that commands print."""
        return self.model_dump_json(indent=2)
