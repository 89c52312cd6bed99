"""What settings name as existing is there in an emulated account: each field, by the types of the models."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from config.settings import Settings
from emulator import prerequisites
from emulator.aws import EmulatedAws
from scripts.emulated.accounts import create_in_subnet, create_prerequisites, prerequisites_of
from scripts.emulated.references import POLICY, fields, marker, references
from tests.stacks.deployments import Raw, edited

pytestmark = pytest.mark.slow

REGION, ACCOUNT, HEX = "us-west-2", "111122223333", "0123456789abcdef0"
ARN = f"arn:aws:{{}}:{REGION}:{ACCOUNT}:{{}}".format
SECRET = ARN("secretsmanager", "secret:{}-AbCdEf").format
KEY = ARN("kms", "key/1234abcd-12ab-34cd-56ef-12345678901{}").format
POLICIES = [f"arn:aws:iam::{ACCOUNT}:policy/{name}" for name in ("parallelcluster-data", "parallelcluster/lab/logs")]

GROUP_OF_OVERRIDES = "sg-0fedcba9876543210"

Lookup = Callable[[EmulatedAws, str], object]


def ec2(aws: EmulatedAws) -> Any:
    return aws.client("ec2", REGION)


LOOKUPS: Mapping[str, Lookup] = {
    "AWS::EC2::CapacityReservation": lambda aws, each: ec2(aws).describe_capacity_reservations(
        CapacityReservationIds=[each]
    )["CapacityReservations"][0],
    "AWS::EC2::Image": lambda aws, each: ec2(aws).describe_images(ImageIds=[each])["Images"][0],
    "AWS::EC2::KeyPair": lambda aws, each: ec2(aws).describe_key_pairs(KeyNames=[each]),
    "AWS::EC2::PlacementGroup": lambda aws, each: ec2(aws).describe_placement_groups(GroupNames=[each]),
    "AWS::EC2::PrefixList": lambda aws, each: ec2(aws).describe_managed_prefix_lists(PrefixListIds=[each])[
        "PrefixLists"
    ][0],
    "AWS::EC2::SecurityGroup": lambda aws, each: ec2(aws).describe_security_groups(GroupIds=[each]),
    "AWS::EC2::Snapshot": lambda aws, each: ec2(aws).describe_snapshots(SnapshotIds=[each])["Snapshots"][0],
    "AWS::EC2::Subnet": lambda aws, each: ec2(aws).describe_subnets(SubnetIds=[each]),
    "AWS::EC2::VPC": lambda aws, each: ec2(aws).describe_vpcs(VpcIds=[each]),
    "AWS::EC2::Volume": lambda aws, each: ec2(aws).describe_volumes(VolumeIds=[each])["Volumes"][0],
    "AWS::EFS::AccessPoint": lambda aws, each: aws.client("efs", REGION).describe_access_points(AccessPointId=each)[
        "AccessPoints"
    ][0],
    "AWS::FSx::FileSystem": lambda aws, each: aws.client("fsx", REGION).describe_file_systems(FileSystemIds=[each]),
    "AWS::FSx::StorageVirtualMachine": lambda aws, each: aws.client("fsx", REGION).describe_volumes(VolumeIds=[each])[
        "Volumes"
    ][0]["OntapConfiguration"],
    "AWS::FSx::Volume": lambda aws, each: aws.client("fsx", REGION).describe_volumes(VolumeIds=[each])["Volumes"][0][
        "OpenZFSConfiguration"
    ],
    "AWS::EFS::FileSystem": lambda aws, each: (
        aws.client("efs", REGION).describe_mount_targets(FileSystemId=each)["MountTargets"][0]
        if each.startswith("fs-")
        else aws.client("fsx", REGION).describe_volumes(VolumeIds=[each])
    ),
    "AWS::IAM::Role": lambda aws, each: aws.client("iam", REGION).get_role(RoleName=each.rpartition("/")[2]),
    "AWS::KMS::Key": lambda aws, each: aws.client("kms", REGION).describe_key(KeyId=each),
    "AWS::ResourceGroups::Group": lambda aws, each: aws.client("resource-groups", REGION).list_group_resources(
        Group=each
    )["Resources"],
    "AWS::S3::Bucket": lambda aws, each: aws.client("s3", REGION).head_bucket(Bucket=each),
    "AWS::SecretsManager::Secret": lambda aws, each: aws.client("secretsmanager", REGION).get_secret_value(
        SecretId=each
    ),
    POLICY: lambda aws, each: aws.client("iam", REGION).get_policy(PolicyArn=each),
}
"""How each type is asked for by its id, name or ARN; it raises where there is none."""


def everything(raw: Raw) -> None:
    """Name as existing whatever can be, with homes on EFS."""
    raw["bootstrap"] = {"kms_key_arn": KEY(1)}
    raw["roles"] = {"permissions_boundary_arn": f"arn:aws:iam::{ACCOUNT}:policy/boundary"}
    blocks = {key: value for key, value in raw["network"].items() if key.endswith("cidr")}
    vpc = {"vpc_id": f"vpc-{HEX}", "public_subnet_id": f"subnet-{HEX}", "private_subnet_id": f"subnet-{HEX[:-1]}1"}
    raw["network"] = {**blocks, "existing": vpc}
    raw["storage"]["file_system"].update(kms_key_arn=KEY(2), backup_retention_days=0)
    raw["storage"]["data_repositories"] = [{"path": "/runs", "bucket": "my-runs"}]
    raw["homes"] = {"type": "efs", "file_system_id": f"fs-{HEX}"}
    raw["cluster"]["shared_storage"] = [
        {
            "name": "a",
            "mount_dir": "/a",
            "efs": {"file_system_id": f"fs-{HEX[:-1]}1", "access_point_id": f"fsap-{HEX}"},
        },
        {"name": "b", "mount_dir": "/b", "fsx_lustre": {"file_system_id": f"fs-{HEX[:-1]}2"}},
        {"name": "c", "mount_dir": "/c", "fsx_openzfs": {"volume_id": f"fsvol-{HEX[:-1]}1"}},
        {"name": "d", "mount_dir": "/d", "fsx_ontap": {"volume_id": f"fsvol-{HEX[:-1]}2"}},
        {"name": "e", "mount_dir": "/e", "ebs": {"volume_id": f"vol-{HEX}"}},
        {"name": "f", "mount_dir": "/f", "ebs": {"snapshot_id": f"snap-{HEX}", "size_gib": 50, "kms_key_arn": KEY(3)}},
    ]
    database = {"host": "db.example.com", "user": "slurm", "security_group_id": f"sg-{HEX}"}
    raw["accounting"] = {"existing": {**database, "password_secret_arn": SECRET("database")}}
    cluster = raw["cluster"]
    cluster["custom_ami"] = f"ami-{HEX}"
    cluster["head_node"].update(ssh_key_name="mine", ssh_cidr=f"pl-{HEX}")
    cluster["login_nodes"] = [{"name": "login", "ssh_cidr": f"pl-{HEX[:-1]}1"}]
    cluster["munge_key_secret_arn"] = SECRET("munge")
    cluster["directory"] = {
        "domain_name": "corp.example.com",
        "domain_addr": "ldaps://corp.example.com",
        "domain_read_only_user": "cn=reader,dc=corp,dc=example,dc=com",
        "password_secret_arn": SECRET("directory"),
    }
    of_nodes = {"security_group_ids": [f"sg-{HEX[:-1]}1"], "s3_access": [{"bucket": "my-corpus"}]}
    cluster["head_node"].update(of_nodes)
    role = f"arn:aws:iam::{ACCOUNT}:role/parallelcluster/nodes"
    cluster["login_nodes"][0].update(security_group_ids=[f"sg-{HEX[:-1]}1"], instance_role_arn=role)
    [queue] = cluster["queues"]
    queue.update(of_nodes)
    [nodes] = queue["compute_resources"]
    nodes |= {"min_count": 0, "max_count": 2}
    group = ARN("resource-groups", "group/trn1")
    cluster["queues"] = [
        {**queue, "name": "a", "compute_resources": [{**nodes, "capacity_reservation_id": f"cr-{HEX}"}]},
        {**queue, "name": "b", "compute_resources": [{**nodes, "capacity_reservation_group_arn": group}]},
        {**queue, "name": "c", "placement_group": None, "existing_placement_group": "mine"},
        {
            "name": "d",
            "further_subnet_ids": [f"subnet-{HEX[:-1]}2"],
            "compute_resources": [{"name": "cpu", "instance_type": "c7i.large", "max_count": 1}],
        },
    ]
    policies = [{"Policy": each} for each in POLICIES]
    cluster["overrides"] = {
        "HeadNode": {
            "Iam": {"AdditionalIamPolicies": policies},
            "Networking": {"AdditionalSecurityGroups": [GROUP_OF_OVERRIDES]},
        },
        "Scheduling": {
            "SlurmQueues": [
                {"Name": "a", "Image": {"CustomAmi": "ami-01234567"}, "Iam": {"AdditionalIamPolicies": policies}}
            ]
        },
    }


def of_openzfs(raw: Raw) -> None:
    everything(raw)
    raw["homes"] = {"type": "fsx-openzfs", "file_system_id": f"fsvol-{HEX}"}


def in_its_own_network(raw: Raw) -> None:
    """Name what is in the network that an earlier deployment has made, with homes on OpenZFS."""
    network = dict(raw["network"])
    of_openzfs(raw)
    raw["network"] = network


MARKED = {path: resource_type for path, _, parts in fields(Settings) if (resource_type := marker(parts))}


def paths(value: Any, path: str = "") -> set[str]:
    """Return the paths of fields that have a value, without indices."""
    if isinstance(value, dict):
        return {path}.union(*(paths(each, f"{path}.{key}".lstrip(".")) for key, each in value.items()))
    if isinstance(value, list):
        return {path}.union(*(paths(each, path) for each in value))
    return set() if value is None else {path}


def homes_that_are_made(raw: Raw) -> None:
    raw["homes"] = {"type": "efs", "kms_key_arn": KEY(3)}
    for nodes in (raw["cluster"]["head_node"], raw["cluster"]["queues"][0]):
        nodes["instance_role_arn"] = f"arn:aws:iam::{ACCOUNT}:role/parallelcluster/nodes"


@pytest.mark.parametrize("choose", [everything, of_openzfs, homes_that_are_made])
def test_all_that_settings_name_is_there(choose: Callable[[Raw], None], rehearsed_aws: EmulatedAws) -> None:
    settings = edited("trn1-16", choose)
    create_prerequisites(rehearsed_aws, settings)
    named = references(settings)
    assert named
    assert choose is homes_that_are_made or GROUP_OF_OVERRIDES in named["AWS::EC2::SecurityGroup"]
    for resource_type, names in named.items():
        for name in names:
            assert LOOKUPS[resource_type](rehearsed_aws, name), name


def test_what_an_earlier_deployment_made_room_for_is_made_in_its_network(rehearsed_aws: EmulatedAws) -> None:
    settings = edited("trn1-16", in_its_own_network)
    create_prerequisites(rehearsed_aws, settings)
    client = ec2(rehearsed_aws)
    vpc_id = client.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet_id = client.create_subnet(VpcId=vpc_id, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    with pytest.raises(ClientError):
        LOOKUPS["AWS::EFS::FileSystem"](rehearsed_aws, f"fsvol-{HEX}")

    create_in_subnet(rehearsed_aws, settings, subnet_id)

    for resource_type in ("AWS::EFS::FileSystem", "AWS::EC2::SecurityGroup"):
        for name in references(settings)[resource_type]:
            assert LOOKUPS[resource_type](rehearsed_aws, name), name


def test_each_field_that_names_what_exists_has_a_value_in_these_tests() -> None:
    given = set().union(
        *(
            paths(edited("trn1-16", choose).model_dump(mode="json"))
            for choose in (everything, of_openzfs, homes_that_are_made)
        )
    )
    assert len(MARKED) > 15
    assert MARKED.keys() - given == set()
    assert set(MARKED.values()) | {POLICY} == LOOKUPS.keys()


def test_no_field_names_what_exists_without_saying_so() -> None:
    """By its name, or by what its type allows."""
    names = re.compile(r"(_id|_arn|_ami|_key_name|bucket)s?$|existing")
    looks = re.compile(r"the (complete )?(id|ARN) of|such as [a-z]+-0123")
    others = {
        "zone_id",  # a place
        "accounting.database.second_zone_id",
        "network.existing",  # sections, whose fields say so
        "accounting.existing",
    }
    for path, _, parts in fields(Settings):
        words = [str(getattr(part, "json_schema_extra", "")) for part in parts]
        if path not in others and (names.search(path.rpartition(".")[2]) or any(looks.search(each) for each in words)):
            assert path in MARKED, path


def test_a_type_that_nothing_makes_is_an_error(rehearsed_aws: EmulatedAws) -> None:
    known = prerequisites_of(edited("trn1-16", everything))
    wanted = replace(known, existing={"AWS::Route53::HealthCheck": ("Z1",)})
    with pytest.raises(LookupError, match="AWS::Route53::HealthCheck"):
        prerequisites.create(rehearsed_aws, wanted)
