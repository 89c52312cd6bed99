"""The ParallelCluster configuration of a cluster, as a plain mapping.

Keys and values follow the schema of aws-parallelcluster 3.16.1 (``schemas/cluster_schema.py``). The mapping travels
through CloudFormation, which hands every scalar over as a string; ParallelCluster reads those back, except in free
mappings (``CustomSlurmSettings``) and in ``Args``, so these hold strings from the start.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ultracluster.domain import overrides, slurm
from ultracluster.domain.cluster import (
    ClusterOptions,
    ClusterSpec,
    ComputeResourceSpec,
    HeadNodeSpec,
    LoginPoolSpec,
    MonitoringSpec,
    QueueSpec,
    S3AccessSpec,
)
from ultracluster.domain.directory import DirectorySpec
from ultracluster.domain.violations import Path

NOBODY = "127.0.0.1/32"
"""Source of an SSH rule that admits no one. Without ``AllowedIps`` ParallelCluster opens port 22 to the world."""


_EFS = {"SharedStorageType": "Efs", "SharedStorageEfsSettings": {"Encrypted": True}}
"""By default ParallelCluster leaves this file system unencrypted (pcluster/config/cluster_config.py, SharedEfs)."""


@dataclass(frozen=True)
class Mount:
    """A file system and where nodes mount it. For ParallelCluster another one has another name."""

    kind: Literal["FsxLustre", "FsxOpenZfs", "FsxOntap", "Efs", "Ebs"]
    name: str
    mount_dir: str
    file_system_id: str | None = None
    """Of OpenZFS and ONTAP that of the volume; None: a volume of EBS, which is made."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of ParallelCluster."""

    @property
    def configuration(self) -> dict[str, Any]:
        """What ParallelCluster is told of it; EFS is encrypted on its way."""
        key = "FileSystemId" if self.kind in ("FsxLustre", "Efs") else "VolumeId"
        settings = _present(**{key: self.file_system_id}, **self.settings)
        if self.kind == "Efs":
            settings["EncryptionInTransit"] = True
        return {
            "Name": self.name,
            "MountDir": self.mount_dir,
            "StorageType": self.kind,
            f"{self.kind}Settings": settings,
        }


@dataclass(frozen=True, kw_only=True)
class Bindings:
    """What a cluster is attached to: ids of an account, or tokens that stand for them.

    Nodes are in the public or the private subnet, as the specification says, but for those in ``subnets``, by
    ``("head_node",)``, ``("queues", NAME)`` or ``("login_nodes", NAME)``.
    Placement groups have their names by label. All nodes mount the shared storage, and carry the security groups beside
    ParallelCluster's own; the head node also carries its own. ``database`` is what ParallelCluster is told of that of
    Slurm's accounting. ``slurm_settings`` go into ``slurm.conf``, before those of the cluster, which win. The head
    node, login nodes and each queue, by name, have the keys ``CustomActions`` and ``Iam``. A head node's
    ``OnNodeConfigured`` can never change in the life of a cluster. The provider attaches policies of the path
    ``/parallelcluster/`` or of such a name. ``permissions_boundary`` bounds the cluster's roles in place of that
    of the specification.
    """

    public_subnet_id: str
    private_subnet_id: str
    subnets: Mapping[Path, str] = field(default_factory=dict)
    security_group_ids: Sequence[str] = ()
    placement_groups: Mapping[str, str] = field(default_factory=dict)
    shared_storage: Sequence[Mount] = ()
    head_node: Mapping[str, Any] = field(default_factory=dict)
    queues: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    login_nodes: Mapping[str, Any] = field(default_factory=dict)
    database: Mapping[str, str] | None = None
    head_node_security_group_ids: Sequence[str] = ()
    slurm_settings: Mapping[str, str] = field(default_factory=dict)
    permissions_boundary: str | None = None


