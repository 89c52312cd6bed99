"""What the pinned ParallelCluster says of the cluster, asked of the account that the credentials lead to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scripts.deployment import Deployment
from scripts.preflight.check import Finding, Status, check
from toolchain.cluster import ClusterRequest, cluster_request
from toolchain.deployed import NOT_YET, DeployedResolver
from toolchain.parallelcluster import Message, ParallelCluster, Verdict
from toolchain.synthesis import synthesize
from ultracluster.domain.validator_warnings import accepted, judge

_LISTS = {
    "AdditionalIamPolicies": "policies",
    "AdditionalSecurityGroups": "security groups",
    "SharedStorage": "file system",
}
"""Keys of lists that can do without some of their members, and what those are."""

_REFUSED = re.compile(r"not authorized|lack of permissions|forbidden|access ?denied", re.IGNORECASE)
"""Words of AWS, and of validators/common.py, for a right that is missing; `Forbidden` is S3's HeadObject."""

_OTHER_RIGHT = re.compile(r"authorized to perform: (?!ec2:RunInstances\b)")
"""Words of AWS where a launch is not refused for want of the right to launch; older messages name no right."""

_FREE_NAME = "preflight"
"""Stands for the name of a cluster that exists: ParallelCluster creates none of a name that is taken."""


@check(
    "parallelcluster",
    "ParallelCluster's own dry run",
    prevents="The provider would refuse the cluster, after network and file system were made.",
    calls=(
        "sts:GetCallerIdentity",
        "cloudformation:DescribeStacks",
        "cloudformation:ListStackResources",
        "ec2:DescribeCapacityReservations",
        "ec2:DescribeImages",
        "ec2:DescribeInstanceTypeOfferings",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeKeyPairs",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribePlacementGroups",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:DescribeVpcAttribute",
        "fsx:DescribeFileSystems",
        "iam:GetPolicy",
        "resource-groups:GetGroupConfiguration",
        "resource-groups:ListGroupResources",
    ),
    seconds=60,
)
def parallelcluster(deployment: Deployment) -> Iterator[Finding]:
    """Dry-run the creation of the cluster, all validators included, with what exists of all that it refers to.

    It makes nothing. A cluster that exists is put forward as a new one of another name: what its update would do is
    told elsewhere, and the dry run of an update makes ParallelCluster's bucket if it is not there
    (aws-parallelcluster 3.16.1, models/s3_bucket.py, init_s3_bucket).
    """
    request, left_out = _request(deployment)
    if NOT_YET in str(request.configuration):
        yield _too_early(deployment)
        return
    if deployment.stack(request.name) is not None:
        request = replace(request, properties={**request.properties, "ClusterName": _FREE_NAME})
    try:
        process = ParallelCluster({**os.environ, "AWS_RETRY_MODE": "adaptive"})
    except FileNotFoundError as error:
        yield Finding(Status.UNKNOWN, str(error), f"`make preflight ENV={deployment.environment}` sets it up")
        return
    with process:
        yield from _findings(deployment, process.create(request, strings=True), left_out)


def _request(deployment: Deployment) -> tuple[ClusterRequest, list[str]]:
    """Return what the provider would get, without what does not exist yet, and the names of what that is."""
    account = deployment.settings.account or deployment.account.ask("sts", "get_caller_identity")["Account"]
    with TemporaryDirectory() as directory:
        assembly = synthesize(deployment.environment, Path(directory), account)
        request = cluster_request(assembly, DeployedResolver(assembly, deployment))
    left_out: set[str] = set()
    configuration = _existing(request.configuration, left_out)
    # Without SuppressValidators, to hear all warnings, and errors of those whose warnings are accepted.
    properties = {"ClusterName": request.name, "ClusterConfiguration": configuration}
    return replace(request, properties=properties), sorted(left_out)


def _existing(value: Any, left_out: set[str]) -> Any:
    """Return a part of a configuration without what does not exist yet, as far as it can do without.

    Args:
        value: The part.
        left_out: Gets the names of what is taken out.
    """
    if isinstance(value, list):
        return [_existing(each, left_out) for each in value]
    if not isinstance(value, dict):
        return value
    kept: dict[str, Any] = {}
    for key, member in value.items():
        if key in _LISTS:
            if there := [each for each in member if NOT_YET not in str(each)]:
                kept[key] = there
            if len(there) < len(member):
                left_out.add(_LISTS[key])
        elif key == "CustomActions":  # the CDK uploads the scripts of this version just before it deploys
            left_out.add("node scripts")
        elif key == "PlacementGroup" and NOT_YET in str(member):
            left_out.add("placement groups")
            kept[key] = {"Enabled": True}
        else:
            kept[key] = _existing(member, left_out)
    return kept


def _too_early(deployment: Deployment) -> Finding:
    environment = deployment.environment
    hint = (
        f"for now, `make validate ENV={environment}` asks the same validators of these settings, in an emulated AWS; "
        f"once `make deploy ENV={environment}` has made network and storage, the provider asks them in this account "
        "before it makes the cluster, and so does this check from then on"
    )
    return Finding(Status.SKIP, "the subnets do not exist yet", hint)


def _findings(deployment: Deployment, verdict: Verdict, left_out: list[str]) -> Iterator[Finding]:
    messages = [each for each in dict.fromkeys(verdict.messages) if each.level != "INFO"]
    if not verdict.accepted and not messages:
        messages = [Message("ERROR", "", verdict.reason)]
    accepting = accepted(deployment.settings.cluster_spec)
    stopped = launches_refused = False
    for message in messages:
        judged = judge(message.validator, accepting)
        if _launch_refused(message):
            launches_refused = True
        elif message.level == "WARNING" and not judged.stops:
            sentence = f"WARNING: {message.text} ({judged.explanation})"
            yield Finding(Status.PASS, sentence, subject=message.validator)
        else:
            stopped = True
            yield _objection(deployment, message, judged.explanation if message.level == "WARNING" else "")
    if not stopped:
        version = deployment.settings.cluster.parallelcluster_version
        sentence = f"the validators of ParallelCluster {version} have no objection; left out is what the deployment "
        yield Finding(Status.PASS, f"{sentence}brings: {', '.join(left_out)}")
    if launches_refused:
        sentence = "EC2 was not asked to dry-run launches: that takes ec2:RunInstances, more than a right to look"
        hint = "leave it to the deployment, which asks with its own rights"
        yield Finding(Status.SKIP, sentence, hint, subject="launches")


def _launch_refused(message: Message) -> bool:
    """Return whether a validator lacks the right with which it asks EC2 for a dry run of a launch template."""
    of_a_launch = message.validator.endswith("LaunchTemplateValidator")
    return of_a_launch and bool(_REFUSED.search(message.text)) and not _OTHER_RIGHT.search(message.text)


def _objection(deployment: Deployment, message: Message, explanation: str) -> Finding:
    """Return what stands against the deployment; the explanation is that of a warning."""
    if _REFUSED.search(message.text):
        hint = "grant what it names, or leave it to the deployment, which asks again"
        return Finding(Status.UNKNOWN, message.text, hint, subject=message.validator)
    hint = explanation or (
        "ParallelCluster would refuse the cluster; if `make validate "
        f"ENV={deployment.environment}` does not say the same, the account is to be mended, else the settings"
    )
    return Finding(Status.FAIL, f"{message.level}: {message.text}", hint, subject=message.validator)


CHECKS = (parallelcluster,)
