"""What exists before a deployment: what AWS provides, and what the account has of its own."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Final

from emulator.aws import EmulatedAws
from emulator.resources import make_bucket

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
_PROVIDER_MODULES = (
    *_PROVIDER.glob("*.py"),
    _ROOT / "toolchain/jsii_start.py",
    _ROOT / "toolchain/provider_request.py",
)

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


@dataclass(frozen=True)
class PublishedVersion:
    """A version of ParallelCluster, as AWS publishes it: official images, and the provider of cluster resources.

    What answers behind the provider is the package in .venv-pcluster under this version's number, whatever its own is.
    """

    version: str
    root_volume_gib: int
    lambda_runtime: str


@dataclass(frozen=True)
class ExistingNetwork:
    """A VPC with a public and a private subnet, a NAT gateway and an endpoint of S3."""

    vpc_id: str
    cidr: str
    public_subnet_id: str
    public_subnet_cidr: str
    private_subnet_id: str
    private_subnet_cidr: str


@dataclass(frozen=True)
class ReservationPrerequisite:
    """A capacity reservation.

    Attributes:
        name: Its id, or the ARN of a group of reservations that has it as a member.
        placement_group: Name of the placement group that it is made in; None: no group.
    """

    name: str
    instance_type: str
    count: int
    is_block: bool = False
    placement_group: str | None = None


@dataclass(frozen=True)
class Bootstrap:
    """What the CDK's bootstrap stack leaves: a parameter in Systems Manager, and a bucket, encrypted by a key."""

    version_parameter: str
    version: str
    bucket: str
    kms_key_id: str | None = None


@dataclass(frozen=True)
class Prerequisites:
    """What a deployment expects of its account, under the ids and names that it uses.

    Attributes:
        cluster_name: Name of the cluster, which nothing else may have.
        instance_type: Type of the nodes.
        os: That of the nodes, as ParallelCluster names it.
        architecture: That of their processors, as EC2 names it.
        existing: Ids, names and ARNs of what exists, by type in CloudFormation.
        munge_key_secret_arn: Which of the secrets has a Munge key; the others have a password.
        permissions_boundary_arn: Which of the policies bounds roles.
        file_system_key_id: Which of the keys encrypts the file system.
        network: The network, if there is one already.
    """

    region: str
    zone_id: str
    parallelcluster_version: str
    cluster_name: str
    instance_type: str
    bootstrap: Bootstrap
    published: tuple[PublishedVersion, ...]
    os: str = "ubuntu2404"
    architecture: str = "x86_64"
    existing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    munge_key_secret_arn: str | None = None
    permissions_boundary_arn: str | None = None
    file_system_key_id: str | None = None
    network: ExistingNetwork | None = None
    reservations: tuple[ReservationPrerequisite, ...] = ()


def create(aws: EmulatedAws, wanted: Prerequisites) -> None:
    """Make the official images, raise the quotas, and make what a deployment expects but for the bootstrap stack.

    Raises:
        LookupError: Something of an unknown type is to exist; the message names it.
    """
    if unknown := wanted.existing.keys() - _MAKERS.keys() - _IN_SUBNETS.keys() - _OTHERS:
        raise LookupError(f"nothing here makes what exists of the types {', '.join(sorted(unknown))}")
    region = wanted.region
    ec2, s3 = aws.client("ec2", region), aws.client("s3", region)
    for each in wanted.published:
        _add_official_images(ec2, each)
        _add_provider(s3, region, each)
    _add_service_role(aws.client("iam", region))
    for resource_type, make in _MAKERS.items():
        for name in wanted.existing.get(resource_type, ()):
            make(aws, wanted, name)
    if wanted.network:
        _add_network(ec2, wanted.network, wanted)
        create_in_subnet(aws, wanted, wanted.network.private_subnet_id)
    _add_reservations(aws, wanted)
    _raise_quotas(aws.client("service-quotas", region))


def create_in_subnet(aws: EmulatedAws, wanted: Prerequisites, subnet_id: str) -> None:
    """Make what a deployment expects in its network: security groups, and file systems that its blocks reach."""
    for resource_type, make in _IN_SUBNETS.items():
        for name in wanted.existing.get(resource_type, ()):
            make(aws, wanted, name, subnet_id)


