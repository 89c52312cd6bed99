"""JSON Schemas of what people write and programs read."""

from pydantic.json_schema import GenerateJsonSchema


class UntitledFields(GenerateJsonSchema):
    """Titles of models alone: that of a field would repeat its name."""

    def field_title_should_be_set(self, _: object) -> bool:
        """Return that it should not."""
        return False
