"""What users rely on, in one file: no change of the code drops or renames any of it unnoticed.

golden.txt has the commands, arguments, documented exit codes, checks, keys of JSON output, settings and stack
outputs. `make snapshots` rewrites it; what its diff removes is a breaking change, and belongs in CHANGELOG.md.
Not in it: what programs say to people, and the scripts that nodes run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

import click
import pytest

from config.pipeline import Pipeline
from config.settings import Settings
from scripts.options import common_options
from scripts.reference import commands_page, schemas_by_command
from scripts.settings_reference import settings_page
from tests.command_line import leaves
from tests.configurations import SHIPPED
from toolchain.golden import read_golden

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("golden.txt")
ABSENT = ("h5py", "numpy", "tokenizers", *(f"tokenizers.{name}" for name in ("implementations", "models", "trainers")))
"""What `prepare` imports that only the environment of training jobs has; its command line does not depend on it."""
INTERNAL_OUTPUT = re.compile(r"PublishOutput|ExportsOutput")
"""Outputs by which the CDK hands a value from one stack to another; the golden templates hold these."""


# --- command lines ---


def command_lines() -> Iterator[str]:
    for target in re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE):
        yield f"make {target}"
    for name, command in leaves():
        for parameter in command.params:
            words = "on an account" if parameter.name in common_options(command) else name
            yield f"{words} {_parameter(parameter)}"
        yield f"{name}: exit codes {exit_codes(command.help or '') or 'not documented'}"
    # Undone afterwards, with what was imported meanwhile: no other test may meet a module that is none.
    from training.pretraining import options

    modules = [importlib.import_module("training.submit")]
    with patch.dict(sys.modules, {name: MagicMock() for name in ABSENT if name not in sys.modules}):
        modules.append(importlib.import_module("training.pretraining.prepare"))
    for module in modules:
        with patch("os.cpu_count", return_value=None):  # a default of prepare
            yield from arguments(module.__name__, parser_of(module.main))
        yield f"{module.__name__}: exit codes {exit_codes(module.__doc__ or '') or 'not documented'}"
    yield from arguments("training.pretraining", parser_of(lambda: options.parse([])))


def _parameter(parameter: click.Parameter) -> str:
    words = [", ".join([*parameter.opts, *parameter.secondary_opts])]
    if isinstance(parameter, click.Argument):
        words = [parameter.human_readable_name, *([f"(nargs {parameter.nargs})"] if parameter.nargs != 1 else [])]
    elif not (isinstance(parameter, click.Option) and parameter.is_flag):
        words.append(parameter.make_metavar(click.Context(click.Command("x"))))
    if parameter.envvar:
        words.append(f"or {parameter.envvar}")
    if parameter.required and isinstance(parameter, click.Option):
        words.append("required")
    default = parameter.to_info_dict()["default"]
    if default not in (None, False, "", []):
        words.append(f"= {default}".replace(f"{ROOT}", "."))
    return " ".join(words)


# --- command lines of what runs on the cluster: argparse, because nodes have nothing else ---


class _Parsed(Exception):
    """Carries the parser that a program was about to use."""


def parser_of(read_command_line: Callable[[], object]) -> argparse.ArgumentParser:
    """Return the parser with which a function reads its command line."""

    def parse(parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        raise _Parsed(parser)

    with (
        patch.object(argparse.ArgumentParser, "parse_args", parse),
        patch.object(argparse.ArgumentParser, "parse_known_args", parse),
        patch.object(signal, "signal"),
        patch.object(sys, "argv", ["program"]),
        pytest.raises(_Parsed) as raised,
    ):
        read_command_line()
    parser: argparse.ArgumentParser = raised.value.args[0]
    return parser


def arguments(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, below in action.choices.items():
                yield from arguments(f"{name} {command}", below)
        elif not isinstance(action, argparse._HelpAction):
            yield f"{name} {_argument(action)}"


def _argument(action: argparse.Action) -> str:
    words = [", ".join(action.option_strings) or str(action.metavar or action.dest)]
    if action.option_strings and action.nargs != 0:
        words.append(str(action.metavar or action.dest.upper()))
    if action.nargs not in (None, 0):
        words.append(f"(nargs {action.nargs})")
    if action.choices:
        words.append(f"({'|'.join(map(str, action.choices))})")
    if action.option_strings and action.required:
        words.append("required")
    if action.default not in (None, False, "", [], argparse.SUPPRESS):
        words.append(f"= {action.default}".replace(f"{ROOT}", "."))
    return " ".join(words)


def exit_codes(text: str) -> str:
    """Return the numbers that a docstring names after ``Exit code``; `other`: those of another program, too."""
    paragraph = re.split(r"\n\n", text.partition("Exit code")[2])[0]
    codes = sorted({int(each) for each in re.findall(r"(?<![-\w])\d+(?=[:;,.]| )", paragraph)})
    return " ".join([*map(str, codes), *(["other"] if re.search(r"\bown\b|that of", paragraph) else [])])


def names() -> Iterator[str]:
    """Yield what is named on command lines and in documents, beside arguments."""
    from emulator.faults import FAULTS
    from scripts.preflight.catalog import CATALOG

    yield from (f"preflight check {check.id}" for check in CATALOG)
    yield from (f"rehearse fault {name}" for name in FAULTS)


# --- JSON ---


def fields(schema: Any, node: Any, path: str = "", within: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield path and description of all that a JSON schema describes; what contains its like is followed once."""
    below = [(path, each) for word in ("anyOf", "oneOf", "allOf") for each in node.get(word, ())]
    below += [(f"{path}[]", node["items"])] if "items" in node else []
    named = {f"{path}.{name}": each for name, each in node.get("properties", {}).items()}
    if isinstance(node.get("additionalProperties"), dict):
        names = _resolved(schema, node.get("propertyNames", {})).get("enum", ())
        named |= {f"{path}.{name}": node["additionalProperties"] for name in ("*", *names)}
    yield from named.items()
    for name, each in [*below, *named.items()]:
        yield from fields(schema, each, name, within)
    if "$ref" in node and node["$ref"] not in within:
        yield from fields(schema, _resolved(schema, node), path, (*within, node["$ref"]))


