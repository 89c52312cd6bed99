"""AWS ParallelCluster as a construct: a Slurm cluster made, changed and deleted with its stack."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal

from aws_cdk import (
    Annotations,
    Stack,
)
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster import cluster_names
from ultracluster.arguments import construct_name, of_type, together, wrong_types
from ultracluster.cluster_base import ROLE_PATH, IParallelCluster, NodeGroup
from ultracluster.cluster_provider import secrets_policy
from ultracluster.configured_cluster import ConfiguredCluster
from ultracluster.defined_cluster import DefinedCluster
from ultracluster.domain import budget as budget_rules
from ultracluster.domain import cluster_rules, names, override_rules, team_rules
from ultracluster.domain.budget import BudgetSpec
from ultracluster.domain.cluster import (
    AcceptedWarning,
    ClusterSpec,
    HeadNodeSpec,
    LoginPoolSpec,
    MonitoringSpec,
    OperatingSystem,
    QueueSpec,
    SlurmSpec,
)
from ultracluster.domain.cluster_configuration import Bindings, render, secret_arns
from ultracluster.domain.custom_actions import NodeActionsSpec, actions, is_file, refused_file
from ultracluster.domain.directory import DirectorySpec
from ultracluster.domain.instance_types import EfaInterfaceType
from ultracluster.domain.overrides import at, mappings, plain
from ultracluster.domain.parallelcluster_versions import PINNED
from ultracluster.domain.roles import RolesSpec
from ultracluster.domain.spec import Spec
from ultracluster.domain.types import listed
from ultracluster.domain.validator_warnings import suppressed
from ultracluster.domain.violations import (
    InvalidArguments,
    Path,
    Violation,
    Waiting,
    below,
    dotted,
)
from ultracluster.neuron_software import NeuronSoftware
from ultracluster.node_policies import OF_PARALLELCLUSTER, too_large, too_many
from ultracluster.node_scripts import NodeScripts
from ultracluster.options import as_given
from ultracluster.placement import Subnet, elsewhere, is_public, node_subnets, with_subnets, with_subnets_for_selections
from ultracluster.shared_storage import SharedStorage
from ultracluster.signatures import readable
from ultracluster.ways_out import shut_in, warn_of_imported

if TYPE_CHECKING:  # to import it takes a twentieth of a second
    from aws_cdk import aws_secretsmanager as secretsmanager

    from ultracluster.slurm_accounting import SlurmAccounting

_ARGUMENTS: Mapping[Path, Path] = {
    ("name",): ("cluster_name",),
    ("munge_key_secret_arn",): ("munge_key",),
    ("neuron_sdk",): ("software", "neuron_sdk"),
    ("neuron_driver",): ("software", "neuron_driver"),
    ("pytorch",): ("software", "pytorch"),
}
"""Where the construct takes what has another place in `ClusterSpec`."""
_OF_SPEC = frozenset({*ClusterSpec.model_fields, "cluster_name"})
"""Arguments that `ClusterSpec` checks."""


_SUBNETS = ("public_subnet", "private_subnet")
_KINDS = {"HeadNode": "the head node", "LoginNodes": "login nodes"}


@readable
class ParallelCluster(DefinedCluster):
    """Define a cluster by AWS's own custom resource, with a provider of its own.

    One provider per cluster, because the provider may mix up the attributes of two, and because both have the same
    version for life (https://docs.aws.amazon.com/parallelcluster/latest/ug/cloudformation-v3.html).

    What can carry tags carries the cluster's and those of what it is in, but for the placement groups: CloudFormation
    replaces a placement group to change its tags (its resource schema has them in createOnlyProperties), and running
    nodes hold the old one. So give the stack itself no tags, either, because CloudFormation would hand them down.

    A warning of ParallelCluster's validators stops the deployment, except what depends on the moment, what follows from
    arguments, and what `accepted_warnings` names.

    Args:
        scope: Usually a stack.
        construct_id: Id in the scope.
        vpc: Where the cluster is. Nodes need a way to AWS's services: a NAT gateway, or interface endpoints. [change:
            new cluster]
        queues: Slurm queues. [1 to 50 queues; change: at once]
        head_node: Where the scheduler is. Default: ``HeadNode()``. [change: as its options say]
        login_nodes: Pools of login nodes. Default: none. [change: at once]
        login_node_actions: Scripts of yours that login nodes of all pools run. Default: none. [change: at once]
        shared_storage: File systems that all nodes mount. Default: none; /home is on the head node. [change: nodes
            drain; new cluster, if it is on /home]
        software: What nodes get for training on Trainium. Default: ParallelCluster's image as it is. Adding or removing
            it means a new cluster. [change: as its options say]
        public_subnet: Of the head node, and of login nodes with ``public=True``; of a selection the first one. Default:
            the VPC's first public one. [change: new cluster]
        private_subnet: Of all other nodes; of a selection the first one. Default: the VPC's first private subnet with a
            way out, or isolated one. [change: nodes drain; new cluster, if the head node is there]
        security_groups: What nodes carry beside ParallelCluster's own groups and those of shared storage. Login nodes
            take other groups only while there are none of them. Default: a new group. `connections` has it, or those
            given; of an empty list, those of shared storage. [change: at once]
        cluster_name: ParallelCluster's name of the cluster and its stack, one in an account and Region. Default: from
            the construct's path, at most 24 characters. [change: new cluster]
        tags: Tags of everything that ParallelCluster makes. [default empty; change: at once]
        assets_key: KMS key of the customer that encrypts the bucket of the CDK's bootstrap stack. Default: none.
            [change: at once]
        os: Of all nodes. `NeuronSoftware` takes ubuntu2404, ubuntu2204 and alinux2023. [one of 'ubuntu2404',
            'ubuntu2204', 'alinux2023', 'rhel9', 'rhel8', 'rocky9', 'rocky8'; default 'ubuntu2404'; change: new cluster]
        custom_ami: Image of the same ParallelCluster version and OS. Default: ParallelCluster's own, which Rocky Linux
            lacks. [the id of an image such as ami-0123456789abcdef0; change: new cluster]
        efa_interface_type: Of Elastic Fabric Adapters. [one of 'efa-only', 'efa'; default 'efa-only'; change: stopped
            fleet]
        slurm: The scheduler's behaviour. Default: ``Slurm()``. [change: as its options say]
        monitoring: Logs, dashboard and alarms. Default: ``MonitoringOptions()``. [change: as its options say]
        overrides: Raw ParallelCluster keys, merged last: lists of what has a name by it; None takes a key away.
            Default: none. [change: as the key says]
        accepted_warnings: Warnings of ParallelCluster's validators that do not stop the deployment. Default: none.
            [change: at once]
        munge_key: Secret with the key by which Slurm's daemons know each other: 32 to 1,024 bytes, as Base64 text.
            ParallelCluster reads it when it validates the cluster, and the head node when the cluster is made; both get
            the permission, by a customer's KMS key, too, whose policy must leave permissions to IAM, as that of
            ``kms.Key`` does. Default: the head node makes a key. [change: stopped fleet, no login nodes]
        accounting: Database of Slurm's accounting, such as that of an `AccountingDatabase`. The head node alone carries
            the security groups that reach it. Adding or removing it later means a new cluster. Default: Slurm forgets
            jobs when they have ended. [change: new cluster]
        directory: Active Directory or another LDAP server with users. Default: none. [change: stopped fleet, no login
            nodes]
        roles: What all roles have: those that ParallelCluster makes, and that of its provider, which gets a role of its
            own then. ``iam.PermissionsBoundary.of(scope).apply(policy)`` is honoured without it. Default: nothing.
            [change: at once]
        parallelcluster_version: Another one means a new cluster. Default: the one that this library is made for. [one
            of '3.16.1', '3.16.2', '3.16.3'; change: new cluster]

    Attributes:
        cluster_name: ParallelCluster's name of the cluster; known once the cluster exists.
        status: Status of the cluster, such as ``CREATE_COMPLETE``.
        validation_messages: What the validators said, as JSON, cut after 2,048 characters.
        placement_groups: The placement groups that were made, by label.
        grant_principal: All nodes, to be granted permissions by ``bucket.grant_read(cluster)``.
        head_node: The head node, to be granted permissions.
        compute_nodes: The compute nodes of all queues, to be granted permissions.
        login_nodes: The login nodes, to be granted permissions.
        connections: The security groups that all nodes carry beside ParallelCluster's own.
        head_node_instance_id: EC2's id of the head node.
        head_node_private_ip: Address of the head node in the VPC.

    Raises:
        InvalidArguments: Arguments break rules; all of them are named. Nothing is added to the tree then.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        queues: Sequence[QueueSpec],
        head_node: HeadNodeSpec | None = None,
        login_nodes: Sequence[LoginPoolSpec] = (),
        login_node_actions: NodeActionsSpec | None = None,
        shared_storage: Sequence[SharedStorage] = (),
        software: NeuronSoftware | None = None,
        public_subnet: Subnet | None = None,
        private_subnet: Subnet | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
        cluster_name: str | None = None,
        tags: Mapping[str, str] | None = None,
        assets_key: kms.IKey | None = None,
        os: OperatingSystem | None = None,
        custom_ami: str | None = None,
        efa_interface_type: EfaInterfaceType | None = None,
        slurm: SlurmSpec | None = None,
        monitoring: MonitoringSpec | None = None,
        overrides: Mapping[str, Any] | None = None,
        accepted_warnings: Sequence[AcceptedWarning] = (),
        munge_key: "secretsmanager.ISecret | None" = None,
        accounting: "SlurmAccounting | None" = None,
        directory: DirectorySpec | None = None,
        roles: RolesSpec | None = None,
        parallelcluster_version: str | None = None,
    ) -> None:
        self._construct = construct_name(type(self), scope, construct_id)
        path = self._construct.partition(" ")[2]
        broken = [
            *wrong_types(ParallelCluster.__init__, locals(), besides=_OF_SPEC),
            *_subnets_of(("head_node",), head_node),
            *_subnets_of(("queues",), queues),
            *_subnets_of(("login_nodes",), login_nodes),
        ]
        named = with_subnets_for_selections(
            vpc,
            broken,
            public_subnet=public_subnet,
            private_subnet=private_subnet,
            head_node=head_node,
            queues=queues,
            login_nodes=login_nodes,
        )
        self._values: dict[str, Any] = {
            "name": names.of_path(path) if cluster_name is None else cluster_name,
            "region": Stack.of(scope).region,
            "tags": dict(tags) if isinstance(tags, Mapping) else tags,
            "os": os,
            "custom_ami": custom_ami,
            "neuron_sdk": getattr(software, "neuron_sdk", None),
            "neuron_driver": getattr(software, "neuron_driver", None),
            "pytorch": getattr(software, "pytorch", None),
            "efa_interface_type": efa_interface_type,
            "head_node": named["head_node"],
            "login_nodes": listed(named["login_nodes"]),
            "login_node_actions": login_node_actions,
            "queues": listed(named["queues"]),
            "slurm": slurm,
            "monitoring": monitoring,
            "overrides": plain(overrides),
            "accepted_warnings": listed(accepted_warnings),
            "munge_key_secret_arn": getattr(munge_key, "secret_full_arn", None),
            "directory": directory,
            "roles": roles,
            "parallelcluster_version": parallelcluster_version,
        }
        self._accounting = None if accounting is None or broken else accounting
        password = None if self._accounting is None else self._accounting.password
        wrong = {each.path[0] for each in broken}
        self._software = None if "software" in wrong else software
        broken += [
            *_secret_violations(None if "munge_key" in wrong else munge_key, password),
            *_software_violations(self._software),
            *below(("accounting",), [] if self._accounting is None else self._accounting.violations()),
        ]
        self._storage = [] if "shared_storage" in wrong else list(shared_storage)
        public, private = named["public_subnet"], named["private_subnet"]
        if not {"vpc", "private_subnet", "public_subnet"} & wrong:
            groups = [] if "security_groups" in wrong else security_groups or []
            placed: dict[Path, ec2.ISubnet | ec2.ISecurityGroup | None] = {
                **_subnets_in(named, wrong),
                **_groups_in(("security_groups",), groups),
                **self._groups_of_others(),
            }
            public, private, none = node_subnets(vpc, public, private)
            broken += [*none, *elsewhere(vpc, placed)]
        self._vpc, self._private = vpc, private
        self._spec = spec = self._checked([*broken, *cluster_names.violations(scope, self._values["name"])])
        assert private is not None  # noqa: S101 - a violation
        assert public is not None  # noqa: S101 - the private one at least
        of_storage = [group for storage in shared_storage for group in storage.security_groups]
        super().__init__(
            scope,
            construct_id,
            name=spec.name,
            security_groups=of_storage if security_groups is not None and not security_groups else security_groups,
        )
        if security_groups is None:
            group = ec2.SecurityGroup(self, "SecurityGroup", vpc=vpc, description=f"Nodes of {spec.name}")
            self.connections.add_security_group(group)
        self._carry_tags(spec.tags)
        self._scripts = NodeScripts(
            self,
            "Scripts",
            cluster_name=spec.name,
            region=spec.region,
            assets_key_arn=None if assets_key is None else assets_key.key_arn,
        )
        self._placement_groups = Construct(self, "PlacementGroups")
        self.placement_groups: dict[str, ec2.CfnPlacementGroup] = {}
        self._subnets: dict[Path, str] = {}
        self._places: dict[Path, ec2.ISubnet] = {}
        self._warned: set[str] = set()
        self._default_places = public, private
        self._queue_bindings: dict[str, Mapping[str, Any]] = {}
        self._roles = spec.roles
        self._role_path = ROLE_PATH if spec.roles is None else spec.roles.path or ROLE_PATH
        arns = [*secret_arns(spec), *([] if password is None else [((), str(password.secret_full_arn))])]
        resource = self._define(
            spec.parallelcluster_version,
            configuration=self._configuration,
            suppressed=lambda: suppressed(self._spec),
            level="WARNING",
            secrets=secrets_policy(self, arns, None if munge_key is None else munge_key.encryption_key),
        )
        self._bind_nodes(named["head_node"], named["login_nodes"])
        for given, queue in zip(named["queues"], spec.queues, strict=True):
            self._bind_queue(queue, given)
        for secret in (munge_key, password):
            if secret is not None:
                resource.node.add_dependency(secret)
                if secret.encryption_key is not None:  # without one ParallelCluster's own permission does
                    secret.grant_read(self.head_node)
        if accounting is not None:
            resource.node.add_dependency(*accounting.dependencies)
        resource.node.add_dependency(
            vpc, self._scripts, *(each for storage in self._storage for each in storage.dependencies)
        )
        self._watch(vpc)

    @staticmethod
    def from_cluster_attributes(
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        head_node_instance_id: str | None = None,
        role_path: str = ROLE_PATH,
    ) -> IParallelCluster:
        """Refer to a cluster that is not made in this app.

        Args:
            scope: Where the reference is in the tree.
            construct_id: Its name there.
            cluster_name: ParallelCluster's name of it.
            security_groups: What its nodes carry, for `connections`.
            head_node_instance_id: EC2's id of its head node, for metrics of that.
            role_path: Where the roles of its nodes are, for grants: ``path`` of its `Roles`.
        """
        return IParallelCluster(
            scope,
            construct_id,
            name=cluster_name,
            security_groups=security_groups,
            head_node_instance_id=head_node_instance_id,
            role_path=role_path,
        )

    @staticmethod
    def from_configuration(
        scope: Construct,
        construct_id: str,
        *,
        configuration: Mapping[str, Any],
        cluster_name: str | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        suppress_validators: Sequence[str] = (),
        validation_failure_level: Literal["INFO", "WARNING", "ERROR"] = "ERROR",
        parallelcluster_version: str = PINNED,
    ) -> ConfiguredCluster:
        """Define a cluster by a configuration of ParallelCluster's, as it is: without the defaults of this library.

        Of its rules there is ParallelCluster's schema alone, that of the default version, and what AWS takes as tags.
        Nothing is added but tags and a permissions boundary of the app; give the cluster what it needs by
        ``cluster.node.add_dependency(vpc)``.

        Args:
            scope: Usually a stack.
            construct_id: Id in the scope.
            configuration: What https://docs.aws.amazon.com/parallelcluster/latest/ug/cluster-configuration-file-v3.html
                describes, such as ``yaml.safe_load(file)``, with tokens where the app knows more.
            cluster_name: ParallelCluster's name of the cluster and its stack. Default: from the construct's path.
            security_groups: What its nodes carry by the configuration, for `connections`.
            suppress_validators: Validators that are left out, such as ``type:UrlValidator``, or ``ALL``.
            validation_failure_level: Of messages of validators, from which on they stop a deployment.
            parallelcluster_version: Another one means a new cluster.

        Raises:
            InvalidArguments: Arguments break rules, or the configuration ParallelCluster's schema; all is named.
        """
        return ConfiguredCluster(
            scope,
            construct_id,
            configuration=configuration,
            cluster_name=cluster_name,
            security_groups=security_groups,
            suppress_validators=suppress_validators,
            validation_failure_level=validation_failure_level,
            parallelcluster_version=parallelcluster_version,
        )

    @property
    def sends_metrics(self) -> bool:
        """Whether nodes send metrics: the cluster has ``NeuronSoftware(metrics=True)``."""
        return self._software is not None and self._software.metrics

    @property
    def counts_costs(self) -> bool:
        """Whether the head node sends what nodes cost: the cluster has ``NeuronSoftware(budget=...)``."""
        return self.sends_metrics and self._software is not None and self._software.budget is not None

    @property
    def spec(self) -> ClusterSpec:
        """Everything that was asked for, with defaults."""
        return self._spec

    @property
    def head_node(self) -> NodeGroup:
        """The head node, to be granted permissions."""
        return NodeGroup(self, lambda: [self._scripts.policies["HeadNode"]], ["HeadNode"])

    @property
    def compute_nodes(self) -> NodeGroup:
        """The compute nodes of all queues, to be granted permissions."""
        return NodeGroup(self, lambda: [self._scripts.policies["ComputeNodes"]], ["ComputeNodes"])

    @property
    def login_nodes(self) -> NodeGroup:
        """The login nodes, to be granted permissions.

        Raises:
            ValueError: There are none.
        """
        if not self._spec.login_nodes:
            raise ValueError(f"{self._construct} has no login nodes: give it some by `login_nodes`")
        return NodeGroup(self, lambda: [self._scripts.policies["LoginNodes"]], ["LoginNodes"])

    def _unreached(self, kinds: Sequence[str]) -> tuple[str, str] | None:
        """Return which of the nodes that are granted something have a role of their own, which has no such policy."""
        spec = self._spec
        roles = [("the head node", spec.head_node.instance_role_arn, "HeadNode")]
        roles += [(f"login nodes of {each.name}", each.instance_role_arn, "LoginNodes") for each in spec.login_nodes]
        for queue in spec.queues:
            kind = queue.name if queue.name in kinds else "ComputeNodes"
            roles.append((f"nodes of queue {queue.name}", queue.instance_role_arn, kind))
        own = [nodes for nodes, role, kind in roles if role is not None and kind in kinds]
        if not own:
            return None
        return (
            "ultracluster:ownRole",
            f"grants do not reach {', '.join(own)}: give their own role what they need",
        )

    def _monitored(self) -> tuple[str, list[str], bool]:
        return self._spec.name, [queue.name for queue in self._spec.queues if queue.has_trainium], self.sends_metrics

    def _rendered(self) -> Mapping[str, Any]:
        return self._configuration()

    def _unknown_queue(self, name: str) -> str | None:
        queues = [queue.name for queue in self._spec.queues]
        return None if name in queues else f"{self._construct} has no queue {name!r}; there are: {', '.join(queues)}"

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """All nodes, to be granted permissions: ``bucket.grant_read(cluster)``."""
        return NodeGroup(self, self._scripts.policies.values, [*self._scripts.policies])

    def queue(self, name: str) -> NodeGroup:
        """Return the compute nodes of one queue, to be granted permissions that those of others do not have.

        Raises:
            ValueError: There is no such queue.
        """
        if (unknown := self._unknown_queue(name)) is not None:
            raise ValueError(unknown)
        return NodeGroup(self, lambda: [self._scripts.own_policy(name)], [name])

    def add_queue(self, queue: QueueSpec) -> NodeGroup:
        """Add a queue, and return its nodes.

        Raises:
            InvalidArguments: The cluster would break rules; it stays as it is.
        """
        wrong = [*_subnets_of(("queue",), queue)]
        queue = with_subnets(self._vpc, queue, ("queue",), wrong)
        self._values["queues"].append(queue)
        try:
            wrong = wrong or [*elsewhere(self._vpc, _subnets_in({"queue": queue}))]
            self._spec = self._checked(wrong, added="queue")
        except InvalidArguments:
            self._values["queues"].pop()
            raise
        self._warn()
        added = self._spec.queues[-1]
        self._bind_queue(added, queue)
        if added.instance_role_arn is not None:
            for kinds in sorted(self._granted):
                self._warn_of_unreached(kinds)
        return self.queue(added.name)

    def add_shared_storage(self, storage: SharedStorage) -> None:
        """Add a file system that all nodes mount.

        Raises:
            InvalidArguments: The cluster would break rules; it stays as it is.
        """
        broken = wrong_types(ParallelCluster.add_shared_storage, locals())
        if broken := broken or [
            *elsewhere(self._vpc, _groups_in(("storage", "security_groups"), storage.security_groups))
        ]:
            raise InvalidArguments(self._construct, broken)
        self._storage.append(storage)
        try:
            self._checked(added="storage")
        except InvalidArguments:
            self._storage.pop()
            raise
        self._resource.node.add_dependency(*storage.dependencies)

    def _checked(self, further: Sequence[Violation] = (), *, added: str | None = None) -> ClusterSpec:
        """Return what the arguments make together; the violations that were found before are reported with all others.

        Args:
            further: Those that were found before.
            added: Name of an argument that is the last queue or file system.

        Raises:
            InvalidArguments: They break rules.
        """
        given = {name: as_given(value) for name, value in self._values.items() if value is not None}
        if self._software is not None:
            given.setdefault("neuron_sdk", None)
        mounts = [storage.mount for storage in self._storage]
        spec, found = ClusterSpec.checked(given, self._violations)
        broken = together(further, [replace(each, path=_ARGUMENTS.get(each.path[:1], each.path)) for each in found])
        if added is not None:
            last: Path = ("queues", len(self._values["queues"]) - 1)
            if added == "storage":
                last = ("shared_storage", len(mounts) - 1)
            broken = [replace(each, path=_moved(each.path, last, added)) for each in broken]
        if self._software is not None and self._software.team is not None:
            team = self._software.team
            broken += below(("software", "team"), team_rules.violations(team.groups, team.users))
        if (
            self._software is not None
            and not self._mount_dir
            and "shared_storage" not in [each.path[0] for each in broken if not isinstance(each, Waiting)]
        ):
            reason = "NeuronSoftware keeps there what all nodes share, such as the Python environment of jobs"
            broken.append(Violation(("shared_storage",), mounts, "at least one SharedStorage.lustre(...)", reason))
        if spec is None or broken:
            raise InvalidArguments(self._construct, broken)
        return spec

    def _violations(self, spec: ClusterSpec) -> list[Violation]:
        """Return every rule that a cluster of these arguments breaks."""
        mounts = [(each.name, each.mount_dir) for each in (storage.mount for storage in self._storage)]
        return [
            *cluster_rules.violations(spec, neuron_software=self._software is not None),
            *_missing_scripts(spec),
            *cluster_rules.mount_violations(mounts, spec),
            *(cluster_rules.accounting_violations(spec) if self._accounting is not None else []),
            *below((), self._without_addresses(spec), lambda: self._budget_violations(spec)),
        ]

    def _groups_of_others(self) -> dict[Path, ec2.ISecurityGroup]:
        """Return the security groups of shared storage and accounting by their places."""
        groups: dict[Path, ec2.ISecurityGroup] = {}
        for index, storage in enumerate(self._storage):
            groups |= _groups_in(("shared_storage", index, "security_groups"), storage.security_groups)
        if self._accounting is not None:
            groups |= _groups_in(("accounting", "security_groups"), self._accounting.security_groups)
        return groups

    def _budget_violations(self, spec: ClusterSpec) -> list[Violation]:
        """Return why the head node would not count what nodes cost."""
        budget = None if self._software is None else self._software.budget
        if budget is None or of_type(budget, BudgetSpec, ()):
            return []
        found = budget_rules.violations(budget, spec.region, spec.instance_types, spec.stated_prices)
        return below(("software", "budget"), found)

    def _without_addresses(self, spec: ClusterSpec) -> Iterator[Violation]:
        """Yield which queues in public subnets have nodes that EC2 gives no public address.

        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/working-with-ip-addresses.html; ParallelCluster refuses such
        a queue (3.16.1, ``cluster_validators.py``, MultiNetworkInterfacesInstancesValidator).
        """
        given = listed(self._values["queues"])
        public: dict[int, bool] = {}  # to ask for each queue would be calls of the jsii kernel each
        for index, queue in enumerate(spec.queues):
            types = cluster_rules.types_with_several_interfaces(queue, spec.efa_interface_type)
            own = getattr(given[index], "subnet", None)
            subnet = own or self._private
            if not types or subnet is None:
                continue
            if id(subnet) not in public:
                public[id(subnet)] = not of_type(subnet, ec2.ISubnet, ()) and is_public(self._vpc, subnet)
            if public[id(subnet)]:
                reason = (
                    f"nodes of {', '.join(types)} have several network interfaces, and EC2 gives such nodes no public "
                    "address"
                )
                place: Path = ("private_subnet",) if own is None else ("queues", index, "subnet")
                yield Violation(place, subnet.node.path, "a private subnet with a route to a NAT gateway", reason)

    def _bind_nodes(self, head_node: HeadNodeSpec | None, login_nodes: Sequence[LoginPoolSpec]) -> None:
        """Add what the head node and login nodes need."""
        software, spec = self._software, self._spec
        script = None if software is None else software.head_node(spec, self._mount_dir)
        self._head_node_binding = self._scripts.of_head_node(script, spec.head_node.custom_actions)
        self._login_node_binding: Mapping[str, Any] = {}
        self._place(("head_node",), head_node, public=spec.head_node.public)
        if spec.login_nodes:
            script = None if software is None else software.login_node(spec, self._mount_dir)
            self._login_node_binding = self._scripts.of_login_nodes(script, spec.login_node_actions)
        for given, pool in zip(login_nodes, spec.login_nodes, strict=True):
            self._place(("login_nodes", pool.name), given, public=pool.public)

    def _bind_queue(self, queue: QueueSpec, given: object) -> None:
        """Add what a queue of the specification needs, in the subnet that it was given with."""
        label = queue.placement_group_label
        if label is not None and label not in self.placement_groups:
            group = ec2.CfnPlacementGroup(self._placement_groups, label, strategy="cluster")
            group.add_property_deletion_override("Tags")
            self.placement_groups[label] = group
        software = self._software
        script = None if software is None else software.compute_node(self._spec, queue, self._mount_dir)
        self._queue_bindings[queue.name] = self._scripts.of_queue(queue.name, script, queue.custom_actions)
        self._place(("queues", queue.name), given)

    def _watch(self, vpc: ec2.IVpc) -> None:
        """Let the CDK ask, when it synthesizes, what routes and grants may decide until then."""
        warn_of_imported(self, vpc, self._places)
        self._warn()
        self._check_when_whole(lambda: [*shut_in(self, vpc, self._places), *self._wrong_when_whole()])

    def _warn(self) -> None:
        """Warn of types and chips that are not known or verified, and of what overrides disable; of each once."""
        overridden = list(override_rules.warnings(self._spec, _called))
        if self._accounting is not None:
            overridden += override_rules.accounting_warnings(self._spec)
        for of, found in (
            ("instanceType", cluster_rules.type_warnings(self._spec)),
            ("neuron", () if self._software is None else cluster_rules.chip_warnings(self._spec)),
            ("override", below(("overrides",), overridden)),
        ):
            for each in found:
                warning = f"{dotted(each.path)}: {each}"
                if warning not in self._warned:
                    Annotations.of(self).add_warning_v2(f"ultracluster:{of}", warning)
                self._warned.add(warning)

    def _wrong_when_whole(self) -> Iterator[str]:
        """Yield what stacks and grants that came later make wrong."""
        yield from (f"{dotted(each.path)}: {each}" for each in cluster_names.stack_violations(self, self._spec.name))
        yield from self._too_many_policies()
        yield from self._wrong_tags()
        yield from too_large(self._scripts.by_nodes)
        yield from self._wrong_boundary()

    def _too_many_policies(self) -> Iterator[str]:
        """Yield which roles have more policies than IAM attaches, with those of overrides."""
        attached = []
        queues = {each.get("Name"): each for each in mappings(at(self._spec.overrides, ("Scheduling", "SlurmQueues")))}
        for place, count in self._scripts.counts:
            kind, *names_of = place
            overridden = queues.get(names_of[0], {}) if names_of else at(self._spec.overrides, (kind,))
            further = mappings(at(overridden, ("Iam", "AdditionalIamPolicies")))
            others = [each for each in further if not str(each.get("Policy")).endswith(f"/{OF_PARALLELCLUSTER}")]
            attached.append((f"nodes of queue {names_of[0]}" if names_of else _KINDS[kind], count + len(others) + 1))
        yield from too_many(self, attached)

    def _place(self, nodes: Path, given: object, *, public: bool = False) -> None:
        """Put nodes into the subnet that their options name, if they name one."""
        subnet = getattr(given, "subnet", None)
        self._places[nodes] = subnet or self._default_places[0 if public else 1]
        if subnet is not None:
            self._subnets[nodes] = subnet.subnet_id
            self._resource.node.add_dependency(subnet)

    def _configuration(self) -> dict[str, Any]:
        """Return ParallelCluster's configuration, with what was added until the app is synthesized."""
        groups = list(self.connections.security_groups)
        for storage in self._storage:
            groups += storage.security_groups
        bindings = Bindings(
            public_subnet_id=self._default_places[0].subnet_id,
            private_subnet_id=self._default_places[1].subnet_id,
            subnets=self._subnets,
            security_group_ids=list(dict.fromkeys(group.security_group_id for group in groups)),
            placement_groups={label: group.attr_group_name for label, group in self.placement_groups.items()},
            shared_storage=[storage.mount for storage in self._storage],
            head_node=self._head_node_binding,
            queues=self._queue_bindings,
            login_nodes=self._login_node_binding,
            permissions_boundary=self._probe.boundary,
            **{} if self._accounting is None else self._accounting.bindings,
        )
        return render(self._tagged, bindings)

    @property
    def _tagged(self) -> ClusterSpec:
        """What was asked for, with the tags that the CDK adds before it synthesizes."""
        return self._spec.model_copy(update={"tags": {**self._spec.tags, **self._tags.tag_values()}})

    def _wrong_tags(self) -> Iterator[str]:
        for each in below(("tags",), cluster_rules.tag_violations(self._tagged.tags)):
            yield f"{dotted(each.path)}: {each}"

    @property
    def _mount_dir(self) -> str:
        """Where the file system of the Python environments is mounted; there is one if there is software."""
        return next((each.mount.mount_dir for each in self._storage if each.mount.kind == "FsxLustre"), "")


