"""A cluster whose configuration has a database: the real slurmdbd on its head node, on a real MariaDB behind RDS."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from emulator.aws import EmulatedAws
from emulator.machines import image
from emulator.machines.machinery import Machinery
from emulator.templates import publish_files
from scripts import emulate
from tests.deployed import create_stack, update_stack
from tests.stacks.deployments import Raw, deploy, edited
from toolchain.assembly import Assembly

pytestmark = [pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

REGION = "us-west-2"
NAME = "accounting"
ENDPOINT = f"{NAME}.aaaaaaaaaa.{REGION}.rds.amazonaws.com"
PASSWORD = "pass!word$with*marks"  # noqa: S105 - of this test alone
SCHEMA = "history"
WAITING = ("Pending", "InProgress", "Delayed")
SETTINGS = {"AccountingStorageEnforce": "associations", "FirstJobId": "5000", "PriorityWeightFairshare": "1000"}


@dataclass(frozen=True)
class Cluster:
    """The deployment, and the database that it did not make."""

    aws: EmulatedAws
    secret_arn: str
    directory: Path

    def settings(self, **changed: str) -> Settings:
        def edit(raw: Raw) -> None:
            database = {
                "Uri": f"{ENDPOINT}:3306",
                "UserName": "slurm",
                "PasswordSecretArn": self.secret_arn,
                "DatabaseName": SCHEMA,
            }
            cluster = raw["cluster"]
            cluster["overrides"] = {"Scheduling": {"SlurmSettings": {"Database": database}}}
            cluster["slurm"]["custom_settings"] = {**SETTINGS, **changed}
            cluster["queues"][0]["compute_resources"][0]["max_count"] = 4

        return edited("dev", edit)

    def head(self, script: str) -> str:
        """Run a script on the head node, as root, and return what it prints."""
        filters = [{"Name": "tag:parallelcluster:node-type", "Values": ["HeadNode"]}]
        ec2, ssm = self.aws.client("ec2", REGION), self.aws.client("ssm", REGION)
        [reservation] = ec2.describe_instances(Filters=filters)["Reservations"]
        instance_id = reservation["Instances"][0]["InstanceId"]
        sent = ssm.send_command(
            InstanceIds=[instance_id], DocumentName="AWS-RunShellScript", Parameters={"commands": [script]}
        )
        which = {"CommandId": sent["Command"]["CommandId"], "InstanceId": instance_id}
        while True:
            try:
                invocation = ssm.get_command_invocation(**which)
            except ssm.exceptions.InvocationDoesNotExist:
                continue
            if invocation["Status"] not in WAITING:
                assert invocation["Status"] == "Success", invocation
                return str(invocation["StandardOutputContent"]).strip()
            time.sleep(0.1)

    def jobs(self, *options: str) -> dict[str, str]:
        """Return the state of each job that sacct knows."""
        said = self.head(f"sacct -aXnP -S 2020-01-01 -o JobIDRaw,State {' '.join(options)}")
        return dict(line.split("|") for line in said.splitlines())

    def submit(self, script: str, *options: str) -> str:
        """Submit a job as the cluster's user, and return its number; of an array, of its first task."""
        command = f"cd /tmp; runuser -u ubuntu -- sbatch --parsable {' '.join(options)} --wrap '{script}'"
        return self.head(command)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("accounting")
    with EmulatedAws(machinery=Machinery(image.prepare())) as aws:
        secrets = aws.client("secretsmanager", REGION)
        arn = secrets.create_secret(Name=NAME, SecretString=PASSWORD)["ARN"]
        cluster = Cluster(aws, arn, directory)
        settings = cluster.settings()
        emulate.create_prerequisites(aws, settings)
        emulate.bootstrap(aws, settings)
        synthesized = deploy(settings, directory / "first")
        publish_files(Assembly(synthesized.directory), aws)
        for part in ("network", "storage"):
            create_stack(aws, synthesized, part)
        _make_database(aws)
        create_stack(aws, synthesized, "cluster")
        yield cluster


def _make_database(aws: EmulatedAws) -> None:
    ec2, rds = aws.client("ec2", REGION), aws.client("rds", REGION)
    vpcs = ec2.describe_vpcs(Filters=[{"Name": "tag:aws:cloudformation:stack-name", "Values": ["dev-network"]}])
    vpc = (vpcs["Vpcs"] or [each for each in ec2.describe_vpcs()["Vpcs"] if not each["IsDefault"]])[0]
    [first, *_] = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc["VpcId"]]}])["Subnets"]
    zone = next(
        each["ZoneName"]
        for each in ec2.describe_availability_zones()["AvailabilityZones"]
        if each["ZoneName"] != first["AvailabilityZone"]
    )
    second = ec2.create_subnet(VpcId=vpc["VpcId"], CidrBlock=_free(vpc["CidrBlock"]), AvailabilityZone=zone)["Subnet"]
    rds.create_db_subnet_group(
        DBSubnetGroupName=NAME, DBSubnetGroupDescription="x", SubnetIds=[first["SubnetId"], second["SubnetId"]]
    )
    rds.create_db_parameter_group(DBParameterGroupName=NAME, DBParameterGroupFamily="mysql8.4", Description="x")
    parameters = {"require_secure_transport": "ON", "innodb_lock_wait_timeout": "900", "mysql_only": "{Memory/4}"}
    rds.modify_db_parameter_group(
        DBParameterGroupName=NAME,
        Parameters=[
            {"ParameterName": key, "ParameterValue": each, "ApplyMethod": "pending-reboot"}
            for key, each in parameters.items()
        ],
    )
    rds.create_db_instance(
        DBInstanceIdentifier=NAME,
        DBInstanceClass="db.t4g.micro",
        AllocatedStorage=20,
        Engine="mysql",
        MasterUsername="slurm",
        MasterUserPassword=PASSWORD,
        DBSubnetGroupName=NAME,
        DBParameterGroupName=NAME,
    )
    _wait_for_database(aws, "available")


