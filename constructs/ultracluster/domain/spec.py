"""The base of everything that is declared once for both the settings and the construct library."""

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from ultracluster.domain.violations import Violation


class Spec(BaseModel):
    """Immutable values. A docstring below a field describes it in the JSON schema and in messages."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def violation(self, field: str, allowed: str, reason: str) -> Violation:
        """Return that the value of a field breaks a rule."""
        return Violation((field,), getattr(self, field), allowed, reason)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON schema with the fields' docstrings.

        Pydantic's ``use_attribute_docstrings`` reads them when the class is made: a tenth of a command's start.
        """
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for base in reversed(cls.__mro__):
            if issubclass(base, Spec):
                for name, docstring in _docstrings(base):
                    properties[name]["description"] = docstring
        return schema


def _docstrings(cls: type[Spec]) -> Iterator[tuple[str, str]]:
    """Yield the name of each field in the body of a class with the docstring below it."""
    definition = ast.parse(inspect.getsource(cls)).body[0]
    assert isinstance(definition, ast.ClassDef)
    for field, below in pairwise(definition.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(docstring))):
                yield name, inspect.cleandoc(docstring)
