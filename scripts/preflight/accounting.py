"""The database of accounting: what RDS offers in the Region, and room for one more."""

from __future__ import annotations

from scripts.deployment import Deployment
from scripts.preflight.check import FAIL, PASS, Finding, check
from ultracluster.domain import accounting_rules
from ultracluster.domain.accounting import DatabaseSpec


def _database(deployment: Deployment) -> DatabaseSpec | None:
    """Return the database that is made; None: none is."""
    accounting = deployment.settings.accounting
    return None if accounting is None or accounting.existing is not None else accounting.database


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


@check("accounting-database", "Database of accounting", calls=("rds:DescribeOrderableDBInstanceOptions",))
def accounting_database(deployment: Deployment) -> Finding | None:
    """RDS would reject the database: it retires versions, and not every class is in every Region.

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
    if any(each.get("StorageType") == "gp3" and each.get("SupportsStorageEncryption") for each in offered):
        return Finding(PASS, f"RDS offers {what}", command=command)
    sentence = f"RDS does not offer {what} with encrypted gp3 storage in {deployment.settings.region}"
    newer = "a newer version of 8.4 (`aws rds describe-db-engine-versions --engine mysql`)"
    return Finding(FAIL, sentence, f"set `accounting.database.engine_version` to {newer}, or another class", command)


CHECKS = (accounting_zone, accounting_database)