def render(spec: ClusterSpec, bindings: Bindings) -> dict[str, Any]:
    """Return the cluster's ParallelCluster configuration, overrides merged last."""
    configuration = {
        "Region": spec.region,
        "Image": _present(Os=spec.os, CustomAmi=spec.custom_ami),
        "Imds": {"ImdsSupport": "v2.0"},
        "HeadNode": _head_node(spec.head_node, bindings),
        "Scheduling": {
            "Scheduler": "slurm",
            "ScalingStrategy": spec.slurm.scaling_strategy,
            "SlurmSettings": _present(
                ScaledownIdletime=spec.slurm.idle_minutes,
                QueueUpdateStrategy=spec.slurm.queue_update_strategy,
                CustomSlurmSettings=[{key: value} for key, value in _custom_slurm_settings(spec, bindings).items()],
                MungeKeySecretArn=spec.munge_key_secret_arn,
                Database=bindings.database,
            ),
            "SlurmQueues": [_queue(queue, bindings) for queue in spec.queues],
        },
        "SharedStorage": [mount.configuration for mount in bindings.shared_storage],
        "Monitoring": _monitoring(spec.monitoring),
        "Tags": [{"Key": key, "Value": value} for key, value in spec.tags.items()],
        # Written out though it is the default: ParallelCluster's update check passes a section that comes or goes while
        # nodes run, and the fleet would have both types; another value it refuses until the fleet is stopped.
        "DevSettings": {"EfaInterfaceType": spec.efa_interface_type},
    }
    if spec.login_nodes:
        configuration["LoginNodes"] = {"Pools": [_login_pool(pool, bindings) for pool in spec.login_nodes]}
    boundary, roles = bindings.permissions_boundary, spec.roles
    if boundary is None and roles is not None:
        boundary = roles.permissions_boundary_arn
    prefix = None if roles is None else roles.resource_prefix
    if iam := _present(PermissionsBoundary=boundary, ResourcePrefix=prefix):
        configuration["Iam"] = iam
    if spec.directory is not None:
        configuration["DirectoryService"] = _directory(spec.directory)
    return overrides.merged(configuration, spec.overrides)


def secret_arns(cluster: ClusterOptions) -> Iterator[tuple[Path, str]]:
    """Yield place and ARN of every secret of a cluster: those of the Munge key, a directory and overrides."""
    if cluster.munge_key_secret_arn is not None:
        yield ("munge_key_secret_arn",), cluster.munge_key_secret_arn
    if cluster.directory is not None:
        yield ("directory", "password_secret_arn"), cluster.directory.password_secret_arn
    yield from secrets_within(cluster.overrides, ("overrides",))


