"""`./ultracluster rehearse` shows each step, and its exit code says whether all succeeded."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml

from config.settings import Settings
from emulator.aws import ACCOUNT, EmulatedAws
from emulator.faults import FAULTS
from scripts import options
from scripts.rehearse import rehearsal
from scripts.rehearse.rehearsal import Rehearsal
from tests.command_line import ultracluster
from tests.configurations import CONFIG, SHIPPED
from tests.end_to_end.checks import Deployed, check_deployment
from tests.stacks.deployments import PARTS, raw_settings
from toolchain.parallelcluster import PYTHON

ROOT = Path(__file__).parents[2]
STEPS = ("prepare", "deploy", "show", "change", "change_rejected", "destroy")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    """Return a function that runs the command and gives its exit code."""

    def main(*arguments: str) -> int:
        monkeypatch.setattr(options, "BUILD", tmp_path)
        return ultracluster("rehearse", *arguments)

    return main


@pytest.fixture
def without_stacks(monkeypatch: pytest.MonkeyPatch, aws: EmulatedAws) -> None:
    """Let the steps that take long do nothing."""
    for step in STEPS:
        monkeypatch.setattr(Rehearsal, step, lambda *_, **__: None)
    monkeypatch.setattr(rehearsal, "_synthesize", lambda *_: None)
    monkeypatch.setattr(rehearsal, "EmulatedAws", lambda **_: nullcontext(aws))


@pytest.mark.parametrize("environment", SHIPPED)
def test_each_configuration_can_be_changed(environment: str) -> None:
    """Otherwise the settings' own rules would refuse it, long after the start."""
    raw = raw_settings(environment)
    before = Settings.model_validate(raw)
    for edit in (rehearsal.raise_max_count, rehearsal.change_head_node, rehearsal.remove_protection):
        edit(raw)
    after = Settings.model_validate(raw)
    assert after.cluster_spec.max_nodes == before.cluster_spec.max_nodes + 1
    assert after.cluster.head_node.instance_type != before.cluster.head_node.instance_type
    assert (after.termination_protection, after.storage.retain) == ([], False)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere"], "got nowhere; allowed: files in config/"),
        (["dev", "--fault", "fire"], f"got fire; allowed: {', '.join(FAULTS)}"),
        (["dev", "--fault", "resource"], "resource takes a logical id or a resource type after a colon"),
        (["dev", "--fault", "warning:Nobody"], "got Nobody; allowed: AmiOsCompatibleValidator, "),
    ],
)
def test_what_cannot_be_rehearsed(
    arguments: list[str], complaint: str, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.usefixtures("without_stacks")
def test_what_is_left_behind_is_named(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget_something(running: Rehearsal, **_: bool) -> None:
        ec2 = running.aws.client("ec2", "us-west-2")
        ec2.create_placement_group(GroupName="forgotten", Strategy="cluster")
        running.aws.client("logs", "us-west-2").create_log_group(logGroupName="/aws/lambda/dev-f")

    monkeypatch.setattr(Rehearsal, "destroy", forget_something)
    assert run("dev") == 1
    captured = capsys.readouterr()
    said = captured.out
    assert "AWS::EC2::PlacementGroup forgotten: LEFT BEHIND" in said
    assert "AWS::Logs::LogGroup /aws/lambda/dev-f: the log of a Lambda function, which outlives it" in said
    assert "error: destroyed, but left behind: forgotten\n" in captured.err


@pytest.mark.usefixtures("without_stacks")
@pytest.mark.parametrize(
    ("fault", "code"), [("resource:Nothing", 1), ("warning:AsyncTimedUrlValidator", 0), ("warning:DcvValidator", 1)]
)
def test_a_fault_that_strikes_nothing_is_no_success_unless_it_is_harmless(
    fault: str, code: int, run: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rehearsal, "_run_cdk", lambda *_: 0)
    assert run("dev", "--fault", fault) == code
    complaint = f"error: nothing failed: the fault {fault} concerns nothing"
    assert (complaint in capsys.readouterr().err) == (code == 1)


@pytest.mark.slow
def test_another_bootstrap_stack(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The CDK's command line needs it for every stack; one shows it."""
    key = f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    raw = yaml.safe_load((CONFIG / "trn1-16.yaml").read_text(encoding="utf-8"))
    raw["bootstrap"] = {"qualifier": "ml-team", "kms_key_arn": key}
    (tmp_path / "trn1-16.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    for step in ("change", "change_rejected", "destroy", "check_leftovers"):
        monkeypatch.setattr(Rehearsal, step, lambda *_, **__: None)
    monkeypatch.setattr(Rehearsal, "deploy", lambda running: running._run_cdk("created", "deploy", "trn1-16-network"))
    stacks: set[str] = set()
    keys: set[str] = set()

    def show(running: Rehearsal) -> None:
        cloudformation, s3 = (running.aws.client(service, "us-west-2") for service in ("cloudformation", "s3"))
        stacks.update(each["StackName"] for each in cloudformation.describe_stacks()["Stacks"])
        bucket = f"cdk-ml-team-assets-{ACCOUNT}-us-west-2"
        for each in s3.list_objects_v2(Bucket=bucket)["Contents"]:
            keys.add(s3.head_object(Bucket=bucket, Key=each["Key"])["SSEKMSKeyId"].rpartition("/")[2])

    monkeypatch.setattr(Rehearsal, "show", show)
    assert run("trn1-16") == 0, capsys.readouterr().out
    assert stacks == {"CDKToolkit-ml-team", "trn1-16-network"}
    assert keys == {key.rpartition("/")[2]}


@pytest.mark.validation
def test_every_step_is_shown(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Between them the deployment is checked, and deployed once more."""
    show = Rehearsal.show

    def check(running: Rehearsal) -> None:
        show(running)
        check_deployment(Deployed(running.aws, running.settings))
        running.deploy()

    monkeypatch.setattr(Rehearsal, "show", check)
    assert run("dev", "--fault", "quota") == 0
    said = capsys.readouterr().out
    in_order = (
        r"bootstrapped\.",
        r"cdk deploy --all, while the account has no Elastic IP address left",
        r"❌  dev-network failed to deploy",
        r"The CDK's exit code is 1\.",
        r"dev-network: CREATE_FAILED NetworkVpcNatAddress\w+: .*The maximum number of addresses has been reached",
        r"The same once more, without the fault",
        r"✅  dev-cluster",
        r"dev-trn1-trn1-32xl\W+trn1\.32xlarge\W+1 interface, 8",
        r"dev-cluster\W+Connect\W+aws ssm start-session --region us-west-2 --target i-",
        r"UPDATE_COMPLETE +Custom::PclusterCluster",
        r"UPDATE_FAILED +Custom::PclusterCluster .*Restore 'InstanceType' value to 'c6i.xlarge'",
        r"the cluster is unchanged\.",
        r"✅  dev-network: destroyed",
        r"Nothing else\.",
        r"All in \d+ s\.",
    )
    assert re.search(".*".join(in_order), said, re.DOTALL), said
    log = (tmp_path / "rehearsal.log").read_text(encoding="utf-8")
    assert "dev-network | " in log
    unchanged = re.findall(r"dev-(\w+) \(no changes\)$", log, re.MULTILINE)
    assert set(unchanged) >= set(PARTS)


KEPT = """
import sys
from scripts.main import main
from scripts.rehearse import rehearsal
from scripts.rehearse.rehearsal import Rehearsal

rehearsal._synthesize = lambda *_: None
for step in ("deploy", "show", "change", "change_rejected"):
    setattr(Rehearsal, step, lambda *_: None)
sys.exit(main(["rehearse", *sys.argv[1:]]))
"""
"""A rehearsal that is kept once the account is bootstrapped."""


@pytest.mark.slow
def test_it_can_be_kept_and_ends_without_a_trace() -> None:
    command = [sys.executable, "-c", KEPT, "dev", "--keep"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        exported = exports(process)
        tool = subprocess.run(
            [PYTHON.parent / "aws", "cloudformation", "describe-stacks", "--query", "Stacks[].StackName"],
            env={**os.environ, **exported},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(tool.stdout) == ["CDKToolkit"]
        server = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()[0])
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=600) == 130
    finally:
        process.kill()
        process.communicate()
    assert not Path(f"/proc/{server}").exists()


def exports(process: subprocess.Popen[str]) -> dict[str, str]:
    """Return the variables that a command tells people to export."""
    assert process.stdout is not None
    variables = {}
    for line in process.stdout:
        if named := re.match(r"  export (\w+)=(.*)", line):
            variables[named[1]] = named[2]
        if "Ctrl-C" in line:
            break
    path = variables.pop("PATH")
    assert path.endswith(":$PATH")
    assert all(Path(each).is_dir() for each in path.split(":")[:-1])
    return variables
