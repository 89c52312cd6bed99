"""A cluster by a configuration of ParallelCluster's, as it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from aws_cdk import Stack
from constructs import Construct

from ultracluster import cluster_names
from ultracluster.arguments import construct_name, together, wrong_types
from ultracluster.cluster_base import ROLE_PATH
from ultracluster.cluster_provider import secrets_policy
from ultracluster.defined_cluster import DefinedCluster
from ultracluster.domain import cluster_rules, names, parallelcluster_schema
from ultracluster.domain.cluster_configuration import secrets_within
from ultracluster.domain.overrides import mappings, plain
from ultracluster.domain.parallelcluster_versions import PINNED, VERSIONS
from ultracluster.domain.violations import InvalidArguments, Violation, below, dotted, is_token
from ultracluster.domain.violations import listed as some_of
from ultracluster.signatures import readable


@readable
class ConfiguredCluster(DefinedCluster):
    """A cluster by a configuration of ParallelCluster's, without the defaults and rules of `ParallelCluster`.

    It is what `ParallelCluster.from_configuration` makes. Its nodes have the permissions that the configuration gives
    them: a grant reaches them by the policy of the resource alone, such as a bucket's or a key's. Tags of ``cdk.Tags``
    are added to the configuration's, and a permissions boundary of ``iam.PermissionsBoundary``, unless it has one.

    Attributes:
        cluster_name: ParallelCluster's name of the cluster; known once the cluster exists.
        status: Status of the cluster, such as ``CREATE_COMPLETE``.
        validation_messages: What the validators said, as JSON, cut after 2,048 characters.
        grant_principal: All nodes, to be granted permissions by the policies of resources.
        connections: Security groups; of this app's view none, as the configuration names them.
        head_node_instance_id: EC2's id of the head node.
        head_node_private_ip: Address of the head node in the VPC.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        configuration: Mapping[str, Any],
        cluster_name: str | None = None,
        suppress_validators: Sequence[str] = (),
        validation_failure_level: Literal["INFO", "WARNING", "ERROR"] = "ERROR",
        parallelcluster_version: str = PINNED,
    ) -> None:
        self._construct = construct_name("ParallelCluster.from_configuration", scope, construct_id)
        name = names.of_path(self._construct.partition(" ")[2]) if cluster_name is None else cluster_name
        broken = wrong_types(ConfiguredCluster.__init__, locals())
        if not any(each.path[0] == "parallelcluster_version" for each in broken):
            broken += _version_violations(parallelcluster_version)
        if not any(each.path[0] == "cluster_name" for each in broken):
            shapes = [replace(each, path=("cluster_name",)) for each in cluster_rules.name_violations(name)]
            broken += [*shapes, *cluster_names.violations(scope, name)]
        configuration = plain(configuration)
        if isinstance(configuration, dict):
            broken = together(broken, below(("configuration",), _violations(configuration, Stack.of(scope).region)))
        if broken:
            raise InvalidArguments(self._construct, broken)
        prefix = str((configuration.get("Iam") or {}).get("ResourcePrefix") or "")
        role_path = f"{prefix.rpartition('/')[0]}/" if prefix.startswith("/") else ROLE_PATH
        super().__init__(scope, construct_id, name=name, security_groups=None, role_path=role_path)
        self._configuration = configuration
        self._carry_tags({})
        self._define(
            parallelcluster_version,
            configuration=self._completed,
            suppressed=lambda: list(suppress_validators),
            level=validation_failure_level,
            secrets=secrets_policy(self, secrets_within(configuration)),
        )
        self._check_when_whole(self._wrong_when_whole)

    def _unreached(self, kinds: Sequence[str]) -> tuple[str, str]:
        return (
            "ultracluster:configuredGrant",
            f"nodes of {self._name} get no policy, because their configuration says what they may: only what has a "
            "policy of its own in this app, such as a bucket or a key, lets them in",
        )

    def _completed(self) -> dict[str, Any]:
        """Return the configuration, with tags and boundary of the app."""
        completed = dict(self._configuration)
        given = mappings(completed.get("Tags") or [])
        known = {each.get("Key") for each in given}
        further = [{"Key": key, "Value": value} for key, value in self._tags.tag_values().items() if key not in known]
        if further:
            completed["Tags"] = [*given, *further]
        if self._probe.boundary is not None:
            completed["Iam"] = {"PermissionsBoundary": self._probe.boundary, **(completed.get("Iam") or {})}
        return completed

    def _wrong_when_whole(self) -> list[str]:
        tags = {
            str(each.get("Key")): str(each.get("Value", "")) for each in mappings(self._completed().get("Tags") or [])
        }
        wrong = [
            *cluster_names.stack_violations(self, self._name),
            *below(("Tags",), cluster_rules.tag_violations(tags)),
        ]
        return [f"{dotted(each.path)}: {each}" for each in wrong]


def _version_violations(version: str) -> Iterator[Violation]:
    if version not in VERSIONS:
        yield Violation(("parallelcluster_version",), version, some_of([*VERSIONS], ""), "no other one is known here")


def _violations(configuration: dict[str, Any], region: str) -> Iterator[Violation]:
    """Yield what ParallelCluster's schema refuses, and what is for another Region."""
    yield from parallelcluster_schema.violations(configuration)
    for place, key in parallelcluster_schema.missing(configuration):
        yield Violation((*place, key), None, "a value", "ParallelCluster needs it")
    given = configuration.get("Region")
    if given is not None and not is_token(given) and not is_token(region) and given != region:
        yield Violation(("Region",), given, region, "the Region of the stack")
