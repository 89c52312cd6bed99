"""Every resource of a deployment, with stack, age, cost and tags."""

import io
from decimal import Decimal
from typing import Any

import pytest
from rich.console import Console

from scripts.clock import Clock
from scripts.command import run
from scripts.commands import inventory as program
from scripts.deployment import Account
from scripts.inventory import report as inventory_report
from scripts.inventory.resources import FLEET, KEPT, LEFT, Inventory, inventory
from tests.scripts.account import Operated
from tests.scripts.destroy.destroying import validate

TERMINAL = 80


def types(found: Inventory, stack: str) -> set[str]:
    return {each.type for each in found.resources if each.stack == stack}


def test_has_stacks_nested_ones_and_what_the_fleet_launched(operated: Operated) -> None:
    nodes = operated.launch(5)
    found = inventory(operated.deployment())
    assert {"AWS::EC2::VPC", "AWS::EC2::NatGateway"} <= types(found, "trn1-16-network")
    assert "AWS::FSx::FileSystem" in types(found, "trn1-16-storage")
    assert "AWS::Route53::HostedZone" in types(found, "trn1-16")
    nested = {each.stack for each in found.resources if each.root == "trn1-16-cluster"}
    assert any("ClusterProvider" in each for each in nested)
    assert types(found, FLEET) >= {"AWS::EC2::Instance", "AWS::EC2::NetworkInterface", "AWS::EC2::Volume"}
    assert set(nodes) == {
        each.id for each in found.resources if each.type == "AWS::EC2::Instance" and each.stack == FLEET
    }
    assert types(found, LEFT) <= {"AWS::Logs::LogGroup"}
    assert found.missing == ()


def test_tells_cost_age_data_and_tags(operated: Operated) -> None:
    [node] = operated.launch(1)
    found = {each.id: each for each in inventory(operated.deployment()).resources}
    assert found[node].monthly == Decimal("21.5") * 730
    assert found[node].since is not None
    assert (found[node].tags or {})["parallelcluster:cluster-name"] == "trn1-16"
    [file_system] = [each for each in found.values() if each.type == "AWS::FSx::FileSystem"]
    assert file_system.data
    assert file_system.monthly == Decimal("0.21") * 4800
    assert (file_system.tags or {})["project"] == "trn1-ultracluster"
    [bucket] = [each for each in found.values() if each.type == "AWS::S3::Bucket"]  # the provider's
    assert not bucket.data
    assert bucket.monthly is None
    assert all(each.monthly == 0 for each in found.values() if each.type == "AWS::EC2::SecurityGroup")


def test_lists_the_backups_of_the_file_system(operated: Operated) -> None:
    fsx = operated.client("fsx")
    [name] = [each["FileSystemId"] for each in fsx.describe_file_systems()["FileSystems"]]
    backup = fsx.create_backup(FileSystemId=name)["Backup"]["BackupId"]
    try:
        found = [each for each in inventory(operated.deployment()).resources if each.type == "AWS::FSx::Backup"]
    finally:
        fsx.delete_backup(BackupId=backup)
    assert [(each.id, each.stack, each.data) for each in found] == [(backup, KEPT, True)]


def test_automatic_backups_go_with_their_file_system(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    fsx, listed = operated.client("fsx"), Account.list

    def automatic(account: Account, service: str, operation: str, **parameters: Any) -> list[Any]:
        found = listed(account, service, operation, **parameters)
        return [{**each, "Type": "AUTOMATIC"} for each in found] if operation == "describe_backups" else found

    monkeypatch.setattr(Account, "list", automatic)
    [name] = [each["FileSystemId"] for each in fsx.describe_file_systems()["FileSystems"]]
    backup = fsx.create_backup(FileSystemId=name)["Backup"]["BackupId"]
    try:
        found = {each.id: each.stack for each in inventory(operated.deployment()).resources}
    finally:
        fsx.describe_backups()
        fsx.delete_backup(BackupId=backup)
    assert found[backup] == "trn1-16-storage"


def test_has_the_cluster_that_the_settings_do_not_name(operated: Operated) -> None:
    nodes = operated.launch(2)
    named, other = (inventory(each) for each in (operated.deployment(), operated.deployment().of_generation(2)))
    assert {each.id for each in named.resources} == {each.id for each in other.resources}
    assert {*nodes, operated.head_node} <= {each.id for each in other.resources if each.monthly}
    assert other.monthly == named.monthly


def test_fits_a_terminal_and_counts_what_is_many(operated: Operated) -> None:
    operated.launch(5)
    console = Console(width=TERMINAL, record=True, file=io.StringIO())
    inventory_report.show(inventory(operated.deployment()), console, Clock().now())
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= TERMINAL
    assert any("5 of them" in line and FLEET in line for line in lines)
    assert any("FileSystem *" in line and "$1,008" in line for line in lines)


def test_prints_what_its_schema_describes(operated: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    operated.launch(5)
    operated.calls()
    assert run(program.arguments().parse_args(["trn1-16", "--json"]), program.program) == 0
    document = validate("inventory", capsys.readouterr().out)
    nodes = [each for each in document["resources"] if each["type"] == "AWS::EC2::Instance"]
    assert len(nodes) == 6
    assert operated.calls().count("resourcegroupstaggingapi:GetResources") > 2, "tags come in pages, for two sets"
    assert {each["tags"]["parallelcluster:cluster-name"] for each in nodes} == {"trn1-16"}


def test_prints_markdown(operated: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = operated.launch(5)
    assert run(program.arguments().parse_args(["trn1-16", "--markdown"]), program.program) == 0
    page = capsys.readouterr().out
    assert page.startswith("# What there is of trn1-16\n")
    assert "| FileSystem * | `fs-" in page
    rows = {row[1]: row for line in page.splitlines() if len(row := line[2:-2].split(" | ")) == 6}
    for node in nodes:  # more than three alike, and yet a row each
        what, _, stack, _, monthly, tags = rows[f"`{node}`"]
        assert (what, stack, monthly) == ("Instance", FLEET, "$15,695")
        assert "parallelcluster:cluster-name=trn1-16" in tags.split(", ")
    assert not any("aws:cloudformation" in row[5] for row in rows.values())


def test_a_missing_right_hides_only_what_it_is_for(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": "*", "Resource": "*"},
            {"Effect": "Deny", "Action": "ec2:DescribeVolumes", "Resource": "*"},
        ],
    }
    with operated.aws.restricted(policy) as environment:
        operated.act_as(environment, monkeypatch)
        found = inventory(operated.deployment())
    assert any("DescribeVolumes" in each for each in found.missing)
    assert "AWS::FSx::FileSystem" in types(found, "trn1-16-storage")
