"""A settings file that is in order, changes of it, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from config.settings import SettingsError, load

Write = Callable[[str], Path]
"""Writes a settings file and returns its path."""

Case = tuple[str, str, str, str, str]
"""What changes, into what; the place of the fault; what was got, as it is shown; what is allowed."""

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
"""A file that is in order. The tables change a line or two of it; § stands before the line that is at fault."""

RESERVED = "capacity_reservation_id: cr-0123456789abcdef0"
GROUP = "capacity_reservation_group_arn: arn:aws:resource-groups:us-west-2:123456789012:group/trn1"
KEY = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
A_VPC = "{vpc_id: vpc-01234567, public_subnet_id: subnet-01234567, private_subnet_id: subnet-76543210}"


QUEUE = "cluster.queues[0]"
RESOURCE = f"{QUEUE}.compute_resources[0]"
MORE = "max_count: 16\n§          "


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, f"{old!r} stands {GOOD.count(old)} times in the good file"
    return GOOD.replace(old, new)


def repeated(template: str, count: int) -> str:
    """Return a YAML list on one line."""
    return "[" + ", ".join(template.replace("#", str(index)) for index in range(count)) + "]"


def compute_resources(template: str) -> tuple[str, str]:
    """Return a change that gives the only queue these compute resources."""
    old = GOOD[GOOD.index("compute_resources:") : GOOD.index("  slurm:")].rstrip()
    return old, f"§compute_resources: {template}"


def queues(template: str) -> tuple[str, str]:
    """Return a change of all queues."""
    old = GOOD[GOOD.index("queues:") : GOOD.index("  slurm:")].rstrip()
    return old, f"§queues: {template}"


def outcome(path: Path) -> list[str]:
    with pytest.raises(SettingsError) as error:
        load(path)
    return str(error.value).splitlines()


def line_of_mark(text: str) -> int:
    return text[: text.index("§")].count("\n") + 1


def is_told(write: Write, case: Case) -> None:
    old, new, place, got, allowed = case
    text = changed(old, new)
    path = write(text.replace("§", ""))
    told = outcome(path)
    ours = [line for line in told if f": {place}: " in line and allowed in line]
    assert len(ours) == 1, (case, told)
    assert f" {place}: got {got}; " in ours[0]
    if "§" in text:
        assert ours[0].startswith(f"{path}:{line_of_mark(text)}: ")
