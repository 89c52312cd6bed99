"""The end of a deployment: what stands against it, what is deleted, what an interruption leaves to the next call."""

import io
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from config.settings import Settings, load
from rehearsal import stand_ins
from rehearsal.aws import EmulatedAws
from rehearsal.inventory import inventory, reason_to_stay
from scripts import destroy
from scripts.operations import destruction, destruction_plan
from scripts.operations.command import CONFIG, OperationError, run
from scripts.operations.leftovers_model import FINAL_BACKUP
from tests.operations.account import Operated
from tests.operations.destroying import FastClock, KilledError, killed_after_each_change, validate

EVERYTHING = ("cluster", "monitoring", "storage", "network")


def program(*arguments: str) -> int:
    return run(destroy.arguments().parse_args(arguments), destroy.program)


def told(_: str) -> None:
    """Take no notice of progress."""


def counted(aws: EmulatedAws, settings: Settings) -> Counter[str]:
    """Return how many of each type there are, but for what AWS, too, leaves on purpose."""
    found = inventory(aws, settings.region)
    return Counter(kind for kind, name in found if not reason_to_stay(settings, kind, name))


def untouched(settings: Settings) -> Counter[str]:
    """Return the same of an account to which nothing was deployed."""
    with EmulatedAws() as aws:
        stand_ins.create(aws, settings)
        stand_ins.bootstrap(aws, settings.region)
        return counted(aws, settings)


# --- before anything happens ---


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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_wrong_name_deletes_nothing(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("trn1-61\n"))
    assert program("trn1-16") == 1
    assert "got 'trn1-61'; nothing was deleted" in capsys.readouterr().err
    assert operated.deployment().stack("trn1-16-cluster") is not None


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
    plan = destruction_plan.plan(operated.deployment(), EVERYTHING, unprotect=True)
    assert plan.obstacles == ()
    assert plan.unprotected == ("trn1-16-storage", "trn1-16-network")
    assert plan.stacks == ("trn1-16-cluster", "trn1-16", "trn1-16-monitoring", "trn1-16-storage", "trn1-16-network")
    assert any("after a last backup" in each for each in plan.remarks)


def test_the_network_alone_cannot_go_under_the_file_system(operated: Operated) -> None:
    plan = destruction_plan.plan(operated.deployment(), ("cluster", "network"), unprotect=True)
    assert any("name --storage, too" in each for each in plan.obstacles)


def test_instances_of_others_in_the_network_stand_against_it(operated: Operated) -> None:
    ec2, deployment = operated.client("ec2"), operated.deployment()
    subnet = next(each for each in deployment.physical_ids("trn1-16-network").values() if each.startswith("subnet-"))
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    other = ec2.run_instances(ImageId=image, InstanceType="c6i.large", MinCount=1, MaxCount=1, SubnetId=subnet)
    [instance] = other["Instances"]
    plan = destruction_plan.plan(operated.deployment(), EVERYTHING, unprotect=True)
    assert any(instance["InstanceId"] in each for each in plan.obstacles)
    assert destruction_plan.plan(operated.deployment()).obstacles == ()


def test_says_that_no_backup_is_possible(operated: Operated) -> None:
    fsx = operated.client("fsx")
    deployment = operated.deployment()
    [name] = [each for each in deployment.physical_ids("trn1-16-storage").values() if each.startswith("fs-")]
    operated.client("s3").create_bucket(
        Bucket="links", CreateBucketConfiguration={"LocationConstraint": operated.settings.region}
    )
    link = fsx.create_data_repository_association(
        FileSystemId=name, FileSystemPath="/d", DataRepositoryPath="s3://links"
    )
    try:
        remarks = destruction_plan.plan(deployment, EVERYTHING, unprotect=True).remarks
    finally:
        fsx.delete_data_repository_association(AssociationId=link["Association"]["AssociationId"])
        operated.client("s3").delete_bucket(Bucket="links")
    assert any("without a backup: FSx backs up no file system that is linked to S3" in each for each in remarks)


# --- nothing there ---


def test_nothing_there_is_done(
    rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in rehearsed_aws.settings.items():
        monkeypatch.setenv(name, value)
    assert program("dev", "--all", "--yes") == 0
    assert "There is no cluster and no monitoring and no storage and no network of dev" in capsys.readouterr().out


# --- lives that end ---


@pytest.mark.slow
def test_killed_after_each_change_it_goes_on_and_leaves_nothing(
    deploy_operated: Callable[..., Operated], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load(CONFIG / "trn1-16.yaml")
    operated = deploy_operated(settings)
    operated.launch(2)
    wish: dict[str, Any] = {"parts": EVERYTHING, "unprotect": True, "force": True, "sweep": True}
    made: list[str] = []
    for _ in range(40):
        with killed_after_each_change(monkeypatch) as now:
            try:
                outcome = destruction.destroy(operated.deployment(), clock=FastClock(), say=told, **wish)
                break
            except KilledError:
                made += now
    else:
        pytest.fail(f"never ended: {made}")
    assert outcome.failures == []
    assert {"DeleteStack", "UpdateTerminationProtection", "CreateBackup", "DeleteFileSystem"} <= set(made)
    assert made.count("CreateBackup") == 1
    assert counted(operated.aws, settings) == untouched(settings)
    assert all(each.kept for each in outcome.left)
    backups = operated.client("fsx").describe_backups()["Backups"]
    assert [{tag["Key"]: tag["Value"] for tag in each["Tags"]}[FINAL_BACKUP] for each in backups] == ["trn1-16"]


@pytest.mark.slow
def test_tries_again_while_instances_hold_the_placement_group(deploy_operated: Callable[..., Operated]) -> None:
    operated = deploy_operated(load(CONFIG / "dev.yaml"))
    operated.aws.inject("stopping")
    said: list[str] = []

    class Mending(FastClock):
        def sleep(self, seconds: float) -> None:
            if any("trying again" in each for each in said):
                operated.aws.mend()
            super().sleep(seconds)

    outcome = destruction.destroy(operated.deployment(), clock=Mending(), say=said.append, force=True)
    assert outcome.failures == []
    assert any("in use and may not be deleted" in each for each in said)
    assert operated.deployment().stack("dev-cluster") is None
    assert operated.deployment().stack("dev-storage") is not None


def test_expired_credentials_say_that_the_same_command_goes_on(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def expire(*_: object, **__: object) -> None:
        raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "DeleteStack")

    monkeypatch.setattr("scripts.operations.destruction.destroy", expire)
    assert program("trn1-16", "--yes") == 2
    error = capsys.readouterr().err
    assert "the same command goes on where it stopped" in error
    assert "get new session credentials" in error


def test_jobs_with_nodes_stop_it_before_anything_is_deleted(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OperationError("Jobs with nodes: 1")

    monkeypatch.setattr("scripts.operations.fleet.stop", refuse)
    with pytest.raises(OperationError, match="Jobs with nodes"):
        destruction.destroy(operated.deployment(), clock=FastClock(), say=told)
    assert operated.deployment().stack("trn1-16-cluster") is not None
