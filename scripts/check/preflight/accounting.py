"""The database of accounting: what RDS offers in the Region, or the one that exists."""

from __future__ import annotations

import json
from dataclasses import replace

from scripts.account import databases
from scripts.account.databases import Database
from scripts.account.deployment import Deployment
from scripts.check.preflight.check import check
from scripts.check.preflight.network import vpc_finding
from scripts.core.aws_errors import is_denied
from scripts.core.findings import FAIL, PASS, SKIP, WARN, Finding
from ultracluster.domain import accounting_rules
from ultracluster.domain.accounting import DatabaseSpec, ExistingDatabase

_NOT_IN_PASSWORDS = "#\"'\\ "
"""ParallelCluster appends the secret's text to a line of slurmdbd.conf as it is, where # starts a comment
(its cookbook, update_slurm_database_password.sh.erb)."""


def _database(deployment: Deployment) -> DatabaseSpec | None:
    """Return the database that is made; None: none is."""
    accounting = deployment.settings.accounting
    return None if accounting is None or accounting.existing is not None else accounting.database


def _existing(deployment: Deployment) -> ExistingDatabase | None:
    """Return the database that exists; None: none is named."""
    accounting = deployment.settings.accounting
    return None if accounting is None else accounting.existing


@check("accounting-zone", "Second zone of the accounting database", calls=("ec2:DescribeAvailabilityZones",))
def accounting_zone(deployment: Deployment) -> Finding | None:
    """The team's stack would fail at a subnet of the database: a Region need not have every number of a zone.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAvailabilityZones.html
    """
    spec = _database(deployment)
    if spec is None:
        return None
    settings = deployment.settings
    wanted = accounting_rules.zone_ids(spec, settings.zone_id)[1]
    zones = deployment.account.ask("ec2", "describe_availability_zones")["AvailabilityZones"]
    usable = sorted(zone["ZoneId"] for zone in zones if zone["State"] == "available")
    command = deployment.command("ec2", "describe-availability-zones")
    if wanted in usable:
        return Finding(PASS, f"{wanted} is there for the second subnet of the database", command=command)
    others = ", ".join(each for each in usable if each != settings.zone_id)
    sentence = f"{settings.region} has no zone {wanted} for this account; it has: {others}"
    return Finding(FAIL, sentence, "set `accounting.database.second_zone_id` to one of them", command)


@check(
    "accounting-database",
    "Database of accounting",
    calls=("ec2:DescribeAvailabilityZones", "rds:DescribeOrderableDBInstanceOptions"),
)
def accounting_database(deployment: Deployment) -> Finding | None:
    """RDS would reject the database: it retires versions, and not every class is in every Region and zone.

    https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_DescribeOrderableDBInstanceOptions.html
    """
    spec = _database(deployment)
    if spec is None:
        return None
    options = {"Engine": "mysql", "EngineVersion": spec.engine_version, "DBInstanceClass": spec.instance_class}
    what = f"MySQL {spec.engine_version} on {spec.instance_class}"
    words = ("--engine", "mysql", "--engine-version", spec.engine_version, "--db-instance-class", spec.instance_class)
    command = deployment.command("rds", "describe-orderable-db-instance-options", *words)
    answer = deployment.account.find("rds", "describe_orderable_db_instance_options", **options, Vpc=True)
    offered = [] if answer is None else answer["OrderableDBInstanceOptions"]
    fitting = [each for each in offered if each.get("StorageType") == "gp3" and each.get("SupportsStorageEncryption")]
    zones = {zone["Name"] for each in fitting for zone in each["AvailabilityZones"]}
    zone_id = deployment.settings.zone_id
    described = deployment.account.ask("ec2", "describe_availability_zones")["AvailabilityZones"]
    ids = sorted(each["ZoneId"] for each in described if each["ZoneName"] in zones)
    if zone_id in ids:
        return Finding(PASS, f"RDS offers {what} in {zone_id}", command=command)
    if fitting:
        sentence = f"RDS does not offer {what} in {zone_id}, the zone of the deployment, but in {', '.join(ids)}"
        return Finding(FAIL, sentence, "set `accounting.database.instance_class` to another class", command)
    sentence = f"RDS does not offer {what} with encrypted gp3 storage in {deployment.settings.region}"
    newer = "a newer version of 8.4 (`aws rds describe-db-engine-versions --engine mysql`)"
    return Finding(FAIL, sentence, f"set `accounting.database.engine_version` to {newer}, or another class", command)


@check(
    "accounting-security-group",
    "Security group of the existing accounting database",
    calls=("ec2:DescribeSecurityGroups", "cloudformation:DescribeStacks"),
)
def accounting_security_group(deployment: Deployment) -> Finding | None:
    """EC2 would reject the head node, which carries the group, and the cluster stack would roll back.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSecurityGroups.html
    """
    existing = _existing(deployment)
    if existing is None:
        return None
    group_id, path = existing.security_group_id, "accounting.existing.security_group_id"
    command = deployment.command("ec2", "describe-security-groups", "--group-ids", group_id)
    answer = deployment.account.find("ec2", "describe_security_groups", GroupIds=[group_id])
    if answer is None:
        sentence = f"{deployment.settings.region} has no security group {group_id}, or it is another account's"
        return Finding(FAIL, sentence, f"change `{path}`", command)
    return vpc_finding(deployment, group_id, answer["SecurityGroups"][0]["VpcId"], path, command)


