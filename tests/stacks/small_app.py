"""Templates as objects, and a synthesized app of one stack for tests of a construct by itself."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

FLAGS = json.loads((Path(__file__).parents[2] / "cdk.json").read_text(encoding="utf-8"))["context"]
ZONE_ID = "usw2-az4"


class _OneZoneStack(cdk.Stack):
    @property
    def availability_zones(self) -> list[str]:
        return [ZONE_ID]


@dataclass(frozen=True)
class Template:
    """The template of a stack, and what the app's manifest says beside it."""

    body: dict[str, Any]
    missing_context: object
    warnings: list[str]

    def of_type(self, resource_type: str) -> dict[str, dict[str, Any]]:
        return {name: item for name, item in self._resources() if item["Type"] == resource_type}

    def one(self, resource_type: str, **properties: object) -> tuple[str, dict[str, Any]]:
        """Return the only resource of a type that has these properties."""
        (found,) = (
            (name, item)
            for name, item in self.of_type(resource_type).items()
            if properties.items() <= {key: _hashable(value) for key, value in item["Properties"].items()}.items()
        )
        return found

    def properties(self, resource_type: str) -> dict[str, Any]:
        (item,) = self.of_type(resource_type).values()
        return dict(item["Properties"])

    def output(self, name: str) -> Any:
        return self.body["Outputs"][name]["Value"]

    def summary(self) -> dict[str, Any]:
        """Return the summary as a script would read it, with the logical name for each reference."""
        return dict(json.loads(flat(self.output("Summary"))))

    def _resources(self) -> Iterator[tuple[str, dict[str, Any]]]:
        yield from self.body.get("Resources", {}).items()


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


def _hashable(value: object) -> object:
    return value if isinstance(value, str | int | bool) else json.dumps(value)


def new_app(outdir: Path, *, validate: bool = False) -> cdk.App:
    return cdk.App(
        context=FLAGS, outdir=str(outdir), builtin_cloud_formation_validation=validate, analytics_reporting=False
    )


def read_template(directory: Path, stack_name: str) -> Template:
    """Read a stack from a synthesized assembly."""

    def read(name: str) -> Any:
        return json.loads((directory / name).read_text(encoding="utf-8"))

    return Template(
        body=read(f"{stack_name}.template.json"),
        missing_context=read("manifest.json").get("missing"),
        warnings=[
            entry["data"]
            for entries in read(f"{stack_name}.metadata.json").values()
            for entry in entries
            if entry["type"] == "aws:cdk:warning"
        ],
    )


def template_of(app: cdk.App, stack_name: str) -> Template:
    """Synthesize an app, under the rules of AwsSolutions, and return one of its stacks."""
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return read_template(Path(app.synth().directory), stack_name)


def synthesize(build: Callable[[cdk.Stack], object], outdir: Path) -> Template:
    app = new_app(outdir)
    stack = _OneZoneStack(app, "small", env=cdk.Environment(account="123456789012", region="us-west-2"))
    build(stack)
    return template_of(app, "small")