def bootstrap(aws: EmulatedAws, region: str, wanted: Bootstrap) -> None:
    """Leave in a Region what an app needs of the CDK's bootstrap stack, in a moment instead of seconds."""
    aws.client("ssm", region).put_parameter(
        Name=wanted.version_parameter, Value=wanted.version, Type="String", Overwrite=True
    )
    s3 = aws.client("s3", region)
    make_bucket(s3, wanted.bucket, region)
    by_default = {"SSEAlgorithm": "aws:kms"}
    if wanted.kms_key_id is not None:
        by_default["KMSMasterKeyID"] = wanted.kms_key_id  # as `cdk bootstrap` writes it
    rules = [{"ApplyServerSideEncryptionByDefault": by_default}]
    s3.put_bucket_encryption(Bucket=wanted.bucket, ServerSideEncryptionConfiguration={"Rules": rules})


def _add_official_images(ec2: Any, published: PublishedVersion) -> None:
    names = {image["Name"] for image in ec2.describe_images(Owners=["amazon"])["Images"]}
    for part in OFFICIAL_IMAGES.values():
        for architecture in ("x86_64", "arm64"):
            name = f"aws-parallelcluster-{published.version}-{part}-{architecture}-202609010000"
            if name not in names:
                _add_image(ec2, name, architecture, published.root_volume_gib, {"emulator:owner-alias": "amazon"})


