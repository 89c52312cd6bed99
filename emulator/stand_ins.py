"""What exists before a deployment: what AWS provides, and what the account has of the things that settings name."""

from __future__ import annotations

import io
import zipfile
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from config.sections import BootstrapSettings
from config.settings import Settings
from emulator.aws import ACCOUNT, EmulatedAws
from emulator.resources import make_bucket
from toolchain.bootstrap import assets_bucket, newest_version, version_parameter
from ultracluster.domain.cluster import ComputeResourceSpec, QueueSpec

OFFICIAL_IMAGES = {
    "alinux2023": "amzn2023-hvm",
    "ubuntu2204": "ubuntu-2204-lts-hvm",
    "ubuntu2404": "ubuntu-2404-lts-hvm",
    "rhel8": "rhel8-hvm",
    "rhel9": "rhel9-hvm",
}
"""Part of the official images' names by OS (aws-parallelcluster 3.16.1 constants.py); Rocky Linux has none."""

_ROOT = Path(__file__).parents[1]
_PROVIDER = _ROOT / "emulator/provider"
_PROVIDER_MODULES = (*_PROVIDER.glob("*.py"), _ROOT / "toolchain/provider_request.py")

IMAGE_ROOT_VOLUME_GIB = 45
"""Root volume of the official images of ParallelCluster 3.16.1 (release notes of 3.16.2, which raised it to 50)."""

RAISED_QUOTAS = {
    ("ec2", "L-2C3B7624"): 300_000,  # vCPUs of on-demand Trn instances: 2,343 trn1.32xlarge
    ("ec2", "L-6B0D517C"): 300_000,  # the same, Spot
    ("ec2", "L-2E30FD7D"): 32_768,  # vCPUs of Trn1 Capacity Blocks: 256 instances
    ("ec2", "L-64569A79"): 49_152,  # the same, Trn2
    ("ec2", "L-1216C47A"): 5000,  # vCPUs of on-demand Standard instances
    ("ec2", "L-34B43A08"): 5000,  # the same, Spot
    ("ec2", "L-0263D0A3"): 20,  # Elastic IP addresses
    ("vpc", "L-5F53652F"): 8,  # of a NAT gateway, the most that AWS gives
    ("vpc", "L-DF5E4CA3"): 25_000,  # network interfaces
    ("ebs", "L-7A658B76"): 500,  # TiB of gp3 volumes
}
"""Quotas of an account that has room for 1,875 nodes, by service and code."""


def create(aws: EmulatedAws, settings: Settings) -> None:
    """Make the official images, and stand-ins for what the settings name, under the same ids and names."""
    ec2 = aws.client("ec2", settings.region)
    version = settings.cluster.parallelcluster_version
    _add_official_images(ec2, version)
    _add_provider(aws.client("s3", settings.region), settings.region, version)
    if settings.cluster.custom_ami:
        tags = {
            "_custom_id_": settings.cluster.custom_ami,
            "parallelcluster:version": version,
            "parallelcluster:build_status": "available",
            "parallelcluster:os": settings.cluster.os,
        }
        _add_image(ec2, "custom", "x86_64", tags)
    if settings.cluster.head_node.ssh_key_name:
        ec2.create_key_pair(KeyName=settings.cluster.head_node.ssh_key_name, KeyType="ed25519")
    for arn in {settings.storage.file_system.kms_key_arn, settings.bootstrap.kms_key_arn} - {None}:
        own_id = {"TagKey": "_custom_id_", "TagValue": str(arn).rpartition("/")[2]}
        aws.client("kms", settings.region).create_key(Tags=[own_id])
    for bucket in {link.bucket for link in settings.storage.data_repositories if link.bucket}:
        make_bucket(aws.client("s3", settings.region), bucket, settings.region)
    _add_service_role(aws.client("iam", settings.region))
    _add_network(ec2, settings)
    _add_reservations(aws, settings)
    _raise_quotas(aws.client("service-quotas", settings.region))