def _called(field: Path) -> Path:
    """Return how the construct calls a field of `ClusterSpec`."""
    return (*_ARGUMENTS[field[:1]], *field[1:]) if field[:1] in _ARGUMENTS else field


def _moved(path: Path, last: Path, argument: str) -> Path:
    """Return a path as the caller of a method knows it, who gives what is the last of a list."""
    return (argument, *path[len(last) :]) if path[: len(last)] == last else path


def _subnets_of(place: Path, options: object) -> Iterator[Violation]:
    """Yield which subnets of options are none."""
    for path, subnet in _each_subnet(place, options):
        yield from of_type(subnet, Subnet | None, path)


def _each_subnet(place: Path, options: object) -> Iterator[tuple[Path, Any]]:
    """Yield the subnets of options, or of a list of them, with their places."""
    for index, each in enumerate(options) if isinstance(options, list | tuple) else ():
        yield from _each_subnet((*place, index), each)
    if (subnet := getattr(options, "subnet", None)) is not None:
        yield (*place, "subnet"), subnet


def _subnets_in(arguments: Mapping[str, Any], besides: Collection[str | int] = ()) -> dict[Path, ec2.ISubnet]:
    """Return the subnets that arguments are, or that their options name, by their places; but for some arguments."""
    subnets: dict[Path, ec2.ISubnet] = {}
    for argument, value in arguments.items():
        if argument in besides or value is None:
            continue
        subnets |= {(argument,): value} if argument in _SUBNETS else dict(_each_subnet((argument,), value))
    return subnets


