"""Results that commands print: a model is the value, its JSON and its schema at once."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict

from scripts.markdown import blocks


class Document(BaseModel):
    """A result, as ``--output json`` prints it. pydantic takes 0.1 s to import: import results where they are used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> str:
        """Return it as JSON."""
        return self.model_dump_json(indent=2, by_alias=True)

    def to_markdown(self) -> str:
        """Return it as GitHub's Markdown: the same values as tables and lists, to paste into a ticket."""
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).capitalize()
        return "\n\n".join([f"### {name}", *blocks("", self.model_dump(mode="json", by_alias=True))])

    def rendered(self, output: str) -> str:
        """Return it as --output wants it: json or markdown."""
        return self.to_json() if output == "json" else self.to_markdown()
