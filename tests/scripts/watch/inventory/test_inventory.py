"""Every resource of a deployment, with stack, age, cost and tags."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from scripts.account.deployment import Account
from scripts.watch.inventory.model import Inventory, Resource
from scripts.watch.inventory.resources import FLEET, KEPT, LEFT, inventory
from tests.command_line import ultracluster
from tests.scripts.operated import Operated
from tests.scripts.reports import as_markdown, shown

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LAUNCHED = [
    Resource(
        type="AWS::EC2::Instance",
        id=f"i-{number}",
        stack=FLEET,
        since=NOW - timedelta(days=number),
        dollars_per_month=Decimal(100),
        tags={"project": "a|b", "aws:cloudformation:stack-name": "x"},
    )
    for number in range(1, 6)
]
FILE_SYSTEM = Resource(
    type="AWS::FSx::FileSystem", id=f"fs-{'0' * 60}7", stack="trn1-16-storage", dollars_per_month=Decimal("1008.4")
)
BUCKET = Resource(type="AWS::S3::Bucket", id="pages", stack="trn1-16-storage", dollars_per_month=None)
PROVIDERS_BUCKET = Resource(type="AWS::S3::Bucket", id="trn1-16-pclustercustomresourcebucket-x", stack="trn1-16")
INVENTORY = Inventory(
    deployment="trn1-16",
    resources=(*LAUNCHED, FILE_SYSTEM, BUCKET, PROVIDERS_BUCKET),
    not_listed=("fsx: denied",),
    time=NOW,
)


def test_the_table_fits_80_columns_and_has_one_line_for_many_of_a_kind() -> None:
    lines = [line.rstrip() for line in shown(INVENTORY.blocks()).splitlines()]
    assert max(map(len, lines)) <= 80
    assert any(line.split() == ["Instance", "5", "of", "them", "(fleet)", "5", "d", "$500"] for line in lines)
    assert any("FileSystem *" in line and "$1,008" in line for line in lines)
    assert any("Bucket *" in line and "pages" in line and line.endswith("by use") for line in lines)
    assert any(line.startswith("Bucket   ") and line.endswith("-") for line in lines), "the provider's holds no data"
    assert lines[-2].endswith("paid by use, or of no known price.")
    assert lines[-1] == "Not listed: fsx: denied"


def test_markdown_has_every_resource_with_its_own_tags() -> None:
    lines = as_markdown(INVENTORY.page()).splitlines()
    assert "$1,508 a month" in lines[0], "the answer first"
    assert sum(line.startswith("| Instance |") for line in lines) == 5
    assert "| Instance | i-1 | (fleet) | 1 d | $100 | project=a\\|b |" in lines


def types(present: Inventory, stack: str) -> set[str]:
    return {each.type for each in present.resources if each.stack == stack}


@pytest.mark.slow
def test_in_an_account(operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Stacks with nested ones, what the fleet launched, costs, tags, backups, and all generations."""
    nodes, fsx = operated.launch(5), operated.client("fsx")
    [name] = [each["FileSystemId"] for each in fsx.describe_file_systems()["FileSystems"]]
    backup = fsx.create_backup(FileSystemId=name)["Backup"]["BackupId"]
    operated.calls()
    assert ultracluster("inventory", "trn1-16", "--output", "json") == 0
    assert operated.calls().count("resourcegroupstaggingapi:GetResources") > 2, "tags come in pages, for two sets"
    printed = capsys.readouterr().out
    assert f'"id": "{name}"' in printed

    present = inventory(operated.deployment())
    assert {"AWS::EC2::VPC", "AWS::EC2::NatGateway"} <= types(present, "trn1-16-network")
    assert "AWS::FSx::FileSystem" in types(present, "trn1-16-storage")
    assert "AWS::Route53::HostedZone" in types(present, "trn1-16")
    nested = {each.stack for each in present.resources if each.root == "trn1-16-cluster"}
    assert any("ClusterProvider" in each for each in nested)
    assert types(present, FLEET) >= {"AWS::EC2::Instance", "AWS::EC2::NetworkInterface", "AWS::EC2::Volume"}
    assert types(present, LEFT) <= {"AWS::Logs::LogGroup"}
    assert present.not_listed == ()
    known = {each.id: each for each in present.resources}
    node, file_system = known[nodes[0]], known[name]
    assert (node.stack, node.dollars_per_month) == (FLEET, Decimal("21.5") * 730)
    assert node.since is not None
    assert node.tags["parallelcluster:cluster-name"] == "trn1-16"
    assert file_system.tags["project"] == "trn1-ultracluster"
    assert (file_system.holds_data, file_system.dollars_per_month) == (True, Decimal("0.21") * 4800)
    assert (known[backup].stack, known[backup].holds_data) == (KEPT, True)
    assert all(each.dollars_per_month == 0 for each in known.values() if each.type == "AWS::EC2::SecurityGroup")

    other = inventory(operated.deployment().of_generation(2))
    assert {each.id for each in other.resources} == set(known)
    assert other.dollars_per_month == present.dollars_per_month

    listed = Account.list

    def automatic(account: Account, service: str, operation: str, **parameters: Any) -> list[Any]:
        answer = listed(account, service, operation, **parameters)
        return [{**each, "Type": "AUTOMATIC"} for each in answer] if operation == "describe_backups" else answer

    monkeypatch.setattr(Account, "list", automatic)
    deny = {"Effect": "Deny", "Action": "ec2:DescribeVolumes", "Resource": "*"}
    allow = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    with operated.aws.restricted({"Version": "2012-10-17", "Statement": [allow, deny]}) as environment:
        operated.act_as(environment, monkeypatch)
        present = inventory(operated.deployment())
    fsx.delete_backup(BackupId=backup)
    assert {each.id: each.stack for each in present.resources}[backup] == "trn1-16-storage", (
        "deleted with its file system"
    )
    assert any("DescribeVolumes" in each for each in present.not_listed)
    assert "AWS::FSx::FileSystem" in types(present, "trn1-16-storage")
