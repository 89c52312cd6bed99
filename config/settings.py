"""The typed settings of a deployment, read from one YAML file.

``load`` reports every fault of a file at once. Types, ranges and unknown keys are checked by the models, combinations
by ``config.rules``.
"""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from config import rules
from config.messages import RULE, Place, dotted, place_of, text_of
from config.yaml_source import YamlSource, YamlSourceError
from ultracluster.domain import cluster as domain
from ultracluster.domain import cluster_rules, lustre, names, neuron
from ultracluster.domain.faults import Fault, below
from ultracluster.domain.instance_types import EfaInterfaceType
from ultracluster.domain.validator_warnings import ACCEPTABLE

SCHEMA_PATH = Path(__file__).with_name("schema.json")
PARALLELCLUSTER_ENDPOINTS = ("logs", "cloudformation", "ec2")
"""Interface endpoints that a cluster without internet access needs beside the S3 and DynamoDB gateways (AWS
ParallelCluster user guide, "AWS ParallelCluster in a single subnet with no internet access")."""


class SettingsError(ValueError):
    """A settings file that cannot be used; the message names every fault, with its place."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


def _rule_error(faults: Iterable[Fault]) -> ValidationError:
    return ValidationError.from_exception_data(
        "Settings",
        [
            InitErrorDetails(
                type=PydanticCustomError(RULE, "{text}", {"text": str(fault)}), loc=fault.path, input=fault.got
            )
            for fault in faults
        ],
    )


class BootstrapSettings(_Model):
    """The CDK's bootstrap stack in account and Region, which `make bootstrap` makes."""

    qualifier: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?$")] = "hnb659fds"
    """Part of the names of its bucket, roles and parameter, at most 10 characters. Another one than the CDK's own has a
    stack of its own, CDKToolkit-QUALIFIER. Cannot change in the life of a cluster: head and login nodes start from the
    bucket."""
    kms_key_arn: Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+$")] | None = (
        None
    )
    """KMS key of yours that encrypts the bucket, in the account and Region of the deployment; null: S3's own key. Give
    it before the first deployment: what was uploaded before keeps the key that it has."""


class ExistingVpc(_Model):
    """A VPC that exists already. Its blocks are given in the fields of the network."""

    vpc_id: Annotated[str, Field(pattern=r"^vpc-[0-9a-f]{8,17}$")]
    """Id of the VPC. It must have DNS support and DNS hostnames on."""
    public_subnet_id: Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")]
    """Subnet of the head node, in zone_id, that assigns public addresses."""
    private_subnet_id: Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")]
    """Subnet of compute nodes and file system, in zone_id, with a route to the internet and no public addresses."""


class NetworkSettings(_Model):
    """The VPC, one public and one private subnet in one availability zone."""

    cidr: str = "10.0.0.0/16"
    """IPv4 block of the VPC, /16 to /28."""
    public_subnet_cidr: str = "10.0.0.0/24"
    """Block of the public subnet: head node, NAT gateway."""
    private_subnet_cidr: str = "10.0.64.0/18"
    """Block of the private subnet: compute nodes, file system."""
    nat_addresses: Annotated[int, Field(ge=1, le=8)] = 1
    """Public addresses of the NAT gateway; each carries 55,000 connections to one destination. More than 2 need raised
    quotas of addresses per NAT gateway and, beyond 5, of Elastic IP addresses in the Region."""
    interface_endpoints: list[Annotated[str, Field(pattern=r"^[a-z][a-z0-9.-]+$")]] = []
    """Services with an interface endpoint, such as ssm; `parallelcluster` stands for those a cluster needs."""
    flow_log_retention_days: int | None = 90
    """Days that flow logs are kept; null: no flow logs."""
    existing: ExistingVpc | None = None
    """A VPC to use instead of making one."""

    @property
    def endpoint_services(self) -> list[str]:
        """Short names of the interface endpoints, the preset written out."""
        services: list[str] = []
        for name in self.interface_endpoints:
            services += PARALLELCLUSTER_ENDPOINTS if name == "parallelcluster" else (name,)
        return list(dict.fromkeys(services))

    def placement(self, zone_id: str) -> tuple[str, ...]:
        """Return what makes the private subnet the one it is: where another value means another subnet."""
        if self.existing is not None:
            return (self.existing.vpc_id, self.existing.private_subnet_id)
        return (self.cidr, self.private_subnet_cidr, zone_id)


