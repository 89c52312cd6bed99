"""Write the table of slurm.conf's parameters, from the source of the Slurm that ParallelCluster ships.

``.venv/bin/python scripts/upkeep/slurm_parameters.py READ_CONFIG VERSION``, with src/common/read_config.c of that
version's tag (https://github.com/SchedMD/slurm). A parameter is what the parser has a row for; where reading it ends
with "has been removed", it is none.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ultracluster.domain import slurm_parameters

MODULE: Final = Path(slurm_parameters.__file__)
ARRAYS: Final = {
    "CLUSTER": "slurm_conf_options",
    "NODE": "_nodename_options",
    "PARTITION": "_partition_options",
    "NODE_SET": "_nodeset_options",
    "DOWN_NODES": "_downnodes_options",
}
"""Names of the parser's tables."""
_KINDS: Final = {
    "S_P_BOOLEAN": "boolean",
    "S_P_UINT16": "uint16",
    "S_P_UINT32": "uint32",
    "S_P_UINT64": "uint64",
    "S_P_STRING": "text",
    "S_P_ARRAY": "text",
}
_ROW: Final = re.compile(r'\{\s*"(\w+)"\s*,\s*(S_P_\w+)')
_REMOVED: Final = re.compile(r'fatal\("(?:The )?(\w+)(?: option)? has been removed')

Tables = Mapping[str, Mapping[str, str]]
"""Kinds of value by parameter, by table."""


def tables(source: str) -> Tables:
    """Return the tables of a read_config.c.

    Raises:
        ValueError: It lacks one; the message names it.
    """
    removed = set(_REMOVED.findall(source))
    found: dict[str, dict[str, str]] = {}
    for name, array in ARRAYS.items():
        body = re.search(rf"\b{array}\[\] = \{{(.*?)\{{\s*NULL\s*\}}", source, re.DOTALL)
        if body is None:
            raise ValueError(f"no table {array}")
        found[name] = {each: _KINDS[kind] for each, kind in _ROW.findall(body[1]) if each not in removed}
    return found


def rendered(parameters: Tables, version: str) -> str:
    """Return the text of the module."""
    lines = [
        f'"""Parameters of slurm.conf in Slurm {version}, by what a line is of, with the kind of their value.',
        "",
        "Written by scripts/upkeep/slurm_parameters.py from src/common/read_config.c",
        "(https://github.com/SchedMD/slurm); https://slurm.schedmd.com/slurm.conf.html describes them.",
        '"""',
        "",
        "from collections.abc import Mapping",
        "",
        f'VERSION = "{version}"',
        "",
        "",
        "def _by_name(**kinds: str) -> Mapping[str, str]:",
        "    return {name: kind for kind, names in kinds.items() for name in names.split()}",
        "",
    ]
    for name, table in parameters.items():
        lines += ["", f"{name} = _by_name("]
        for kind in sorted(set(table.values())):
            names = sorted((each for each, of in table.items() if of == kind), key=str.lower)
            wrapped = textwrap.wrap(" ".join(names), 110, initial_indent=" " * 8, subsequent_indent=" " * 8)
            lines += [f'    {kind}="""', *wrapped, '    """,']
        lines.append(")")
    return "\n".join(lines) + "\n"


def main(path: str, version: str) -> None:
    """Write the module."""
    source = Path(path).read_text(encoding="utf-8")
    MODULE.write_text(rendered(tables(source), version), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
