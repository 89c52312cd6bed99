"""Templates as objects, and the app that they are synthesized with."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk

FLAGS = json.loads((Path(__file__).parents[2] / "cdk.json").read_text(encoding="utf-8"))["context"]


@dataclass(frozen=True)
class Template:
    """The template of a stack."""

    body: dict[str, Any]

    def of_type(self, resource_type: str) -> dict[str, dict[str, Any]]:
        return {name: item for name, item in self.body["Resources"].items() if item["Type"] == resource_type}

    def properties(self, resource_type: str) -> dict[str, Any]:
        (item,) = self.of_type(resource_type).values()
        return dict(item["Properties"])


def flat(value: Any) -> str:
    """Return a template's text, with the target in place of each reference: ``Name`` or ``Name|Attribute``."""
    if isinstance(value, str):
        return value
    ((function, argument),) = value.items()
    if function == "Fn::Join":
        return str(argument[0]).join(map(flat, argument[1]))
    if function == "Fn::GetStackOutput":
        return f"{argument['StackName']}|{argument['OutputName']}"
    if function == "Fn::ImportValue":
        return str(argument).replace(":", "|")
    return argument if isinstance(argument, str) else "|".join(argument)


def new_app(outdir: Path, *, validate: bool = False) -> cdk.App:
    return cdk.App(
        context=FLAGS, outdir=str(outdir), builtin_cloud_formation_validation=validate, analytics_reporting=False
    )


def read_template(directory: Path, stack_name: str) -> Template:
    """Read a stack from a synthesized assembly."""
    return Template(json.loads((directory / f"{stack_name}.template.json").read_text(encoding="utf-8")))