def _add_provider(s3: Any, region: str, published: PublishedVersion) -> None:
    """Put the provider of cluster resources where AWS has it: template, code, and a layer that is empty here."""
    bucket, folder = f"{region}-aws-parallelcluster", f"parallelcluster/{published.version}"
    make_bucket(s3, bucket, region)
    template = (_PROVIDER / "cluster.yaml").read_text(encoding="utf-8")
    template = template.replace("{version}", published.version).replace("{runtime}", published.lambda_runtime)
    modules = {str(path.relative_to(_ROOT)): path.read_text(encoding="utf-8") for path in _PROVIDER_MODULES}
    for key, body in {
        "templates/custom_resource/cluster.yaml": template.encode(),
        "templates/policies/policies.yaml": (_PROVIDER / "policies.yaml").read_bytes(),
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


def _add_image(ec2: Any, name: str, architecture: str, root_volume_gib: int, tags: dict[str, str]) -> None:
    ec2.register_image(
        Name=name,
        Architecture=architecture,
        RootDeviceName="/dev/sda1",
        BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": root_volume_gib}}],
        **_tagged("image", tags),
    )


def _add_own_image(aws: EmulatedAws, wanted: Prerequisites, image_id: str) -> None:
    tags = {
        "_custom_id_": image_id,
        "parallelcluster:version": wanted.parallelcluster_version,
        "parallelcluster:build_status": "available",
        "parallelcluster:os": wanted.os,
    }
    [size] = {each.root_volume_gib for each in wanted.published if each.version == wanted.parallelcluster_version}
    _add_image(aws.client("ec2", wanted.region), f"custom-{image_id}", wanted.architecture, size, tags)


def _add_key_pair(aws: EmulatedAws, wanted: Prerequisites, name: str) -> None:
    aws.client("ec2", wanted.region).create_key_pair(KeyName=name, KeyType="ed25519")


def _add_key(aws: EmulatedAws, wanted: Prerequisites, arn: str) -> None:
    tags = [{"TagKey": "_custom_id_", "TagValue": arn.rpartition("/")[2]}]
    aws.client("kms", wanted.region).create_key(Tags=tags)


def _add_bucket(aws: EmulatedAws, wanted: Prerequisites, name: str) -> None:
    make_bucket(aws.client("s3", wanted.region), name, wanted.region)


def _add_secret(aws: EmulatedAws, wanted: Prerequisites, arn: str) -> None:
    """Make a secret: a password, or the key of Munge as Base64."""
    name = arn.partition(":secret:")[2].rpartition("-")[0]
    value = base64.b64encode(bytes(64)).decode() if arn == wanted.munge_key_secret_arn else "password"
    chosen = [{"Key": "_custom_id_", "Value": arn}]
    aws.client("secretsmanager", wanted.region).create_secret(Name=name, SecretString=value, Tags=chosen)


def _add_policy(aws: EmulatedAws, wanted: Prerequisites, arn: str) -> None:
    """Make a policy that allows nothing but to say who asks; a boundary, which grants nothing, takes nothing away.

    Deployments of an account share policies and roles: one that exists is left as it is.
    """
    path, _, name = arn.partition(":policy")[2].rpartition("/")
    is_boundary = arn == wanted.permissions_boundary_arn
    allowed = {"Effect": "Allow", "Action": "*" if is_boundary else "sts:GetCallerIdentity", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    tags = [{"Key": "_custom_id_", "Value": arn}]
    iam = aws.client("iam", wanted.region)
    with suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_policy(PolicyName=name, Path=f"{path}/", PolicyDocument=document, Tags=tags)


def _add_role(aws: EmulatedAws, wanted: Prerequisites, arn: str) -> None:
    """Make a role of nodes that may do everything: what people give theirs is not known."""
    path, _, name = arn.partition(":role")[2].rpartition("/")
    trusts = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
    allowed = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    trust, policy = (json.dumps({"Version": "2012-10-17", "Statement": [each]}) for each in (trusts, allowed))
    iam = aws.client("iam", wanted.region)
    with suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_role(RoleName=name, Path=f"{path}/", AssumeRolePolicyDocument=trust)
        iam.put_role_policy(RoleName=name, PolicyName="everything", PolicyDocument=policy)


def _add_prefix_list(aws: EmulatedAws, wanted: Prerequisites, list_id: str) -> None:
    aws.client("ec2", wanted.region).create_managed_prefix_list(
        PrefixListName=list_id,
        Entries=[{"Cidr": "203.0.113.0/24"}],
        MaxEntries=1,
        AddressFamily="IPv4",
        **_tagged("prefix-list", {"_custom_id_": list_id}),
    )


def _add_security_group(aws: EmulatedAws, wanted: Prerequisites, group_id: str, subnet_id: str) -> None:
    ec2 = aws.client("ec2", wanted.region)
    [subnet] = ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"]
    tags = _tagged("security-group", {"_custom_id_": group_id})
    ec2.create_security_group(GroupName=group_id, Description="Existing", VpcId=subnet["VpcId"], **tags)


def _add_homes(aws: EmulatedAws, wanted: Prerequisites, name: str, subnet_id: str) -> None:
    """Make an EFS file system with mount targets, or a volume of OpenZFS, that the whole VPC reaches."""
    ec2 = aws.client("ec2", wanted.region)
    [subnet] = ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"]
    [vpc] = ec2.describe_vpcs(VpcIds=[subnet["VpcId"]])["Vpcs"]
    group = ec2.create_security_group(GroupName=name, Description="Homes", VpcId=vpc["VpcId"])["GroupId"]
    inside = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": vpc["CidrBlock"]}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=inside)
    chosen = [{"Key": "_custom_id_", "Value": name}]
    if name.startswith("fs-"):
        efs = aws.client("efs", wanted.region)
        efs.create_file_system(CreationToken=name, Tags=chosen)
        for each in (subnet_id, *_further_subnets(wanted)):
            efs.create_mount_target(FileSystemId=name, SubnetId=each, SecurityGroups=[group])
        return
    fsx = aws.client("fsx", wanted.region)
    made = fsx.create_file_system(
        FileSystemType="OPENZFS",
        StorageCapacity=64,
        SubnetIds=[subnet_id],
        SecurityGroupIds=[group],
        OpenZFSConfiguration={"DeploymentType": "SINGLE_AZ_1", "ThroughputCapacity": 64},
    )["FileSystem"]
    parent = {"ParentVolumeId": made["OpenZFSConfiguration"]["RootVolumeId"]}
    fsx.create_volume(VolumeType="OPENZFS", Name="home", OpenZFSConfiguration=parent, Tags=chosen)


def _add_volume(aws: EmulatedAws, wanted: Prerequisites, volume_id: str) -> None:
    """Make an EBS volume in the zone of the deployment."""
    ec2 = aws.client("ec2", wanted.region)
    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    [zone] = [each["ZoneName"] for each in zones if each["ZoneId"] == wanted.zone_id]
    ec2.create_volume(AvailabilityZone=zone, Size=100, Encrypted=True, **_tagged("volume", {"_custom_id_": volume_id}))


def _add_snapshot(aws: EmulatedAws, wanted: Prerequisites, snapshot_id: str) -> None:
    ec2 = aws.client("ec2", wanted.region)
    zone = ec2.describe_availability_zones()["AvailabilityZones"][0]["ZoneName"]
    volume_id = ec2.create_volume(AvailabilityZone=zone, Size=50)["VolumeId"]
    ec2.create_snapshot(VolumeId=volume_id, **_tagged("snapshot", {"_custom_id_": snapshot_id}))
    ec2.delete_volume(VolumeId=volume_id)


def _group_of_vpc(ec2: Any, name: str, subnet_id: str) -> str:
    """Make a security group that lets in and out everything within the VPC of a subnet, and return its id."""
    [subnet] = ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"]
    [vpc] = ec2.describe_vpcs(VpcIds=[subnet["VpcId"]])["Vpcs"]
    group: str = ec2.create_security_group(GroupName=name, Description="Existing", VpcId=vpc["VpcId"])["GroupId"]
    inside = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": vpc["CidrBlock"]}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=inside)
    return group


def _add_lustre(aws: EmulatedAws, wanted: Prerequisites, file_system_id: str, subnet_id: str) -> None:
    aws.client("fsx", wanted.region).create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=[subnet_id],
        SecurityGroupIds=[_group_of_vpc(aws.client("ec2", wanted.region), file_system_id, subnet_id)],
        LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
        Tags=[{"Key": "_custom_id_", "Value": file_system_id}],
    )


def _add_ontap_volume(aws: EmulatedAws, wanted: Prerequisites, volume_id: str, subnet_id: str) -> None:
    fsx = aws.client("fsx", wanted.region)
    made = fsx.create_file_system(
        FileSystemType="ONTAP",
        StorageCapacity=1024,
        SubnetIds=[subnet_id],
        SecurityGroupIds=[_group_of_vpc(aws.client("ec2", wanted.region), volume_id, subnet_id)],
        OntapConfiguration={"DeploymentType": "SINGLE_AZ_1", "ThroughputCapacity": 128},
    )["FileSystem"]
    machine = fsx.create_storage_virtual_machine(FileSystemId=made["FileSystemId"], Name="projects")
    options = {
        "StorageVirtualMachineId": machine["StorageVirtualMachine"]["StorageVirtualMachineId"],
        "JunctionPath": "/projects",
        "SizeInMegabytes": 1024,
    }
    chosen = [{"Key": "_custom_id_", "Value": volume_id}]
    fsx.create_volume(VolumeType="ONTAP", Name="projects", OntapConfiguration=options, Tags=chosen)


def _add_file_cache(aws: EmulatedAws, wanted: Prerequisites, cache_id: str, subnet_id: str) -> None:
    aws.client("fsx", wanted.region).create_file_cache(
        FileCacheType="LUSTRE",
        FileCacheTypeVersion="2.12",
        StorageCapacity=1200,
        SubnetIds=[subnet_id],
        SecurityGroupIds=[_group_of_vpc(aws.client("ec2", wanted.region), cache_id, subnet_id)],
        LustreConfiguration={
            "DeploymentType": "CACHE_1",
            "PerUnitStorageThroughput": 1000,
            "MetadataConfiguration": {"StorageCapacity": 2400},
        },
        Tags=[{"Key": "_custom_id_", "Value": cache_id}],
    )


def _add_access_point(aws: EmulatedAws, wanted: Prerequisites, access_point_id: str, _: str) -> None:
    """Make an access point of the first file system."""
    elastic = [each for each in wanted.existing.get("AWS::EFS::FileSystem", ()) if each.startswith("fs-")]
    chosen = [{"Key": "_custom_id_", "Value": access_point_id}]
    aws.client("efs", wanted.region).create_access_point(
        ClientToken=access_point_id, FileSystemId=elastic[0], Tags=chosen
    )


def _further_subnets(wanted: Prerequisites) -> list[str]:
    """Return the subnets that are to exist beside those of the network."""
    network = wanted.network
    own = () if network is None else (network.public_subnet_id, network.private_subnet_id)
    return [each for each in wanted.existing.get("AWS::EC2::Subnet", ()) if each not in own]


def _add_further_subnet(aws: EmulatedAws, wanted: Prerequisites, subnet_id: str, private_subnet_id: str) -> None:
    """Make a subnet in the VPC of another one, in another zone, with its routes: the last free /28 of the VPC."""
    if subnet_id not in _further_subnets(wanted):
        return
    ec2 = aws.client("ec2", wanted.region)
    [private] = ec2.describe_subnets(SubnetIds=[private_subnet_id])["Subnets"]
    of_vpc = [{"Name": "vpc-id", "Values": [private["VpcId"]]}]
    taken = [IPv4Network(each["CidrBlock"]) for each in ec2.describe_subnets(Filters=of_vpc)["Subnets"]]
    [vpc] = ec2.describe_vpcs(VpcIds=[private["VpcId"]])["Vpcs"]
    blocks = reversed(list(IPv4Network(vpc["CidrBlock"]).subnets(new_prefix=28)))
    block = next(each for each in blocks if not any(each.overlaps(one) for one in taken))
    zones = [each["ZoneId"] for each in ec2.describe_availability_zones()["AvailabilityZones"]]
    ec2.create_subnet(
        VpcId=private["VpcId"],
        CidrBlock=str(block),
        AvailabilityZoneId=next(each for each in zones if each not in (wanted.zone_id, private["AvailabilityZoneId"])),
        **_tagged("subnet", {"_custom_id_": subnet_id}),
    )
    tables = ec2.describe_route_tables(Filters=[{"Name": "association.subnet-id", "Values": [private_subnet_id]}])
    for table in tables["RouteTables"]:
        ec2.associate_route_table(RouteTableId=table["RouteTableId"], SubnetId=subnet_id)


def _add_hosted_zone(aws: EmulatedAws, wanted: Prerequisites, zone_id: str, subnet_id: str) -> None:
    """Make a private zone of the VPC of a subnet."""
    [subnet] = aws.client("ec2", wanted.region).describe_subnets(SubnetIds=[subnet_id])["Subnets"]
    aws.client("route53", wanted.region).create_hosted_zone(
        Name="nodes.internal",
        CallerReference=zone_id,
        VPC={"VPCRegion": wanted.region, "VPCId": subnet["VpcId"]},
        HostedZoneConfig={"PrivateZone": True},
    )


def _add_service_role(iam: Any) -> None:
    if not iam.list_roles(PathPrefix="/aws-service-role/fsx.amazonaws.com/")["Roles"]:
        iam.create_service_linked_role(AWSServiceName="fsx.amazonaws.com")


def _add_network(ec2: Any, network: ExistingNetwork, wanted: Prerequisites) -> None:
    ec2.create_vpc(CidrBlock=network.cidr, **_tagged("vpc", {"_custom_id_": network.vpc_id}))
    ec2.modify_vpc_attribute(VpcId=network.vpc_id, EnableDnsHostnames={"Value": True})
    for subnet_id, cidr, public in (
        (network.public_subnet_id, network.public_subnet_cidr, True),
        (network.private_subnet_id, network.private_subnet_cidr, False),
    ):
        ec2.create_subnet(
            VpcId=network.vpc_id,
            CidrBlock=cidr,
            AvailabilityZoneId=wanted.zone_id,
            **_tagged("subnet", {"_custom_id_": subnet_id}),
        )
        ec2.modify_subnet_attribute(SubnetId=subnet_id, MapPublicIpOnLaunch={"Value": public})
    gateway_id = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(VpcId=network.vpc_id, InternetGatewayId=gateway_id)
    _add_route_table(ec2, network.vpc_id, network.public_subnet_id, GatewayId=gateway_id)
    address_id = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat_gateway = ec2.create_nat_gateway(SubnetId=network.public_subnet_id, AllocationId=address_id)["NatGateway"]
    target = {"NatGatewayId": nat_gateway["NatGatewayId"]}
    ec2.create_vpc_endpoint(
        VpcId=network.vpc_id,
        ServiceName=f"com.amazonaws.{wanted.region}.s3",
        RouteTableIds=[_add_route_table(ec2, network.vpc_id, network.private_subnet_id, **target)],
    )


def _add_route_table(ec2: Any, vpc_id: str, subnet_id: str, **target: str) -> str:
    """Give a subnet a route table with a default route, and return the table's id."""
    table_id: str = ec2.create_route_table(VpcId=vpc_id)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table_id, DestinationCidrBlock="0.0.0.0/0", **target)
    ec2.associate_route_table(RouteTableId=table_id, SubnetId=subnet_id)
    return table_id


