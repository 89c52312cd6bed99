"""ParallelCluster's own dry run of the cluster, in the account of the credentials."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from scripts.account.deployment import Deployment
from scripts.check.preflight.check import check
from scripts.core import options
from scripts.core.aws_errors import denied_actions, denies
from scripts.core.findings import FAIL, PASS, SKIP, UNKNOWN, WARN, Finding
from scripts.core.temporary import temporary_directory
from toolchain.cluster import ClusterRequest, cluster_request
from toolchain.deployed import NOT_YET, resolve_deployed
from toolchain.parallelcluster import DryRun, Message, ParallelCluster
from toolchain.synthesis import synthesize
from ultracluster.domain.parallelcluster_versions import PINNED, not_asked
from ultracluster.domain.validator_warnings import accepted, judge

_LISTS = {
    "AdditionalIamPolicies": "policies",
    "AdditionalSecurityGroups": "security groups",
    "SharedStorage": "file system",
}
"""Keys of lists that can do without some of their members, and what those are."""

_FREE_NAME = "preflight"
"""In place of the name of a cluster that exists: ParallelCluster creates none under a name that is taken."""


@check(
    "parallelcluster",
    "ParallelCluster's own dry run",
    calls=(
        "sts:GetCallerIdentity",
        "cloudformation:DescribeStacks",
        "cloudformation:ListStackResources",
        "ec2:DescribeAddresses",
        "ec2:DescribeCapacityReservations",
        "ec2:DescribeImages",
        "ec2:DescribeInstanceTypeOfferings",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeKeyPairs",
        "ec2:DescribeLaunchTemplateVersions",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribePlacementGroups",
        "ec2:DescribeRouteTables",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSnapshots",
        "ec2:DescribeSubnets",
        "ec2:DescribeVolumes",
        "ec2:DescribeVpcAttribute",
        "elasticfilesystem:DescribeFileSystems",
        "elasticfilesystem:DescribeMountTargetSecurityGroups",
        "elasticfilesystem:DescribeMountTargets",
        "fsx:DescribeBackups",
        "fsx:DescribeFileCaches",
        "fsx:DescribeFileSystems",
        "fsx:DescribeStorageVirtualMachines",
        "fsx:DescribeVolumes",
        "iam:GetInstanceProfile",
        "iam:GetPolicy",
        "iam:GetRole",
        "kms:DescribeKey",
        "resource-groups:GetGroupConfiguration",
        "resource-groups:ListGroupResources",
        "route53:GetHostedZone",
        "s3:GetBucketLocation",
        "secretsmanager:DescribeSecret",
    ),
    seconds=180,
)
def parallelcluster(deployment: Deployment) -> Iterator[Finding]:
    """The provider would reject the cluster, after network and file system were made.

    Dry-run the creation of the cluster, all validators included, without what does not exist yet.

    The calls are those of ParallelCluster's validators that read no content. Where settings name a bucket or a script
    in S3, a secret or a parameter, its validator needs s3:ListBucket, s3:GetObject, secretsmanager:GetSecretValue or
    ssm:GetParameter on that one, and the finding names what was denied (aws-parallelcluster 3.16.1,
    pcluster/validators).

    It creates nothing. A cluster that exists is submitted as a new one of another name: `plan` tells what its
    update would do, and the dry run of an update creates ParallelCluster's bucket if there is none
    (aws-parallelcluster 3.16.1, models/s3_bucket.py, init_s3_bucket).
    """
    request, left_out = _request(deployment)
    if NOT_YET in str(request.configuration):
        hint = (
            f"for now, `./ultracluster validate {deployment.name}` asks the same validators, in an emulated "
            "AWS; once network and storage are deployed, the provider asks them before it makes the cluster, and so "
            "does this check from then on"
        )
        yield Finding(SKIP, "the subnets do not exist yet", hint)
        return
    if deployment.stack(request.name) is not None:
        request = replace(request, properties={**request.properties, "ClusterName": _FREE_NAME})
    try:
        process = ParallelCluster({**os.environ, "AWS_RETRY_MODE": "adaptive"})
    except FileNotFoundError as error:
        yield Finding(UNKNOWN, str(error), f"`./ultracluster preflight {deployment.name}` sets it up")
        return
    with process:
        process.version = deployment.settings.cluster.parallelcluster_version
        yield from _findings(deployment, process.create(request, strings=True), left_out)


def _request(deployment: Deployment) -> tuple[ClusterRequest, list[str]]:
    """Return what the provider would get, without what does not exist yet, and the names of what is left out."""
    account = deployment.settings.account or deployment.account.ask("sts", "get_caller_identity")["Account"]
    with temporary_directory() as directory:
        assembly = synthesize(options.settings_file(deployment.name), directory, account)
        request = cluster_request(assembly, partial(resolve_deployed, assembly, deployment))
    left_out: set[str] = set()
    configuration = _existing(request.configuration, left_out)
    # Without SuppressValidators, to hear all warnings, and errors of those whose warnings are accepted.
    properties = {"ClusterName": request.name, "ClusterConfiguration": configuration}
    return replace(request, properties=properties), sorted(left_out)


def _existing(value: Any, left_out: set[str]) -> Any:
    """Return a part of a configuration without what does not exist yet, where it is valid without.

    The names of what is left out are added to `left_out`.
    """
    if isinstance(value, list):
        return [_existing(each, left_out) for each in value]
    if not isinstance(value, dict):
        return value
    kept: dict[str, Any] = {}
    for key, member in value.items():
        if key in _LISTS:
            if existing := [each for each in member if NOT_YET not in str(each)]:
                kept[key] = existing
            if len(existing) < len(member):
                left_out.add(_LISTS[key])
        elif key == "CustomActions":  # the CDK uploads the scripts of this version just before it deploys
            left_out.add("node scripts")
        elif key == "PlacementGroup" and NOT_YET in str(member):
            left_out.add("placement groups")
            kept[key] = {"Enabled": True}
        else:
            kept[key] = _existing(member, left_out)
    return kept


def _findings(deployment: Deployment, dry_run: DryRun, left_out: list[str]) -> Iterator[Finding]:
    messages = [each for each in dict.fromkeys(dry_run.messages) if each.level != "INFO"]
    if not dry_run.accepted and not messages:
        messages = [Message("ERROR", "", dry_run.reason)]
    accepting = accepted(deployment.settings.cluster_spec)
    stopped = launches_denied = False
    for message in messages:
        judged = judge(message.validator, accepting)
        if _launch_denied(message):
            launches_denied = True
        elif message.level == "WARNING" and not judged.stops:
            sentence = f"WARNING: {message.text} ({judged.explanation})"
            yield Finding(PASS, sentence, subject=message.validator)
        else:
            stopped = True
            yield _objection(deployment, message, judged.explanation if message.level == "WARNING" else "")
    if not stopped:
        sentence = f"the validators of ParallelCluster {PINNED} have no objection; left out is what the deployment "
        yield Finding(PASS, f"{sentence}brings: {', '.join(left_out)}")
    if open_question := not_asked(deployment.settings.cluster.parallelcluster_version):
        hint = "read the notes of its release; the provider asks its own validators before it makes the cluster"
        yield Finding(WARN, open_question, hint, subject="version")
    if launches_denied:
        sentence = "EC2 was not asked to dry-run launches: that takes ec2:RunInstances, which is not read-only"
        hint = "leave it to the deployment, which asks with its own permissions"
        yield Finding(SKIP, sentence, hint, subject="launches")


def _launch_denied(message: Message) -> bool:
    """Return whether a validator lacks the permission to ask EC2 for a dry run of a launch template."""
    of_a_launch = message.validator.endswith("LaunchTemplateValidator")
    return of_a_launch and denies(message.text) and denied_actions(message.text) <= {"ec2:RunInstances"}


def _objection(deployment: Deployment, message: Message, explanation: str) -> Finding:
    """Return why the deployment would fail; the explanation is that of a warning."""
    if denies(message.text):
        hint = "grant what it names, or leave it to the deployment, which asks again"
        return Finding(UNKNOWN, message.text, hint, subject=message.validator)
    hint = explanation or (
        f"ParallelCluster would reject the cluster; if `./ultracluster validate {deployment.name}` does not say "
        "the same, fix the account, otherwise the settings"
    )
    return Finding(FAIL, f"{message.level}: {message.text}", hint, subject=message.validator)


CHECKS = (parallelcluster,)
