"""What users of others met after they had deployed, from their public issues, is said here before a deployment.

Each starts with a settings file and ends with what a command prints: the place, the value and the way out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config.settings import load
from emulator.aws import EmulatedAws
from scripts.core import options
from scripts.core.errors import ExitCode
from scripts.emulated import accounts
from tests.command_line import ultracluster
from tests.scripts.operated import Operated

SETTINGS = """\
name: cases
region: us-west-2
zone_id: usw2-az4
cluster:
  queues:
    - name: trn1
      compute_resources: [{name: trn1-32xl, instance_type: trn1.32xlarge, max_count: 2}]
"""
DEPLOYED = f"""{SETTINGS}\
  login_nodes: [{{name: login, count: 2, grace_minutes: 120}}]
storage:
  file_system: {{capacity_gib: 4800, backup_retention_days: 0}}
  data_repositories: [{{path: /data}}]
tags: {{project: one}}
"""
CHANGES = {
    "login, count: 2": "login, count: 0",
    "capacity_gib: 4800": "capacity_gib: 2400",
    "project: one": "project: two",
}
ISOLATED = f"""{SETTINGS}\
  head_node: {{public: false}}
  login_nodes: [{{name: login, public: false}}]
network:
  cidr: 10.0.0.0/16
  public_subnet_cidr: 10.0.0.0/24
  private_subnet_cidr: 10.0.64.0/18
  existing:
    vpc_id: vpc-0123456789abcdef0
    public_subnet_id: subnet-0123456789abcdef0
    private_subnet_id: subnet-0fedcba9876543210
"""
WITHOUT_AUTOSCALING = ("cloudformation", "ec2", "elasticloadbalancing", "logs", "monitoring", "ssm")
Say = Callable[[str, str], str]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Return what `validate` says of settings that have a line which cannot be deployed, after the number of that line.

    With another line in its place they are right.
    """
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    path = tmp_path / "cases.yaml"

    def refuse(line: str, right: str) -> str:
        path.write_text(f"{SETTINGS}{right}\n", encoding="utf-8")
        load(path)
        path.write_text(f"{SETTINGS}{line}\n", encoding="utf-8")
        assert ultracluster("validate", "cases") == ExitCode.UNUSABLE
        number = len(path.read_text(encoding="utf-8").splitlines())
        [said] = [each for each in capsys.readouterr().out.splitlines() if "cases.yaml" in each]
        _, found, sentence = said.partition(f"cases.yaml:{number}: ")
        assert found, said
        return sentence

    return refuse


def test_aws_parallelcluster_6127(refused: Say) -> None:
    """A team's own policy: `not authorized to perform: iam:AttachRolePolicy`, and a roll-back."""
    override = "  overrides: {{HeadNode: {{Iam: {{AdditionalIamPolicies: [{{Policy: '{}'}}]}}}}}}".format
    own = "arn:aws:iam::123456789012:policy/"
    sentence = refused(override(f"{own}team-policy"), override(f"{own}parallelcluster-team-policy"))
    assert sentence == (
        f"cluster.overrides.HeadNode.Iam.AdditionalIamPolicies[0].Policy: got '{own}team-policy'; allowed: the ARN of "
        "a policy of yours whose name begins with parallelcluster, or whose path is /parallelcluster/, or of AWS's "
        "CloudWatchAgentServerPolicy or AmazonS3ReadOnlyAccess (ParallelCluster's provider may attach no others)"
    )


def test_awslabs_awsome_distributed_ai_1097(refused: Say) -> None:
    """Homes of a type that FSx has elsewhere: `not available in the requested Availability Zone`, and a roll-back."""
    homes = "homes: {{type: fsx-openzfs, openzfs: {{deployment_type: {}, throughput_mbps: {}}}}}".format
    assert refused(homes("SINGLE_AZ_HA_1", 128), homes("SINGLE_AZ_HA_2", 160)) == (
        "homes.openzfs.deployment_type: got 'SINGLE_AZ_HA_1'; allowed: SINGLE_AZ_1 or SINGLE_AZ_2 or SINGLE_AZ_HA_2 "
        "(what FSx for OpenZFS has in us-west-2)"
    )


