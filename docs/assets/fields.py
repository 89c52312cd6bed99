"""What the library's reference shows of models: signatures, defaults, ranges, and when a field can change."""

import ast
from pathlib import Path
from typing import Any

import griffe

SPEC = Path(__file__).resolve().parents[2] / "constructs" / "ultracluster" / "domain" / "spec.py"
CHANGES = {
    f"Change.{ast.unparse(each.targets[0])}": ast.literal_eval(each.value)
    for definition in ast.parse(SPEC.read_text(encoding="utf-8")).body
    if isinstance(definition, ast.ClassDef) and definition.name == "Change"
    for each in definition.body
    if isinstance(each, ast.Assign)
}
LIMITS = {"ge": "at least", "le": "at most"}


class Fields(griffe.Extension):
    """Reads the annotations of fields, which say more than their types."""

    def on_attribute_instance(self, *, node: Any, attr: griffe.Attribute, **_: Any) -> None:
        """Show a default without its wrapper; end the docstring with choices, range and when the field can change."""
        if not isinstance(node, ast.AnnAssign) or attr.docstring is None:
            return
        choices = attr.module.members.get(ast.unparse(node.annotation).removeprefix("Annotated[").partition(",")[0])
        if (
            choices is not None
            and not choices.is_alias
            and choices.is_attribute
            and str(choices.value).startswith("Literal[")
        ):
            attr.docstring.value += f"\n\nOne of {str(choices.value)[8:-1]}."
        if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "default":
            attr.value = ast.unparse(node.value.args[0])
        parts = [*ast.walk(node.annotation)]
        members = [attr.module.members.get(each.id) for each in parts if isinstance(each, ast.Name)]
        for member in members:  # constants, such as a range that two fields share
            if member is not None and not member.is_alias and str(getattr(member, "value", "")).startswith("Field("):
                parts += ast.walk(ast.parse(str(member.value)))
        for call in (each for each in parts if isinstance(each, ast.Call)):
            if ast.unparse(call.func) == "Setting":
                attr.docstring.value += f"\n\nChange: {CHANGES[ast.unparse(call.args[0])]}."
            limits = [f"{LIMITS[each.arg]} {ast.unparse(each.value)}" for each in call.keywords if each.arg in LIMITS]
            if limits:
                attr.docstring.value += f"\n\nRange: {', '.join(limits)}."

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Give options the signature that type checkers see."""
        options = pkg["options"]
        for cls in options.classes.values():
            if cls.name == "Options":
                cls.del_member("__init__")
                continue
            fields = [each for each in cls.all_members.values() if each.is_attribute and "property" not in each.labels]
            parameters = [
                griffe.Parameter(
                    each.name, annotation=each.annotation, kind=griffe.ParameterKind.keyword_only, default=each.value
                )
                for each in fields
                if each.name not in ("aws", "model_config")
            ]
            cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*parameters)))