def _add_reservations(aws: EmulatedAws, wanted: Prerequisites) -> None:
    """Make the placement groups, reservations and groups of reservations."""
    ec2 = aws.client("ec2", wanted.region)
    group_arns = {
        name: ec2.create_placement_group(GroupName=name, Strategy="cluster")["PlacementGroup"]["GroupArn"]
        for name in wanted.existing.get("AWS::EC2::PlacementGroup", ())
    }
    for reservation in wanted.reservations:
        is_group = reservation.name.startswith("arn:")
        tags = {} if is_group else {"_custom_id_": reservation.name}
        options: dict[str, Any] = {}
        if reservation.is_block:
            tags["aws:ec2capacityreservation:capacityReservationType"] = "capacity-block"
            options["EndDate"] = datetime.now(UTC) + timedelta(days=14)
        if reservation.placement_group:
            options["PlacementGroupArn"] = group_arns[reservation.placement_group]
        made = ec2.create_capacity_reservation(
            InstanceType=reservation.instance_type,
            InstancePlatform="Linux/UNIX",
            AvailabilityZoneId=wanted.zone_id,
            InstanceCount=reservation.count,
            InstanceMatchCriteria="targeted",
            **options,
            **_tagged("capacity-reservation", tags),
        )["CapacityReservation"]
        if is_group:
            groups = aws.client("resource-groups", wanted.region)
            name = reservation.name.rpartition("/")[2]
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