class FileSystemSettings(_Model):
    """The FSx for Lustre file system."""

    deployment_type: lustre.DeploymentType = "PERSISTENT_2"
    """PERSISTENT_2 for data to keep, SCRATCH_2 for data that can be lost."""
    capacity_gib: int = 4800
    """Storage in GiB: 1200, 2400 or a multiple of 2400."""
    throughput_mbps_per_tib: int | None = 250
    """MB/s per TiB: 125, 250, 500 or 1000 on PERSISTENT_2; 50, 100 or 200 on PERSISTENT_1; null on SCRATCH_2."""
    compression: lustre.Compression = "LZ4"
    """Compression of new files."""
    metadata_iops: int | None = None
    """Provisioned metadata IOPS of PERSISTENT_2, at least what the capacity includes, and raised before the capacity
    in a deployment of their own; null: automatic, growing with the capacity."""
    backup_retention_days: int = 7
    """Days that automatic backups are kept, 0: none. FSx takes none of scratch file systems and those linked to S3."""
    kms_key_arn: str | None = None
    """Key that encrypts the file system; null: the key that FSx manages."""
    mount_dir: str = "/fsx"
    """Where nodes mount it."""
    log_retention_days: int = 90
    """Days that the file system's warnings and errors are kept in CloudWatch."""

    @property
    def spec(self) -> lustre.LustreSpec:
        """The facts that the rules and the construct need."""
        return lustre.LustreSpec(**self.model_dump(exclude={"log_retention_days"}))


class DataRepositorySettings(_Model):
    """A directory of the file system that is linked to a prefix in S3."""

    path: str
    """Directory in the file system, such as /data."""
    bucket: str | None = None
    """Name of an existing bucket in the same Region; null: a bucket of this deployment."""
    prefix: str = ""
    """Prefix within the bucket, without a leading slash."""
    import_events: list[lustre.FileEvent] = ["NEW", "CHANGED", "DELETED"]
    """Changes in S3 that show in the file system."""
    export_events: list[lustre.FileEvent] = ["NEW", "CHANGED", "DELETED"]
    """Changes in the file system that are written to S3."""

    @property
    def spec(self) -> lustre.DataRepository:
        """The facts that the rules and the construct need."""
        return lustre.DataRepository(
            path=self.path,
            bucket=self.bucket,
            prefix=self.prefix,
            import_events=tuple(self.import_events),
            export_events=tuple(self.export_events),
        )


class StorageSettings(_Model):
    """The shared file system and its links to S3."""

    file_system: FileSystemSettings = FileSystemSettings()
    data_repositories: list[DataRepositorySettings] = []
    """Links between directories and S3, at most 8."""
    retain: bool = True
    """Whether file system and bucket stay, and cost, when their stack is destroyed."""


class ComputeResourceSettings(_Model):
    """Nodes of one instance type within a queue."""

    name: str
    """Lower case, at most 25 characters; part of node names."""
    instance_type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$")] = "trn1.32xlarge"
    """EC2 instance type."""
    min_count: Annotated[int, Field(ge=0)] = 0
    """Nodes that always run and always cost. Above 0, creation of the cluster waits for them."""
    max_count: Annotated[int, Field(ge=1)]
    """Nodes at most."""
    efa: bool | None = None
    """Elastic Fabric Adapters; null: where the instance type has them."""
    capacity_reservation_id: Annotated[str, Field(pattern=r"^cr-[0-9a-f]{17}$")] | None = None
    """On-demand capacity reservation or Capacity Block to launch into."""
    capacity_reservation_group_arn: (
        Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{12}:group/.+$")] | None
    ) = None
    """Resource group of reservations to launch into."""
    simultaneous_multithreading: bool = True
    """Both hardware threads of each core."""

    @property
    def spec(self) -> domain.ComputeResourceSpec:
        """The facts that the rules and the construct need."""
        return domain.ComputeResourceSpec(**self.model_dump())


