"""The schema of ParallelCluster's configurations, as its package has it. Runs in .venv-pcluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import marshmallow
from pcluster.schemas.cluster_schema import ClusterSchema, OneOrManyCustomActionField

_KINDS = {
    marshmallow.fields.String: "text",
    marshmallow.fields.Boolean: "boolean",
    marshmallow.fields.Integer: "integer",
    marshmallow.fields.Float: "number",
    marshmallow.fields.Dict: "mapping",
    marshmallow.fields.Raw: "any",
}


def schema() -> dict[str, dict[str, Any]]:
    """Return what may stand at each path of a cluster's configuration; paths are without indices of lists.

    What only code says is not in it: rules between keys, and those that ask AWS.
    """
    return dict(_below(ClusterSchema("cluster"), ""))


def _below(section: marshmallow.Schema, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, field in section.fields.items():
        path = f"{place}{field.data_key or name}"
        nested = isinstance(field, marshmallow.fields.Nested)
        each = field.inner if isinstance(field, marshmallow.fields.List) else field
        facts = {
            "kind": "section" if nested else _KINDS[type(each)],
            "list": isinstance(field, marshmallow.fields.List) or (nested and (field.many or field.schema.many)),
            "by": field.metadata.get("update_key"),
            "or_sequence": isinstance(field, OneOrManyCustomActionField),
            "required": field.required,
            "policy": field.metadata["update_policy"].name,
            **dict(_limits(each)),
        }
        if each is not field:
            facts |= {f"items_{name}": value for name, value in _limits(field)}
        yield path, {name: value for name, value in facts.items() if value is not None and value is not False}
        if nested:
            yield from _below(field.schema, f"{path}.")


def _limits(field: marshmallow.fields.Field) -> Iterator[tuple[str, Any]]:
    """Yield what is declared of a value: its choices, its pattern, its range, or that of its length."""
    for validator in field.validators:
        for part in getattr(validator, "validators", (validator,)):
            if isinstance(part, marshmallow.validate.OneOf):
                yield "choices", list(part.choices)
            elif isinstance(part, marshmallow.validate.Regexp):
                yield "pattern", part.regex.pattern
            elif isinstance(part, marshmallow.validate.Range):
                yield "least", part.min
                yield "most", part.max
            elif isinstance(part, marshmallow.validate.Length):
                yield "least", part.equal if part.min is None else part.min
                yield "most", part.equal if part.max is None else part.max
