"""What a destruction would do, and what stands against it: told before anything happens."""

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from rich.console import Console

from emulator.aws import EmulatedAws
from scripts.command import Say, run
from scripts.commands import destroy
from scripts.destroy import plan as destruction_plan
from scripts.destroy import report as destruction_report
from scripts.destroy.outcome import Backup, Outcome
from scripts.inventory.leftovers_model import Found
from tests.scripts.account import Operated
from tests.scripts.destroy.destroying import Terminal, validate

EVERYTHING = ("cluster", "monitoring", "storage", "network")


def program(*arguments: str) -> int:
    return run(destroy.arguments().parse_args(arguments), destroy.program)


def obstacles(operated: Operated) -> str:
    return " ".join(destruction_plan.plan(operated.deployment(), EVERYTHING, unprotect=True).obstacles)


def test_asks_nobody_without_a_terminal(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("trn1-16\n"))
    operated.calls()
    assert program("trn1-16") == 2
    assert "got no terminal" in capsys.readouterr().err
    assert operated.calls() == []


def test_refuses_a_bucket_without_storage(operated: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    assert program("trn1-16", "--bucket", "--yes") == 2
    assert "with --storage" in capsys.readouterr().err


def test_json_asks_nobody(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("trn1-16\n"))
    operated.calls()
    assert program("trn1-16", "--json") == 2
    assert "allowed: with --yes or --dry-run" in capsys.readouterr().err
    assert operated.calls() == []


def test_json_tells_on_standard_error_what_happens(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def destroy_nothing(*_: object, say: Say, outcome: Outcome, **__: object) -> None:
        say("The stop is requested.")
        outcome.left = []

    monkeypatch.setattr("scripts.destroy.destroy.destroy", destroy_nothing)
    assert program("trn1-16", "--json", "--yes") == 0
    printed = capsys.readouterr()
    assert validate("destroy", printed.out)["outcome"]["deleted"] == []
    assert printed.err == "The stop is requested.\n"


def test_a_wrong_name_deletes_nothing(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("trn1-61\n"))
    assert program("trn1-16") == 1
    assert "got 'trn1-61'; nothing was deleted" in capsys.readouterr().err
    assert operated.deployment().stack("trn1-16-cluster") is not None


def test_the_outcome_fits_80_columns_with_what_is_left_and_its_costs(operated: Operated) -> None:
    logs = Found("AWS::Logs::LogGroup", "/aws/parallelcluster/trn1-16-202611210730", "logs of the cluster", kept=True)
    volume = Found("AWS::EC2::Volume", "vol-0123456789abcdef0", "tag parallelcluster:cluster-name=trn1-16")
    table = Found("AWS::DynamoDB::Table", "parallelcluster-trn1-16", "tag parallelcluster:cluster-name=trn1-16")
    outcome = Outcome(
        datetime(2026, 11, 21, 8, 0, tzinfo=UTC),
        ["trn1-16-cluster", "trn1-16", "trn1-16-monitoring", "trn1-16-storage", "trn1-16-network"],
        [Backup("backup-0123456789abcdef0", Decimal(240))],
        [f"trn1-16-network stays, for {'sg-0123456789abcdef0, ' * 4} stands on it."],
        [table, volume, logs],
        {
            (volume.type, volume.id): Decimal("2.8"),
            (table.type, table.id): None,
            (logs.type, logs.id): Decimal("0.001"),
        },
        datetime(2026, 11, 21, 8, 12, 5, tzinfo=UTC),
    )
    screen = io.StringIO()
    destruction_report.show_outcome(operated.deployment(), outcome, Console(file=screen, width=80))
    lines = [each.rstrip() for each in screen.getvalue().splitlines()]
    assert max(map(len, lines)) <= 80
    assert "Deleted in 12 min 5 s: trn1-16-cluster, trn1-16, trn1-16-monitoring," in lines
    assert "Backup: backup-0123456789abcdef0. It costs at most $240 a month until you delete" in lines
    assert "  aws fsx delete-backup --backup-id backup-0123456789abcdef0 --region us-west-2" in lines
    assert "  aws ec2 delete-volume --volume-id vol-0123456789abcdef0 --region us-west-2" in lines
    text = " ".join(screen.getvalue().split())
    assert "Left over; --sweep removes what holds no data: parallelcluster-trn1-16: tag" in text
    assert "cluster-name=trn1-16, paid by use vol-0123456789abcdef0 *: tag" in text
    assert "cluster-name=trn1-16, $2.80 a month Kept on purpose: /aws/parallelcluster/" in text
    assert "logs of the cluster * holds data." in text


def test_names_all_obstacles_at_once_and_does_nothing(operated: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    assert program("trn1-16", "--all", "--yes", "--json") == 1
    document = validate("destroy", capsys.readouterr().out)
    obstacles = " ".join(document["plan"]["obstacles"])
    assert "trn1-16-network has termination protection" in obstacles
    assert "trn1-16-storage has termination protection" in obstacles
    assert "storage.retain keeps file system" in obstacles
    assert document["outcome"] is None
    assert operated.deployment().stack("trn1-16-cluster") is not None


def test_unprotect_is_the_way(operated: Operated) -> None:
    operated.launch(2)
    plan = destruction_plan.plan(operated.deployment(), EVERYTHING, unprotect=True)
    assert plan.obstacles == ()
    assert plan.unprotected == ("trn1-16-storage", "trn1-16-network")
    assert plan.stacks == ("trn1-16-cluster", "trn1-16", "trn1-16-monitoring", "trn1-16-storage", "trn1-16-network")
    assert any(
        "after a last backup. Its automatic backups go with it, those that somebody made stay" in each
        for each in plan.remarks
    )


def test_tells_what_is_lost_with_the_cluster(operated: Operated) -> None:
    remarks = " ".join(destruction_plan.plan(operated.deployment()).remarks)
    assert "All that is on the head node is lost, /home with it" in remarks
    assert "Jobs that wait for nodes are lost, unless --drain" in remarks
    assert destruction_plan.plan(operated.deployment(), ("monitoring",)).remarks == ()


def test_tells_what_is_swept(operated: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    name = "/aws/lambda/trn1-16-network-Gone-0123456789ab"
    operated.client("logs").create_log_group(logGroupName=name)
    try:
        assert program("trn1-16", "--sweep", "--dry-run") == 0
        assert f"To sweep: {name} (log of a Lambda function)" in " ".join(capsys.readouterr().out.split())
        assert program("trn1-16", "--sweep", "--dry-run", "--json") == 0
        assert program("trn1-16", "--dry-run") == 0
        document, without = capsys.readouterr().out.split("\n}\n", maxsplit=1)
    finally:
        operated.client("logs").delete_log_group(logGroupName=name)
    assert name in [each["id"] for each in validate("destroy", document + "}")["plan"]["sweep"]]
    assert "To sweep" not in without


def test_the_network_alone_cannot_go_under_the_file_system(operated: Operated) -> None:
    plan = destruction_plan.plan(operated.deployment(), ("cluster", "network"), unprotect=True)
    assert any("name --storage, too" in each for each in plan.obstacles)


@contextmanager
def second_cluster(operated: Operated) -> Iterator[None]:
    cloudformation, name = operated.client("cloudformation"), "trn1-16-cluster-2"
    handle = {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}
    template = {"Description": "Trn1 UltraCluster trn1-16: cluster", "Resources": handle}
    cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(template))
    try:
        yield
    finally:
        cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 0.1})
        cloudformation.delete_stack(StackName=name)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 0.1})


