"""What a cluster is: the choices that decide its ParallelCluster configuration, without the ids of any account."""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ultracluster.domain import names, neuron, parallelcluster_versions
from ultracluster.domain.custom_actions import PAGE as ACTIONS_PAGE
from ultracluster.domain.custom_actions import NodeActionsSpec, QueueActionsSpec
from ultracluster.domain.directory import DirectorySpec
from ultracluster.domain.instance_types import (
    TRAINIUM_TYPES,
    EfaInterfaceType,
    addresses_per_node,
    cards_of,
    interfaces_per_node,
)
from ultracluster.domain.roles import PAGE as ROLES_PAGE
from ultracluster.domain.roles import RolesSpec
from ultracluster.domain.spec import Change, Setting, Spec
from ultracluster.domain.type_facts import TypeFactsSpec
from ultracluster.domain.types import (
    FEW,
    FROM_MINUTES,
    FROM_SIZE,
    MANY,
    NODES,
    TOKENS,
    ClusterLogDays,
    Entries,
    Existing,
    InstanceType,
    InstanceTypeName,
    Items,
    KeyPairName,
    OptionalGib,
    OptionalRoleArn,
    PlacementGroupName,
    SecretArn,
    SecurityGroupId,
    SshSource,
    SubnetId,
    Time,
    allowing,
    default,
    text,
)
from ultracluster.domain.validators import ACCEPTABLE

