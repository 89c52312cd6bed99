"""What would roll back an update of a cluster that exists: its head node waits for all nodes that run.

The update of any setting ends with a check that each running compute and login node has taken it over, tried again for
15 minutes; nodes of queues that do not change are among them (aws/aws-parallelcluster 7203). Nodes without a record,
and those that ended their start-up since, do not count (aws-parallelcluster-cookbook 3062 and 3141). Before that, the
head node reads the launch templates of all queues and login pools, within 30 seconds (aws/aws-parallelcluster 7519).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from scripts.account.deployment import Deployment, tags_of
from scripts.account.remote.head_node import HeadNode
from scripts.account.slurm import slurm_state
from scripts.account.stack_state import StackState
from scripts.check.preflight.check import Permission, check
from scripts.core.aws_errors import is_denied
from scripts.core.errors import HeadNodeError
from scripts.core.figures import counted
from scripts.core.findings import PASS, UNKNOWN, WARN, Finding

MANY_LAUNCH_TEMPLATES: Final = 25
"""From here on an update is in danger: a cluster, of 50 launch templates at most, has needed more than 30 seconds, so
at least 0.6 for each; with twice that, 25 take 30 seconds (https://github.com/aws/aws-parallelcluster/issues/7519)."""
LONGEST_NOTICE: Final = 600
"""Seconds that a login node which ends may run on: the check takes 900, and begins when the node's end does."""
_TERMINATING: Final = "autoscaling:EC2_INSTANCE_TERMINATING"
_GROUP: Final = "aws:autoscaling:groupName"
_POOL: Final = "parallelcluster:login-nodes-pool-name"
_TYPE: Final = "parallelcluster:node-type"
_OTHERS: Final = ("Compute", "LoginNode")
_VERSION: Final = re.compile(r'cluster_config_version[\\"]+: *[\\"]+([^\\"]+)')
"""In the head node's dna.json, which is JSON in JSON."""
_LISTED: Final = 5
_OF_BATCH_GET: Final = 100
"""https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html"""
_OF_GROUPS: Final = 50
"""https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeAutoScalingInstances.html"""


@check("launch-templates", "Launch templates")
def launch_templates(deployment: Deployment) -> Finding:
    """Each update of a cluster with many queues could be rolled back, as its head node has 30 seconds for them.

    Count what ParallelCluster makes launch templates of: compute resources and pools of login nodes.
    """
    cluster = deployment.settings.cluster
    count = sum(len(queue.compute_resources) for queue in cluster.queues) + len(cluster.login_nodes)
    sentence = f"{count} launch templates, of compute resources and login pools"
    if count < MANY_LAUNCH_TEMPLATES:
        return Finding(PASS, sentence)
    return Finding(
        WARN,
        f"{sentence}: an update has 30 seconds to read them all, after which it is rolled back; a cluster with at most "
        "50 has needed longer (aws/aws-parallelcluster 7519)",
        f"fewer than {MANY_LAUNCH_TEMPLATES}, or try an update before there is work on the cluster",
    )


@check(
    "login-nodes",
    "Login nodes that end",
    calls=(
        "autoscaling:DescribeAutoScalingInstances",
        "autoscaling:DescribeLifecycleHooks",
        "cloudformation:DescribeStacks",
        "ec2:DescribeInstances",
    ),
)
def login_nodes(deployment: Deployment) -> Iterator[Finding]:
    """A login node that ends more slowly than an update waits could roll it back: it may take nothing over any more.

    So it was seen with 3.14 (aws/aws-parallelcluster 7172); of later versions nothing is known.
    """
    if not deployment.settings.cluster.login_nodes and deployment.stack(deployment.settings.cluster_spec.name) is None:
        return
    logins = {each: tags for each, tags in nodes_that_run(deployment).items() if tags[_TYPE] == "LoginNode"}
    found = [*_ending(deployment, logins), *_too_many(deployment, logins)]
    yield from found or [Finding(PASS, f"{counted(len(logins), 'login nodes')}, of which none is to end late")]


@check(
    "update-nodes",
    "Nodes in an update",
    calls=(
        "cloudformation:DescribeStackResource",
        "cloudformation:DescribeStacks",
        Permission("dynamodb:BatchGetItem", "arn:aws:dynamodb:*:*:table/parallelcluster-*"),
        "ec2:DescribeInstances",
        "ec2:DescribeInstanceStatus",
    ),
)
def update_nodes(deployment: Deployment) -> Iterator[Finding]:
    """One node that cannot take over an update would roll it back, after a quarter of an hour and for all others.

    Look for nodes that EC2 finds impaired, and for those that have not taken over the last update.
    """
    name = deployment.settings.cluster_spec.name
    stack = deployment.stack(name)
    if stack is None or StackState.of(stack).is_in_review:
        yield Finding(PASS, "there is no cluster yet")
        return
    nodes = nodes_that_run(deployment)
    found = [*_impaired(deployment, nodes), *_behind(deployment, nodes)]
    yield from found or [
        Finding(PASS, f"{counted(len(nodes), 'nodes')} running, which nothing keeps from taking over an update")
    ]


def nodes_that_run(deployment: Deployment) -> dict[str, dict[str, str]]:
    """Return the compute and login nodes that an update waits for, with their tags."""
    running = {each["InstanceId"]: tags_of(each) for each in deployment.nodes() if each["State"]["Name"] == "running"}
    return {each: tags for each, tags in running.items() if tags.get(_TYPE) in _OTHERS}


def silent_nodes(deployment: Deployment) -> Iterator[Finding]:
    """Yield that nodes do not answer Slurm, asked on the head node; nothing where none do. Needs ssm:SendCommand."""
    from botocore.exceptions import ClientError

    try:
        state = slurm_state(HeadNode(deployment))
    except HeadNodeError as error:
        yield Finding(UNKNOWN, f"whether nodes answer Slurm: {error}")
        return
    except ClientError as error:
        if not is_denied(error):
            raise
        sentence = "whether nodes answer Slurm: that needs the permission to run commands on the head node"
        yield Finding(UNKNOWN, sentence, f"./ultracluster status {deployment.name}, as somebody who may")
        return
    silent = sum(states.get("not responding", 0) for states in state.nodes.values())
    silent += sum(each.count for each in state.problems if each.state.endswith("*"))
    if silent:
        yield Finding(
            WARN,
            f"{_nodes(silent)} not answer Slurm: the update would wait for what runs of them, and be rolled back",
            "wait some minutes: ParallelCluster replaces such nodes",
            f"./ultracluster status {deployment.name}",
        )


def _impaired(deployment: Deployment, nodes: Iterable[str]) -> Iterator[Finding]:
    impaired: set[str] = set()
    for kind in ("instance-status", "system-status"):
        narrow = [{"Name": f"{kind}.status", "Values": ["impaired"]}]
        listed = deployment.account.list("ec2", "describe_instance_status", Filters=narrow)
        impaired |= {each["InstanceId"] for each in listed}
    if wrong := sorted(impaired.intersection(nodes)):
        yield _lost(deployment, wrong, "EC2 finds {} impaired")


def _behind(deployment: Deployment, nodes: Iterable[str]) -> Iterator[Finding]:
    versions = _versions(deployment, nodes)
    wanted = _version_in_force(deployment) if versions else ""
    wrong = [each for each, known in versions.items() if known != wanted]
    if versions and not wanted:
        yield Finding(UNKNOWN, "which configuration is in force: CloudFormation's data for the head node do not say it")
    elif wrong:
        yield _lost(deployment, wrong, "{} not taken over the configuration that is in force", "has", "have")


def _version_in_force(deployment: Deployment) -> str:
    """Return the version of the configuration that nodes get, from what CloudFormation has for the head node; or none.

    The stack's parameter ConfigVersion is that of the same configuration without implied values.
    """
    name = deployment.settings.cluster_spec.name
    asked = {"StackName": name, "LogicalResourceId": "HeadNodeLaunchTemplate"}
    answer = deployment.account.ask("cloudformation", "describe_stack_resource", **asked)
    found = _VERSION.search(answer["StackResourceDetail"].get("Metadata", ""))
    return found[1] if found else ""


def _versions(deployment: Deployment, nodes: Iterable[str]) -> dict[str, str | None]:
    """Return which version of the configuration each node has that has said so; None: it has not said which."""
    table = f"parallelcluster-{deployment.settings.cluster_spec.name}"
    versions: dict[str, str | None] = {}
    for batch in _batches(sorted(nodes), _OF_BATCH_GET):
        wanted = {table: {"Keys": [{"Id": {"S": f"CLUSTER_CONFIG.{each}"}} for each in batch]}}
        while wanted:
            answer = deployment.account.ask("dynamodb", "batch_get_item", RequestItems=wanted)
            for item in answer["Responses"].get(table, []):
                record = item.get("Data", {}).get("M", {})
                known = record.get("cluster_config_version", {}).get("S")
                versions[item["Id"]["S"].partition(".")[2]] = known
            wanted = answer.get("UnprocessedKeys")
    return versions


def _ending(deployment: Deployment, logins: Iterable[str]) -> Iterator[Finding]:
    ending: list[str] = []
    for batch in _batches(sorted(logins), _OF_GROUPS):
        listed = deployment.account.list("autoscaling", "describe_auto_scaling_instances", InstanceIds=batch)
        ending += [each["InstanceId"] for each in listed if each["LifecycleState"].startswith("Terminating")]
    if ending:
        yield Finding(
            WARN,
            f"{_named(ending, 'login node')} {'ends' if len(ending) == 1 else 'end'}, and may not take over an update "
            "any more, which would be rolled back then (aws/aws-parallelcluster 7172)",
            "wait until their notice is over (grace_minutes, at most 120)",
            f"./ultracluster status {deployment.name}",
        )


def _too_many(deployment: Deployment, logins: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    """Yield which pools lose nodes that have longer notice than an update waits."""
    wanted = {pool.name: pool.count for pool in deployment.settings.cluster.login_nodes}
    running = Counter(tags.get(_POOL, "") for tags in logins.values())
    groups = {tags.get(_POOL, ""): tags.get(_GROUP, "") for tags in logins.values()}
    for pool, count in running.items():
        if count <= wanted.get(pool, 0) or not groups[pool]:
            continue
        answer = deployment.account.ask("autoscaling", "describe_lifecycle_hooks", AutoScalingGroupName=groups[pool])
        hooks = [each for each in answer["LifecycleHooks"] if each["LifecycleTransition"] == _TERMINATING]
        notice = max((int(each["HeartbeatTimeout"]) for each in hooks), default=0)
        if notice > LONGEST_NOTICE:
            yield Finding(
                WARN,
                f"login pool {pool} goes from {count} to {counted(wanted.get(pool, 0), 'nodes')}, of which one may "
                f"take {counted(notice // 60, 'minutes')} to end: an update waits 15 for it, and may be rolled back "
                "(aws/aws-parallelcluster 7172)",
                f"two deployments: first cluster.login_nodes[{pool}].grace_minutes: {LONGEST_NOTICE // 60}, then count",
            )


def _lost(deployment: Deployment, nodes: Sequence[str], sentence: str, one: str = "", many: str = "") -> Finding:
    """Return that nodes will not take over an update, and how to be rid of them."""
    subject = f"{_named(nodes, 'node')} {one if len(nodes) == 1 else many}".strip()
    terminate = deployment.command("ec2", "terminate-instances", "--instance-ids", *nodes)
    stop = f"./ultracluster fleet stop {deployment.name} --drain"
    return Finding(
        WARN,
        f"{sentence.format(subject)}: the update would wait for {'it' if len(nodes) == 1 else 'them'}, and be rolled "
        "back",
        f"terminate them once their jobs have ended; ParallelCluster replaces them. Or stop the fleet: {stop}",
        terminate if len(nodes) <= _LISTED else stop,
    )


def _named(nodes: Sequence[str], kind: str) -> str:
    more = f" and {len(nodes) - _LISTED} more" if len(nodes) > _LISTED else ""
    return f"{kind}{'' if len(nodes) == 1 else 's'} {', '.join(nodes[:_LISTED])}{more}"


def _nodes(count: int) -> str:
    return "1 node does" if count == 1 else f"{count} nodes do"


def _batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


CHECKS: Final = (launch_templates, update_nodes, login_nodes)