class QueueSettings(_Model):
    """A Slurm queue (partition)."""

    name: str
    """Lower case, at most 25 characters; part of node names."""
    capacity_type: domain.CapacityType = "ONDEMAND"
    """How the capacity is bought."""
    compute_resources: list[ComputeResourceSettings]
    """The kinds of node in the queue."""
    placement_group: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,24}$")] | None = None
    """Label of a cluster placement group; queues with one label share the group; none: no group. null: the shared group
    `fleet`, but none for reserved capacity and for nodes without EFA."""
    existing_placement_group: str | None = None
    """Name of a placement group that exists, such as the one a capacity reservation was made in."""
    exclusive_jobs: bool = True
    """Whether each job has its nodes to itself. Slurm does not see NeuronCores."""
    root_volume_gib: Annotated[int, Field(ge=45, le=16384)] | None = 200
    """Root volume of each node; null: the image's size."""
    scratch_dir: str = "/scratch"
    """Where the node-local NVMe storage is mounted."""
    custom_slurm_settings: dict[str, str] = {}
    """Further slurm.conf parameters of the partition."""

    @property
    def spec(self) -> domain.QueueSpec:
        """The facts that the rules and the construct need."""
        fields = {**dict(self), "compute_resources": tuple(resource.spec for resource in self.compute_resources)}
        return domain.QueueSpec(**fields)


class SnapshotSettings(_Model):
    """Snapshots of the head node's root volume by Amazon Data Lifecycle Manager; they outlive the cluster."""

    interval_hours: Literal[1, 2, 3, 4, 6, 8, 12, 24] = 24
    """Hours between two snapshots."""
    retained: Annotated[int, Field(ge=1, le=1000)] = 7
    """Snapshots that are kept; the oldest is deleted when there is one more. Of a head node that is gone all stay."""


class HeadNodeSettings(_Model):
    """The head node: scheduler, shared home, where people log in."""

    instance_type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$")] = "c6i.4xlarge"
    """x86 instance type; cannot change in the life of a cluster."""
    public: bool = True
    """Whether it stands in the public subnet, with a public address; cannot change in the life of a cluster."""
    root_volume_gib: Annotated[int, Field(ge=45, le=16384)] | None = 200
    """Root volume, which holds /home unless shared_storage is efs; cannot change in the life of a cluster."""
    shared_storage: domain.SharedStorageType = "ebs"
    """Where /home and Slurm are, which all nodes mount: ebs: on the root volume, by NFS from the head node; efs: on an
    encrypted EFS file system, for large fleets, deleted with the cluster; cannot change in the life of a cluster."""
    ssh_key_name: str | None = None
    """EC2 key pair (ed25519); null: Session Manager alone; cannot change in the life of a cluster."""
    ssh_cidr: str | None = None
    """Address block or prefix list that may reach port 22; null: nobody. Never the world."""
    snapshots: SnapshotSettings | None = SnapshotSettings()
    """Snapshots of the root volume, for `make restore`; null: none."""

    @property
    def spec(self) -> domain.HeadNodeSpec:
        """The facts that the rules and the construct need."""
        return domain.HeadNodeSpec(**self.model_dump(exclude={"snapshots"}))


class LoginPoolSettings(_Model):
    """A pool of login nodes."""

    name: str
    """Lower case, at most 25 characters."""
    instance_type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$")] = "c6i.2xlarge"
    """x86 instance type."""
    count: Annotated[int, Field(ge=0)] = 1
    """Number of nodes."""
    public: bool = False
    """Whether they stand in the public subnet."""
    grace_minutes: Annotated[int, Field(ge=3, le=120)] = 10
    """Notice that users get before a node is terminated."""
    ssh_cidr: str | None = None
    """Address block or prefix list that may reach port 22; null: nobody, Session Manager alone."""

    @property
    def spec(self) -> domain.LoginPoolSpec:
        """The facts that the rules and the construct need."""
        return domain.LoginPoolSpec(**self.model_dump())