def test_storage_and_network_stay_beneath_another_cluster(operated: Operated) -> None:
    with second_cluster(operated):
        for parts in (("storage",), ("network",), EVERYTHING):
            plan = destruction_plan.plan(operated.deployment(), parts, unprotect=True)
            assert any("trn1-16-cluster-2" in each and "stands on storage" in each for each in plan.obstacles)
        plan = destruction_plan.plan(operated.deployment())
    assert plan.obstacles == ()
    assert any("set cluster.generation to 2 in config/trn1-16.yaml" in each for each in plan.remarks)


def test_tells_of_the_cluster_before_that_of_the_settings(operated: Operated) -> None:
    plan = destruction_plan.plan(operated.deployment().of_generation(2))
    assert plan.empty
    [remark] = plan.remarks
    assert "another cluster of this deployment, trn1-16-cluster (CREATE_COMPLETE)" in remark
    assert "set cluster.generation to 1 in config/trn1-16.yaml" in remark


def test_what_others_have_in_the_network_stands_against_it(operated: Operated) -> None:
    ec2, deployment = operated.client("ec2"), operated.deployment()
    ids = deployment.physical_ids("trn1-16-network").values()
    subnet, vpc = (next(each for each in ids if each.startswith(kind)) for kind in ("subnet-", "vpc-"))
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    other = ec2.run_instances(ImageId=image, InstanceType="c6i.large", MinCount=1, MaxCount=1, SubnetId=subnet)
    instance = other["Instances"][0]["InstanceId"]
    ec2.stop_instances(InstanceIds=[instance])
    interface = ec2.create_network_interface(SubnetId=subnet, Description="a function's")["NetworkInterface"]
    group = ec2.create_security_group(GroupName="theirs", Description="-", VpcId=vpc)["GroupId"]
    try:
        found = obstacles(operated)
        alone = destruction_plan.plan(operated.deployment()).obstacles
    finally:
        ec2.terminate_instances(InstanceIds=[instance])
        ec2.delete_network_interface(NetworkInterfaceId=interface["NetworkInterfaceId"])
        ec2.delete_security_group(GroupId=group)
    for each in (instance, f"{interface['NetworkInterfaceId']} (a function's)", f"{group} (theirs)"):
        assert each in found
    assert alone == ()
    assert obstacles(operated) == ""


