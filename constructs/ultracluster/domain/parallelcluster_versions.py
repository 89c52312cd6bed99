"""What differs between the versions of AWS ParallelCluster: a row of `VERSIONS` for each that a cluster may have.

New clusters get `PINNED`, whose package this project's environment has. An older row keeps clusters that have it: they
take every change but another version. A row whose package was never run here is not ``tried``: it has what public notes
say, and nobody has seen that version's validators.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

_RELEASES = "https://github.com/aws/aws-parallelcluster/releases/tag/v"
_TEMPLATE = "parallelcluster/{}/templates/custom_resource/cluster.yaml"
_POLICIES = "parallelcluster/{}/templates/policies/policies.yaml"


def _fact(move: str) -> Any:
    """Declare a value that differs between versions, with what another one means for a cluster that moves."""
    return field(metadata={"move": move})


@dataclass(frozen=True, kw_only=True)
class ParallelClusterVersion:
    """A version of ParallelCluster.

    Attributes:
        version: Its number.
        tried: Whether this project's tests run, or ran, its package with its validators.
        root_volume_gib: Root volume of the official images, in GiB: the least that a node made of them may have.
        aws_cli: Major versions of the AWS CLI that the official images have.
        lambda_runtime: Runtime of the Lambda functions of provider and cluster.
        efa_installer: Version of the EFA installer in the official images, which brings libfabric.
        sources: By attribute, the page that has the value.
    """

    version: str
    tried: bool
    root_volume_gib: int = _fact("root volumes: {old} GiB at least -> {new} GiB; smaller ones are refused")
    aws_cli: str = _fact("AWS CLI on nodes: {old} -> {new}; this project's scripts take either, see to your own")
    lambda_runtime: str = _fact("runtime of ParallelCluster's Lambda functions: {old} -> {new}; policies must allow it")
    efa_installer: str = _fact("EFA installer on nodes: {old} -> {new}; run the acceptance test before jobs move")
    sources: Mapping[str, str]


PINNED = "3.16.1"
"""The version of new clusters; requirements-pcluster.txt pins its package."""

VERSIONS: Mapping[str, ParallelClusterVersion] = {
    row.version: row
    for row in (
        ParallelClusterVersion(
            version="3.16.1",
            tried=True,
            root_volume_gib=45,
            aws_cli="1 and 2",
            lambda_runtime="python3.12",
            efa_installer="1.49.0",
            sources={
                "root_volume_gib": f"{_RELEASES}3.16.2",  # "(from 45 GB)"
                "aws_cli": f"{_RELEASES}3.16.2",  # "AWS CLI v1 is no longer installed"
                "lambda_runtime": f"{_RELEASES}3.16.2",  # "(from 3.12)"
                "efa_installer": f"{_RELEASES}3.16.3",  # "(from 1.49.0)"
            },
        ),
        ParallelClusterVersion(
            version="3.16.2",
            tried=False,
            root_volume_gib=50,
            aws_cli="2",
            lambda_runtime="python3.14",
            efa_installer="1.49.0",
            sources={
                "root_volume_gib": f"{_RELEASES}3.16.2",
                "aws_cli": f"{_RELEASES}3.16.2",
                "lambda_runtime": f"{_RELEASES}3.16.2",
                "efa_installer": f"{_RELEASES}3.16.3",
            },
        ),
        ParallelClusterVersion(
            version="3.16.3",
            tried=False,
            root_volume_gib=50,
            aws_cli="2",
            lambda_runtime="python3.14",
            efa_installer="1.51.0",
            sources={
                "root_volume_gib": f"{_RELEASES}3.16.2",
                "aws_cli": f"{_RELEASES}3.16.2",
                "lambda_runtime": f"{_RELEASES}3.16.2",
                "efa_installer": f"{_RELEASES}3.16.3",
            },
        ),
    )
}


def smallest_root_volume_gib() -> int:
    """Return the least root volume of any version, in GiB; the rules know that of each."""
    return min(row.root_volume_gib for row in VERSIONS.values())


def provider_template(version: str) -> str:
    """Return the key of the provider's template in AWS's bucket of a Region, for a version."""
    return _TEMPLATE.format(version)


def policies_template(version: str) -> str:
    """Return the key of the template of the provider's permissions, in the same bucket."""
    return _POLICIES.format(version)


def version_of_provider(template: str) -> str | None:
    """Return the version whose provider a text names, such as a template as JSON; None: it names none."""
    found = re.search(_TEMPLATE.format(r"([0-9][^/]*)"), template)
    return found[1] if found else None


def needs_of_move(old: str, new: str) -> Iterator[str]:
    """Yield what a cluster needs that moves from one version to another, a sentence for each difference."""
    rows = [VERSIONS.get(old), VERSIONS.get(new)]
    for version, row in zip((old, new), rows, strict=True):
        if row is None:
            yield f"{version} has no row in this release of the project: what else differs is not known"
    before, after = rows
    if after is not None and not after.tried:
        yield f"{new} was never run by this project's tests: what is known of it is from its public notes"
    if before is None or after is None:
        return
    for each in fields(ParallelClusterVersion):
        values = getattr(before, each.name), getattr(after, each.name)
        if "move" in each.metadata and values[0] != values[1]:
            yield each.metadata["move"].format(old=values[0], new=values[1])


def not_asked(version: str) -> str:
    """Return what is open where the pinned package answers for a version; empty: nothing, it is its own."""
    if version == PINNED:
        return ""
    return (
        f"the settings have ParallelCluster {version}, whose own code was not asked: that of {PINNED} answers, "
        f"with the images and under the number of {version}"
    )