class SlurmSettings(_Model):
    """The scheduler's behaviour."""

    idle_minutes: Annotated[int, Field(ge=-1)] = 10
    """Minutes without a job after which a dynamic node is terminated; -1: never."""
    queue_update_strategy: domain.QueueUpdateStrategy = "DRAIN"
    """What happens to running nodes when a change concerns them: finish their jobs first, end at once, or refuse the
    change until the fleet is stopped."""
    scaling_strategy: domain.ScalingStrategy = "all-or-nothing"
    """Whether a job that does not get all of its nodes gets none."""
    custom_settings: dict[str, str] = {}
    """Further slurm.conf parameters; what SchedulerParameters lists here wins over the stack's own list, one by one."""

    @property
    def spec(self) -> domain.SlurmSpec:
        """The facts that the rules and the construct need."""
        return domain.SlurmSpec(**self.model_dump())


class ClusterMonitoringSettings(_Model):
    """Logs, dashboard and alarms that ParallelCluster makes with the cluster."""

    log_retention_days: int = 180
    """Days that CloudWatch keeps the cluster's logs."""
    retain_logs: bool = True
    """Whether the logs outlive the cluster."""
    dashboard: bool = True
    """CloudWatch dashboard of the head node and the file systems."""
    alarms: bool = True
    """CloudWatch alarms of the head node."""
    detailed_monitoring: bool = False
    """EC2 metrics every minute instead of every five."""

    @property
    def spec(self) -> domain.MonitoringSpec:
        """The facts that the rules and the construct need."""
        return domain.MonitoringSpec(**self.model_dump())


class AcceptedWarningSettings(_Model):
    """A warning of ParallelCluster's validators that does not stop the deployment."""

    validator: Annotated[str, Field(json_schema_extra={"enum": list(ACCEPTABLE)})]
    """Type of the validator, as `make validate` and `make preflight` name it."""
    reason: str
    """Why; both programs tell it with the warning."""


class ClusterSettings(_Model):
    """The ParallelCluster cluster."""

    name: Annotated[str, Field(pattern=rf"^{names.CLUSTER_NAME_PATTERN}$")] | None = None
    """ParallelCluster's name of it; null: the name of the deployment."""
    generation: Annotated[int, Field(ge=1)] = 1
    """Which of the clusters that follow one another on this network and file system. From 2 on, the names of cluster
    and stack end in -2 and so on. `make upgrade` counts it up."""
    parallelcluster_version: Literal["3.16.1"] = "3.16.1"
    """Version of ParallelCluster; another one means a new cluster."""
    os: domain.OperatingSystem = "ubuntu2404"
    """Operating system of all nodes, one that AWS makes the Neuron SDK for."""
    custom_ami: Annotated[str, Field(pattern=r"^ami-(?:[0-9a-f]{8}|[0-9a-f]{17})$")] | None = None
    """Image made with the same ParallelCluster version and OS; null: ParallelCluster's own."""
    neuron_sdk: str = neuron.DEFAULT_SDK
    """Release of the AWS Neuron SDK."""
    pytorch: str = neuron.DEFAULT_PYTORCH
    """PyTorch version of that release, in quotes."""
    efa_interface_type: EfaInterfaceType = "efa-only"
    """efa-only: one IPv4 address per node; efa: the older type, one address per network card (8 on trn1.32xlarge).
    Changes while the fleet is stopped."""
    head_node: HeadNodeSettings = HeadNodeSettings()
    login_nodes: list[LoginPoolSettings] = []
    """Pools of login nodes."""
    queues: list[QueueSettings]
    """Slurm queues, 1 to 50."""
    slurm: SlurmSettings = SlurmSettings()
    monitoring: ClusterMonitoringSettings = ClusterMonitoringSettings()
    overrides: dict[str, Any] = {}
    """Raw ParallelCluster keys for what is not modelled here, merged last; queues and compute resources by Name."""
    accepted_warnings: list[AcceptedWarningSettings] = []
    """Warnings of ParallelCluster's validators that do not stop the deployment. A validator in this list says no errors
    in the deployment, either; `make validate` and `make preflight` still have them."""

    def spec(self, *, name: str, region: str, tags: dict[str, str]) -> domain.ClusterSpec:
        """Return the facts that the rules and the construct need; the name is that of the generation.

        Args:
            name: Name of the deployment, for a cluster without a name of its own.
            region: AWS Region.
            tags: Tags of the deployment.
        """
        return domain.ClusterSpec(
            name=names.of_generation(self.name or name, self.generation),
            region=region,
            tags=tags,
            version=self.parallelcluster_version,
            os=self.os,
            custom_ami=self.custom_ami,
            neuron_sdk=self.neuron_sdk,
            pytorch=self.pytorch,
            efa_interface_type=self.efa_interface_type,
            head_node=self.head_node.spec,
            login_pools=tuple(pool.spec for pool in self.login_nodes),
            queues=tuple(queue.spec for queue in self.queues),
            slurm=self.slurm.spec,
            monitoring=self.monitoring.spec,
            overrides=self.overrides,
            accepted_warnings=tuple(domain.AcceptedWarning(**dict(each)) for each in self.accepted_warnings),
        )


