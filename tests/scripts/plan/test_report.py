"""What a plan looks like: on a terminal, in a comment, as JSON."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from scripts.plan import findings, report, text
from scripts.plan.cluster import Target
from scripts.plan.markdown import as_markdown
from scripts.plan.model import (
    ClusterChange,
    ClusterPlan,
    Effect,
    Kind,
    Plan,
    PropertyChange,
    ResourceChange,
    Source,
    StackPlan,
)
from scripts.preflight.check import Finding, Status

TARGET = Target("mine")
SUBNET = ResourceChange(
    "Subnet",
    "AWS::EC2::Subnet",
    Effect.REPLACED,
    "subnet-1",
    ("CidrBlock",),
    (PropertyChange("CidrBlock", "10.0.0.0/24", "10.0.1.0/24"),),
)
CLUSTER = ClusterPlan("mine", exists=True, source="its template")


def plan(*changes: ResourceChange, cluster: ClusterPlan = CLUSTER, **stack: Any) -> Plan:
    """Return the plan of one stack, with all that is to be said of it."""
    told = StackPlan("mine-network", **{"source": Source.CHANGE_SET, **stack}, changes=changes)
    found = [*findings.of_stack(told, accepted=False), *findings.of_cluster(cluster, TARGET)]
    return Plan("mine", "us-west-2", "account 123456789012", [told], cluster, found)


def policy(**statement: Any) -> ResourceChange:
    before = {"Statement": [{"Effect": "Allow", "Action": "a:B", "Resource": "*"}]}
    after = {"Statement": [*before["Statement"], {"Effect": "Allow", **statement}]}
    properties = (
        PropertyChange("PolicyDocument", before, after),
        PropertyChange("Path", "/", "/other/"),
        PropertyChange("PolicyName", "a", "b"),
        PropertyChange("Roles", ["a"], ["b"]),
    )
    return ResourceChange("Policy", "AWS::IAM::ManagedPolicy", Effect.CHANGED, "", ("PolicyDocument",), properties)


def key(kind: Kind, passes_now: bool | None, **further: Any) -> ClusterPlan:
    """Return a cluster of which one key changes."""
    change = ClusterChange("Scheduling.Key", 1, 2, kind, passes_now, "because", ("a way",), "a command")
    return ClusterPlan("mine", exists=True, source="its template", changes=(change,), **further)


def printed(found: Plan, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    text.show(found, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ({"Action": ["s3:GetObject", "s3:PutObject"], "Resource": "*"}, "Allow s3:GetObject, s3:PutObject on *"),
        ({"NotAction": "iam:*", "NotResource": "a"}, "Allow all but iam:* on all but a"),
        ({"Action": "a", "Principal": {"AWS": "1"}}, 'Allow a to {"AWS": "1"}'),
        ({"Action": "a", "Condition": {"Bool": {"b": "c"}}}, 'Allow a if {"Bool": {"b": "c"}}'),
    ],
)
def test_a_new_right_is_told_in_words(statement: dict[str, Any], line: str) -> None:
    [found] = report.rights(plan(policy(**statement)))
    assert (found.subject, found.lost, found.gained) == ("mine-network/Policy (changed in place)", [], [line])


def test_what_says_nothing_of_rights_is_left_out() -> None:
    tagged = ResourceChange(
        "Role", "AWS::IAM::Role", Effect.CHANGED, "", ("Tags",), (PropertyChange("Tags", [], [{"Key": "a"}]),)
    )
    assert report.rights(plan(tagged)) == []
    assert report.rights(plan(SUBNET)) == []


def test_rights_of_the_cluster() -> None:
    change = ClusterChange("HeadNode.Iam.AdditionalIamPolicies", [{"Policy": "a"}], [{"Policy": "b"}], Kind.LIVE, True)
    [found] = report.rights(plan(cluster=ClusterPlan("mine", True, "", changes=(change,))))
    assert (found.lost, found.gained) == (['{"Policy": "a"}'], ['{"Policy": "b"}'])


def test_a_stack_in_a_line() -> None:
    def line(*changes: ResourceChange, **stack: Any) -> str:
        return report.sections(plan(*changes, **stack))[0].remark

    silent = ResourceChange("A", "AWS::EC2::VPC", Effect.CHANGED, causes=("Metadata",))
    assert line() == "no changes, from a CloudFormation change set"
    assert line(other=("outputs",)) == "from a CloudFormation change set; changed, too: outputs"
    assert line(silent) == "from a CloudFormation change set; changed, too: metadata of 1 resource"
    assert line(source=Source.STORED_TEMPLATE, reason="no right") == "no changes, from the stored template (no right)"
    new = ResourceChange("A", "AWS::EC2::VPC", Effect.ADDED)
    assert line(new, new, source=Source.NEW) == "the stack does not exist yet: 2 resources are added"
    assert line(SUBNET) == "from a CloudFormation change set"


@pytest.mark.parametrize(
    ("cluster", "status", "answer", "sentence"),
    [
        (key(Kind.LIVE, True), None, "applied live", ""),
        (key(Kind.DRAINS, True), None, "drains nodes", ""),
        (key(Kind.REFUSED, False), Status.FAIL, "refused", "is refused as long as the cluster lives: because"),
        (
            key(Kind.FLEET_STOPPED, False, fleet_status="RUNNING"),
            Status.FAIL,
            "needs the fleet stopped; not now",
            "needs the fleet STOPPED, and it is RUNNING",
        ),
        (
            key(Kind.FLEET_STOPPED, None),
            Status.WARN,
            "needs the fleet stopped",
            "needs the fleet STOPPED, and whether it is could not be asked",
        ),
        (
            key(Kind.FLEET_STOPPED, True, fleet_status="STOPPED"),
            Status.WARN,
            "needs the fleet stopped; passes now",
            "the fleet is STOPPED, as this deployment needs it, and stays so",
        ),
        (
            key(Kind.LOGIN_NODES_STOPPED, False),
            Status.FAIL,
            "needs the login nodes stopped; not now",
            "needs the login nodes gone, and there are some",
        ),
        (
            key(Kind.ALL_STOPPED, False),
            Status.FAIL,
            "needs fleet and login nodes stopped; not now",
            "needs the fleet STOPPED and the login nodes gone",
        ),
    ],
)
def test_a_key_of_the_cluster(cluster: ClusterPlan, status: Status | None, answer: str, sentence: str) -> None:
    found = plan(cluster=cluster)
    [row] = report.sections(found)[1].rows
    assert row == ("Scheduling.Key", "1", "2", answer)
    assert [each.status for each in found.findings] == ([status] if status else [])
    assert all(each.sentence.endswith(sentence) for each in found.findings)
    assert found.ok == (status is not Status.FAIL)


def test_of_long_lists_only_the_difference_is_shown() -> None:
    assert findings.shown_difference(["a", "b"], ["a", "c"]) == ("[b]", "[c]")
    assert findings.shown_difference(["a"], ["a", "c"]) == ("[a]", "[c]")
    assert findings.shown_difference(None, {"Name": "second", "More": 1}) == ("none", "second")
    assert findings.shown_difference(True, "x" * 70) == ("true", "x" * 57 + "...")


def test_a_fault_says_what_becomes_of_the_old_one() -> None:
    [fault] = plan(SUBNET).findings
    assert fault.sentence == (
        "Subnet (AWS::EC2::Subnet subnet-1) is replaced, because of CidrBlock from 10.0.0.0/24 to 10.0.1.0/24: "
        "file system and nodes stand in it; the old one is deleted"
    )
    removed = ResourceChange("Bucket", "AWS::S3::Bucket", Effect.REMOVED, "bucket", stays=True)
    [fault] = plan(removed).findings
    assert fault.sentence.endswith("is removed: it holds data; it stays, outside of the stack, and costs on")
    link = ResourceChange("Link", "AWS::FSx::DataRepositoryAssociation", Effect.REPLACED, causes=("FileSystemPath",))
    [fault] = plan(link).findings
    assert fault.hint.startswith("two deployments")


def test_other_types_may_be_replaced() -> None:
    assert plan(ResourceChange("A", "AWS::IAM::Role", Effect.REPLACED, causes=("B",))).findings == []


@pytest.mark.parametrize("effect", [Effect.REMOVED, Effect.REPLACED, Effect.MAY_BE_REPLACED])
@pytest.mark.parametrize(
    ("resource_type", "reason"),
    [
        ("AWS::EC2::EIP", "the address that others see"),
        ("AWS::EC2::NatGateway", "connections to the internet break"),
        ("AWS::EC2::PlacementGroup", "no instance is in it"),
        ("AWS::Logs::LogGroup", "its logs"),
    ],
)
def test_what_somebody_should_know_of_is_told(resource_type: str, reason: str, effect: Effect) -> None:
    [warning] = plan(ResourceChange("A", resource_type, effect, causes=("B",))).findings
    assert (warning.status, warning.hint) == (Status.WARN, "")
    assert reason in warning.sentence
    assert plan(ResourceChange("A", resource_type, Effect.CHANGED, causes=("B",))).findings == []


@pytest.mark.parametrize(("iops", "sentences"), [(12_000, []), (6000, ["12000 GiB need 12000 metadata IOPS first"])])
def test_a_file_system_that_cannot_grow_at_once_stands_against_the_deployment(iops: int, sentences: list[str]) -> None:
    capacity = PropertyChange("StorageCapacity", 9600, 12_000)
    metadata = PropertyChange("LustreConfiguration.MetadataConfiguration.Iops", iops, 24_000)
    system = ResourceChange("Lustre", "AWS::FSx::FileSystem", Effect.CHANGED, "fs-1", (), (capacity, metadata))
    found = plan(system).findings
    assert [each.status for each in found] == [Status.FAIL for _ in sentences]
    assert all(sentence in each.sentence for each, sentence in zip(found, sentences, strict=True))
    assert all("first storage.file_system.metadata_iops, then capacity_gib" in each.hint for each in found)


BACKUPS = "LustreConfiguration.AutomaticBackupRetentionDays"


@pytest.mark.parametrize(("before", "after", "told"), [(7, 0, True), (7, None, True), (7, 1, False), (0, None, False)])
def test_backups_that_end_are_told(before: int, after: int | None, told: bool) -> None:
    properties = (PropertyChange(BACKUPS, before, after),)
    system = ResourceChange("Lustre", "AWS::FSx::FileSystem", Effect.CHANGED, "", (BACKUPS,), properties)
    found = [(each.status, each.sentence) for each in plan(system).findings]
    sentence = "Lustre (AWS::FSx::FileSystem) is no longer backed up: AutomaticBackupRetentionDays from 7 to 0"
    assert found == ([(Status.WARN, sentence)] if told else [])


def test_what_is_replaced_shows_what_else_changes() -> None:
    properties = (PropertyChange("SubnetIds", ["a"], ["b"]), PropertyChange(BACKUPS, 7, 0))
    system = ResourceChange("Lustre", "AWS::FSx::FileSystem", Effect.REPLACED, "", ("SubnetIds",), properties)
    found = plan(system)
    [row] = report.sections(found)[0].rows
    assert row[-1] == f"SubnetIds; changed, too: {BACKUPS} from 7 to 0"
    assert [each.status for each in found.findings] == [Status.FAIL, Status.WARN]
    [row] = report.sections(plan(SUBNET))[0].rows
    assert row[-1] == "CidrBlock"


def ending(path: str, before: Any, fleet_status: str = "RUNNING") -> list[str]:
    """Return what is to be said of a change that terminates nodes."""
    changes = (ClusterChange(path, before, None, Kind.TERMINATES, True),) * 2
    cluster = ClusterPlan("mine", True, "its template", fleet_status, changes)
    found = plan(cluster=cluster).findings
    assert {each.status for each in found} <= {Status.WARN}
    return [each.sentence for each in found]


@pytest.mark.parametrize("fleet_status", ["RUNNING", "UNKNOWN"])
def test_jobs_that_end_are_told_queue_by_queue(fleet_status: str) -> None:
    end = "nodes are terminated, and the jobs on these nodes end at once"
    assert ending("Scheduling.SlurmQueues[a].ComputeResources[b].MaxCount", 2, fleet_status) == [f"queue a: {end}"]
    assert ending("Scheduling.SlurmQueues", {"Name": "a"}, fleet_status) == [f"queue a: {end}"]
    assert ending("SharedStorage", {"Name": "a"}, fleet_status) == [f"all queues: {end}"]


def test_on_a_stopped_fleet_no_job_ends() -> None:
    assert ending("Scheduling.SlurmQueues[a].ComputeResources[b].MaxCount", 2, "STOPPED") == []


def test_text() -> None:
    out = printed(plan(SUBNET, policy(Action="s3:PutObject", Resource="*")))
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "Changes of mine, us-west-2, against account 123456789012"
    assert "Subnet EC2::Subnet replaced CidrBlock" in lines
    assert "+ Allow s3:PutObject on *" in lines
    assert "what helps: take the change back, or say that it is meant: --accept-replacement" in lines
    assert lines[-1] == "1 thing must be settled before this can be deployed."
    assert max(map(len, printed(plan(SUBNET), 80).splitlines())) <= 80


def test_verdicts() -> None:
    assert report.verdict(plan()) == "Nothing would change."
    assert report.verdict(plan(other=("outputs",))) == "Nothing stands against this deployment."
    assert report.verdict(plan(SUBNET, SUBNET)).startswith("2 things must be settled")


def test_a_comment_takes_any_text_as_it_is() -> None:
    odd = ResourceChange("A", "AWS::EC2::VPC", Effect.CHANGED, causes=("a|b", "<img>", "_c_", "`d`"))
    assert "a\\|b, \\<img>, \\_c\\_, \\`d\\`" in as_markdown(plan(odd))


def test_json_holds_everything() -> None:
    found = plan(SUBNET, cluster=key(Kind.REFUSED, False))
    document = json.loads(json.dumps(report.document(found)))
    assert document["stacks"][0]["changes"] == [
        {
            "logical_id": "Subnet",
            "type": "AWS::EC2::Subnet",
            "physical_id": "subnet-1",
            "effect": "replaced",
            "causes": ["CidrBlock"],
            "old_stays": False,
            "security": False,
            "properties": [{"path": "CidrBlock", "before": "10.0.0.0/24", "after": "10.0.1.0/24"}],
        }
    ]
    assert document["cluster"]["changes"] == [
        {
            "path": "Scheduling.Key",
            "before": 1,
            "after": 2,
            "kind": "refused",
            "passes_now": False,
            "security": False,
            "reason": "because",
            "ways": ["a way"],
            "command": "a command",
        }
    ]
    assert [Finding(**each) for each in document["findings"]] == found.findings
