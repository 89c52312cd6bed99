"""A cluster by a configuration of ParallelCluster's, as it is."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from aws_cdk import Stack, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster import cluster_names
from ultracluster.arguments import construct_name, together, wrong_types
from ultracluster.cluster_base import ROLE_PATH
from ultracluster.cluster_provider import secrets_policy
from ultracluster.defined_cluster import DefinedCluster
from ultracluster.domain import cluster_rules, names, parallelcluster_schema
from ultracluster.domain.override_rules import json_violations
from ultracluster.domain.overrides import at, mappings, plain, sections
from ultracluster.domain.parallelcluster_versions import PINNED, VERSIONS
from ultracluster.domain.violations import InvalidArguments, Path, Violation, below, dotted, is_token
from ultracluster.domain.violations import listed as some_of
from ultracluster.placement import may_be_same
from ultracluster.signatures import readable

_TAGS = ("Tags", "Scheduling.SlurmQueues.Tags", "Scheduling.SlurmQueues.ComputeResources.Tags")


@readable
class ConfiguredCluster(DefinedCluster):
    """A cluster by a configuration of ParallelCluster's, without the defaults and rules of `ParallelCluster`.

    It is what `ParallelCluster.from_configuration` makes. Its nodes have the permissions that the configuration gives
    them: a grant reaches them by the policy of the resource alone, such as a bucket's or a key's, and not if they
    have roles of yours. Tags of ``cdk.Tags`` are added to the configuration's, and a permissions boundary of
    ``iam.PermissionsBoundary``. The provider may make and pass roles below ``/parallelcluster/`` alone, and sees the
    secrets of the configuration, but decrypts no Munge key by a key of yours.

    Attributes:
        cluster_name: ParallelCluster's name of the cluster; known once the cluster exists.
        status: Status of the cluster, such as ``CREATE_COMPLETE``.
        validation_messages: What the validators said, as JSON, cut after 2,048 characters.
        grant_principal: All nodes, to be granted permissions by the policies of resources.
        connections: The security groups that were given.
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
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        suppress_validators: Sequence[str] = (),
        validation_failure_level: Literal["INFO", "WARNING", "ERROR"] = "ERROR",
        parallelcluster_version: str = PINNED,
    ) -> None:
        self._construct = construct_name("ParallelCluster.from_configuration", scope, construct_id)
        name = names.of_path(self._construct.partition(" ")[2]) if cluster_name is None else cluster_name
        broken = wrong_types(ConfiguredCluster.__init__, locals())
        wrong = {each.path[0] for each in broken}
        if "parallelcluster_version" not in wrong and parallelcluster_version not in VERSIONS:
            allowed = some_of([*VERSIONS], "")
            broken.append(
                Violation(("parallelcluster_version",), parallelcluster_version, allowed, "no other is known")
            )
        if "cluster_name" not in wrong:
            shapes = [replace(each, path=("cluster_name",)) for each in cluster_rules.name_violations(name)]
            broken += [*shapes, *cluster_names.violations(scope, name)]
        configuration = plain(configuration)
        if isinstance(configuration, dict):
            found = _violations(configuration, Stack.of(scope).region, parallelcluster_version)
            broken = together(broken, below(("configuration",), found))
        if broken:
            raise InvalidArguments(self._construct, broken)
        prefix = str(at(configuration, ("Iam", "ResourcePrefix")) or "")
        role_path = f"{prefix.rpartition('/')[0]}/" if prefix.startswith("/") else ROLE_PATH
        super().__init__(scope, construct_id, name=name, security_groups=security_groups, role_path=role_path)
        self._configuration = configuration
        self._carry_tags({})
        self._define(
            parallelcluster_version,
            configuration=self._rendered,
            suppressed=lambda: list(suppress_validators),
            level=validation_failure_level,
            secrets=secrets_policy(self, _secrets(configuration)),
        )
        self._check_when_whole(self._wrong_when_whole)

    def _unreached(self, kinds: Sequence[str]) -> tuple[str, str]:
        return (
            "ultracluster:configuredGrant",
            f"nodes of {self._name} get no policy, because their configuration says what they may: only what has a "
            "policy of its own in this app, such as a bucket or a key, lets them in",
        )

    def _monitored(self) -> tuple[str, list[str], bool]:
        return self._name, [], False

    def _unknown_queue(self, name: str) -> str | None:
        queues = mappings(at(self._configuration, ("Scheduling", "SlurmQueues")))
        known = [str(each.get("Name")) for each in queues]
        return None if name in known else f"{self._construct} has no queue {name!r}; there are: {', '.join(known)}"

    @property
    def _own_boundary(self) -> Any:
        return at(self._configuration, ("Iam", "PermissionsBoundary"))

    def _further_tags(self) -> dict[str, str]:
        """Return the tags of the app that the configuration does not have."""
        known = [each.get("Key") for each in mappings(self._configuration.get("Tags"))]
        return {key: value for key, value in self._tags.tag_values().items() if key not in known}

    def _rendered(self) -> dict[str, Any]:
        """Return the configuration, with tags and boundary of the app."""
        completed = dict(self._configuration)
        if further := self._further_tags():
            own = [*(completed.get("Tags") or [])]
            completed["Tags"] = [*own, *({"Key": key, "Value": value} for key, value in further.items())]
        if self._probe.boundary is not None and self._own_boundary is None:
            completed["Iam"] = {**(completed.get("Iam") or {}), "PermissionsBoundary": self._probe.boundary}
        return completed

    def _wrong_when_whole(self) -> list[str]:
        further = self._further_tags()
        wrong = [
            *cluster_names.stack_violations(self, self._name),
            *below(("tags",), cluster_rules.tag_violations(further)),
        ]
        count = len(mappings(self._configuration.get("Tags"))) + len(further)
        if len(further) <= cluster_rules.MAX_TAGS < count:
            reason = "limit of ParallelCluster, for those of the configuration and of the app"
            wrong.append(Violation(("tags",), count, f"at most {cluster_rules.MAX_TAGS} tags", reason))
        own, boundary = self._own_boundary, self._probe.boundary
        if own is not None and boundary is not None and not may_be_same(str(own), boundary):
            reason = "the provider may make roles with that boundary alone"
            path = ("configuration", "Iam", "PermissionsBoundary")
            wrong.append(Violation(path, own, f"{boundary}, the boundary of the app, or none", reason))
        return [*(f"{dotted(each.path)}: {each}" for each in wrong), *self._wrong_boundary()]


