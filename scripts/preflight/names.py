"""Names that are free or this deployment's own, and what the settings name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scripts import generations
from scripts.deployment import PARTS, Deployment
from scripts.preflight.check import CheckStatus, Finding, check, find

_UPDATABLE = frozenset(
    {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"}
)
"""Statuses of stacks that can be updated.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
"""
_WAYS_OUT: Mapping[str, str] = {
    "CREATE_FAILED": "rollback-stack",
    "UPDATE_FAILED": "rollback-stack",
    "UPDATE_ROLLBACK_FAILED": "continue-update-rollback",
    "ROLLBACK_COMPLETE": "delete-stack",
    "ROLLBACK_FAILED": "delete-stack",
    "DELETE_FAILED": "delete-stack",
}
"""What of `aws cloudformation` leads a stack out of a status, once the cause is fixed.

https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_RollbackStack.html,
https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ContinueUpdateRollback.html
"""
_NO_RSA = ("ubuntu2204", "ubuntu2404")
"""OS on which ParallelCluster rejects RSA keys (aws-parallelcluster 3.16.1, validators/ec2_validators.py)."""


@check(
    "stack-names",
    "Names and states of the stacks",
    prevents=(
        "A stack of somebody else would be overwritten, CloudFormation would reject changes of one of ours, or a "
        "cluster would be created that an upgrade has replaced."
    ),
    calls=("cloudformation:DescribeStacks",),
)
def stack_names(deployment: Deployment) -> Iterator[Finding]:
    """Check that each stack can be created or updated."""
    for part in PARTS:
        yield _about_stack(deployment, part)
    for generation in generations.existing(deployment):
        if generation != deployment.settings.cluster.generation:
            yield _about_other_cluster(deployment, generation)


@check(
    "cluster-name",
    "Name of the cluster",
    prevents="ParallelCluster would refuse to create the cluster, after network and file system are being billed.",
    calls=("cloudformation:DescribeStacks", "cloudformation:ListStackResources"),
)
def cluster_name(deployment: Deployment) -> Iterator[Finding]:
    """Check whether there is a stack of the cluster's name: a cluster is a stack of its name to ParallelCluster."""
    name = deployment.settings.cluster_spec.name
    stack = deployment.stack(name)
    command = _describe(deployment, name)
    if stack is None:
        yield Finding(CheckStatus.PASS, f"there is no cluster or stack {name} yet", command=command)
        return
    status = stack["StackStatus"]
    if name not in deployment.physical_ids(deployment.stack_name("cluster")).values():
        yield _about_taken_cluster_name(deployment, stack)
    elif status in _UPDATABLE:
        yield Finding(CheckStatus.PASS, f"cluster {name} is {status}, and ours to update", command=command)
    else:
        command = _describe(deployment, name, "describe-stack-events")
        sentence = f"cluster {name}, which is ours, is {status}: it cannot be updated"
        yield Finding(CheckStatus.FAIL, sentence, _way_out(deployment, name, status), command)


@check(
    "ssh-key",
    "SSH key of the head node",
    prevents="ParallelCluster would reject the cluster, after network and file system are being billed.",
    calls=("ec2:DescribeKeyPairs",),
)
def ssh_key(deployment: Deployment) -> Iterator[Finding]:
    """Check that the key pair exists, and is of a type that the operating system takes."""
    name, system = deployment.settings.cluster.head_node.ssh_key_name, deployment.settings.cluster.os
    if name is None:
        return
    command = deployment.command("ec2", "describe-key-pairs", "--key-names", name)
    answer = find(deployment, "ec2", "describe_key_pairs", KeyNames=[name])
    if answer is None:
        sentence = f"there is no key pair {name} in {deployment.settings.region}"
        yield Finding(CheckStatus.FAIL, sentence, _create_key(deployment, name), command)
        return
    [key] = answer["KeyPairs"]
    sentence = f"key pair {name} is of type {key['KeyType']}"
    if key["KeyType"] == "rsa" and system in _NO_RSA:
        hint = f"{_create_key(deployment, f'{name}-ed25519')}, and name it in `cluster.head_node.ssh_key_name`"
        yield Finding(CheckStatus.FAIL, f"{sentence}; allowed with {system}: ed25519", hint, command)
    else:
        yield Finding(CheckStatus.PASS, f"{sentence}, which {system} takes", command=command)


@check(
    "placement-group",
    "Placement groups that exist already",
    prevents="ParallelCluster would reject the cluster, or EC2 place its nodes far from each other.",
    calls=("ec2:DescribePlacementGroups",),
)
def placement_group(deployment: Deployment) -> Iterator[Finding]:
    """Check that the groups that queues name exist and keep nodes together."""
    paths: dict[str, str] = {}
    for number, queue in enumerate(deployment.settings.cluster.queues):
        if queue.existing_placement_group:
            paths.setdefault(queue.existing_placement_group, f"cluster.queues[{number}].existing_placement_group")
    for name, path in paths.items():
        yield _about_placement_group(deployment, name, path)