def _resolved(schema: Any, node: Any) -> Any:
    """Return what a node refers to; the node itself if it refers to nothing."""
    return schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def json_keys() -> Iterator[str]:
    for name, schemas in schemas_by_command().items():
        for schema in schemas:
            yield from (f"{name} --output json {path}" for path, _ in fields(schema, schema))


# --- settings, outputs ---


def settings() -> Iterator[str]:
    for file, model in (("config/ENV.yaml", Settings), ("pipeline.yaml", Pipeline)):
        schema = model.model_json_schema()
        for path, node in fields(schema, schema):
            if kind := _kind(schema, node):
                default = f" = {json.dumps(node['default'])}" if "default" in node else ""
                required = "" if "default" in node else " required"
                yield f"{file} {path}: {kind}{default}{required}"


def _kind(schema: Any, node: Any) -> str:
    """Return a setting's type and choices; empty: it is a group of settings, which are told one by one."""
    if "$ref" in node:
        return _kind(schema, _resolved(schema, node))
    if "anyOf" in node:
        return " | ".join(kind for each in node["anyOf"] if (kind := _kind(schema, each)))
    if "enum" in node or "const" in node:
        return " | ".join(map(json.dumps, node.get("enum", [node.get("const")])))
    if node.get("type") == "array":
        return f"list of {_kind(schema, node['items']) or 'groups'}"
    return "" if "properties" in node else str(node.get("type"))


def outputs() -> Iterator[str]:
    """Yield the outputs of the stacks of each shipped configuration, as the golden templates have them."""
    lines: dict[str, list[str]] = {}
    for name in (*SHIPPED, "pipeline"):
        for stack, template in read_golden(ROOT / "tests" / "snapshots" / name).items():
            for output in template.get("Outputs", {}):
                if not INTERNAL_OUTPUT.match(output):
                    lines.setdefault(f"stack {stack.removeprefix(f'{name}-')} output {output}", []).append(name)
    for line, names in lines.items():
        yield f"{line}: {', '.join(sorted(names))}"


def test_nothing_that_users_rely_on_changes_unnoticed(pytestconfig: pytest.Config) -> None:
    parts = (command_lines(), names(), json_keys(), settings(), outputs())
    text = "\n".join("".join(f"{line}\n" for line in sorted(set(part))) for part in parts)
    if pytestconfig.getoption("update_snapshots"):
        GOLDEN.write_text(text, encoding="utf-8")
    golden = GOLDEN.read_text(encoding="utf-8")
    changes = "\n".join(unified_diff(golden.splitlines(), text.splitlines(), "golden", "now", n=0, lineterm=""))
    assert golden == text, f"{changes}\nIf that is meant, run `make snapshots`, and tell it in CHANGELOG.md."


def test_every_command_with_json_has_a_schema() -> None:
    formats = {name: {each.name: each.type for each in command.params}.get("output") for name, command in leaves()}
    with_json = {name for name, kind in formats.items() if isinstance(kind, click.Choice) and "json" in kind.choices}
    described = schemas_by_command().keys()
    assert {name for name in with_json if not {name, name.partition(" ")[0]} & described} == set()


def test_reference_pages_are_those_of_commands_and_settings(pytestconfig: pytest.Config) -> None:
    pages = {ROOT / "docs/reference/commands.md": commands_page()}
    pages[ROOT / "docs/reference/settings.md"] = settings_page()
    for name, schemas in schemas_by_command().items():
        text = json.dumps(schemas[0] if len(schemas) == 1 else {"anyOf": schemas}, indent=2) + "\n"
        pages[ROOT / f"docs/reference/schemas/{name.replace(' ', '-')}.json"] = text
    if pytestconfig.getoption("update_snapshots"):
        for path, text in pages.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    stale = [path.name for path, text in pages.items() if not path.exists() or path.read_text("utf-8") != text]
    assert stale == [], "run `make snapshots`"
    assert {path.name for path in (ROOT / "docs/reference/schemas").glob("*")} == {
        path.name for path in pages if path.suffix == ".json"
    }
