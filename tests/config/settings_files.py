"""A settings file that breaks no rule, changes of it, and what is reported about them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from config.settings import SettingsError, load

Write = Callable[[str], Path]
"""Writes a settings file and returns its path."""

GOOD = dedent("""\
    name: trn1
    account: null
    region: us-west-2
    zone_id: usw2-az4
    tags: {project: trn1}
    termination_protection: [network]
    network:
      cidr: 10.0.0.0/16
      public_subnet_cidr: 10.0.0.0/24
      private_subnet_cidr: 10.0.64.0/18
      nat_addresses: 1
    storage:
      file_system:
        capacity_gib: 4800
        backup_retention_days: 7
      data_repositories: []
      retain: true
    cluster:
      name: null
      pytorch: "2.9"
      head_node:
        ssh_cidr: null
      login_nodes: []
      queues:
        - name: trn1
          capacity_type: ONDEMAND
          compute_resources:
            - name: trn1-32xl
              instance_type: trn1.32xlarge
              max_count: 16
      slurm: {custom_settings: {}}
      overrides: {}
    monitoring: {}
    """)

NOT_YET = ": not all rules of "
QUEUE = "cluster.queues[0]"
RESOURCE = f"{QUEUE}.compute_resources[0]"


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, f"{old!r} is {GOOD.count(old)} times in the good file"
    return GOOD.replace(old, new)


def put(content: Any, place: str | tuple[str | int, ...], value: Any) -> None:
    """Change a value in place, or add it with the mappings around it: at ``cluster.queues[0].name``, or at its keys."""
    if isinstance(place, str):
        parts = place.replace("[", ".").replace("]", "").split(".")
        place = tuple(int(part) if part.isdigit() else part for part in parts)
    *parents, last = place
    for key in parents:
        content = content[key] if isinstance(key, int) else content.setdefault(key, {})
    content[last] = value


def with_values(values: dict[str, Any]) -> str:
    """Return the good file with other values, by place."""
    content = yaml.safe_load(GOOD)
    for place, value in values.items():
        put(content, place, value)
    return yaml.safe_dump(content, sort_keys=False)


def message(path: Path) -> list[str]:
    """Return the lines that are reported."""
    with pytest.raises(SettingsError) as error:
        load(path)
    return str(error.value).splitlines()


def outcome(path: Path) -> list[str]:
    """Return the lines that are reported, without that on rules which are not checked yet."""
    return [line for line in message(path) if NOT_YET not in line]


def places(path: Path) -> list[str]:
    """Return the places that are reported."""
    return [line.removeprefix(f"{path}:").split(": ")[1] for line in outcome(path)]
