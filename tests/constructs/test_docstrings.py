"""What editors and ``help()`` show of the library: fields with their facts, and nothing that its users do not have."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest
from aws_cdk import aws_ec2 as ec2
from constructs import Construct
from pydantic import BaseModel

import ultracluster
from config.settings import Settings
from scripts.upkeep.library_docstrings import UNITS, written
from ultracluster.domain.spec import Setting, Spec

ROOT = Path(ultracluster.__file__).parent
TOP = Path(__file__).parents[2]
OF_THE_COMMAND_LINE = "domain/validator*s.py"
"""What commands say of warnings of ParallelCluster; the library says none of it."""
CLASSES = [each for name in ultracluster.__all__ if inspect.isclass(each := getattr(ultracluster, name))]
OPTIONS = [each for each in CLASSES if issubclass(each, Spec)]
NOT_MADE = {
    "ConfiguredCluster",
    "IAccountingDatabase",
    "IFileSystem",
    "ILustreFileSystem",
    "IOpenZfsVolume",
    "IParallelCluster",
    "IUltraClusterNetwork",
    "InvalidArguments",
    "NodeGroup",
}
"""Interfaces, and what the library makes."""
MADE = [each for each in CLASSES if each.__name__ not in NOT_MADE]
PLACE = ("scope", "construct_id")
WIDTH = 120


def test_docstrings_have_what_models_say() -> None:
    changed = [path.name for path, text in written().items() if path.read_text(encoding="utf-8") != text]
    assert changed == [], "make snapshots"


def entries(of: type, section: str) -> dict[str, list[str]]:
    """Return what the docstring of a class says of each name in a section, such as ``Args``."""
    _, _, rest = (inspect.getdoc(of) or "").partition(f"\n{section}:\n")
    said: dict[str, list[str]] = {}
    for entry in re.finditer(r"^    (\w+): (.*(?:\n {8}.*)*)", rest.partition("\n\n")[0], re.MULTILINE):
        said.setdefault(entry[1], []).append(" ".join(entry[2].split()))
    return said


@pytest.mark.parametrize("made", MADE, ids=lambda each: each.__name__)
def test_each_argument_is_described_once_with_unit_default_and_change(made: type) -> None:
    said = entries(made, "Args" if "\nArgs:\n" in (inspect.getdoc(made) or "") else "Attributes")
    parameters = inspect.signature(made).parameters
    assert list(parameters)
    lacking = []
    for name, parameter in parameters.items():
        [entry] = said.get(name, [""])
        wanted = [r"change: "] if name not in PLACE else [r"."]
        wanted += [] if parameter.default is parameter.empty else [r"\b[Dd]efault\b"]
        wanted += [re.escape(unit) for suffix, unit in UNITS.items() if name.endswith(suffix)][:1]
        lacking += [f"{name}: {each}" for each in wanted if not re.search(each, entry)]
    assert lacking == []
    assert said.keys() - parameters.keys() == set()


@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: each.__name__)
def test_options_are_described_as_their_models_say(options: type[Spec]) -> None:
    for name, field in options.model_fields.items():
        [said] = entries(options, "Attributes")[name]
        for setting in field.metadata:
            if isinstance(setting, Setting):
                assert f"change: {setting.change}" in said, name
                assert ("required" if field.is_required() else "default ") in said, name


def shown(each: type) -> list[str]:
    """Return what ``help()`` says of a class, but what it has of other packages."""
    lines = pydoc.plain(pydoc.render_doc(each)).splitlines()
    sections = "\n".join(line.removeprefix(" |").removeprefix("  ") for line in lines).split("\n" + "-" * 70 + "\n")
    return [
        line
        for section in sections
        if not re.match(r"\n*.* inherited from (?!ultracluster\.)[\w.]+:", section)
        for line in section.splitlines()
    ]


@pytest.mark.parametrize("each", CLASSES, ids=lambda each: each.__name__)
def test_no_line_of_help_is_wider_than_a_line_of_code(each: type) -> None:
    assert [line for line in shown(each) if len(line) > WIDTH] == []


@pytest.mark.parametrize("made", MADE, ids=lambda each: each.__name__)
def test_help_begins_with_an_argument_a_line(made: type) -> None:
    """Also with those versions of Python that write signatures on one line."""
    parameters = inspect.signature(made).parameters
    text = "\n".join(shown(made))
    if len(parameters) > 5:
        assert all(re.search(rf"^    {name}(: .*)?( = .*)?,$", text, re.MULTILINE) for name in parameters)
    assert "Annotated" not in text
    assert "Spec(" not in text.replace(made.__name__, ""), "a model, which users do not have"


def test_signatures_bind_and_keep_their_types() -> None:
    queue = inspect.signature(ultracluster.Queue)
    assert queue.bind(name="a", compute_resources=[]).arguments == {"name": "a", "compute_resources": []}
    with pytest.raises(TypeError, match="colour"):
        queue.bind(name="a", compute_resources=[], colour="a")
    cluster = inspect.signature(ultracluster.ParallelCluster)
    assert cluster.parameters["vpc"].annotation is ec2.IVpc
    assert str(cluster.parameters["vpc"]) == "vpc: ec2.IVpc"
    assert "queues: Sequence[Queue]," in str(cluster)
    assert "root_volume_gib: int | cdk.Size | None = 200," in str(queue)


def test_a_class_of_users_has_its_own_signature() -> None:
    class Mine(ultracluster.LustreFileSystem):
        def __init__(self, scope: Construct, construct_id: str, *, small: bool) -> None:
            raise NotImplementedError

    class Mild(ultracluster.Slurm):
        mild: bool = True

    assert list(inspect.signature(Mine).parameters) == ["scope", "construct_id", "small"]
    assert "mild: bool = True" in str(inspect.signature(Mild))


def public(each: type) -> Iterator[tuple[str, str]]:
    """Yield the docstrings of a class and of its own public members, as ``help()`` shows them."""
    yield each.__name__, inspect.getdoc(each) or ""
    for name in dir(each):
        member = inspect.getattr_static(each, name)
        function = getattr(member, "__func__", getattr(member, "fget", member))
        if not name.startswith("_") and str(getattr(function, "__module__", "")).startswith("ultracluster."):
            yield f"{each.__name__}.{name}", inspect.getdoc(function) or ""


def names_of(each: type) -> set[str]:
    """Return members, fields, arguments and described attributes of a class, and arguments of its methods."""
    functions = [getattr(member, "__func__", member) for name in dir(each) for member in [getattr(each, name, None)]]
    return {
        *dir(each),
        *entries(each, "Attributes"),
        *(name for function in (each, *functions) if callable(function) for name in arguments(function)),
    }


def arguments(function: Any) -> Iterable[str]:
    try:
        return inspect.signature(function).parameters
    except ValueError:  # written in C
        return ()


def is_known(reference: str, within: type) -> bool:
    """Return whether users have what a docstring names: a member, an exported class, a module, or a name of the CDK."""
    first, _, rest = reference.removeprefix("ultracluster.").removesuffix("()").partition(".")
    if first in ultracluster.__all__:
        return not rest or rest in names_of(getattr(ultracluster, first))
    if not rest:
        return first in names_of(within)
    module, _, name = reference.removesuffix("()").rpartition(".")
    for each in (module, f"aws_cdk.aws_{module}", "aws_cdk" if module == "cdk" else ""):
        with suppress(ImportError, ValueError):
            return hasattr(import_module(each), name) or bool(import_module(f"{each}.{name}"))
    return False


REFERENCE = re.compile(r"(?<!`)`([^`]+)`(?!`)|:(?:class|meth|attr|func|mod|obj):`~?([^`]+)`")
CALL = re.compile(r"``([A-Z]\w+)[(.]")
"""A class in code."""


@pytest.mark.parametrize("each", CLASSES, ids=lambda each: each.__name__)
def test_docstrings_refer_to_what_users_have(each: type) -> None:
    lost = [
        f"{place}: {reference}"
        for place, text in public(each)
        for reference in [
            *(found[1] or found[2] for found in REFERENCE.finditer(text)),
            *CALL.findall(text),
        ]
        if not is_known(reference, each)
    ]
    assert lost == []


def test_docstrings_name_no_class_that_is_not_exported() -> None:
    """By names with a capital letter within, which no word has."""
    inner = {
        name
        for path in (*ROOT.glob("*.py"), *ROOT.glob("domain/*.py"))
        for definition in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(definition, ast.ClassDef) and re.search(r"[a-z][A-Z]", name := definition.name)
    } - {*ultracluster.__all__, "PyTorch"}
    assert inner
    named = [
        f"{place}: {word}"
        for each in CLASSES
        for place, text in public(each)
        for word in inner.intersection(re.findall(r"\w+", text))
    ]
    assert named == []


def texts(path: Path, but: Container[str] = (), *, docstrings: bool = True) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module: docstrings, messages and what is written into templates.

    Args:
        path: The module.
        but: Functions whose texts are left out.
        docstrings: Whether docstrings are among them.
    """
    nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if getattr(node, "name", "") not in but and (docstrings or not alone):
            nodes += ast.iter_child_nodes(node)