_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
_EMAIL = rf"^[A-Za-z0-9_%+-]+(\.[A-Za-z0-9_%+-]+)*@({_LABEL}\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]$"
"""An address of letters without accents, digits, dots and ``_%+-``, without a name or brackets around it."""


class MonitoringSettings(_Model):
    """Alarms and a dashboard of nodes, file system and NAT gateway, which outlive the cluster."""

    emails: list[Annotated[str, Field(pattern=_EMAIL, max_length=254)]] = []
    """Addresses that alarms are sent to, such as me@example.com. Each gets a mail first, with a link to confirm."""
    node_metrics: bool = True
    """Whether nodes send the counters of Neuron devices and EFA to CloudWatch once a minute; it costs by the node."""
    dashboard: bool = True
    """CloudWatch dashboard of nodes, file system and NAT gateway."""
    file_system_full_percent: Annotated[int, Field(ge=50, le=99)] = 85
    """The alarm of a nearly full file system is raised from there on; percent of its nominal capacity, capacity_gib."""


class Settings(_Model):
    """A deployment: network, storage, cluster and monitoring."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{1,39}$")]
    """Name of the deployment; its stacks are NAME-network, NAME-storage, NAME-cluster and NAME-monitoring. That of
    the cluster ends in -N in generation N, from 2 on."""
    account: Annotated[str, Field(pattern=r"^\d{12}$")] | None = None
    """AWS account, in quotes; null: the one of the credentials in use."""
    region: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")]
    """AWS Region."""
    zone_id: Annotated[str, Field(pattern=r"^[a-z]+\d-az\d$")]
    """Availability zone id, the same place in every account (a zone name such as us-west-2a is not)."""
    tags: dict[str, Annotated[str, Field(max_length=256)]] = {}
    """Tags of everything that is made."""
    termination_protection: list[Literal["network", "storage", "cluster", "monitoring"]] = ["network", "storage"]
    """Stacks that cannot be deleted until they are taken off this list and deployed once more."""
    bootstrap: BootstrapSettings = BootstrapSettings()
    network: NetworkSettings = NetworkSettings()
    storage: StorageSettings = StorageSettings()
    cluster: ClusterSettings
    monitoring: MonitoringSettings = MonitoringSettings()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if faults := rules.faults(dict(self)):
            raise _rule_error(faults)
        return self

    @property
    def cluster_spec(self) -> domain.ClusterSpec:
        """The facts of the cluster that the rules and the construct need."""
        return self.cluster.spec(name=self.name, region=self.region, tags=self.tags)

    def stack_name(self, part: str) -> str:
        """Return the name of the stack of a part: network, storage, cluster or monitoring."""
        name = f"{self.name}-{part}"
        return names.of_generation(name, self.cluster.generation) if part == "cluster" else name

    def of_generation(self, generation: int) -> Self:
        """Return the same settings for another cluster of this deployment, whose stack and names they give."""
        cluster = self.cluster.model_copy(update={"generation": generation})
        return self.model_copy(update={"cluster": cluster})

    @property
    def warnings(self) -> list[str]:
        """What is allowed but worth a second look, one sentence each."""
        spec = self.cluster_spec
        found = [*cluster_rules.zone_warnings(spec, self.zone_id), *cluster_rules.image_warnings(spec)]
        head_node = self.cluster.head_node
        if head_node.shared_storage == "efs" and head_node.snapshots is not None:
            got = head_node.snapshots.model_dump()
            reason = "snapshots cost and hold no /home, which is on EFS: docs/lasting-choices.md"
            found.append(Fault(("head_node", "snapshots"), got, "null", reason))
        return [f"{dotted(fault.path)}: {fault}" for fault in below(("cluster",), found)]


@cache
def _section(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(Settings.model_fields[name].rebuild_annotation())


def _sections(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the sections of a file whose shape is in order."""
    found = {}
    for name, field in Settings.model_fields.items():
        if name not in raw and field.is_required():
            continue
        try:
            found[name] = _section(name).validate_python(raw[name]) if name in raw else field.get_default()
        except ValidationError:
            continue
    return found