def bootstrap(aws: EmulatedAws, region: str, settings: BootstrapSettings = BootstrapSettings()) -> None:  # noqa: B008
    """Leave in a Region what the app needs of the CDK's bootstrap stack, in a moment instead of seconds."""
    name, version = version_parameter(settings), str(newest_version())
    aws.client("ssm", region).put_parameter(Name=name, Value=version, Type="String", Overwrite=True)
    s3, bucket = aws.client("s3", region), assets_bucket(settings, ACCOUNT, region)
    make_bucket(s3, bucket, region)
    by_default = {"SSEAlgorithm": "aws:kms"}
    if settings.kms_key_arn is not None:
        by_default["KMSMasterKeyID"] = settings.kms_key_arn.rpartition("/")[2]  # as `cdk bootstrap` writes it
    rules = [{"ApplyServerSideEncryptionByDefault": by_default}]
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": rules})


def _add_official_images(ec2: Any, version: str) -> None:
    names = {image["Name"] for image in ec2.describe_images(Owners=["amazon"])["Images"]}
    for part in OFFICIAL_IMAGES.values():
        for architecture in ("x86_64", "arm64"):
            name = f"aws-parallelcluster-{version}-{part}-{architecture}-202609010000"
            if name not in names:
                _add_image(ec2, name, architecture, {"rehearsal:owner-alias": "amazon"})


def _add_provider(s3: Any, region: str, version: str) -> None:
    """Put the provider of cluster resources where AWS has it: template, code, and a layer that is empty here."""
    bucket, folder = f"{region}-aws-parallelcluster", f"parallelcluster/{version}"
    make_bucket(s3, bucket, region)
    template = (_PROVIDER / "cluster.yaml").read_text(encoding="utf-8").replace("{version}", version)
    modules = {str(path.relative_to(_ROOT)): path.read_text(encoding="utf-8") for path in _PROVIDER_MODULES}
    for key, body in {
        "templates/custom_resource/cluster.yaml": template.encode(),
        "templates/custom_resource/cluster.zip": _archive(modules),
        "layers/aws-parallelcluster/lambda-layer.zip": _archive({"python/README": "This is .venv-pcluster."}),
    }.items():
        s3.put_object(Bucket=bucket, Key=f"{folder}/{key}", Body=body, ACL="public-read")


def _archive(files: Mapping[str, str]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        for name, text in files.items():
            opened.writestr(name, text)
    return archive.getvalue()


def _add_image(ec2: Any, name: str, architecture: str, tags: dict[str, str]) -> None:
    ec2.register_image(
        Name=name,
        Architecture=architecture,
        RootDeviceName="/dev/sda1",
        BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": IMAGE_ROOT_VOLUME_GIB}}],
        **_tagged("image", tags),
    )


def _add_service_role(iam: Any) -> None:
    if not iam.list_roles(PathPrefix="/aws-service-role/fsx.amazonaws.com/")["Roles"]:
        iam.create_service_linked_role(AWSServiceName="fsx.amazonaws.com")


def _add_network(ec2: Any, settings: Settings) -> None:
    network, existing = settings.network, settings.network.existing
    if existing is None:
        return
    ec2.create_vpc(CidrBlock=network.cidr, **_tagged("vpc", {"_custom_id_": existing.vpc_id}))
    ec2.modify_vpc_attribute(VpcId=existing.vpc_id, EnableDnsHostnames={"Value": True})
    for subnet_id, cidr, public in (
        (existing.public_subnet_id, network.public_subnet_cidr, True),
        (existing.private_subnet_id, network.private_subnet_cidr, False),
    ):
        ec2.create_subnet(
            VpcId=existing.vpc_id,
            CidrBlock=cidr,
            AvailabilityZoneId=settings.zone_id,
            **_tagged("subnet", {"_custom_id_": subnet_id}),
        )
        ec2.modify_subnet_attribute(SubnetId=subnet_id, MapPublicIpOnLaunch={"Value": public})
    gateway_id = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(VpcId=existing.vpc_id, InternetGatewayId=gateway_id)
    _add_route_table(ec2, existing.vpc_id, existing.public_subnet_id, GatewayId=gateway_id)
    address_id = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat_gateway = ec2.create_nat_gateway(SubnetId=existing.public_subnet_id, AllocationId=address_id)["NatGateway"]
    target = {"NatGatewayId": nat_gateway["NatGatewayId"]}
    ec2.create_vpc_endpoint(
        VpcId=existing.vpc_id,
        ServiceName=f"com.amazonaws.{settings.region}.s3",
        RouteTableIds=[_add_route_table(ec2, existing.vpc_id, existing.private_subnet_id, **target)],
    )


def _add_route_table(ec2: Any, vpc_id: str, subnet_id: str, **target: str) -> str:
    """Give a subnet a route table with a default route, and return the table's id."""
    table_id: str = ec2.create_route_table(VpcId=vpc_id)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table_id, DestinationCidrBlock="0.0.0.0/0", **target)
    ec2.associate_route_table(RouteTableId=table_id, SubnetId=subnet_id)
    return table_id


