"""JSON Schemas of what people write and programs read."""

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema


class UntitledFields(GenerateJsonSchema):
    """Titles of models alone: that of a field would repeat its name."""

    def field_title_should_be_set(self, _: object) -> bool:
        """Return that it should not."""
        return False


def text(schema: dict[str, Any]) -> str:
    """Return a schema as its file has it: without ``x-`` keys, which are for the reference alone."""
    return json.dumps(_standard(schema), indent=2) + "\n"


def _standard(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _standard(value) for key, value in node.items() if not key.startswith("x-")}
    return [_standard(each) for each in node] if isinstance(node, list) else node