_STAND_INS = {"name": "xx", "max_count": 1, "path": "/x"}
"""Values of required keys, which have no default, for rules that look at the rest of a faulty file."""


def _without(raw: Any, places: set[Place]) -> Any:
    """Return a copy of what a file holds without the keys at some places; required ones get stand-ins."""

    def copied(value: Any, place: Place) -> Any:
        if isinstance(value, dict):
            kept = {key: copied(each, (*place, key)) for key, each in value.items() if (*place, key) not in places}
            return kept | {key: each for key, each in _STAND_INS.items() if (*place, key) in places}
        return [copied(each, (*place, i)) for i, each in enumerate(value)] if isinstance(value, list) else value

    return copied(raw, ())


def _rule_faults_beside(raw: dict[str, Any], misshapen: set[Place]) -> list[Fault]:
    """Return what else breaks rules in a file with keys that are unknown or have values of a wrong shape.

    The rules see the file without those keys, so with defaults or stand-ins in their place. What they say of the
    mappings that lack a key is left out: it may be the default's fault.
    """
    around = {place[:-1] for place in misshapen} - {()}
    found = rules.faults(_sections(_without(raw, misshapen)))
    return [
        fault for fault in found if not any(fault.path[: len(place)] == place for place in around if len(place) > 1)
    ]


@cache
def _schema() -> dict[str, Any]:
    return Settings.model_json_schema()


def load(path: Path) -> Settings:
    """Read the settings of a deployment.

    Args:
        path: A YAML file.

    Raises:
        SettingsError: The file is missing, is not YAML, or breaks rules; all of them are named, a line each.
    """
    try:
        source = YamlSource.read(path)
    except YamlSourceError as error:
        raise SettingsError(str(error)) from None
    try:
        return Settings.model_validate(source.value)
    except ValidationError as error:
        details = error.errors()
    found = [(place_of(detail["loc"]), text_of(dict(detail), _schema())) for detail in details]
    if isinstance(source.value, dict):
        misshapen = {place_of(detail["loc"]) for detail in details if detail["type"] != RULE}
        found += [(fault.path, str(fault)) for fault in _rule_faults_beside(source.value, misshapen)]
    raise SettingsError(source.report(found))


def json_schema() -> str:
    """Return the JSON Schema by which editors check and complete a settings file."""
    return json.dumps(_schema(), indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA_PATH.write_text(json_schema(), encoding="utf-8")