def test_who_uses_the_group_of_the_file_system_stands_against_its_end(operated: Operated) -> None:
    ec2, deployment = operated.client("ec2"), operated.deployment()
    ids = deployment.physical_ids("trn1-16-network").values()
    subnet = next(each for each in ids if each.startswith("subnet-"))
    groups = [each for each in deployment.physical_ids("trn1-16-storage").values() if each.startswith("sg-")]
    made = ec2.create_network_interface(SubnetId=subnet, Groups=groups)["NetworkInterface"]["NetworkInterfaceId"]
    try:
        found = destruction_plan.plan(operated.deployment(), ("cluster", "storage"), unprotect=True).obstacles
    finally:
        ec2.delete_network_interface(NetworkInterfaceId=made)
    assert [made in each for each in found] == [True]


def test_a_link_to_s3_stands_against_it(operated: Operated) -> None:
    fsx = operated.client("fsx")
    deployment = operated.deployment()
    [name] = [each for each in deployment.physical_ids("trn1-16-storage").values() if each.startswith("fs-")]
    link = fsx.create_data_repository_association(
        FileSystemId=name, FileSystemPath="/d", DataRepositoryPath="s3://links"
    )
    try:
        found = obstacles(operated)
    finally:
        fsx.delete_data_repository_association(AssociationId=link["Association"]["AssociationId"])
    assert f"{name} would go without a backup: FSx backs up no file system that is linked to S3" in found


def test_a_missing_right_to_fsx_keeps_the_file_system_and_not_the_cluster(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": "*", "Resource": "*"},
            {"Effect": "Deny", "Action": "fsx:*", "Resource": "*"},
        ],
    }
    with operated.aws.restricted(policy) as environment:
        operated.act_as(environment, monkeypatch)
        assert destruction_plan.plan(operated.deployment()).obstacles == ()
        assert "It cannot be looked at:" in obstacles(operated)


def test_nothing_there_is_done(
    rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in rehearsed_aws.settings.items():
        monkeypatch.setenv(name, value)
    assert program("dev", "--all", "--yes") == 0
    assert "There is no cluster and no monitoring and no storage and no network of dev" in capsys.readouterr().out
