"""Write what models say of fields into the docstrings of the construct library, where editors and ``help()`` show it.

Options of a cluster get a list of their fields. Arguments of constructs get, in brackets at the end of what is written,
unit, range, default and when the argument can change. `make snapshots` runs it; a test holds the files in step.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from ultracluster.domain import (
    accounting,
    budget,
    cluster,
    custom_actions,
    directory,
    homes,
    lustre,
    monitoring,
    network,
    snapshots,
    storage,
    team,
)
from ultracluster.domain.spec import Setting, Spec

LIBRARY: Final = Path(lustre.__file__).parents[1]
_MODELS: Final[Mapping[tuple[str, str], type[Spec]]] = {
    ("lustre.py", "LustreFileSystem"): lustre.LustreSpec,
    ("lustre.py", "add_data_repository"): lustre.DataRepository,
    ("homes.py", "OpenZfsFileSystem"): homes.OpenZfsSpec,
    ("network.py", "UltraClusterNetwork"): network.NetworkSpec,
    ("accounting_database.py", "AccountingDatabase"): accounting.DatabaseSpec,
    ("monitoring.py", "ClusterMonitoring"): monitoring.ClusterMonitoringSpec,
    ("snapshots.py", "HeadNodeSnapshots"): snapshots.SnapshotSpec,
    ("parallel_cluster.py", "ParallelCluster"): cluster.ClusterSpec,
    ("neuron_software.py", "NeuronSoftware"): cluster.ClusterOptions,
}
"""Models of the arguments of classes and functions."""
_FIELDS: Final = {
    "cluster_name": "name",
    "flow_log_retention": "flow_log_retention_days",
    "kms_key": "kms_key_arn",
    "log_retention": "log_retention_days",
    "munge_key": "munge_key_secret_arn",
}
"""Fields of arguments with names of their own."""
_RETENTIONS: Final = {"log_retention", "flow_log_retention"}
"""Arguments that are periods of the CDK."""
_OTHER_TYPES: Final = {"kms_key", "munge_key", "prefix", *_RETENTIONS}
"""Arguments of other types than their fields: the form of the value is not theirs."""
UNITS: Final = {
    "_mbps_per_tib": "MB/s per TiB", "_mbps": "MB/s", "_gib": "GiB", "_minutes": "minutes", "_hours": "hours",
    "_days": "days", "_percent": "percent", "_usd": "US dollars", "_usd_per_hour": "US dollars",
}  # fmt: skip
"""By the end of a name."""
_SPACES: Final = 8
_WIDTH: Final = 120


def written() -> dict[Path, str]:
    """Return the files with docstrings that are made here, as they should be."""
    texts = {LIBRARY / name: (LIBRARY / name).read_text(encoding="utf-8") for name in {each for each, _ in _MODELS}}
    for (name, definition), model in _MODELS.items():
        path = LIBRARY / name
        texts[path] = _with_facts(texts[path], definition, model)
    options = LIBRARY / "options.py"
    return {**texts, options: _with_fields(options.read_text(encoding="utf-8"))}


def facts(model: type[Spec], name: str, argument: str = "", said: str = "") -> str:
    """Return unit, range, default and change of a field: ``[GiB; 20 to 16384; default 200; change: nodes drain]``.

    Args:
        model: The model of the field.
        name: Its name there.
        argument: The argument that takes it, of a construct.
        said: What is written of the argument, maybe with its default.
    """
    field, schema = model.model_fields[name], model.model_json_schema()
    property_ = schema["properties"][name]
    words = [unit for suffix, unit in UNITS.items() if name.endswith(suffix)][:1]
    if get_origin(field.annotation) is Literal:  # a schema of settings may have fewer
        words.append("one of " + ", ".join(map(repr, get_args(field.annotation))))
    elif argument not in _OTHER_TYPES:
        words += [*_allowed(property_)]
    default = field.get_default()
    if field.is_required():
        words += ["required"] if argument == "" else []
    elif argument in _RETENTIONS:
        words.append(f"default {default} days")
    elif not isinstance(default, Spec) and argument not in _OTHER_TYPES and "Default: " not in said:
        words.append(f"default {_written(default)}")
    for setting in (each for each in field.metadata if isinstance(each, Setting)):
        words.append(f"change: {setting.change}" + (f", {setting.growth}" if setting.growth else ""))
    return f"[{'; '.join(words)}]" if words else ""


def _written(default: object) -> str:
    """Return a default without brackets, which are around all of it."""
    if isinstance(default, list | dict):
        return ", ".join(map(repr, default)) or "empty"
    return repr(default)


def _allowed(property_: Mapping[str, Any]) -> Iterator[str]:
    branches = [property_, *property_.get("anyOf", ())]
    found = {key: value for each in branches for key, value in each.items()}
    if "enum" in found and len(found["enum"]) <= 12:  # noqa: PLR2004 a line or two
        yield "one of " + ", ".join(repr(each) for each in found["enum"])
    low = found.get("minimum", found.get("exclusiveMinimum"))
    if low is not None:
        least = "above " if "exclusiveMinimum" in found else ""
        high = found.get("maximum")
        yield f"{least}{low:,} to {high:,}" if high is not None else f"at least {low:,}"
    elif "maximum" in found:
        yield f"at most {found['maximum']:,}"
    for key in ("patternErrorMessage", "x-allowed"):
        if key in found:
            yield found[key]


def _with_facts(text: str, definition: str, model: type[Spec]) -> str:
    """Return a source in which the docstring of a class or function has the facts of its arguments."""
    docstring = _docstring(text, definition)
    indent = len(docstring[-1]) - len(docstring[-1].lstrip()) + 4

    def entry(lines: list[str]) -> list[str]:
        argument = lines[0].strip().partition(":")[0]
        field = _FIELDS.get(argument, argument)
        if field not in model.model_fields or issubclass(_kind(model, field), Spec):
            return lines
        said = re.sub(r"( \[[^\[\]]*\])+$", "", " ".join(each.strip() for each in lines))
        return _wrapped(f"{said} {facts(model, field, argument, said)}", indent)

    made, lines, section = [*docstring[:1]], docstring[1:], ""
    for block in _blocks(lines, indent):
        if re.fullmatch(rf" {{{indent - 4}}}\w+:", block[0]):
            section = block[0].strip()
        is_entry = section in ("Args:", "Attributes:") and re.match(rf" {{{indent}}}\w+: ", block[0])
        made += entry(block) if is_entry and (section == "Args:" or definition == "NeuronSoftware") else block
    return text.replace("\n".join(docstring), "\n".join(made))


def _kind(model: type[Spec], field: str) -> type:
    kind = model.model_fields[field].annotation
    return kind if isinstance(kind, type) else object


def _blocks(lines: list[str], indent: int) -> Iterator[list[str]]:
    """Yield the lines of a docstring, with those of an entry together."""
    block: list[str] = []
    for line in lines:
        if block and line.startswith(" " * (indent + 1)):
            block.append(line)
            continue
        if block:
            yield block
        block = [line]
    yield block


def _docstring(text: str, definition: str) -> list[str]:
    """Return the lines of the docstring of a class, or of a method."""
    [found] = [
        each
        for each in ast.walk(ast.parse(text))
        if isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name == definition
    ]
    node = found.body[0]
    return text.split("\n")[node.lineno - 1 : node.end_lineno]


def _with_fields(text: str) -> str:
    """Return the source of options, whose classes list their fields."""
    domain = {
        name: value
        for each in (cluster, budget, custom_actions, directory, storage, team)
        for name, value in vars(each).items()
    }
    for name in [each.name for each in ast.parse(text).body if isinstance(each, ast.ClassDef)]:
        definition = next(each for each in ast.parse(text).body if getattr(each, "name", "") == name)
        if not isinstance(definition, ast.ClassDef) or len(definition.bases) != 2:  # noqa: PLR2004 options and a model
            continue
        model: type[Spec] = domain[ast.unparse(definition.bases[1]).rpartition(".")[2]]
        own = [
            (each.target.id, ast.literal_eval(next_one.value))
            for each, next_one in zip(definition.body, definition.body[1:], strict=False)
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and isinstance(next_one, ast.Expr)
        ]
        documented = model.documented()
        described = [(each, f"{documented.get(each, '')} {facts(model, each)}") for each in model.model_fields]
        docstring = "\n".join(_docstring(text, definition.name))
        summary = docstring.strip().removeprefix('"""').partition("\n")[0].removesuffix('"""')
        entries = [line for each, said in [*described, *own] for line in _wrapped(f"{each}: {said.strip()}", _SPACES)]
        made = "\n".join([f'    """{summary}', "", "    Attributes:", *entries, '    """'])
        text = text.replace(f"{_head(text, definition)}\n{docstring}", f"{_head(text, definition)}\n{made}")
    return text


def _head(text: str, definition: ast.ClassDef) -> str:
    return text.split("\n")[definition.lineno - 1]


def _wrapped(entry: str, indent: int) -> list[str]:
    return textwrap.wrap(
        " ".join(entry.split()),
        width=_WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 4),
        break_long_words=False,
        break_on_hyphens=False,
    )


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