def _groups_in(place: Path, groups: Sequence[ec2.ISecurityGroup]) -> dict[Path, ec2.ISecurityGroup]:
    return {(*place, index): each for index, each in enumerate(groups)}


def _secret_violations(
    munge_key: "secretsmanager.ISecret | None", password: "secretsmanager.ISecret | None"
) -> Iterator[Violation]:
    """Yield which secrets do not have the ARN that IAM knows."""
    secrets: tuple[tuple[Path, secretsmanager.ISecret | None], ...]
    secrets = (("munge_key",), munge_key), (("accounting", "password"), password)
    for place, secret in secrets:
        if secret is not None and secret.secret_full_arn is None:
            allowed = "an ISecret with its complete ARN, such as by Secret.from_secret_complete_arn"
            yield Violation(place, secret.node.path, allowed, "")


def _software_violations(software: NeuronSoftware | None) -> Iterator[Violation]:
    """Yield why jobs of Neuron software cannot be shipped, or costs not be counted."""
    jobs = None if software is None else software.jobs
    if jobs is not None and not FilePath(jobs).is_dir():
        yield Violation(("software", "jobs"), str(jobs), "a folder that exists", "nodes get it whole")
    if software is not None and jobs is not None and software.neuron_sdk is None:
        reason = "they are installed with the Python environment, and without a Neuron SDK there is none"
        yield Violation(("software", "jobs"), str(jobs), "None, or a release in neuron_sdk", reason)
    if software is not None and software.budget is not None and not software.metrics:
        reason = "the head node counts what nodes cost, and guards the budget, with their metrics"
        yield Violation(("software", "metrics"), False, "True, or no budget", reason)


def _missing_scripts(spec: ClusterSpec) -> Iterator[Violation]:
    """Yield which scripts of nodes are no files, or no scripts."""
    yield from below(
        (),
        lambda: below(("head_node", "custom_actions"), _refused(spec.head_node.custom_actions)),
        lambda: below(("login_node_actions",), _refused(spec.login_node_actions)),
        lambda: _refused_of_queues(spec),
    )


def _refused_of_queues(spec: ClusterSpec) -> Iterator[Violation]:
    for index, queue in enumerate(spec.queues):
        yield from below(("queues", index, "custom_actions"), _refused(queue.custom_actions))


def _refused(nodes: Spec | None) -> Iterator[Violation]:
    for place, action in actions(nodes):
        if is_file(action.script) and (refused := refused_file(FilePath(action.script))) is not None:
            yield Violation((*place, "script"), action.script, *refused)
