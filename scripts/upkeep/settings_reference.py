"""The reference of all settings, from their declarations: `make snapshots` writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from config.settings import Settings
from ultracluster.domain.spec import Change, documentation

_INTRODUCTION: Final = """\
# Settings

Generated from the declarations of `config/DEPLOYMENT.yaml`, which `./ultracluster init` writes and
`./ultracluster validate` checks. A file says only what differs from the defaults. Editors that know YAML complete and
check it by its first line. Combinations that AWS refuses are errors, all of which are reported at once.

What a change needs is the same that `./ultracluster plan` tells of yours
([what a change does](plan.md#what-a-change-does-to-a-running-cluster)):

| change | what it means |
|---|---|
"""
_MEANINGS: Final[Mapping[Change, str]] = {
    Change.AT_ONCE: "`./ultracluster deploy`; what runs continues",
    Change.DRAINS: "`./ultracluster deploy`; nodes that it concerns are replaced as their jobs end, by "
    "`cluster.slurm.queue_update_strategy`",
    Change.STOPPED_FLEET: "`./ultracluster fleet stop`, `deploy`, `fleet start`",
    Change.NO_LOGIN_NODES: "two deployments: first with `count: 0` in `cluster.login_nodes`",
    Change.STOPPED_NODES: "`count: 0` in `cluster.login_nodes`, `deploy`, then as for a stopped fleet",
    Change.TWO_DEPLOYMENTS: "first without this entry of `storage.data_repositories`, then with the new one",
    Change.NEW_CLUSTER: "`./ultracluster upgrade`: another cluster on the same network and file system",
    Change.NEW_FILE_SYSTEM: "`./ultracluster deploy --accept-replacement`: another file system, which is empty",
    Change.NEW_DEPLOYMENT: "another settings file with another `name`, and all data copied",
    Change.BY_KEY: "ParallelCluster has an answer for each key; `./ultracluster plan` tells it",
}
_UNITS: Final[Mapping[str, str]] = {
    "_gib": "GiB",
    "_days": "days",
    "_hours": "hours",
    "_minutes": "minutes",
    "_percent": "percent",
    "_mbps_per_tib": "MB/s per TiB",
    "_iops": "IOPS",
}
"""Units by what the names of quantities end in."""


def settings_page() -> str:
    """Return the page, in Markdown."""
    schema = Settings.model_json_schema()
    rows = "".join(f"| {change} | {_MEANINGS[change]} |\n" for change in Change)
    return "".join([_INTRODUCTION, rows, *_section(schema, schema, "", {})])


def _section(schema: dict[str, Any], model: dict[str, Any], place: str, shown: dict[int, str]) -> Iterator[str]:
    """Yield a section for a model, then those of the models within it; where it was shown before, a link to that."""
    yield f"\n## {place or 'The file'}\n\n{_text(model)}\n"
    if (first := shown.setdefault(id(model), place)) != place:
        yield f"\nAs [{first}](#{re.sub('[^a-z0-9_]', '', first.lower())}).\n"
        return
    required, within = model.get("required", ()), []
    for name, node in model["properties"].items():
        below = f"{place}.{name}" if place else name
        inner, suffix = _model(schema, node)
        if "x-change" in node:
            yield f"\n### {below}\n\n{_text(node)}\n\n{_facts(schema, name, node, is_required=name in required)}\n"
        if inner is not None:
            within.append((inner, f"{below}{suffix}"))
    for inner, below in within:
        yield from _section(schema, inner, below, shown)


def _model(schema: dict[str, Any], node: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return the model that a value or its items have, and the end of its place."""
    suffix, node = ("[]", node["items"]) if "items" in node else ("", node)
    for each in (node, *node.get("anyOf", ())):
        if "$ref" in each:
            return schema["$defs"][each["$ref"].rpartition("/")[2]], suffix
    return None, suffix


def _text(node: dict[str, Any]) -> str:
    return " ".join(node.get("description", "").partition("\n\n")[0].split())


def _facts(schema: dict[str, Any], name: str, node: dict[str, Any], *, is_required: bool) -> str:
    unit = next((f" ({unit})" for end, unit in _UNITS.items() if name.endswith(end)), "")
    default = "required" if is_required else f"default `{json.dumps(node['default'])}`"
    direction = f", {node['x-growth']}" if "x-growth" in node else ""
    facts = [f"{_kind(schema, node)}{unit}", default, f"change: **{node['x-change']}**{direction}"]
    if "x-aws" in node:
        facts.append(f"[{node['x-aws']}]({documentation(node['x-aws'])})")
    if "x-page" in node:
        facts.append(f"[more]({node['x-page']})")
    return "; ".join(facts)


def _kind(schema: dict[str, Any], node: dict[str, Any]) -> str:
    """Return type, range and choices of a value, in words."""
    if "anyOf" in node:
        return ", or ".join("null" if each.get("type") == "null" else _kind(schema, each) for each in node["anyOf"])
    if "enum" in node or "const" in node:
        *others, last = (f"`{each}`" for each in node.get("enum", [node.get("const")]))
        return f"{', '.join(others)} or {last}" if others else last
    told = _RANGE if "x-allowed" in node else ()
    limits = [form.format(node[key]) for key, form in _LIMITS.items() if key in node and key not in told]
    values = node.get("items") or node.get("additionalProperties")
    of_what = f" of {_kind(schema, values)}" if isinstance(values, dict) else ""
    kind = node.get("type", "object")
    if isinstance(kind, list):  # a list, or the name of a file
        kind, *others = kind
        limits += [f"or {_TYPES[each]}" for each in others]
    return ", ".join([f"{_TYPES[kind]}{of_what}", *limits])


_TYPES: Final = {
    "array": "list",
    "boolean": "true or false",
    "integer": "integer",
    "number": "number",
    "object": "mapping",
    "string": "text",
}
_RANGE: Final = ("minimum", "maximum")
"""What ``x-allowed`` says better."""
_LIMITS: Final = {
    "patternErrorMessage": "{}",
    "x-allowed": "{}",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "maxLength": "at most {} characters",
}
