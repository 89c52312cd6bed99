"""The sections of a settings file: what each holds, with types, ranges and defaults."""

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.domain import names
from ultracluster.domain.cluster import ClusterOptions, ClusterSpec, HeadNodeSpec
from ultracluster.domain.lustre import DataRepository, LustreSpec
from ultracluster.domain.spec import Spec

PARALLELCLUSTER_ENDPOINTS = ("logs", "cloudformation", "ec2")
"""Interface endpoints that a cluster without internet access needs beside the S3 and DynamoDB gateways (AWS
ParallelCluster user guide, "AWS ParallelCluster in a single subnet with no internet access")."""


class BootstrapSettings(Spec):
    """The CDK's bootstrap stack in account and Region, which `./ultracluster bootstrap` makes."""

    qualifier: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?$")] = "hnb659fds"
    """Part of the names of its bucket, roles and parameter, at most 10 characters. Another one than the CDK's own has a
    stack of its own, CDKToolkit-QUALIFIER. Cannot change in the life of a cluster: head and login nodes start from the
    bucket."""
    kms_key_arn: Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+$")] | None = (
        None
    )
    """KMS key of yours that encrypts the bucket, in the account and Region of the deployment; null: S3's own key. Give
    it before the first deployment: what was uploaded before keeps the key that it has."""


class ExistingVpc(Spec):
    """A VPC that exists already. Its blocks are given in the fields of the network."""

    vpc_id: Annotated[str, Field(pattern=r"^vpc-[0-9a-f]{8,17}$")]
    """Id of the VPC. It must have DNS support and DNS hostnames on."""
    public_subnet_id: Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")]
    """Subnet of the head node, in zone_id, that assigns public addresses."""
    private_subnet_id: Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")]
    """Subnet of compute nodes and file system, in zone_id, with a route to the internet and no public addresses."""


class NetworkSettings(Spec):
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
    """Services with an interface endpoint, such as ssm; `parallelcluster` means those that a cluster needs."""
    flow_log_retention_days: int | None = 90
    """Days that flow logs are kept; null: no flow logs."""
    existing: ExistingVpc | None = None
    """A VPC to use instead of making one."""

    @property
    def endpoint_services(self) -> list[str]:
        """Short names of the interface endpoints, with the preset expanded."""
        services: list[str] = []
        for name in self.interface_endpoints:
            services += PARALLELCLUSTER_ENDPOINTS if name == "parallelcluster" else (name,)
        return list(dict.fromkeys(services))

    def placement(self, zone_id: str) -> tuple[str, ...]:
        """Return what identifies the private subnet: another value means another subnet."""
        if self.existing is not None:
            return (self.existing.vpc_id, self.existing.private_subnet_id)
        return (self.cidr, self.private_subnet_cidr, zone_id)


class FileSystemSettings(LustreSpec):
    """The FSx for Lustre file system."""

    log_retention_days: int = 90
    """Days that the file system's warnings and errors are kept in CloudWatch."""


class StorageSettings(Spec):
    """The shared file system and its links to S3."""

    file_system: FileSystemSettings = FileSystemSettings()
    data_repositories: list[DataRepository] = []
    """Links between directories and S3, at most 8."""
    retain: bool = True
    """Whether file system and bucket stay, and cost, when their stack is destroyed."""


class SnapshotSettings(Spec):
    """Snapshots of the head node's root volume by Amazon Data Lifecycle Manager; they outlive the cluster."""

    interval_hours: Literal[1, 2, 3, 4, 6, 8, 12, 24] = 24
    """Hours between two snapshots."""
    retained: Annotated[int, Field(ge=1, le=1000)] = 7
    """Snapshots that are kept; the oldest is deleted when there is one more. Of a head node that is gone all stay."""


class HeadNodeSettings(HeadNodeSpec):
    """The head node: scheduler, shared home, where people log in."""

    snapshots: SnapshotSettings | None = SnapshotSettings()
    """Snapshots of the root volume, for `./ultracluster restore`; null: none."""


class ClusterSettings(ClusterOptions):
    """The ParallelCluster cluster."""

    name: Annotated[str, Field(pattern=rf"^{names.CLUSTER_NAME_PATTERN}$")] | None = None
    """ParallelCluster's name of it; null: the name of the deployment."""
    generation: Annotated[int, Field(ge=1)] = 1
    """Which of the clusters that follow one another on this network and file system. From 2 on, the names of cluster
    and stack end in -2 and so on. `./ultracluster upgrade` counts it up."""
    head_node: HeadNodeSettings = HeadNodeSettings()

    def spec(self, *, name: str, region: str, tags: dict[str, str]) -> ClusterSpec:
        """Return what the rules and the construct need, for a deployment of this name; named for the generation."""
        options = {field: getattr(self, field) for field in ClusterOptions.model_fields}
        return ClusterSpec(
            name=names.of_generation(self.name or name, self.generation), region=region, tags=tags, **options
        )


_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
EMAIL = rf"^[A-Za-z0-9_%+-]+(\.[A-Za-z0-9_%+-]+)*@({_LABEL}\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]$"
"""An address of letters without accents, digits, dots and ``_%+-``, without a name or brackets around it."""


class MonitoringSettings(Spec):
    """Alarms and a dashboard of nodes, file system and NAT gateway, which outlive the cluster."""

    emails: list[Annotated[str, Field(pattern=EMAIL, max_length=254)]] = []
    """Addresses that alarms are sent to, such as me@example.com. Each gets a mail first, with a link to confirm."""
    node_metrics: bool = True
    """Whether nodes send the counters of Neuron devices and EFA to CloudWatch once a minute; it costs by the node."""
    dashboard: bool = True
    """CloudWatch dashboard of nodes, file system and NAT gateway."""
    file_system_full_percent: Annotated[int, Field(ge=50, le=99)] = 85
    """The alarm of a nearly full file system is raised from there on; percent of its nominal capacity, capacity_gib."""
