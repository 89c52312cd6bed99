"""Nodes that would roll an update back, and clusters that updates are too slow for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scripts.account.deployment import Account, Deployment
from scripts.account.slurm import Problem, SlurmState
from scripts.check.preflight import update
from scripts.check.preflight.update import MANY_LAUNCH_TEMPLATES, launch_templates, login_nodes, update_nodes
from scripts.core.errors import HeadNodeError
from scripts.core.findings import PASS, UNKNOWN, WARN, CheckStatus
from tests.scripts.check.preflight.accounts import ByParameters, Case, Raw, case, deployment_of, new_network, stacks
from tests.scripts.refusals import refusal

CLUSTER = "trn1-16"
POOL = {"name": "login", "count": 2, "grace_minutes": 10}
GROUP = "login-group"
DNA = {"content": json.dumps({"cluster": {"cluster_config_version": "new"}})}
FILES = {"AWS::CloudFormation::Init": {"deployConfigFiles": {"files": {"/opt/parallelcluster/tmp/dna.json": DNA}}}}


def queues(count: int) -> Any:
    def edit(raw: Raw) -> None:
        [first] = raw["cluster"]["queues"]
        raw["cluster"]["queues"] = [{**first, "name": f"q{number}"} for number in range(count)]

    return edit


def pool(**facts: Any) -> Any:
    return lambda raw: raw["cluster"].update(login_nodes=[{**POOL, **facts}])


def node(number: int, kind: str = "Compute", state: str = "running", **tags: str) -> dict[str, Any]:
    all_tags = {"parallelcluster:node-type": kind, **tags}
    return {
        "InstanceId": f"i-{number}",
        "State": {"Name": state},
        "Tags": [{"Key": key, "Value": value} for key, value in all_tags.items()],
    }


def login(number: int) -> dict[str, Any]:
    own = {"parallelcluster:login-nodes-pool-name": "login", "aws:autoscaling:groupName": GROUP}
    return node(number, "LoginNode", **own)


def cluster(
    *nodes: dict[str, Any],
    versions: dict[str, str] | None = None,
    impaired: tuple[str, ...] = (),
    ending: tuple[str, ...] = (),
    notice: int = 600,
) -> dict[str, Any]:
    """Return the answers of an account in which the cluster has these nodes."""

    def records(parameters: dict[str, Any]) -> dict[str, Any]:
        [(table, wanted)] = parameters["RequestItems"].items()
        assert len(wanted["Keys"]) <= 100, "DynamoDB takes no more"
        asked = [key["Id"]["S"] for key in wanted["Keys"]]
        known = {f"CLUSTER_CONFIG.{each}": version for each, version in (versions or {}).items()}
        items = [
            {"Id": {"S": each}, "Data": {"M": {"cluster_config_version": {"S": known[each]}} if known[each] else {}}}
            for each in asked[:60]
            if each in known
        ]
        later = {table: {"Keys": wanted["Keys"][60:]}} if asked[60:] else {}
        return {"Responses": {table: items}, "UnprocessedKeys": later}

    states = dict.fromkeys(ending, "Terminating:Wait")
    groups = [{"InstanceId": each["InstanceId"], "LifecycleState": "InService"} for each in nodes]
    hook = {"LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING", "HeartbeatTimeout": notice}
    launching = {"LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING", "HeartbeatTimeout": 7200}
    return {
        "describe_stacks": stacks(**{CLUSTER: {}}),
        "describe_stack_resource": {"StackResourceDetail": {"Metadata": json.dumps(FILES)}},
        "describe_instances": [{"Instances": [each]} for each in nodes],
        "describe_instance_status": [{"InstanceId": each} for each in impaired],
        "batch_get_item": ByParameters(records),
        "describe_auto_scaling_instances": [
            {**each, "LifecycleState": states.get(each["InstanceId"], each["LifecycleState"])} for each in groups
        ],
        "describe_lifecycle_hooks": {"LifecycleHooks": [launching, hook]},
    }


MANY = [node(number) for number in range(250)]


@pytest.mark.parametrize(
    "case_",
    [
        case(launch_templates, PASS, "24 launch templates", base=new_network, edit=queues(24)),
        case(launch_templates, WARN, f"{MANY_LAUNCH_TEMPLATES} launch templates", "30 seconds", base=new_network,
             edit=lambda raw: (queues(24)(raw), pool()(raw))),
        case(update_nodes, PASS, "no cluster yet", base=new_network, describe_stacks=stacks()),
        case(update_nodes, PASS, "2 nodes running", base=new_network, edit=pool(),
             **cluster(node(1), login(2), node(3, "HeadNode"), node(4, state="stopped"), versions={"i-1": "new"})),
        case(update_nodes, WARN, "i-1 has not taken over", "--instance-ids i-1", base=new_network,
             **cluster(node(1), node(2), versions={"i-1": "old", "i-2": "new"})),
        case(update_nodes, WARN, "i-1 has not taken over", base=new_network,
             **cluster(node(1), versions={"i-1": ""})),
        case(update_nodes, WARN, "nodes i-0, i-1, i-10, i-100, i-101 and 245 more have", "fleet stop", base=new_network,
             **cluster(*MANY, versions={each["InstanceId"]: "old" for each in MANY})),
        case(update_nodes, WARN, "EC2 finds node i-1 impaired", base=new_network,
             **cluster(node(1), impaired=("i-1", "i-of-somebody"))),
        case(login_nodes, WARN, "login node i-1 ends", base=new_network, edit=pool(count=0),
             **cluster(login(1), ending=("i-1",))),
        case(login_nodes, WARN, "from 2 to 0 nodes, of which one may take 120", "grace_minutes: 10", base=new_network,
             edit=pool(count=0), **cluster(login(1), login(2), notice=7200)),
        case(login_nodes, PASS, base=new_network, edit=pool(count=0), **cluster(login(1), login(2))),
        case(login_nodes, PASS, base=new_network, edit=pool(), **cluster(login(1), login(2), notice=7200)),
    ],
)  # fmt: skip
def test_what_an_update_waits_for(case_: Case, account: Account) -> None:
    case_.verify(account)


def slurm(states: dict[str, int], *problems: str) -> SlurmState:
    down = tuple(Problem(1, each, "Unknown", "trn1-dy-trn1-32xl-1", "Not responding") for each in problems)
    return SlurmState({"trn1": states}, {"trn1": "up"}, (), down, {}, {}, ())


@pytest.mark.parametrize(
    ("answer", "status", "says"),
    [
        (slurm({"idle": 2, "power saving": 14}, "drained"), None, ""),
        (slurm({"idle": 2, "not responding": 1}), WARN, "1 node does not answer Slurm"),
        (slurm({"not responding": 1}, "down*", "drained"), WARN, "2 nodes do not answer"),
        (HeadNodeError("Slurm on the head node did not answer: timeout"), UNKNOWN, "did not answer"),
        (refusal("AccessDeniedException", "SendCommand", "not authorized"), UNKNOWN, "the permission to run commands"),
    ],
)
def test_nodes_that_do_not_answer_slurm(
    monkeypatch: pytest.MonkeyPatch, answer: SlurmState | Exception, status: CheckStatus | None, says: str
) -> None:
    def head_node(_: Deployment) -> Any:
        if isinstance(answer, Exception):
            raise answer

    monkeypatch.setattr(update, "HeadNode", head_node)
    monkeypatch.setattr(update, "slurm_state", lambda _: answer)
    found = list(update.silent_nodes(deployment_of(new_network())))
    assert [(each.status, says in each.sentence) for each in found] == ([] if status is None else [(status, True)])
