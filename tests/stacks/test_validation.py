"""CDK's template validator, the rules of AwsSolutions and cfn-lint find nothing to say about any deployment."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from cdk_nag import AwsSolutionsChecks

from stacks.composition import compose
from tests.configurations import SHIPPED
from tests.stacks import pipelines
from tests.stacks.deployments import PARTS, Deployment, Raw, deploy, edited
from tests.stacks.small_app import new_app
from tests.stacks.test_cluster_stack import with_login_nodes
from tests.stacks.test_composition import use_existing_vpc

Build = Callable[[cdk.App], object]

pytestmark = pytest.mark.slow


def use_much(raw: Raw) -> None:
    """Choose what no file of ours does and what goes together."""
    with_login_nodes(raw)
    raw["account"] = "123456789012"
    raw["network"].update(interface_endpoints=["parallelcluster", "ssm"], flow_log_retention_days=None)
    raw["storage"].update(data_repositories=[{"path": "/data"}], retain=False)
    raw["storage"]["file_system"]["backup_retention_days"] = 0
    raw["monitoring"]["emails"] = ["me@example.com"]


def use_little(raw: Raw) -> None:
    """Choose the VPC of somebody else, and neither metrics nor a dashboard."""
    use_existing_vpc(raw)
    raw["monitoring"].update(node_metrics=False, dashboard=False)


CHOICES = {"much": use_much, "little": use_little}


def findings(build: Build, outdir: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """Return what CDK's validator and AwsSolutions say of an app, errors and warnings; nothing if all is well.

    What the settings warn of by themselves, such as of many nodes without an image, is left out.
    """
    app = new_app(outdir, validate=True)
    build(app)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    cdk.Validations.of(app).acknowledge(
        cdk.Acknowledgment(id="Annotation::ultracluster:settings", reason="for who deploys to weigh")
    )
    capfd.readouterr()
    try:
        app.synth()
    except RuntimeError as error:
        assert "ValidationFailed" in str(error)  # noqa: PT017
    return "".join(capfd.readouterr()) + _violations(outdir)


def _violations(outdir: Path) -> str:
    report = json.loads((outdir / "validation-report.json").read_text(encoding="utf-8"))
    return "\n".join(
        f"{plugin['pluginName']} {violation['ruleName']} {violation['description']}"
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
    )


def lint(*templates: Path) -> list[str]:
    """Return what cfn-lint says of templates.

    W3005 is left out: CDK writes a dependency on a construct as one on each of its resources, some of which follow from
    a reference, too. W6001 (an output that repeats an imported value) is left out as well: scripts read one summary.
    """
    command = ["cfn-lint", "--regions", "us-west-2", "--ignore-checks", "W3005", "W6001", "--format", "parseable", "--"]
    done = subprocess.run([*command, *map(str, templates)], capture_output=True, text=True, check=False)
    assert not done.stderr
    assert (done.returncode == 0) == (not done.stdout)
    return done.stdout.splitlines()


def test_validators_find_nothing(deployment: Deployment, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert findings(lambda app: compose(app, deployment.settings), tmp_path, capfd) == ""


@pytest.mark.parametrize("choice", CHOICES)
def test_validators_find_nothing_in_what_no_file_of_ours_chooses(
    choice: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = edited("trn1-16", CHOICES[choice])

    assert findings(lambda app: compose(app, settings), tmp_path, capfd) == ""


def test_cfn_lint_finds_nothing(synth: Callable[[str], Deployment], tmp_path: Path) -> None:
    """The smallest configuration and the one with two queues have nothing that the others do not have.

    I1022, a matter of taste, is left out: cfn-lint reports it as E3703 where a role's ARN is in a pipeline's action.
    """
    shipped = [synth(name) for name in SHIPPED if name not in ("dev", "two-queues")]
    chosen = [deploy(edited("trn1-16", edit), tmp_path / choice) for choice, edit in CHOICES.items()]
    pipeline = pipelines.synthesize(pipelines.pipeline(), tmp_path / "pipeline")

    templates = [path for each in (*shipped, *chosen) for path in each.directory.glob("*.template.json")]
    templates += pipeline.glob("*.template.json")

    assert len(templates) == 5 * len(PARTS) + 2
    assert [each for each in lint(*templates) if "E3703:Prefer using Fn::Sub over Fn::Join" not in each] == []


def test_validators_find_nothing_in_the_stacks_of_the_pipeline(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert findings(lambda app: pipelines.compose(app, pipelines.pipeline()), tmp_path, capfd) == ""


def test_validators_would_find_a_port_open_to_the_world_and_a_wrong_property(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def build(app: cdk.App) -> None:
        stack = cdk.Stack(app, "Planted")
        cdk.CfnResource(stack, "Group", type="AWS::EC2::PlacementGroup", properties={"Strategie": "cluster"})
        vpc = ec2.Vpc.from_vpc_attributes(
            stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["a"], vpc_cidr_block="10.0.0.0/16"
        )
        ec2.SecurityGroup(stack, "World", vpc=vpc).add_ingress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(22))

    found = findings(build, tmp_path, capfd)
    [linted] = lint(tmp_path / "Planted.template.json")

    assert "AwsSolutions-EC23" in found
    assert "Strategie" in found
    assert "E3002" in linted