_MAKERS: Final[Mapping[str, Callable[[EmulatedAws, Prerequisites, str], None]]] = {
    "AWS::EC2::Image": _add_own_image,
    "AWS::EC2::KeyPair": _add_key_pair,
    "AWS::EC2::PrefixList": _add_prefix_list,
    "AWS::EC2::Snapshot": _add_snapshot,
    "AWS::EC2::Volume": _add_volume,
    "AWS::IAM::ManagedPolicy": _add_policy,
    "AWS::IAM::Role": _add_role,
    "AWS::KMS::Key": _add_key,
    "AWS::S3::Bucket": _add_bucket,
    "AWS::SecretsManager::Secret": _add_secret,
}
_IN_SUBNETS: Final[Mapping[str, Callable[[EmulatedAws, Prerequisites, str, str], None]]] = {
    "AWS::EC2::SecurityGroup": _add_security_group,
    "AWS::EC2::Subnet": _add_further_subnet,
    "AWS::EFS::FileSystem": _add_homes,
    "AWS::EFS::AccessPoint": _add_access_point,
    "AWS::FSx::FileCache": _add_file_cache,
    "AWS::FSx::FileSystem": _add_lustre,
    "AWS::FSx::StorageVirtualMachine": _add_ontap_volume,
    "AWS::FSx::Volume": _add_homes,
    "AWS::Route53::HostedZone": _add_hosted_zone,
}
_OTHERS: Final = {
    "AWS::EC2::CapacityReservation",
    "AWS::EC2::PlacementGroup",
    "AWS::EC2::VPC",
    "AWS::ResourceGroups::Group",
}
"""Made from `Prerequisites.network` and `Prerequisites.reservations`, and groups with these."""