def test_aws_cloudformation_cloudformation_coverage_roadmap_745(refused: Say) -> None:
    """An account that begins with a zero: YAML reads 1402433619, and CloudFormation refuses that."""
    assert refused("account: 012345670123", 'account: "012345670123"') == (
        "got 012345670123, which YAML 1.1 alone takes for another number; allowed: quotes around it, or a number in "
        "decimal digits such as 10 or 0.5"
    )


@pytest.mark.slow
def test_aws_parallelcluster_6758(
    aws: EmulatedAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Login nodes in a subnet without a way to the internet: they never become ready, and nothing says what lacks."""
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    (tmp_path / "cases.yaml").write_text(ISOLATED, encoding="utf-8")
    accounts.create_prerequisites(aws, load(tmp_path / "cases.yaml"))
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    ec2 = aws.client("ec2", "us-west-2")
    own = [{"Name": "association.subnet-id", "Values": ["subnet-0fedcba9876543210"]}]
    [table] = ec2.describe_route_tables(Filters=own)["RouteTables"]
    ec2.delete_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0")

    def make(kind: str, service: str, **where: list[str]) -> None:
        name = f"com.amazonaws.us-west-2.{service}"
        ec2.create_vpc_endpoint(VpcId=table["VpcId"], VpcEndpointType=kind, ServiceName=name, **where)

    make("Gateway", "dynamodb", RouteTableIds=[table["RouteTableId"]])
    for service in WITHOUT_AUTOSCALING:
        make("Interface", service, SubnetIds=["subnet-0fedcba9876543210"])

    assert ultracluster("preflight", "cases", "--only", "routes") == ExitCode.FAILED
    said = capsys.readouterr().out
    assert "of subnet-0fedcba9876543210 has no route to 0.0.0.0/0, nor are there endpoints for autoscaling\n" in said
    assert "add a route to a NAT gateway in a public subnet, or those endpoints" in said
    make("Interface", "autoscaling", SubnetIds=["subnet-0fedcba9876543210"])
    assert ultracluster("preflight", "cases", "--only", "routes") == ExitCode.DONE


@pytest.fixture(scope="module")
def planned(rehearsal_server: EmulatedAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What `plan` says of three changes of a deployment at once, each of which failed for somebody."""
    directory = tmp_path_factory.mktemp("cases")
    path = directory / "cases.yaml"
    path.write_text(DEPLOYED, encoding="utf-8")
    rehearsal_server.reset()
    operated = Operated(rehearsal_server, load(path), directory / "cdk.out")
    changed = DEPLOYED
    for old, new in CHANGES.items():
        changed = changed.replace(old, new)
    path.write_text(changed, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-m", "scripts", "plan", "cases"],
        env={**kept, **operated.environment, "ULTRACLUSTER_CONFIG": str(directory)},
        cwd=options.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (ExitCode.DONE, ExitCode.FAILED), done.stderr
    yield done.stdout
    rehearsal_server.reset()


def hint(said: str, sentence: str) -> str:
    """Return the line after the only one with a sentence."""
    [after] = [later for line, later in zip(said.splitlines(), said.splitlines()[1:], strict=False) if sentence in line]
    return after.strip()


@pytest.mark.slow
def test_hashicorp_terraform_provider_aws_17027(planned: str) -> None:
    """Less capacity: FSx only adds some, and the stack rolls back after others have changed."""
    sentence = "cannot change StorageCapacity from 4800 to 2400; allowed: 4800 or more"
    assert hint(planned, sentence).startswith("set storage.file_system.capacity_gib to that (https://docs.aws.amazon")
    assert planned.rstrip().endswith("1 blocking issue: this cannot be deployed.")


@pytest.mark.slow
def test_aws_parallelcluster_7172(planned: str) -> None:
    """No login nodes any more: they end later than the update waits for them, and it rolls back."""
    sentence = "cluster cases: login pool login goes from 2 to 0 nodes, of which one may take 120 minutes to end"
    expected = "two deployments: first cluster.login_nodes[login].grace_minutes: 10, then count"
    assert hint(planned, f"WARN     {sentence}: an update waits 15 for it, and may be rolled back") == expected


@pytest.mark.slow
def test_aws_cloudformation_cloudformation_coverage_roadmap_1687(planned: str) -> None:
    """Another tag for a file system with a link to S3: FSx refuses what CloudFormation asks beside."""
    expected = "if it still does: deploy without storage.data_repositories, then with the tags, then with both"
    assert hint(planned, "has links to S3 and gets other tags: in 2023 CloudFormation also told FSx to") == expected
