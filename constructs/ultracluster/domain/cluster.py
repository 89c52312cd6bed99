"""What a cluster is: the facts that decide its ParallelCluster configuration, without the ids of any account."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ultracluster.domain import neuron
from ultracluster.domain.instance_types import (
    TRAINIUM_TYPES,
    EfaInterfaceType,
    addresses_per_node,
    has_efa,
    interfaces_per_node,
)

CapacityType = Literal["ONDEMAND", "SPOT", "CAPACITY_BLOCK"]
QueueUpdateStrategy = Literal["DRAIN", "TERMINATE", "COMPUTE_FLEET_STOP"]
ScalingStrategy = Literal["all-or-nothing", "greedy-all-or-nothing", "best-effort"]
OperatingSystem = Literal["ubuntu2404", "ubuntu2204", "alinux2023"]
SharedStorageType = Literal["ebs", "efs"]

NO_PLACEMENT_GROUP = "none"
SHARED_PLACEMENT_GROUP = "fleet"
LOG_RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
"""Retention periods in days that CloudWatch Logs has (API reference, PutRetentionPolicy)."""


@dataclass(frozen=True, kw_only=True)
class ComputeResourceSpec:
    """Define nodes of one instance type within a queue.

    Attributes:
        name: Lower case, at most 25 characters.
        instance_type: EC2 instance type.
        min_count: Nodes that always run.
        max_count: Nodes at most.
        efa: Whether the nodes have Elastic Fabric Adapters; None: where the type has them.
        capacity_reservation_id: On-demand capacity reservation or Capacity Block (``cr-...``) to launch into.
        capacity_reservation_group_arn: Resource group of reservations to launch into.
        simultaneous_multithreading: Whether both hardware threads of a core are on.
    """

    name: str
    instance_type: str
    max_count: int
    min_count: int = 0
    efa: bool | None = None
    capacity_reservation_id: str | None = None
    capacity_reservation_group_arn: str | None = None
    simultaneous_multithreading: bool = True

    @property
    def has_efa(self) -> bool:
        """Whether the nodes get Elastic Fabric Adapters."""
        return has_efa(self.instance_type) if self.efa is None else self.efa

    @property
    def reserved(self) -> bool:
        """Whether the nodes are launched into a reservation."""
        return bool(self.capacity_reservation_id or self.capacity_reservation_group_arn)


@dataclass(frozen=True, kw_only=True)
class QueueSpec:
    """Define a Slurm queue (partition).

    Attributes:
        name: Lower case, at most 25 characters.
        compute_resources: The kinds of node in the queue.
        capacity_type: How EC2 capacity is bought.
        placement_group: Label of a cluster placement group of this deployment; queues with one label share the group;
            ``none``: no group. None: ``fleet`` for nodes with EFA outside a reservation, else ``none``.
        existing_placement_group: Name of a group that exists already, such as the one a reservation was made in.
        exclusive_jobs: Whether each job has its nodes to itself. Slurm does not see Neuron devices, so sharing a node
            means sharing its NeuronCores unawares.
        root_volume_gib: Size of each node's root volume; None: the size of the image.
        scratch_dir: Where the node-local NVMe storage is mounted.
        custom_slurm_settings: Further ``slurm.conf`` parameters of the partition.
    """

    name: str
    compute_resources: Sequence[ComputeResourceSpec]
    capacity_type: CapacityType = "ONDEMAND"
    placement_group: str | None = None
    existing_placement_group: str | None = None
    exclusive_jobs: bool = True
    root_volume_gib: int | None = None
    scratch_dir: str = "/scratch"
    custom_slurm_settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def placement_group_label(self) -> str | None:
        """Label of the group of this deployment that the nodes are launched in, if any."""
        if self.placement_group == NO_PLACEMENT_GROUP or self.existing_placement_group:
            return None
        if self.placement_group:
            return self.placement_group
        reserved = self.capacity_type == "CAPACITY_BLOCK" or any(c.reserved for c in self.compute_resources)
        return SHARED_PLACEMENT_GROUP if not reserved and any(c.has_efa for c in self.compute_resources) else None


@dataclass(frozen=True, kw_only=True)
class HeadNodeSpec:
    """Define the head node.

    Attributes:
        instance_type: x86 instance type.
        public: Whether it stands in the public subnet, with a public address.
        root_volume_gib: Size of the root volume; None: the size of the image.
        shared_storage: Where /home, Slurm and ParallelCluster's own files are, which all nodes mount. ``ebs``: on the
            root volume, by NFS from the head node; ``efs``: on an encrypted EFS file system, deleted with the cluster.
        ssh_key_name: EC2 key pair; None: no SSH key, access by Session Manager.
        ssh_cidr: Who may reach port 22; None: nobody.
    """

    instance_type: str
    public: bool = True
    root_volume_gib: int | None = None
    shared_storage: SharedStorageType = "ebs"
    ssh_key_name: str | None = None
    ssh_cidr: str | None = None


@dataclass(frozen=True, kw_only=True)
class LoginPoolSpec:
    """Define a pool of login nodes behind a load balancer.

    Attributes:
        name: Lower case, at most 25 characters.
        instance_type: x86 instance type.
        count: Number of nodes.
        public: Whether they stand in the public subnet.
        grace_minutes: Notice that users get before a node is terminated, 3-120 minutes.
        ssh_cidr: Who may reach port 22; None: nobody.
    """

    name: str
    instance_type: str
    count: int = 1
    public: bool = False
    grace_minutes: int = 10
    ssh_cidr: str | None = None


@dataclass(frozen=True, kw_only=True)
class SlurmSpec:
    """Define the scheduler's behaviour.

    Attributes:
        idle_minutes: Minutes without a job after which a dynamic node is terminated; -1: never.
        queue_update_strategy: What happens to running nodes when a change concerns them.
        scaling_strategy: Whether a job that does not get all of its nodes gets none.
        custom_settings: Further ``slurm.conf`` parameters; those in its SchedulerParameters win over the stack's own.
    """

    idle_minutes: int = 10
    queue_update_strategy: QueueUpdateStrategy = "DRAIN"
    scaling_strategy: ScalingStrategy = "all-or-nothing"
    custom_settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MonitoringSpec:
    """Define logs, dashboard and alarms of the cluster.

    Attributes:
        log_retention_days: Days that CloudWatch keeps the cluster's logs.
        retain_logs: Whether the logs outlive the cluster.
        dashboard: Whether a CloudWatch dashboard is made.
        alarms: Whether the head node's CloudWatch alarms are made.
        detailed_monitoring: Whether EC2 metrics come every minute instead of every five.
    """

    log_retention_days: int = 180
    retain_logs: bool = True
    dashboard: bool = True
    alarms: bool = True
    detailed_monitoring: bool = False


@dataclass(frozen=True, kw_only=True)
class AcceptedWarning:
    """Accept a warning of ParallelCluster's validators, which stops a deployment otherwise.

    Attributes:
        validator: Type of the validator, one of ``validator_warnings.ACCEPTABLE``.
        reason: Why.
    """

    validator: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ClusterSpec:
    """Define a cluster.

    Attributes:
        name: ParallelCluster's name of the cluster; also the name of the stack that ParallelCluster makes.
        region: AWS Region.
        head_node: The head node.
        queues: The Slurm queues.
        version: ParallelCluster version, of the provider and of the cluster for its whole life.
        os: Operating system of all nodes.
        custom_ami: Image of all nodes, built for the same version and OS; None: ParallelCluster's own.
        neuron_sdk: Neuron SDK release.
        pytorch: PyTorch minor version of that release.
        efa_interface_type: ``efa-only``: one IPv4 address per node; ``efa``: one per network card.
        login_pools: Pools of login nodes.
        slurm: The scheduler's behaviour.
        monitoring: Logs, dashboard and alarms.
        tags: Tags of everything that ParallelCluster makes.
        overrides: Raw ParallelCluster keys merged over the rendered configuration.
        accepted_warnings: Warnings that do not stop the deployment.
    """

    name: str
    region: str
    head_node: HeadNodeSpec
    queues: Sequence[QueueSpec]
    version: str
    os: OperatingSystem = "ubuntu2404"
    custom_ami: str | None = None
    neuron_sdk: str = neuron.DEFAULT_SDK
    pytorch: str = neuron.DEFAULT_PYTORCH
    efa_interface_type: EfaInterfaceType = "efa-only"
    login_pools: Sequence[LoginPoolSpec] = ()
    slurm: SlurmSpec = field(default_factory=SlurmSpec)
    monitoring: MonitoringSpec = field(default_factory=MonitoringSpec)
    tags: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    accepted_warnings: Sequence[AcceptedWarning] = ()

    @property
    def placement_group_labels(self) -> list[str]:
        """Labels of the placement groups that the cluster needs made, in order of first use."""
        return list(dict.fromkeys(q.placement_group_label for q in self.queues if q.placement_group_label))

    @property
    def max_nodes(self) -> int:
        """Compute nodes when every compute resource is at its MaxCount."""
        return sum(resource.max_count for _, resource in self._resources())

    @property
    def max_trainium_vcpus(self) -> int:
        """VCPUs of all Trn nodes at MaxCount, the unit of quotas L-2C3B7624 and L-6B0D517C."""
        return sum(
            TRAINIUM_TYPES[resource.instance_type].vcpus * resource.max_count
            for _, resource in self._resources()
            if resource.instance_type in TRAINIUM_TYPES
        )

    @property
    def max_node_addresses(self) -> int:
        """IPv4 addresses of all compute nodes at MaxCount."""
        return sum(
            resource.max_count
            * addresses_per_node(resource.instance_type, efa=resource.has_efa, interface_type=self.efa_interface_type)
            for _, resource in self._resources()
        )

    @property
    def max_node_interfaces(self) -> int:
        """Network interfaces of all compute nodes at MaxCount."""
        return sum(
            resource.max_count
            * interfaces_per_node(resource.instance_type, efa=resource.has_efa, interface_type=self.efa_interface_type)
            for _, resource in self._resources()
        )

    def _resources(self) -> Iterator[tuple[QueueSpec, ComputeResourceSpec]]:
        for queue in self.queues:
            for resource in queue.compute_resources:
                yield queue, resource
