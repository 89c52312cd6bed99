"""Results that commands print: a model is the value, its JSON and its schema at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from scripts.core.report import Block

DeploymentName = Annotated[str, Field(description="Name of the settings file in config/, without .yaml.")]
"""The key `deployment` of results: what commands take as DEPLOYMENT."""


class Document(BaseModel):
    """A result, as ``--output json`` prints it. pydantic takes 0.1 s to import: import results where they are used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> str:
        """Return it as JSON, in ASCII: what users of a cluster wrote moves no cursor of a terminal."""
        return self._dumped(indent=2)

    def to_line(self) -> str:
        """Return it as JSON on one line."""
        return self._dumped()

    def _dumped(self, indent: int | None = None) -> str:
        text = self.model_dump_json(indent=indent, by_alias=True, ensure_ascii=True)
        return text.replace("##[", "#\\u0023[")  # GitHub's runners obey it anywhere


class Result(Document):
    """What a command prints: JSON for programs, or a report for people."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""

    def page(self) -> Iterator[Block]:
        """Yield it for a page, which has room for more than a terminal."""
        return self.blocks()
