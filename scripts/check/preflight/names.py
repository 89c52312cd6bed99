"""Names that are free or this deployment's own, and what the settings name."""

from __future__ import annotations

from collections.abc import Iterator

from config.stack_identity import StackIdentity
from scripts.account import generations, way_out
from scripts.account.deployment import Deployment
from scripts.account.stack_state import StackState
from scripts.check.preflight.check import check
from scripts.core.findings import FAIL, PASS, WARN, Finding

_NO_RSA = ("ubuntu2204", "ubuntu2404")
"""OS on which ParallelCluster rejects RSA keys (aws-parallelcluster 3.16.1, validators/ec2_validators.py)."""


@check(
    "stack-names",
    "Names and states of the stacks",
    calls=("cloudformation:DescribeStacks", "cloudformation:DescribeStackEvents", "cloudformation:ListStackResources"),
)
def stack_names(deployment: Deployment) -> Iterator[Finding]:
    """A stack of somebody else would be overwritten, changes of ours rejected, or a replaced cluster created again."""
    for part in deployment.settings.parts:
        name = deployment.stack_name(part)
        yield _about_stack(deployment, name, part).of(name, _describe(deployment, name))
    for generation in generations.existing(deployment):
        if generation != deployment.settings.cluster.generation:
            name = deployment.settings.of_generation(generation).stack_name("cluster")
            yield _about_other_cluster(deployment, name, generation).of(name, _describe(deployment, name))


@check(
    "cluster-name",
    "Name of the cluster",
    calls=("cloudformation:DescribeStacks", "cloudformation:DescribeStackEvents", "cloudformation:ListStackResources"),
)
def cluster_name(deployment: Deployment) -> Finding:
    """ParallelCluster would refuse to create the cluster, after network and file system are being billed.

    Check whether there is a stack of the cluster's name: a cluster is a stack of its name to ParallelCluster.
    """
    name = deployment.settings.cluster_spec.name
    stack = deployment.stack(name)
    command = _describe(deployment, name)
    if stack is None:
        return Finding(PASS, f"there is no cluster or stack {name} yet", command=command)
    status = StackState.of(stack)
    if name in deployment.physical_ids(deployment.stack_name("cluster")).values():
        if status.is_ready:
            return Finding(PASS, f"cluster {name} is {status}, and ours to update", command=command)
        sentence = f"cluster {name}, which is ours, is {status}: it cannot be updated"
        way = next((each for each in way_out.find(deployment) if each.stack == name), None)
        return Finding(FAIL, sentence, way.steps if way else _way_out(deployment, name, "cluster", status), command)
    if status.is_being_deleted:
        return Finding(FAIL, f"a stack {name} is being deleted", "wait until it is gone, some minutes", command)
    is_cluster = "parallelcluster:version" in [tag["Key"] for tag in stack.get("Tags", [])]
    owner = (
        f"a cluster that {deployment.stack_name('cluster')} did not make"
        if is_cluster
        else "a stack that is no cluster"
    )
    hint = f"choose another `cluster.name` in {deployment.file}"
    if is_cluster:
        hint += f", or `pcluster delete-cluster --cluster-name {name} --region {deployment.settings.region}`"
    return Finding(FAIL, f"{name} is taken by {owner} ({status})", hint, command)


@check("ssh-key", "SSH key of the head node", calls=("ec2:DescribeKeyPairs",))
def ssh_key(deployment: Deployment) -> Finding | None:
    """ParallelCluster would reject the cluster, after network and file system are being billed."""
    name, system = deployment.settings.cluster.head_node.ssh_key_name, deployment.settings.cluster.os
    if name is None:
        return None
    command = deployment.command("ec2", "describe-key-pairs", "--key-names", name)
    create = "`aws ec2 create-key-pair --key-type ed25519`, and name the pair in `cluster.head_node.ssh_key_name`"
    answer = deployment.account.find("ec2", "describe_key_pairs", KeyNames=[name])
    if answer is None:
        return Finding(FAIL, f"there is no key pair {name} in {deployment.settings.region}", create, command)
    [key] = answer["KeyPairs"]
    sentence = f"key pair {name} is of type {key['KeyType']}"
    if key["KeyType"] == "rsa" and system in _NO_RSA:
        return Finding(FAIL, f"{sentence}; allowed with {system}: ed25519", create, command)
    return Finding(PASS, f"{sentence}, which {system} takes", command=command)


