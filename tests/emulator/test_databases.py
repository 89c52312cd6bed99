"""Databases as AWS has them: what keeps them from being deleted, what is left of them, and where their password is."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.aws import EmulatedAws
from tests.emulator.account import Account, refused, tags
from tests.emulator.stacks import REGION, Stacks


def database(account: Account, group: str, **more: Any) -> dict[str, Any]:
    return {
        "AllocatedStorage": "20",
        "DBInstanceClass": "db.t4g.micro",
        "DBSubnetGroupName": group,
        "Engine": "mysql",
        "MasterUserPassword": "a-password",
        "MasterUsername": "slurm",
        "VPCSecurityGroups": [account.group(account.vpc()).ref],
        **more,
    }


def test_what_an_instance_needs_is_not_deleted(account: Account) -> None:
    group = account.subnet_group()
    parameters = account.create("AWS::RDS::DBParameterGroup", Description="x", Family="mysql8.4")
    properties = database(account, group.ref, DBParameterGroupName=parameters.ref, DeletionProtection=True)
    instance = account.create("AWS::RDS::DBInstance", **properties)
    message = f"Cannot delete the subnet group '{group.ref}' because at least one database instance: {instance.ref}"
    with refused("InvalidDBSubnetGroupStateFault", f"{message} is still using it."):
        account.delete(group)
    message = f"One or more database instances are still members of this parameter group {parameters.ref}, so the group"
    with refused("InvalidDBParameterGroupState", f"{message} cannot be deleted"):
        account.delete(parameters)
    [security_group] = properties["VPCSecurityGroups"]
    with refused("DependencyViolation", f"resource {security_group} has a dependent object"):
        account.client("ec2").delete_security_group(GroupId=security_group)
    message = "Cannot delete protected DB Instance, please disable deletion protection and try again."
    with refused("InvalidParameterCombination", message):
        account.delete(instance)
    instance = account.update(instance, DeletionProtection=False)
    for resource in (instance, parameters, group):
        account.delete(resource)
    account.client("ec2").delete_security_group(GroupId=security_group)


def test_an_instance_without_a_subnet_group_is_in_the_default_vpc(aws: EmulatedAws) -> None:
    """https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_CreateDBInstance.html, DBSubnetGroupName."""
    account = Account(aws)
    ec2, rds = account.client("ec2"), account.client("rds")
    [vpc] = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
    properties = database(account, "")
    del properties["DBSubnetGroupName"], properties["VPCSecurityGroups"]
    instance = account.create("AWS::RDS::DBInstance", **properties)
    [described] = rds.describe_db_instances()["DBInstances"]
    group = described["DBSubnetGroup"]
    assert (group["DBSubnetGroupName"], group["VpcId"]) == ("default", vpc["VpcId"])
    account.delete(instance)
    for subnet in ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc["VpcId"]]}])["Subnets"]:
        ec2.delete_subnet(SubnetId=subnet["SubnetId"])
    message = "No default subnet detected in VPC. Please contact AWS Support to recreate default Subnets."
    with refused("InvalidSubnet", message):
        account.create("AWS::RDS::DBInstance", **properties)


def test_a_subnet_group_covers_two_zones(account: Account) -> None:
    vpc = account.vpc()
    subnet = account.zonal_subnet(vpc, 0)
    zone = account.client("ec2").describe_subnets(SubnetIds=[subnet.ref])["Subnets"][0]["AvailabilityZone"]
    message = (
        "The DB subnet group doesn't meet Availability Zone (AZ) coverage requirement. "
        f"Current AZ coverage: {zone}. Add subnets to cover at least 2 AZs."
    )
    with refused("DBSubnetGroupDoesNotCoverEnoughAZs", message):
        account.create("AWS::RDS::DBSubnetGroup", DBSubnetGroupDescription="x", SubnetIds=[subnet.ref])


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            "require_secure_transport",
            "ON",
            "Invalid parameter value: ON for: require_secure_transport allowed values are: 0,1",
        ),
        (
            "innodb_lock_wait_timeout",
            0,
            "Invalid parameter value: 0 for: innodb_lock_wait_timeout allowed values are: 1-1073741824",
        ),
        ("allow-suspicious-udfs", "1", "Invalid / Unmodifiable / Unsupported DB Parameter: allow-suspicious-udfs"),
        ("tls_version", "TLSv1.3", "parameter tls_version of family mysql8.4 is not recorded here"),
    ],
)
def test_a_parameter_has_a_value_that_its_family_allows(account: Account, name: str, value: Any, reason: str) -> None:
    made = account.create("AWS::RDS::DBParameterGroup", Description="x", Family="mysql8.4")
    listed = account.client("rds").describe_db_parameter_groups()["DBParameterGroups"]
    with refused("InvalidParameterValue", reason):
        account.create("AWS::RDS::DBParameterGroup", Description="x", Family="mysql8.4", Parameters={name: value})
    assert account.client("rds").describe_db_parameter_groups()["DBParameterGroups"] == listed
    with refused("InvalidParameterValue", reason):
        account.update(made, Parameters={name: value})


def test_a_secret_is_json_where_a_template_of_it_is_given(account: Account) -> None:
    generated = {"SecretStringTemplate": '{"username": "slurm"}', "GenerateStringKey": "password", "PasswordLength": 20}
    secret = account.create("AWS::SecretsManager::Secret", GenerateSecretString=generated, Tags=tags(Name="a"))
    value = account.client("secretsmanager").get_secret_value(SecretId=secret.ref)["SecretString"]
    assert value.startswith('{"username": "slurm", "password": "')
    account.delete(secret)


class Deployed:
    """A stack of a secret and of a database that has it for a password."""

    def __init__(self, aws: EmulatedAws) -> None:
        self.account = Account(aws)
        self.account.client = lambda service: aws.client(service, REGION)  # type: ignore[method-assign]
        self.stacks = Stacks(aws, REGION)
        self.rds, self.secrets = (aws.client(service, REGION) for service in ("rds", "secretsmanager"))
        self.group = self.account.subnet_group().ref
        self.properties = database(self.account, self.group)

    def resources(self, key: str = "::", policy: str | None = None, **changes: Any) -> dict[str, Any]:
        password = {"Fn::Join": ["", ["{{resolve:secretsmanager:", {"Ref": "Secret"}, f":SecretString:{key}}}}}"]]}
        instance = {
            "Type": "AWS::RDS::DBInstance",
            "Properties": {**self.properties, "MasterUserPassword": password, **changes},
            **({"DeletionPolicy": policy} if policy else {}),
        }
        secret = {"Type": "AWS::SecretsManager::Secret", "Properties": {"SecretString": '{"password": "from-json"}'}}
        return {"Secret": secret, "Database": instance}

    def snapshots(self) -> list[str]:
        described = self.rds.describe_db_snapshots(SnapshotType="manual")["DBSnapshots"]
        return [each["DBSnapshotIdentifier"] for each in described]


@pytest.fixture
def deployed(aws: EmulatedAws) -> Deployed:
    return Deployed(aws)


def test_a_password_is_read_from_its_secret_and_not_remembered(deployed: Deployed) -> None:
    deployed.stacks.create("s", deployed.resources("password::"))
    assert deployed.stacks.status("s") == "CREATE_COMPLETE", deployed.stacks.events("s")
    events = deployed.stacks.client.describe_stack_events(StackName="s")["StackEvents"]
    shown = [each["ResourceProperties"] for each in events if each["LogicalResourceId"] == "Database"]
    assert shown
    assert not any("from-json" in each for each in shown)
    secret = deployed.stacks.resources("s")["Secret"]
    deployed.secrets.put_secret_value(SecretId=secret, SecretString='{"password": "another"}')
    changes = deployed.stacks.change_set("s", deployed.resources("password::"))
    assert changes["Status"] == "FAILED"  # another value of the secret is no change
    deployed.stacks.update("s", deployed.resources("password::", AllocatedStorage="40"))
    assert deployed.stacks.status("s") == "UPDATE_COMPLETE", deployed.stacks.events("s")


@pytest.mark.parametrize(
    ("key", "reason"), [("nothing::", "Could not find a value associated with JSONKey"), (":NO:", "Secrets Manager")]
)
def test_a_reference_to_nothing_fails_its_resource(deployed: Deployed, key: str, reason: str) -> None:
    deployed.stacks.create("s", deployed.resources(key))
    assert deployed.stacks.status("s") == "ROLLBACK_COMPLETE"
    assert any(reason in each for each in deployed.stacks.reasons("s", "CREATE_FAILED"))


@pytest.mark.parametrize(
    ("policy", "kept", "left"), [(None, 0, 1), ("Snapshot", 0, 1), ("Delete", 0, 0), ("Retain", 1, 0)]
)
def test_what_a_deletion_policy_leaves(deployed: Deployed, policy: str | None, kept: int, left: int) -> None:
    deployed.stacks.create("s", deployed.resources(policy=policy))
    assert deployed.stacks.status("s") == "CREATE_COMPLETE", deployed.stacks.events("s")
    before = len(deployed.snapshots())
    stack_id = deployed.stacks.describe("s")["StackId"]
    deployed.stacks.delete("s")
    assert deployed.stacks.status(stack_id) == "DELETE_COMPLETE"
    assert len(deployed.rds.describe_db_instances()["DBInstances"]) == kept
    snapshots = deployed.snapshots()
    assert len(snapshots) - before == left
    assert all(each.startswith("s-snapshot-database-") for each in snapshots)


def test_a_protected_database_keeps_its_stack(deployed: Deployed) -> None:
    deployed.stacks.create("s", deployed.resources(policy="Delete", DeletionProtection=True))
    deployed.stacks.delete("s")
    assert deployed.stacks.status("s") == "DELETE_FAILED"
    assert "Cannot delete protected DB Instance" in deployed.stacks.reasons("s", "DELETE_FAILED")[0]
