"""CDK's template validator, the rules of AwsSolutions and cfn-lint find nothing to say about any deployment."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from cdk_nag import AwsSolutionsChecks

from config.settings import Settings, load
from stacks.composition import compose
from tests.configurations import CONFIG
from tests.stacks import pipelines
from tests.stacks.choices import CHOICES, chosen
from tests.stacks.deployments import Deployment, deploy
from tests.stacks.small_app import new_app

Build = Callable[[cdk.App], object]

pytestmark = pytest.mark.slow


DISTINCT = ("reserved", "trn1-16", "ultracluster")
"""The others that the project ships have nothing that these do not have."""


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
    return "".join(capfd.readouterr()) + violations(outdir)


def violations(outdir: Path) -> str:
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


def deployment_of(settings: Settings) -> Build:
    return lambda app: compose(app, settings)


BUILDS: dict[str, Build] = {
    **{name: deployment_of(load(CONFIG / f"{name}.yaml")) for name in DISTINCT},
    **{name: deployment_of(chosen(name)) for name in CHOICES},
    "pipeline": lambda app: pipelines.compose(app, pipelines.pipeline()),
}


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_validators_find_nothing(build: Build, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert findings(build, tmp_path, capfd) == ""


def test_cfn_lint_finds_nothing(synth: Callable[[str], Deployment], tmp_path: Path) -> None:
    """I1022, a matter of taste, is left out; cfn-lint reports it as E3703 for a role's ARN in a pipeline's action."""
    shipped = [synth(name) for name in DISTINCT]
    choices = [deploy(chosen(name), tmp_path / name) for name in CHOICES]
    pipeline = pipelines.synthesize(pipelines.pipeline(), tmp_path / "pipeline")

    templates = [path for each in (*shipped, *choices) for path in each.directory.glob("*.template.json")]
    templates += pipeline.glob("*.template.json")

    settings = [*(load(CONFIG / f"{name}.yaml") for name in DISTINCT), *map(chosen, CHOICES)]
    assert len(templates) == sum(len(each.parts) for each in settings) + 2
    assert [each for each in lint(*templates) if "E3703:Prefer using Fn::Sub over Fn::Join" not in each] == []


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

    report = findings(build, tmp_path, capfd)
    [linted] = lint(tmp_path / "Planted.template.json")

    assert "AwsSolutions-EC23" in report
    assert "Strategie" in report
    assert "E3002" in linted