def _free(cidr: str) -> str:
    """Return the last 16 addresses of a VPC."""
    from ipaddress import ip_network

    return str(list(ip_network(cidr).subnets(new_prefix=28))[-1])


def _wait_for_database(aws: EmulatedAws, status: str) -> None:
    rds = aws.client("rds", REGION)
    deadline = time.monotonic() + 120
    while (now := rds.describe_db_instances(DBInstanceIdentifier=NAME)["DBInstances"][0]["DBInstanceStatus"]) != status:
        assert time.monotonic() < deadline, now
        time.sleep(0.2)


def test_a_head_node_accounts_as_the_cookbook_sets_it_up(cluster: Cluster, wait_for: Callable[..., None]) -> None:
    users = cluster.head("sacctmgr -nP show associations cluster=dev format=account,user,adminlevel tree=no withsub || "
                         "sacctmgr -nP show associations cluster=dev format=account,user")  # fmt: skip
    admins = cluster.head("sacctmgr -nP show users format=user,defaultaccount,adminlevel")
    assert {"slurm|pcdefault|Administrator", "ubuntu|pcdefault|Administrator"} <= set(admins.splitlines()), users
    shown = cluster.head("scontrol show config")
    values = {key.strip(): each.strip() for key, _, each in (line.partition("=") for line in shown.splitlines())}
    assert values["AccountingStorageType"] == "accounting_storage/slurmdbd"
    assert values["AccountingStorageEnforce"] == "associations"
    assert values["JobAcctGatherType"] == "jobacct_gather/linux"
    assert values["PriorityWeightFairShare"] == "1000"
    assert cluster.head("stat -c '%a %U' /opt/slurm/etc/slurm_parallelcluster_slurmdbd.conf") == "600 slurm"
    job = cluster.submit("hostname; sacct -nP -j $SLURM_JOB_ID -o JobID | head -1", "--output=/home/ubuntu/out")
    assert int(job) >= int(SETTINGS["FirstJobId"])
    wait_for(lambda: cluster.jobs(f"-j {job}").get(job) == "COMPLETED")
    assert cluster.head("cat /home/ubuntu/out").splitlines()[1] == job  # a compute node reaches slurmdbd, too


def test_no_job_is_missing_that_ran_while_slurmdbd_and_its_database_were_down(
    cluster: Cluster, wait_for: Callable[..., None]
) -> None:
    before = cluster.jobs()
    running = cluster.submit("sleep 1000")
    wait_for(lambda: cluster.head(f"squeue -hj {running} -o %T") == "RUNNING")
    rds = cluster.aws.client("rds", REGION)
    rds.stop_db_instance(DBInstanceIdentifier=NAME)
    _wait_for_database(cluster.aws, "stopped")
    cluster.head("pkill -KILL -x slurmdbd")
    cluster.submit("true", "--array=1-100", "--output=/dev/null")
    singles = cluster.head(
        "cd /tmp; for _ in $(seq 120); do runuser -u ubuntu -- sbatch --parsable -o /dev/null --wrap true; done"
    )
    wait_for(lambda: cluster.head("squeue -h -o %i") == running)
    assert cluster.head(f"squeue -hj {running} -o %T") == "RUNNING"
    rds.start_db_instance(DBInstanceIdentifier=NAME)
    _wait_for_database(cluster.aws, "available")
    cluster.head("systemctl start slurmdbd")
    wait_for(lambda: cluster.head("sacctmgr -nP show clusters format=cluster || true") == "dev")
    submitted = set(singles.splitlines())
    wait_for(lambda: len(cluster.jobs().keys() - before.keys()) >= 100 + len(submitted) + 1)
    wait_for(lambda: "PENDING" not in (now := set(cluster.jobs().values())) and now == {"RUNNING", "COMPLETED"})
    after = cluster.jobs()
    new = after.keys() - before.keys() - {running}
    assert submitted < new
    assert len(submitted) == 120
    assert len(new) == 220
    assert after[running] == "RUNNING"
    cluster.head(f"scancel {running}")


def test_an_update_keeps_accounting_and_a_reboot_starts_it_again(
    cluster: Cluster, wait_for: Callable[..., None]
) -> None:
    before = cluster.jobs()
    assert before
    settings = cluster.settings(AccountingStorageEnforce="associations,limits")
    update_stack(cluster.aws, deploy(settings, cluster.directory / "second"), "cluster")
    assert "associations,limits" in cluster.head("scontrol show config | grep ^AccountingStorageEnforce")
    assert PASSWORD in cluster.head("cat /opt/slurm/etc/slurm_parallelcluster_slurmdbd.conf")
    assert cluster.jobs().keys() == before.keys()
    booted = cluster.head("cat /proc/1/stat | cut -d' ' -f22")
    ec2 = cluster.aws.client("ec2", REGION)
    filters = [{"Name": "tag:parallelcluster:node-type", "Values": ["HeadNode"]}]
    instances: list[Any] = ec2.describe_instances(Filters=filters)["Reservations"][0]["Instances"]
    ec2.reboot_instances(InstanceIds=[instances[0]["InstanceId"]])

    def is_back() -> bool:
        try:
            return cluster.head("cat /proc/1/stat | cut -d' ' -f22") != booted and bool(cluster.jobs())
        except (AssertionError, cluster.aws.client("ssm", REGION).exceptions.InvalidInstanceId):
            return False

    wait_for(is_back)
    assert cluster.jobs().keys() == before.keys()