@check(
    "accounting-existing-database",
    "Existing accounting database",
    calls=("rds:DescribeDBInstances", "cloudformation:DescribeStacks"),
)
def accounting_existing_database(deployment: Deployment) -> Finding | None:
    """The head node could not connect to the database, and the cluster stack would roll back after some minutes.

    https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_DescribeDBInstances.html
    """
    existing = _existing(deployment)
    if existing is None:
        return None
    host, _, port = existing.uri.rpartition(":")
    command = deployment.command("rds", "describe-db-instances")
    instance = next((each for each in databases.of_rds(deployment.account) if _is_at(each, host)), None)
    if instance is None:
        region = deployment.settings.region
        if host.lower().endswith(".rds.amazonaws.com"):
            sentence = f"this account has no DB instance with the address {host} in {region}"
            return Finding(WARN, sentence, "check `accounting.existing.host`", command)
        return Finding(SKIP, f"{host} is not in RDS in {region}: nothing to compare", "", command)
    return _judge_instance(deployment, instance, port, command)


def _is_at(instance: Database, host: str) -> bool:
    """Tell whether an instance, or the Aurora cluster that it is in, has an address; RDS adds ``.cluster-`` to it."""
    is_of_cluster = bool(instance.cluster) and host.lower().startswith(f"{instance.cluster}.cluster-")
    return host.lower() == instance.address or is_of_cluster


def _judge_instance(deployment: Deployment, instance: Database, port: str, command: str) -> Finding:
    name, status, path = instance.id, instance.state, "accounting.existing.host"
    if instance.port is not None and str(instance.port) != port:
        sentence = f"{name} listens on port {instance.port}; in the settings: {port}"
        return Finding(FAIL, sentence, f"write `{path}` as HOST:{instance.port}", command)
    finding = vpc_finding(deployment, name, instance.vpc_id, path, command)
    if finding.status is FAIL:
        hint = "make sure that peering or a transit gateway leads there from the head node's subnet, and back"
        return replace(finding, status=WARN, hint=hint)
    if finding.status is PASS and status != "available":
        hint = f"`{deployment.command('rds', 'start-db-instance', '--db-instance-identifier', name)}`"
        what = hint if status == "stopped" else "wait until it is available, some minutes"
        return Finding(WARN, f"{name} is in the status {status}; the cluster needs it available", what, command)
    return finding


@check("accounting-password", "Password of the existing accounting database", calls=("secretsmanager:DescribeSecret",))
def accounting_password(deployment: Deployment) -> Finding | None:
    """The database would reject slurmdbd, or slurmdbd would not start, and the cluster stack would roll back.

    The value is looked at only where these credentials may read it, and not shown.

    https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html
    """
    from botocore.exceptions import ClientError

    existing = _existing(deployment)
    if existing is None:
        return None
    arn, path = existing.password_secret_arn, "accounting.existing.password_secret_arn"
    if deployment.account.find("secretsmanager", "describe_secret", SecretId=arn) is None:
        return Finding(SKIP, f"there is no secret {arn} to check: see secrets")
    try:
        answer = deployment.account.find("secretsmanager", "get_secret_value", SecretId=arn) or {}
    except ClientError as error:
        if not is_denied(error):
            raise
        sentence = "the value was not read: that takes secretsmanager:GetSecretValue, which shows the password"
        return Finding(SKIP, sentence, "make sure that it is the password alone, as plain text")
    problem = _problem_of(answer.get("SecretString"))
    if problem is None:
        return Finding(PASS, f"the value of {arn.rpartition(':')[2]} is plain text that slurmdbd.conf can have")
    allowed = "allowed: the password alone, as plain text without #, \", ', \\ and spaces"
    words = ("secretsmanager", "put-secret-value", "--secret-id", arn, "--secret-string", "file://PASSWORD_FILE")
    hint = f"`{deployment.command(*words)}`, or change `{path}`"
    return Finding(FAIL, f"the value of {arn} {problem}; {allowed}", hint)


def _problem_of(password: str | None) -> str | None:
    """Return what is wrong with a password, without telling it."""
    if not password:
        return "is binary or empty"
    try:
        if isinstance(json.loads(password), dict):
            return "is JSON"
    except ValueError:
        pass
    named = {" ": "a space"}
    found = [named.get(each, each) for each in _NOT_IN_PASSWORDS if each in password]
    found += ["a line break or tab"] if any(each in password for each in "\n\r\t") else []
    return f"has {' and '.join(found)}" if found else None


CHECKS = (
    accounting_zone,
    accounting_database,
    accounting_security_group,
    accounting_existing_database,
    accounting_password,
)
