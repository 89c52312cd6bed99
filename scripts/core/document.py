"""Results that commands print: a model is the value, its JSON and its schema at once."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

DeploymentName = Annotated[str, Field(description="Name of the settings file in config/, without .yaml.")]
"""The key `deployment` of results: what commands take as DEPLOYMENT."""


class Document(BaseModel):
    """A result, as ``--output json`` prints it. pydantic takes 0.1 s to import: import results where they are used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> str:
        """Return it as JSON, in ASCII: what users of a cluster wrote moves no cursor of a terminal."""
        return self.model_dump_json(indent=2, by_alias=True, ensure_ascii=True)

    def to_line(self) -> str:
        """Return it as JSON on one line."""
        return self.model_dump_json(by_alias=True, ensure_ascii=True)