def _add_reservations(aws: EmulatedAws, settings: Settings) -> None:
    """Make the placement groups, reservations and groups of reservations that the queues name, just large enough."""
    ec2 = aws.client("ec2", settings.region)
    group_arns: dict[str, str] = {}
    nodes: dict[tuple[str, str], list[tuple[QueueSpec, ComputeResourceSpec]]] = defaultdict(list)
    for queue in settings.cluster.queues:
        name = queue.existing_placement_group
        if name and name not in group_arns:
            made = ec2.create_placement_group(GroupName=name, Strategy="cluster")
            group_arns[name] = made["PlacementGroup"]["GroupArn"]
        for resource in queue.compute_resources:
            for kind in ("capacity_reservation_id", "capacity_reservation_group_arn"):
                if named := getattr(resource, kind):
                    nodes[kind, named].append((queue, resource))
    for (kind, named), users in nodes.items():
        queue, resource = users[0]
        tags = {"_custom_id_": named} if kind == "capacity_reservation_id" else {}
        options: dict[str, Any] = {}
        if queue.capacity_type == "CAPACITY_BLOCK":
            tags["aws:ec2capacityreservation:capacityReservationType"] = "capacity-block"
            options["EndDate"] = datetime.now(UTC) + timedelta(days=14)
        if queue.existing_placement_group:
            options["PlacementGroupArn"] = group_arns[queue.existing_placement_group]
        made = ec2.create_capacity_reservation(
            InstanceType=resource.instance_type,
            InstancePlatform="Linux/UNIX",
            AvailabilityZoneId=settings.zone_id,
            InstanceCount=sum(user.max_count for _, user in users),
            InstanceMatchCriteria="targeted",
            **options,
            **_tagged("capacity-reservation", tags),
        )["CapacityReservation"]
        if kind == "capacity_reservation_group_arn":
            groups = aws.client("resource-groups", settings.region)
            name = named.rpartition("/")[2]
            groups.create_group(Name=name, Configuration=[{"Type": "AWS::EC2::CapacityReservationPool"}])
            groups.group_resources(Group=name, ResourceArns=[made["CapacityReservationArn"]])


def _raise_quotas(quotas: Any) -> None:
    for (service, code), value in RAISED_QUOTAS.items():
        raised = {each["QuotaCode"] for each in quotas.list_service_quotas(ServiceCode=service)["Quotas"]}
        if code not in raised:
            quotas.request_service_quota_increase(ServiceCode=service, QuotaCode=code, DesiredValue=value)


def _tagged(resource_type: str, tags: dict[str, str]) -> dict[str, Any]:
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    return {"TagSpecifications": [{"ResourceType": resource_type, "Tags": listed}]} if tags else {}
