"""What a destruction would do, and what blocks it: decided on what exists; and what exists in an account."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from config.settings import load
from scripts.account.deployment import Deployment
from scripts.account.file_systems import FileSystem
from scripts.change.destroy.model import ORDER, DestroyOptions, DestroyPlan
from scripts.change.destroy.plan import Existing, decide, plan
from scripts.change.destroy.storage import Storage
from scripts.core.options import CONFIG
from scripts.watch.inventory.model import Leftover
from tests.scripts.operated import Operated
from tests.scripts.slurm_samples import IDLE, shell

DEPLOYMENT = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
NAMES = ("trn1-16-cluster", "trn1-16", "trn1-16-monitoring", "trn1-16-storage", "trn1-16-network")
PROTECTED = ("trn1-16-storage", "trn1-16-network")
FILE_SYSTEM = FileSystem("fs-1", "LUSTRE", deployment_type="PERSISTENT_2", vpc_id="vpc-1")
SCRATCH = replace(FILE_SYSTEM, deployment_type="SCRATCH_2")
LINKED = {"fs-1": frozenset({"dra-1"})}
STORAGE = Storage((FILE_SYSTEM,), ("sg-1",), ("bucket-1",))
RETAINED = replace(STORAGE, retained=frozenset({"fs-1", "sg-1", "bucket-1"}))
LOG = Leftover(type="AWS::Logs::LogGroup", id="/aws/lambda/x", reason="log of a Lambda function")
VOLUME = Leftover(type="AWS::EC2::Volume", id="vol-1", reason="tag")
ALL = DestroyOptions(parts=ORDER, unprotect=True)


def stack(name: str, status: str = "CREATE_COMPLETE") -> dict[str, Any]:
    return {"StackName": name, "StackStatus": status, "EnableTerminationProtection": name in PROTECTED}


EXISTING = Existing([stack(name) for name in NAMES], STORAGE, ["vpc-1"], leftovers=[LOG, VOLUME])


def decided(existing: Existing = EXISTING, options: DestroyOptions = ALL, **more: Any) -> DestroyPlan:
    return decide(DEPLOYMENT, existing, replace(options, **more))


def test_everything_is_deleted_in_order_once_protection_is_removed() -> None:
    planned = decided()
    assert (planned.stacks, planned.file_systems, planned.unprotected) == (NAMES, ("fs-1",), PROTECTED)
    assert (planned.blockers, planned.sweep, planned.empty) == ((), (), False)
    assert "Everything on the head node is lost, with /home" in planned.remarks[0]
    assert "Jobs that wait for nodes are lost, unless --drain" in planned.remarks[1]
    assert planned.remarks[2].startswith("File system fs-1 is deleted after a last backup. Its automatic backups")
    assert planned.remarks[3] == "Bucket bucket-1 is deleted with all objects."


def test_protection_and_retention_block_it_at_once() -> None:
    text = " ".join(decided(replace(EXISTING, storage=RETAINED), unprotect=False).blockers)
    assert "trn1-16-network has termination protection" in text
    assert "trn1-16-storage has termination protection" in text
    assert "storage.retain keeps file system fs-1, as deployed" in text
    planned = decided(replace(EXISTING, storage=RETAINED))
    assert planned.blockers == ()
    assert "Bucket bucket-1 is kept; --retained-bucket deletes it." in planned.remarks
    assert "Bucket bucket-1 is deleted with all objects." in decided(options=replace(ALL, bucket=True)).remarks


@pytest.mark.parametrize(
    ("storage", "why", "is_freed"),
    [
        (replace(STORAGE, file_systems=(SCRATCH,)), "FSx backs up no SCRATCH_2 file system", False),
        (replace(STORAGE, links=LINKED), "linked to S3", False),
        (replace(RETAINED, links=LINKED), "linked to S3", False),  # by somebody else, not by the stack
        (replace(RETAINED, links=LINKED, own=frozenset({"dra-1"})), "", True),
    ],
)
def test_a_file_system_that_cannot_be_backed_up_is_deleted_only_if_that_is_requested(
    storage: Storage, why: str, is_freed: bool
) -> None:
    existing = replace(EXISTING, storage=storage)
    blockers = decided(existing).blockers
    assert [why in each and "--no-final-backup deletes it anyway." in each for each in blockers] == [True] * bool(why)
    assert any("once its links to S3 are deleted" in each for each in decided(existing).remarks) is is_freed
    without = decided(existing, final_backup=False)
    assert without.blockers == ()
    [remark] = [each for each in without.remarks if "without a backup, as requested." in each]
    assert ("AgeOfOldestQueuedMessage" in remark) is bool(storage.links)


def test_leftovers_are_removed_only_if_requested_and_without_data() -> None:
    assert decided(sweep=True).sweep == (LOG,)
    priced = decided(sweep=True).priced({LOG.key: Decimal("0.5")})
    assert priced.sweep[0].dollars_per_month == Decimal("0.5")
    others = {f"i-{number}": False for number in range(12)}
    existing = replace(EXISTING, users={"eni-1": True, **others})
    assert decided(existing).blockers == (
        "Leftovers of the deployment use what would be deleted: eni-1. --sweep removes them first.",
        "Resources of others use what would be deleted: i-0, i-1, i-2, i-3, i-4, i-5, i-6, i-7, i-8, i-9 and 2 more. "
        "Delete them first.",
    )
    assert len(decided(existing, sweep=True).blockers) == 1


def test_the_network_cannot_be_deleted_under_the_file_system() -> None:
    assert decided(parts=("cluster", "network")).blockers == (
        "File system fs-1 is in the network: pass --storage, too.",
    )


@pytest.mark.parametrize("parts", [("storage",), ("network",), ORDER])
def test_storage_and_network_are_not_deleted_under_another_cluster(parts: tuple[Any, ...]) -> None:
    existing = replace(EXISTING, clusters={2: "CREATE_COMPLETE"})
    [blocker] = [each for each in decided(existing, parts=parts).blockers if "needs storage and network" in each]
    assert "another cluster of this deployment, trn1-16-cluster-2 (CREATE_COMPLETE)" in blocker
    planned = decided(existing, parts=("cluster",))
    assert planned.blockers == ()
    assert any("set cluster.generation to 2 in config/trn1-16.yaml" in each for each in planned.remarks)


@pytest.mark.parametrize(
    ("status", "blocks"), [("UPDATE_IN_PROGRESS", True), ("DELETE_IN_PROGRESS", False), ("REVIEW_IN_PROGRESS", False)]
)
def test_operations_in_progress_block_it_but_for_a_deletion(status: str, blocks: bool) -> None:
    planned = decided(Existing([stack("trn1-16-cluster", status)]))
    follow = "./ultracluster status trn1-16 --watch follows it to its end."
    assert planned.blockers == ((f"trn1-16-cluster is UPDATE_IN_PROGRESS: {follow}",) * blocks)


def test_what_must_be_known_and_cannot_be_listed_blocks_it() -> None:
    planned = decided(replace(EXISTING, denied=["fsx: denied"], skipped=["dynamodb: denied"]))
    assert planned.blockers == ("It cannot be checked: fsx: denied",)
    assert planned.remarks[-1] == "dynamodb: denied"
    assert decided(Existing()).empty


@pytest.mark.slow
def test_in_an_account(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    """What others have in the network, use of the file system, or linked to it blocks the deletion, and is named."""
    operated.launch(2)
    planned = plan(operated.deployment(), ALL)
    assert planned.stacks == NAMES
    [blocker] = planned.blockers
    assert "does not answer (Undeliverable): it may be booting or stopped" in blocker, "as the destruction would say"
    operated.shell(shell(IDLE))
    ec2, fsx, deployment = operated.client("ec2"), operated.client("fsx"), operated.deployment()
    [remark] = plan(deployment.of_generation(2), DestroyOptions()).remarks
    assert "another cluster of this deployment, trn1-16-cluster (CREATE_COMPLETE)" in remark
    network, storage = (deployment.physical_ids(f"trn1-16-{part}").values() for part in ("network", "storage"))
    subnet, vpc = (next(each for each in network if each.startswith(kind)) for kind in ("subnet-", "vpc-"))
    file_system, own = (next(each for each in storage if each.startswith(kind)) for kind in ("fs-", "sg-"))
    assert plan(operated.deployment(), ALL).blockers == ()

    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    other = ec2.run_instances(ImageId=image, InstanceType="c6i.large", MinCount=1, MaxCount=1, SubnetId=subnet)
    instance = other["Instances"][0]["InstanceId"]
    ec2.stop_instances(InstanceIds=[instance])
    interfaces = [
        ec2.create_network_interface(SubnetId=subnet, **more)["NetworkInterface"]["NetworkInterfaceId"]
        for more in ({"Description": "a function's"}, {"Groups": [own]})
    ]
    group = ec2.create_security_group(GroupName="theirs", Description="-", VpcId=vpc)["GroupId"]
    link = fsx.create_data_repository_association(
        FileSystemId=file_system, FileSystemPath="/d", DataRepositoryPath="s3://links"
    )
    try:
        text = " ".join(plan(operated.deployment(), ALL).blockers)
        of_storage = plan(operated.deployment(), replace(ALL, parts=("cluster", "storage"))).blockers
        assert plan(operated.deployment(), DestroyOptions(unprotect=True)).blockers == ()
    finally:
        fsx.delete_data_repository_association(AssociationId=link["Association"]["AssociationId"])
        ec2.terminate_instances(InstanceIds=[instance])
        for interface in interfaces:
            ec2.delete_network_interface(NetworkInterfaceId=interface)
        ec2.delete_security_group(GroupId=group)
    for each in (instance, f"{interfaces[0]} (a function's)", interfaces[1], f"{group} (theirs)"):
        assert each in text
    assert f"{file_system} would be deleted without a backup: FSx backs up no file system that is linked to S3" in text
    assert [interfaces[1] in each for each in of_storage] == [True, False]

    statements = [
        {"Effect": effect, "Action": action, "Resource": "*"} for effect, action in (("Allow", "*"), ("Deny", "fsx:*"))
    ]
    with operated.aws.restricted({"Version": "2012-10-17", "Statement": statements}) as environment:
        operated.act_as(environment, monkeypatch)
        assert plan(operated.deployment(), DestroyOptions(unprotect=True)).blockers == ()
        assert "It cannot be checked:" in " ".join(plan(operated.deployment(), ALL).blockers)