def _about_stack(deployment: Deployment, part: str) -> Finding:
    name = deployment.stack_name(part)
    stack = deployment.stack(name)
    command, events = _describe(deployment, name), _describe(deployment, name, "describe-stack-events")
    if stack is None:
        return Finding(CheckStatus.PASS, f"there is no stack {name} yet", command=command, subject=name)
    status = stack["StackStatus"]
    if status == "REVIEW_IN_PROGRESS":
        sentence = f"{name} is {status}: a change set was created for it and not executed, and it has no resources"
        hint = "go ahead, unless somebody else is deploying it right now"
        return Finding(CheckStatus.WARN, sentence, hint, command, name)
    if stack.get("Description") != f"Trn1 UltraCluster {deployment.settings.name}: {part}":
        sentence = f"{name} is taken by a stack that is not ours: {stack.get('Description', 'without description')}"
        hint = f"choose another `name` in config/{deployment.environment}.yaml"
        return Finding(CheckStatus.FAIL, sentence, hint, command, name)
    if status in _UPDATABLE:
        return Finding(CheckStatus.PASS, f"{name} is {status}, and ours to update", command=command, subject=name)
    if status in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED"):
        return _about_failed_creation(deployment, stack)
    hint = _way_out(deployment, name, status)
    return Finding(CheckStatus.FAIL, f"{name} is {status}: it cannot be updated", hint, events, name)


def _about_other_cluster(deployment: Deployment, generation: int) -> Finding:
    name = deployment.settings.of_generation(generation).stack_name("cluster")
    command, upgrade = _describe(deployment, name), f"make upgrade ENV={deployment.environment}"
    if generation < deployment.settings.cluster.generation:
        sentence = f"{name} still holds a cluster of an earlier generation, which costs money and counts in the quotas"
        return Finding(CheckStatus.WARN, sentence, f"`{upgrade}` continues: it drains and destroys it", command, name)
    sentence = (
        f"{name} holds a cluster of a later generation than config/{deployment.environment}.yaml names "
        f"({deployment.settings.cluster.generation}): a deployment would create, or update, one that was replaced"
    )
    hint = f"restore the file as the upgrade left it; `{upgrade} ARGS=--abandon` destroys the later one"
    return Finding(CheckStatus.FAIL, sentence, hint, command, name)


def _about_failed_creation(deployment: Deployment, stack: Mapping[str, Any]) -> Finding:
    """Tell what happens to a stack that the CDK deletes and creates again, if it may."""
    name, status = stack["StackName"], stack["StackStatus"]
    events = _describe(deployment, name, "describe-stack-events")
    if not stack.get("EnableTerminationProtection"):
        sentence = f"{name} is {status}: its creation failed; the next deployment deletes it and creates it again"
        return Finding(CheckStatus.WARN, sentence, "find out why it failed, and fix that", events, name)
    unprotect = ("cloudformation", "update-termination-protection", "--no-enable-termination-protection")
    command = deployment.command(*unprotect, "--stack-name", name)
    sentence = f"{name} is {status}: its creation failed, and termination protection keeps the CDK from deleting it"
    return Finding(CheckStatus.FAIL, sentence, f"`{command}`", events, name)


def _about_taken_cluster_name(deployment: Deployment, stack: Mapping[str, Any]) -> Finding:
    name, status = stack["StackName"], stack["StackStatus"]
    command = _describe(deployment, name)
    if status == "DELETE_IN_PROGRESS":
        return Finding(CheckStatus.FAIL, f"a stack {name} is being deleted", "wait until it is gone", command)
    hint = f"choose another `cluster.name` in config/{deployment.environment}.yaml"
    if "parallelcluster:version" in [tag["Key"] for tag in stack.get("Tags", [])]:
        delete = f"pcluster delete-cluster --cluster-name {name} --region {deployment.settings.region}"
        sentence = f"{name} is taken by a cluster that {deployment.stack_name('cluster')} did not make ({status})"
        return Finding(
            CheckStatus.FAIL, sentence, f"{hint}, or delete that cluster if nobody needs it: `{delete}`", command
        )
    return Finding(CheckStatus.FAIL, f"{name} is taken by a stack that is no cluster ({status})", hint, command)


def _about_placement_group(deployment: Deployment, name: str, path: str) -> Finding:
    command = deployment.command("ec2", "describe-placement-groups", "--group-names", name)
    answer = find(deployment, "ec2", "describe_placement_groups", GroupNames=[name])
    if answer is None:
        hint = f"change `{path}`; null: the deployment makes a group"
        return Finding(CheckStatus.FAIL, f"there is no placement group {name}", hint, command, name)
    [group] = answer["PlacementGroups"]
    sentence = f"placement group {name} has strategy {group['Strategy']} and is {group['State']}"
    if group["Strategy"] != "cluster":
        hint = f"name a group of strategy cluster in `{path}`; null: the deployment makes one"
        return Finding(CheckStatus.FAIL, f"{sentence}; allowed: strategy cluster", hint, command, name)
    if group["State"] != "available":
        hint = f"wait until it is available, or name another group in `{path}`"
        return Finding(CheckStatus.FAIL, f"{sentence}; allowed: available", hint, command, name)
    return Finding(CheckStatus.PASS, sentence, command=command, subject=name)


def _describe(deployment: Deployment, stack_name: str, operation: str = "describe-stacks") -> str:
    return deployment.command("cloudformation", operation, "--stack-name", stack_name)


def _way_out(deployment: Deployment, stack_name: str, status: str) -> str:
    if status.endswith("_IN_PROGRESS"):
        return "wait until that is done"
    if status not in _WAYS_OUT:
        return "its events say what happened"
    command = deployment.command("cloudformation", _WAYS_OUT[status], "--stack-name", stack_name)
    return f"fix the cause, which its events name, then `{command}` (README, When a deployment fails)"


def _create_key(deployment: Deployment, name: str) -> str:
    words = ("ec2", "create-key-pair", "--key-type", "ed25519", "--key-name", name)
    command = deployment.command(*words, "--query", "KeyMaterial", "--output", "text")
    return f"`{command} > {name}.pem`"


CHECKS = (stack_names, cluster_name, ssh_key, placement_group)