def _violations(configuration: dict[str, Any], region: str, version: str) -> Iterator[Violation]:
    """Yield what is no JSON, what ParallelCluster's schema refuses, and what is for another Region."""
    if no_json := [*json_violations(configuration)]:
        yield from no_json
        return
    if version == PINNED or version not in list(VERSIONS):
        yield from parallelcluster_schema.violations(configuration)
        for place, key in parallelcluster_schema.missing(configuration):
            yield Violation((*place, key), None, "a value", "ParallelCluster needs it")
    tags = configuration.get("Tags")
    if tags is not None and not isinstance(tags, list):
        yield Violation(("Tags",), tags, "a list", "the app adds its own")
    else:
        yield from _tag_violations(configuration)
    given = configuration.get("Region")
    if given is not None and not is_token(given) and not is_token(region) and given != region:
        yield Violation(("Region",), given, region, "the Region of the stack")


def _tag_violations(configuration: dict[str, Any]) -> Iterator[Violation]:
    """Yield which tags AWS would refuse while the cluster is made; ParallelCluster lets them pass."""
    by_list: dict[Path, dict[Path, Mapping[str, Any]]] = {}
    for path, tag in sections(configuration, _TAGS.__contains__):
        if isinstance(tag.get("Key"), str) and not is_token(tag["Key"]):
            by_list.setdefault(path[:-1], {})[path] = tag
    for place, tags in by_list.items():
        if len(tags) > cluster_rules.MAX_TAGS:
            yield Violation(place, len(tags), f"at most {cluster_rules.MAX_TAGS} tags", "limit of ParallelCluster")
        times = Counter(each["Key"] for each in tags.values())
        for where, each_tag in tags.items():
            key, value = each_tag["Key"], each_tag.get("Value")
            if times[key] > 1:
                yield Violation((*where, "Key"), key, "each key once", "AWS refuses tags of one key")
            text = value if isinstance(value, str) and value else "-"  # AWS takes an empty value
            for each in cluster_rules.tag_violations({key: text}):
                yield replace(each, path=(*where, "Key" if each.got == key else "Value"))


def _secrets(value: Any, place: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield places and ARNs of secrets; a function of CloudFormation is a token then."""
    for key, member in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        if str(key).endswith("SecretArn") and member is not None:
            yield (*place, key), member if isinstance(member, str) else Token.as_string(Token.as_any(member))
        else:
            yield from _secrets(member, (*place, key))