@check("placement-group", "Placement groups that exist already", calls=("ec2:DescribePlacementGroups",))
def placement_group(deployment: Deployment) -> Iterator[Finding]:
    """ParallelCluster would reject the cluster, or EC2 place its nodes far from each other."""
    paths: dict[str, str] = {}
    for number, queue in enumerate(deployment.settings.cluster.queues):
        if queue.existing_placement_group:
            paths.setdefault(queue.existing_placement_group, f"cluster.queues[{number}].existing_placement_group")
    for name, path in paths.items():
        command = deployment.command("ec2", "describe-placement-groups", "--group-names", name)
        yield _about_placement_group(deployment, name, path).of(name, command)


def _about_stack(deployment: Deployment, name: str, part: str) -> Finding:
    stack = deployment.stack(name)
    if stack is None:
        return Finding(PASS, f"there is no stack {name} yet")
    status = StackState.of(stack)
    if status.is_in_review:
        sentence = f"{name} is {status}: a change set was created for it and not executed, and it has no resources"
        return Finding(WARN, sentence, "go ahead, unless somebody else is deploying it right now")
    if StackIdentity.of(stack) != (deployment.settings.name, part):
        sentence = f"{name} is taken by a stack that is not ours: {stack.get('Description', 'without description')}"
        return Finding(FAIL, sentence, f"choose another `name` in {deployment.file}")
    if status.is_ready:
        return Finding(PASS, f"{name} is {status}, and ours to update")
    if not status.has_nothing:
        sentence = f"{name} is {status}: it cannot be updated"
        way = next((each for each in way_out.find(deployment) if each.stack == name), None)
        return Finding(
            FAIL,
            f"{sentence}; {way.in_force}" if way else sentence,
            way.steps if way else _way_out(deployment, name, part, status),
        )
    sentence = f"{name} is {status}: its creation failed"
    if stack.get("EnableTerminationProtection"):
        unprotect = ("cloudformation", "update-termination-protection", "--no-enable-termination-protection")
        hint = f"`{deployment.command(*unprotect, '--stack-name', name)}`"
        finding = Finding(FAIL, f"{sentence}, and termination protection keeps the CDK from deleting it", hint)
    else:
        sentence += "; the next deployment deletes it and creates it again"
        finding = Finding(WARN, sentence, "find out why it failed, and fix that")
    return finding


def _about_other_cluster(deployment: Deployment, name: str, generation: int) -> Finding:
    upgrade = f"./ultracluster upgrade {deployment.name}"
    if generation < deployment.settings.cluster.generation:
        sentence = f"{name} still holds a cluster of an earlier generation, which costs money and counts in the quotas"
        return Finding(WARN, sentence, f"`{upgrade}` continues: it drains and destroys it")
    sentence = (
        f"{name} holds a cluster of a later generation than {deployment.file} names "
        f"({deployment.settings.cluster.generation}): a deployment would create, or update, one that was replaced"
    )
    hint = f"restore the file as the upgrade left it; `{upgrade} --abandon` destroys the later one"
    return Finding(FAIL, sentence, hint)


def _about_placement_group(deployment: Deployment, name: str, path: str) -> Finding:
    answer = deployment.account.find("ec2", "describe_placement_groups", GroupNames=[name])
    hint = f"name another group in `{path}`; null: the deployment makes one"
    if answer is None:
        return Finding(FAIL, f"there is no placement group {name}", hint)
    [group] = answer["PlacementGroups"]
    sentence = f"placement group {name} has strategy {group['Strategy']} and is {group['State']}"
    if (group["Strategy"], group["State"]) != ("cluster", "available"):
        return Finding(FAIL, f"{sentence}; allowed: cluster, available", hint)
    return Finding(PASS, sentence)


def _describe(deployment: Deployment, stack_name: str) -> str:
    return deployment.command("cloudformation", "describe-stacks", "--stack-name", stack_name)


def _way_out(deployment: Deployment, name: str, part: str, status: StackState) -> str:
    if status.is_in_progress:
        return f"`./ultracluster status {deployment.name} --watch` follows it to its end"
    if status.was_never_complete or status.is_leaving:
        option = "" if part == "cluster" else f" --{part}"
        return f"`./ultracluster destroy {deployment.name}{option}` deletes what is left of it; then deploy again"
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_RollbackStack.html
    return f"`{deployment.command('cloudformation', 'rollback-stack', '--stack-name', name)}` takes the update back"


CHECKS = (stack_names, cluster_name, ssh_key, placement_group)