def secrets_within(value: Any, place: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield place and ARN of every secret in a part of a configuration."""
    members = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        if isinstance(member, str) and str(key).endswith("SecretArn"):
            yield (*place, key), member
        yield from secrets_within(member, (*place, key))


def _custom_slurm_settings(spec: ClusterSpec, bindings: Bindings) -> Mapping[str, str]:
    """Return the settings of slurm.conf; beside a file that an override includes, ParallelCluster allows none."""
    if overrides.at(spec.overrides, ("Scheduling", "SlurmSettings", "CustomSlurmSettingsIncludeFile")) is not None:
        return spec.slurm.custom_settings
    return slurm.custom_settings(slurm.with_defaults(spec.slurm.custom_settings, bindings.slurm_settings))


def _head_node(head: HeadNodeSpec, bindings: Bindings) -> dict[str, Any]:
    subnet = _subnet(("head_node",), head.public, bindings)
    groups = [*bindings.head_node_security_group_ids, *head.security_group_ids]
    return _present(
        InstanceType=head.instance_type,
        Networking=_networking("SubnetId", subnet, bindings, groups),
        Ssh=_present(KeyName=head.ssh_key_name, AllowedIps=head.ssh_cidr or NOBODY),
        LocalStorage={"RootVolume": _root_volume(head.root_volume_gib)},
        **_EFS if head.shared_storage == "efs" else {},
        **_with_role(_with_buckets(bindings.head_node, head.s3_access), head.instance_role_arn),
        Imds={"Secured": True},
    )


def _login_pool(pool: LoginPoolSpec, bindings: Bindings) -> dict[str, Any]:
    return _present(
        Name=pool.name,
        InstanceType=pool.instance_type,
        Count=pool.count,
        GracetimePeriod=pool.grace_minutes,
        Networking=_networking(
            "SubnetIds",
            [_subnet(("login_nodes", pool.name), pool.public, bindings)],
            bindings,
            pool.security_group_ids,
        ),
        Ssh={"AllowedIps": pool.ssh_cidr or NOBODY},
        **_with_role(bindings.login_nodes, pool.instance_role_arn),
    )


def _queue(queue: QueueSpec, bindings: Bindings) -> dict[str, Any]:
    group = _placement_group(queue, bindings.placement_groups)
    subnets = [_subnet(("queues", queue.name), False, bindings), *queue.further_subnet_ids]
    networking = _networking("SubnetIds", subnets, bindings, queue.security_group_ids)
    if group is not None:
        networking["PlacementGroup"] = {"Name": group}
    elif queue.capacity_type != "CAPACITY_BLOCK" and any(resource.has_efa for resource in queue.compute_resources):
        networking["PlacementGroup"] = {"Enabled": False}
    return _present(
        Name=queue.name,
        CapacityType=queue.capacity_type,
        AllocationStrategy=queue.allocation_strategy,
        JobExclusiveAllocation=queue.exclusive_jobs,
        Networking=networking,
        ComputeSettings={
            "LocalStorage": {
                "RootVolume": _root_volume(queue.root_volume_gib),
                "EphemeralVolume": {"MountDir": queue.scratch_dir},
            }
        },
        **_with_role(_with_buckets(bindings.queues.get(queue.name, {}), queue.s3_access), queue.instance_role_arn),
        CustomSlurmSettings=dict(queue.custom_slurm_settings),
        ComputeResources=[_compute_resource(resource, len(subnets) > 1) for resource in queue.compute_resources],
    )


def _with_buckets(nodes: Mapping[str, Any], buckets: Sequence[S3AccessSpec]) -> dict[str, Any]:
    """Return what nodes do, with buckets that they may read or write."""
    if not buckets:
        return dict(nodes)
    given = [
        _present(BucketName=each.bucket, KeyName=each.key, EnableWriteAccess=each.write or None) for each in buckets
    ]
    iam = nodes.get("Iam", {})
    return {**nodes, "Iam": {**iam, "S3Access": [*iam.get("S3Access", ()), *given]}}


def _with_role(nodes: Mapping[str, Any], role_arn: str | None) -> dict[str, Any]:
    """Return what nodes do, in a role that exists; ParallelCluster takes no policies and buckets beside it."""
    return {**nodes, **({} if role_arn is None else {"Iam": {"InstanceRole": role_arn}})}


def _compute_resource(resource: ComputeResourceSpec, as_fleet: bool) -> dict[str, Any]:
    """Return a compute resource; its nodes are launched as a fleet of one type or several, or one by one."""
    as_fleet = as_fleet or bool(resource.alternative_types)
    return _present(
        Name=resource.name,
        InstanceType=None if as_fleet else resource.instance_type,
        Instances=[{"InstanceType": each} for each in resource.types] if as_fleet else None,
        MinCount=resource.min_count,
        MaxCount=resource.max_count,
        Efa={"Enabled": resource.has_efa},
        DisableSimultaneousMultithreading=not resource.simultaneous_multithreading,
        CapacityReservationTarget=_present(
            CapacityReservationId=resource.capacity_reservation_id,
            CapacityReservationResourceGroupArn=resource.capacity_reservation_group_arn,
        ),
    )


def _monitoring(monitoring: MonitoringSpec) -> dict[str, Any]:
    return {
        "DetailedMonitoring": monitoring.detailed_monitoring,
        "Logs": {
            "CloudWatch": {
                "Enabled": True,
                "RetentionInDays": monitoring.log_retention_days,
                "DeletionPolicy": "Retain" if monitoring.retain_logs else "Delete",
            }
        },
        "Dashboards": {"CloudWatch": {"Enabled": monitoring.dashboard}},
        "Alarms": {"Enabled": monitoring.alarms},
    }


def _directory(directory: DirectorySpec) -> dict[str, Any]:
    return _present(
        DomainName=directory.domain_name,
        DomainAddr=directory.domain_addr,
        PasswordSecretArn=directory.password_secret_arn,
        DomainReadOnlyUser=directory.domain_read_only_user,
        LdapTlsCaCert=directory.ldap_tls_ca_cert,
        LdapTlsReqCert=directory.ldap_tls_req_cert,
        LdapAccessFilter=directory.ldap_access_filter,
        GenerateSshKeysForUsers=directory.generate_ssh_keys_for_users,
        AdditionalSssdConfigs=directory.additional_sssd_configs,
    )


def _placement_group(queue: QueueSpec, names: Mapping[str, str]) -> str | None:
    label = queue.placement_group_label
    return queue.existing_placement_group if label is None else names.get(label, label)


def _subnet(nodes: Path, public: bool, bindings: Bindings) -> str:
    return bindings.subnets.get(nodes, bindings.public_subnet_id if public else bindings.private_subnet_id)


def _networking(
    subnet_key: str, subnets: str | list[str], bindings: Bindings, own_groups: Sequence[str] = ()
) -> dict[str, Any]:
    return _present(**{subnet_key: subnets, "AdditionalSecurityGroups": [*bindings.security_group_ids, *own_groups]})


def _root_volume(size_gib: int | None) -> dict[str, Any]:
    return _present(Size=size_gib, Encrypted=True, VolumeType="gp3")


def _present(**items: Any) -> dict[str, Any]:
    """Return the items that say something: not None, not an empty list or mapping."""
    return {key: value for key, value in items.items() if value not in (None, [], {})}