def of_settings(model: type[BaseModel] = Settings, place: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the paths of settings."""
    for name, field in model.model_fields.items():
        if place:
            yield ".".join((*place, name))
        for each in models(field.annotation):
            yield from of_settings(each, (*place, name))


def models(kind: Any) -> Iterator[type[BaseModel]]:
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        yield kind
    for each in get_args(kind):
        yield from models(each)


COMMANDS = "|".join(each.stem.replace("_", "-") for each in (TOP / "scripts/commands").glob("[a-z]*.py"))
PATHS = "|".join(map(re.escape, sorted(of_settings(), key=len, reverse=True)))
NOT_THEIRS = re.compile(
    rf"\./ultracluster|\bdocs/|\bYAML\b|settings file|`[a-z_.]+: [^`]+`|`(ultracluster |make )({COMMANDS})\b"
    rf"|(?<!`)`({COMMANDS}) [^`]*`|\b({PATHS})\b(?!\()"
)
"""Commands, pages, spellings and paths of the project around the library."""


def of_commands(path: Path) -> set[str]:
    """Return what warns in a module, and is called by no construct: the commands ask it."""
    warns = set(re.findall(r"^def (\w*warnings)\(", path.read_text(encoding="utf-8"), re.MULTILINE))
    constructs = "".join(each.read_text(encoding="utf-8") for each in ROOT.glob("*.py"))
    return {name for name in warns if not re.search(rf"\b({path.stem}|rules)\.{name}\(", constructs)}


def test_nothing_names_a_command_or_a_spelling_that_users_do_not_have() -> None:
    modules = [each for each in (*ROOT.glob("*.py"), *ROOT.glob("domain/*.py")) if not each.match(OF_THE_COMMAND_LINE)]
    said = [(path, line, text) for path in modules for line, text in texts(path, of_commands(path))]
    nodes = (ROOT / "nodes").resolve()
    said += [(path, line, text) for path in nodes.rglob("*.py") for line, text in texts(path, docstrings=False)]
    named = [f"{path.name}:{line}: {found[0]}" for path, line, text in said if (found := NOT_THEIRS.search(text))]
    assert named == []


def test_docstrings_of_fields_have_values_of_python() -> None:
    spellings = [
        f"{model.__name__}.{name}: {word[0]}"
        for model in {base for each in OPTIONS for base in each.__mro__ if issubclass(base, Spec)}
        for name, text in model.documented().items()
        if (word := re.search(r"\b(null|true:|false:)", text))
    ]
    assert spellings == []