_TYPES_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html"
_VALIDATORS = "https://docs.aws.amazon.com/parallelcluster/latest/ug/pcluster.create-cluster-v3.html"
CapacityType = Literal["ONDEMAND", "SPOT", "CAPACITY_BLOCK"]
QueueUpdateStrategy = Literal["DRAIN", "TERMINATE", "COMPUTE_FLEET_STOP"]
ScalingStrategy = Literal["all-or-nothing", "greedy-all-or-nothing", "best-effort"]
OperatingSystem = Literal["ubuntu2404", "ubuntu2204", "alinux2023", "rhel9", "rhel8", "rocky9", "rocky8"]
NeuronSdk = Annotated[str, Field(json_schema_extra={"enum": list(neuron.RELEASES)})]
NeuronDriver = Annotated[str, text(r"^2(\.\d+){3}$", "a version of aws-neuronx-dkms such as 2.28.0.0")]
ScratchDirectory = Annotated[str, allowing("an absolute path such as /local")]
SharedStorageType = Literal["ebs", "efs"]
CapacityReservationId = Annotated[
    str,
    text(r"^cr-[0-9a-f]{17}$", "the id of a capacity reservation such as cr-0123456789abcdef0"),
    Existing("AWS::EC2::CapacityReservation"),
    TOKENS,
]
CapacityReservationGroupArn = Annotated[
    str,
    text(
        r"^arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{12}:group/.+$",
        "the ARN of a resource group: arn:aws:resource-groups:REGION:ACCOUNT:group/NAME",
    ),
    Existing("AWS::ResourceGroups::Group"),
    TOKENS,
]
_S3_PAGE = "https://docs.aws.amazon.com/parallelcluster/latest/ug/HeadNode-v3.html#HeadNode-v3-S3Access"
BucketName = Annotated[
    str,
    text(r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", "the name of a bucket, 3 to 63 of a-z, 0-9, . and -"),
    Existing("AWS::S3::Bucket"),
    TOKENS,
]
S3Key = Annotated[str, text(r"^[^\x00-\x1f/][^\x00-\x1f]{0,1023}$", "a key, or a prefix and *, without / in front")]
_GROUP_NAME = rf"^{names.NODE_GROUP_NAME_PATTERN}$", "1 to 25 of a-z, 0-9 and -, a letter first"
PlacementGroupLabel = Annotated[str, text(*_GROUP_NAME)]
ImageId = Annotated[
    str,
    text(r"^ami-(?:[0-9a-f]{8}|[0-9a-f]{17})$", "the id of an image such as ami-0123456789abcdef0"),
    Existing("AWS::EC2::Image"),
    TOKENS,
]
NodeGroupName = Annotated[
    str, Field(json_schema_extra={"pattern": _GROUP_NAME[0], "patternErrorMessage": _GROUP_NAME[1]})
]
"""Rules check it, with a clearer message."""

ROOT_VOLUME = Field(ge=parallelcluster_versions.smallest_root_volume_gib(), le=16384)
"""GiB of a node's root volume; a rule has what the version of ParallelCluster needs."""
MAX_QUEUES = 50
QUEUES = f"1 to {MAX_QUEUES} queues"
NO_PLACEMENT_GROUP = "none"
SHARED_PLACEMENT_GROUP = "fleet"


ALLOCATION_STRATEGIES: dict[str, tuple[str, ...]] = {
    "ONDEMAND": ("lowest-price", "prioritized"),
    "SPOT": ("lowest-price", "capacity-optimized", "price-capacity-optimized", "capacity-optimized-prioritized"),
    "CAPACITY_BLOCK": (),
}
"""By capacity type (aws-parallelcluster 3.16.1, validators/instances_validators.py)."""
AllocationStrategy = Annotated[
    str,
    Field(json_schema_extra={"enum": sorted({each for all_of in ALLOCATION_STRATEGIES.values() for each in all_of})}),
]
FurtherSubnetId = Annotated[SubnetId, TOKENS]


class S3AccessSpec(Spec):
    """What nodes may do with a bucket that exists."""

    bucket: Annotated[BucketName, Setting(Change.AT_ONCE, page=_S3_PAGE)]
    """Name of the bucket."""
    key: Annotated[S3Key | None, Setting(Change.AT_ONCE, page=_S3_PAGE)] = None
    """An object, or a prefix and *; None: all, and to list them."""
    write: Annotated[bool, Setting(Change.AT_ONCE, page=_S3_PAGE)] = False
    """Whether nodes may write and delete, too."""


class ComputeResourceSpec(Spec):
    """Nodes of one instance type within a queue."""

    aws: ClassVar = "Scheduling.SlurmQueues.ComputeResources"

    name: Annotated[NodeGroupName, Setting(Change.STOPPED_FLEET, ".Name")]
    """Lower case, at most 25 characters; part of node names."""
    instance_type: Annotated[InstanceType, Setting(Change.STOPPED_FLEET, ".InstanceType")] = default("trn1.32xlarge")
    """EC2 instance type."""
    alternative_types: Annotated[Items[InstanceTypeName], FEW, Setting(Change.STOPPED_FLEET, ".Instances")] = []
    """Further types that a node may have, where EC2 has none of instance_type; with as many vCPUs and accelerators.
    Rules, prices and quotas go by instance_type."""
    type_facts: Annotated[TypeFactsSpec | None, Setting(Change.DRAINS, page=_TYPES_PAGE)] = None
    """What instance_type has, for one that this project does not know; None: it does, or nothing of it is counted."""
    min_count: Annotated[int, Field(ge=0), NODES, Setting(Change.STOPPED_FLEET, ".MinCount")] = 0
    """Nodes that always run and always cost. Above 0, creation of the cluster waits for them. Raised together with
    max_count it changes at once."""
    max_count: Annotated[int, Field(ge=1), NODES, Setting(Change.AT_ONCE, ".MaxCount")]
    """Nodes at most. Fewer need a stopped fleet, or the queue update strategy TERMINATE."""
    efa: Annotated[bool | None, Setting(Change.DRAINS, ".Efa.Enabled")] = None
    """Elastic Fabric Adapters; None: where the instance type has them."""
    capacity_reservation_id: Annotated[
        CapacityReservationId | None, Setting(Change.DRAINS, ".CapacityReservationTarget.CapacityReservationId")
    ] = None
    """On-demand capacity reservation or Capacity Block to launch into. Without it nodes get a placement group again,
    which needs a stopped fleet."""
    capacity_reservation_group_arn: Annotated[
        CapacityReservationGroupArn | None,
        Setting(Change.DRAINS, ".CapacityReservationTarget.CapacityReservationResourceGroupArn"),
    ] = None
    """Resource group of reservations to launch into. Without it nodes get a placement group again, which needs a
    stopped fleet."""
    simultaneous_multithreading: Annotated[
        bool, Setting(Change.STOPPED_FLEET, ".DisableSimultaneousMultithreading")
    ] = True
    """Both hardware threads of each core."""

    @property
    def types(self) -> list[str]:
        """All types that its nodes may have, the first of choice first."""
        return [self.instance_type, *self.alternative_types]

    @property
    def has_efa(self) -> bool:
        """Whether the nodes get Elastic Fabric Adapters."""
        return self.cards[1] > 0 if self.efa is None else self.efa

    @property
    def cards(self) -> tuple[int, int]:
        """Network cards and EFA devices that instance_type has."""
        facts = self.type_facts
        return cards_of(self.instance_type) if facts is None else (facts.network_cards, facts.efa_devices)

    @property
    def has_neuron_devices(self) -> bool:
        """Whether the nodes have chips of AWS Neuron that this project installs software for."""
        return self.neuron_vcpus > 0

    @property
    def neuron_vcpus(self) -> int:
        """VCPUs of a node with chips of AWS Neuron; 0: it has none."""
        if self.type_facts is not None:
            return self.type_facts.vcpus if self.type_facts.neuron_devices else 0
        kind = TRAINIUM_TYPES.get(self.instance_type)
        return 0 if kind is None else kind.vcpus

    @property
    def reserved(self) -> bool:
        """Whether the nodes are launched into a reservation."""
        return bool(self.capacity_reservation_id or self.capacity_reservation_group_arn)


class QueueSpec(Spec):
    """A Slurm queue (partition)."""

    aws: ClassVar = "Scheduling.SlurmQueues"

    name: Annotated[NodeGroupName, Setting(Change.STOPPED_FLEET, ".Name")]
    """Lower case, at most 25 characters; part of node names."""
    capacity_type: Annotated[CapacityType, Setting(Change.DRAINS, ".CapacityType")] = "ONDEMAND"
    """How the capacity is bought."""
    compute_resources: Annotated[Items[ComputeResourceSpec], FEW, Setting(Change.AT_ONCE, ".ComputeResources")]
    """The kinds of node in the queue; at most 50 in the cluster. One is removed as a queue is."""
    placement_group: Annotated[
        PlacementGroupLabel | None, Setting(Change.DRAINS, ".Networking.PlacementGroup.Name")
    ] = None
    """Label of a cluster placement group; queues with one label share the group; none: no group. None: the shared group
    ``fleet`` for Trn nodes with EFA, one of the queue's name for others with EFA; none for reserved capacity."""
    existing_placement_group: Annotated[
        PlacementGroupName, Setting(Change.DRAINS, ".Networking.PlacementGroup.Name")
    ] = default(None)
    """Name of a placement group that exists, such as the one a capacity reservation was made in."""
    exclusive_jobs: Annotated[bool, Setting(Change.AT_ONCE, ".JobExclusiveAllocation")] = True
    """Whether each job has its nodes to itself. Slurm does not see NeuronCores."""
    allocation_strategy: Annotated[AllocationStrategy | None, Setting(Change.DRAINS, ".AllocationStrategy")] = None
    """How EC2 chooses among alternative types and subnets; prioritized: in their order. None: lowest-price."""
    further_subnet_ids: Annotated[Items[FurtherSubnetId], FEW, Setting(Change.AT_ONCE, ".Networking.SubnetIds")] = []
    """Further subnets of the VPC for its nodes, such as of other zones: without EFA and placement group. Taking one
    away drains nodes."""
    security_group_ids: Annotated[
        Items[SecurityGroupId], FEW, Setting(Change.AT_ONCE, ".Networking.AdditionalSecurityGroups")
    ] = []
    """Security groups that its nodes carry beside ParallelCluster's own."""
    s3_access: Annotated[Items[S3AccessSpec], FEW, Setting(Change.AT_ONCE, ".Iam.S3Access")] = []
    """Buckets that its nodes may read, or write."""
    instance_role_arn: Annotated[OptionalRoleArn, Setting(Change.AT_ONCE, ".Iam.InstanceRole")] = default(None)
    """Role of yours for its nodes, in place of ParallelCluster's; None: that one. It must allow what such nodes do:
    preflight says what it lacks. Grants, policies and buckets that are named elsewhere do not reach it."""
    root_volume_gib: Annotated[
        OptionalGib,
        ROOT_VOLUME,
        FROM_SIZE,
        Setting(Change.DRAINS, ".ComputeSettings.LocalStorage.RootVolume.Size"),
    ] = default(200)
    """Root volume of each node; None: the image's size."""
    scratch_dir: Annotated[
        ScratchDirectory, Setting(Change.DRAINS, ".ComputeSettings.LocalStorage.EphemeralVolume.MountDir")
    ] = "/scratch"
    """Where the node-local NVMe storage is mounted."""
    custom_slurm_settings: Annotated[Entries[str, str], FEW, Setting(Change.AT_ONCE, ".CustomSlurmSettings")] = {}
    """Further slurm.conf parameters of the partition, such as MaxTime."""
    custom_actions: Annotated[QueueActionsSpec | None, Setting(Change.DRAINS, page=ACTIONS_PAGE)] = None
    """Scripts of yours that its nodes run; None: none."""

    @property
    def has_trainium(self) -> bool:
        """Whether any of its nodes has Trainium chips, or others of AWS Neuron."""
        return any(each.has_neuron_devices for each in self.compute_resources)

    @property
    def placement_group_label(self) -> str | None:
        """Label of the group of this deployment that the nodes are launched in, if any."""
        if self.placement_group == NO_PLACEMENT_GROUP or self.existing_placement_group:
            return None
        if self.placement_group:
            return self.placement_group
        if self.capacity_type == "CAPACITY_BLOCK" or any(each.reserved for each in self.compute_resources):
            return None
        with_efa = [each.has_neuron_devices for each in self.compute_resources if each.has_efa]
        return (SHARED_PLACEMENT_GROUP if any(with_efa) else self.name) if with_efa else None


class HeadNodeSpec(Spec):
    """The head node: scheduler, shared home, where people log in."""

    aws: ClassVar = "HeadNode"

    instance_type: Annotated[InstanceType, Setting(Change.NEW_CLUSTER, ".InstanceType")] = default("c6i.4xlarge")
    """Instance type, x86 with a Neuron SDK, with memory for the number of nodes."""
    public: Annotated[bool, Setting(Change.NEW_CLUSTER, ".Networking.SubnetId")] = True
    """Whether it is in the public subnet, with a public address. Session Manager needs none."""
    root_volume_gib: Annotated[
        OptionalGib, ROOT_VOLUME, FROM_SIZE, Setting(Change.NEW_CLUSTER, ".LocalStorage.RootVolume.Size")
    ] = default(200)
    """Root volume, which holds /home unless shared_storage is efs; None: the image's size."""
    shared_storage: Annotated[SharedStorageType, Setting(Change.NEW_CLUSTER, ".SharedStorageType")] = "ebs"
    """Where /home and Slurm are, which all nodes mount: ebs: on the root volume, by NFS from the head node; efs: on an
    encrypted EFS file system, for large fleets, deleted with the cluster."""
    ssh_key_name: Annotated[KeyPairName, Setting(Change.NEW_CLUSTER, ".Ssh.KeyName")] = default(None)
    """EC2 key pair (ed25519); None: Session Manager alone."""
    ssh_cidr: Annotated[SshSource | None, Setting(Change.AT_ONCE, ".Ssh.AllowedIps")] = None
    """Address block or prefix list that may reach port 22; None: nobody. Never the world."""
    security_group_ids: Annotated[
        Items[SecurityGroupId], FEW, Setting(Change.AT_ONCE, ".Networking.AdditionalSecurityGroups")
    ] = []
    """Security groups that it carries beside ParallelCluster's own."""
    s3_access: Annotated[Items[S3AccessSpec], FEW, Setting(Change.AT_ONCE, ".Iam.S3Access")] = []
    """Buckets that it may read, or write."""
    instance_role_arn: Annotated[OptionalRoleArn, Setting(Change.AT_ONCE, ".Iam.InstanceRole")] = default(None)
    """Role of yours for it, in place of ParallelCluster's; None: that one. It must allow what such nodes do:
    preflight says what it lacks. Grants, policies and buckets that are named elsewhere do not reach it."""
    custom_actions: Annotated[NodeActionsSpec | None, Setting(Change.AT_ONCE, page=ACTIONS_PAGE)] = None
    """Scripts of yours that it runs; None: none."""


class LoginPoolSpec(Spec):
    """A pool of login nodes."""

    aws: ClassVar = "LoginNodes.Pools"

    name: Annotated[NodeGroupName, Setting(Change.NO_LOGIN_NODES, ".Name")]
    """Lower case, at most 25 characters."""
    instance_type: Annotated[InstanceType, Setting(Change.NO_LOGIN_NODES, ".InstanceType")] = default("c6i.2xlarge")
    """EC2 instance type, of the head node's architecture."""
    count: Annotated[int, Field(ge=0, le=1000), Setting(Change.AT_ONCE, ".Count")] = 1
    """Number of nodes."""
    public: Annotated[bool, Setting(Change.NO_LOGIN_NODES, ".Networking.SubnetIds")] = False
    """Whether they are in the public subnet."""
    grace_minutes: Annotated[Time, Field(ge=3, le=120), FROM_MINUTES, Setting(Change.AT_ONCE, ".GracetimePeriod")] = (
        default(10)
    )
    """Notice that users get before a node is terminated. Above 10, a smaller count may roll its own update back
    (https://github.com/aws/aws-parallelcluster/issues/7172)."""
    security_group_ids: Annotated[
        Items[SecurityGroupId], FEW, Setting(Change.NO_LOGIN_NODES, ".Networking.AdditionalSecurityGroups")
    ] = []
    """Security groups that they carry beside ParallelCluster's own."""
    instance_role_arn: Annotated[OptionalRoleArn, Setting(Change.NO_LOGIN_NODES, ".Iam.InstanceRole")] = default(None)
    """Role of yours for them, in place of ParallelCluster's; None: that one. It must allow what such nodes do:
    preflight says what it lacks. Grants, policies and buckets that are named elsewhere do not reach it."""
    ssh_cidr: Annotated[SshSource | None, Setting(Change.NO_LOGIN_NODES, ".Ssh.AllowedIps")] = None
    """Address block or prefix list that may reach port 22; None: nobody, Session Manager alone."""


class SlurmSpec(Spec):
    """The scheduler's behaviour."""

    aws: ClassVar = "Scheduling.SlurmSettings"

    idle_minutes: Annotated[
        Time, Field(ge=-1, le=525_600), FROM_MINUTES, Setting(Change.STOPPED_FLEET, ".ScaledownIdletime")
    ] = default(10)
    """Minutes without a job after which a dynamic node is terminated; -1: never."""
    queue_update_strategy: Annotated[QueueUpdateStrategy, Setting(Change.AT_ONCE, ".QueueUpdateStrategy")] = "DRAIN"
    """What happens to running nodes when a change concerns them: finish their jobs first, end at once, or refuse the
    change until the fleet is stopped."""
    scaling_strategy: Annotated[ScalingStrategy, Setting(Change.AT_ONCE, "Scheduling.ScalingStrategy")] = (
        "all-or-nothing"
    )
    """Whether a job that does not get all of its nodes gets none."""
    custom_settings: Annotated[Entries[str, str], MANY, Setting(Change.AT_ONCE, ".CustomSlurmSettings")] = {}
    """Further slurm.conf parameters of the cluster, which its Slurm must know; what SchedulerParameters lists here wins
    over what is set anyway, one by one."""


class MonitoringSpec(Spec):
    """Logs, dashboard and alarms that ParallelCluster makes with the cluster."""

    aws: ClassVar = "Monitoring"

    log_retention_days: Annotated[ClusterLogDays, Setting(Change.AT_ONCE, ".Logs.CloudWatch.RetentionInDays")] = (
        default(180)
    )
    """Days that CloudWatch keeps the cluster's logs."""
    retain_logs: Annotated[bool, Setting(Change.AT_ONCE, ".Logs.CloudWatch.DeletionPolicy")] = True
    """Whether the logs outlive the cluster."""
    dashboard: Annotated[bool, Setting(Change.AT_ONCE, ".Dashboards.CloudWatch.Enabled")] = True
    """CloudWatch dashboard of the head node and the file systems."""
    alarms: Annotated[bool, Setting(Change.AT_ONCE, ".Alarms.Enabled")] = True
    """CloudWatch alarms of the head node."""
    detailed_monitoring: Annotated[bool, Setting(Change.STOPPED_FLEET, ".DetailedMonitoring")] = False
    """EC2 metrics every minute instead of every five."""


class AcceptedWarning(Spec):
    """A warning of ParallelCluster's validators that does not stop the deployment."""

    validator: Annotated[
        str,
        Field(json_schema_extra={"enum": list(ACCEPTABLE)}),
        Setting(Change.AT_ONCE, page=_VALIDATORS),
    ]
    """Type of the validator, as ParallelCluster names it, such as UrlValidator."""
    reason: Annotated[str, Setting(Change.AT_ONCE)]
    """Why; checks before a deployment show it with the warning."""


class ClusterOptions(Spec):
    """Everything about a cluster but its names and its place."""

    parallelcluster_version: Annotated[
        str,
        Field(json_schema_extra={"enum": list(parallelcluster_versions.VERSIONS)}),
        Setting(Change.NEW_CLUSTER, page="https://docs.aws.amazon.com/parallelcluster/latest/ug/support-policy.html"),
    ] = parallelcluster_versions.PINNED
    """Version of ParallelCluster. Name it once there is a cluster: the default moves with releases. Of
    versions above the default only the public notes are known."""
    os: Annotated[
        OperatingSystem,
        Field(json_schema_extra={"enum": list(neuron.SYSTEMS)}),
        Setting(Change.NEW_CLUSTER, "Image.Os"),
    ] = "ubuntu2404"
    """Operating system of all nodes, one that AWS makes the Neuron SDK for."""
    custom_ami: Annotated[ImageId | None, Setting(Change.NEW_CLUSTER, "Image.CustomAmi")] = None
    """Image made with the same ParallelCluster version and OS; None: ParallelCluster's own."""
    neuron_sdk: Annotated[
        NeuronSdk | None,
        Setting(Change.DRAINS, page="https://awsdocs-neuron.readthedocs-hosted.com/en/latest/release-notes/index.html"),
    ] = neuron.DEFAULT_SDK
    """Release of the AWS Neuron SDK; None: none, for a cluster without Trn nodes, which may be of Arm (Graviton) then:
    neither a Python environment nor programs of training jobs."""
    neuron_driver: Annotated[
        NeuronDriver | None,
        Setting(
            Change.DRAINS,
            page="https://awsdocs-neuron.readthedocs-hosted.com/en/latest/release-notes/components/runtime.html",
        ),
    ] = None
    """Neuron's driver, newer than that of neuron_sdk, where a kernel of the image needs it; None: that of the release.
    AWS tests a driver with its release alone."""
    pytorch: Annotated[
        str,
        Field(json_schema_extra={"enum": list(neuron.PYTORCHS)}),
        Setting(
            Change.AT_ONCE,
            page="https://awsdocs-neuron.readthedocs-hosted.com/en/latest/release-notes/components/pytorch.html",
        ),
    ] = neuron.DEFAULT_PYTORCH
    """PyTorch version of that release, as text."""
    efa_interface_type: Annotated[
        EfaInterfaceType,
        Setting(Change.STOPPED_FLEET, page="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html"),
    ] = "efa-only"
    """efa-only: one IPv4 address per node; efa: the older type, one address per network card (8 on trn1.32xlarge)."""
    head_node: HeadNodeSpec = HeadNodeSpec()
    login_nodes: Annotated[Items[LoginPoolSpec], FEW, Setting(Change.AT_ONCE, "LoginNodes.Pools")] = []
    """Pools of login nodes, at most 10. A pool is removed while there are no login nodes."""
    login_node_actions: Annotated[NodeActionsSpec | None, Setting(Change.AT_ONCE, page=ACTIONS_PAGE)] = None
    """Scripts of yours that login nodes of all pools run; None: none."""
    queues: Annotated[Items[QueueSpec], FEW, allowing(QUEUES), Setting(Change.AT_ONCE, "Scheduling.SlurmQueues")]
    """Slurm queues. One is removed while the fleet is stopped, or with the queue update strategy TERMINATE."""
    slurm: SlurmSpec = SlurmSpec()
    monitoring: MonitoringSpec = MonitoringSpec()
    munge_key_secret_arn: Annotated[
        SecretArn | None, Setting(Change.STOPPED_NODES, "Scheduling.SlurmSettings.MungeKeySecretArn")
    ] = None
    """Secret with the key by which Slurm's daemons know each other: 32 to 1,024 bytes, as Base64 text; None: the head
    node makes one. The deployment reads it to validate it."""
    directory: Annotated[DirectorySpec | None, Setting(Change.STOPPED_NODES, "DirectoryService")] = None
    """Active Directory or another LDAP server with users; None: none. It turns on passwords in SSH."""
    overrides: Annotated[
        Entries[str, Any],
        MANY,
        Setting(
            Change.BY_KEY,
            page="https://docs.aws.amazon.com/parallelcluster/latest/ug/cluster-configuration-file-v3.html",
        ),
    ] = {}
    """Raw ParallelCluster keys, merged last: lists of what has a name by it; null takes a key away. What a setting sets
    is better set there."""
    accepted_warnings: Annotated[
        Items[AcceptedWarning],
        FEW,
        Setting(Change.AT_ONCE, page=_VALIDATORS),
    ] = []
    """Warnings of ParallelCluster's validators that do not stop the deployment. A validator in this list says no errors
    in the deployment, either; checks before it still have them."""

    @property
    def instance_types(self) -> list[str]:
        """Instance types of compute nodes, each once."""
        return sorted({resource.instance_type for queue in self.queues for resource in queue.compute_resources})

    @property
    def stated_prices(self) -> dict[str, Decimal]:
        """Prices on demand of instance types that the settings say, by type."""
        stated = {
            resource.instance_type: resource.type_facts.price
            for queue in self.queues
            for resource in queue.compute_resources
            if resource.type_facts is not None
        }
        return {each: price for each, price in stated.items() if price is not None}


class ClusterSpec(ClusterOptions):
    """A cluster."""

    name: Annotated[str, Setting(Change.NEW_CLUSTER)]
    """ParallelCluster's name of the cluster; also the name of the stack that ParallelCluster makes."""
    region: str
    """AWS Region."""
    tags: Annotated[Entries[str, str], FEW, Setting(Change.AT_ONCE, "Tags")] = {}
    """Tags of everything that ParallelCluster makes."""
    roles: Annotated[RolesSpec | None, Setting(Change.AT_ONCE, page=ROLES_PAGE)] = None
    """What all roles have; None: nothing in common."""

    @property
    def max_nodes(self) -> int:
        """Compute nodes when every compute resource is at its MaxCount."""
        return sum(resource.max_count for resource in self._resources())

    @property
    def max_nodes_by_type(self) -> dict[str, int]:
        """Compute nodes at MaxCount, by instance type."""
        nodes = Counter[str]()
        for resource in self._resources():
            nodes[resource.instance_type] += resource.max_count
        return dict(nodes)

    @property
    def max_trainium_vcpus(self) -> int:
        """VCPUs of all Trn nodes at MaxCount, the unit of quotas L-2C3B7624 and L-6B0D517C."""
        return sum(resource.neuron_vcpus * resource.max_count for resource in self._resources())

    @property
    def max_node_addresses(self) -> int:
        """IPv4 addresses of all compute nodes at MaxCount."""
        return sum(
            resource.max_count
            * max(
                addresses_per_node(each, efa=resource.has_efa, interface_type=self.efa_interface_type)
                for each in (resource.cards, *map(cards_of, resource.alternative_types))
            )
            for resource in self._resources()
        )

    @property
    def max_node_interfaces(self) -> int:
        """Network interfaces of all compute nodes at MaxCount."""
        return sum(
            resource.max_count
            * interfaces_per_node(resource.cards, efa=resource.has_efa, interface_type=self.efa_interface_type)
            for resource in self._resources()
        )

    def _resources(self) -> Iterator[ComputeResourceSpec]:
        for queue in self.queues:
            yield from queue.compute_resources
