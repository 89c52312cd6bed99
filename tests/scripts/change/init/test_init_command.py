"""`init --from` as a command: what it asks, prints and writes."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from config.settings import load
from scripts.account.deployment import Account
from scripts.core import options
from scripts.core.errors import ExitCode
from tests.command_line import ultracluster
from tests.scripts.change.init.test_import import KNOWN, PLAIN

GIVEN = [
    word
    for key, value in KNOWN.items()
    for word in (["--zone", value] if key == "zone_id" else [] if key == "region" else ["--value", f"{key}={value}"])
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(options, "CONFIG", tmp_path / "config")
    (tmp_path / "config").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours.yaml").write_text(PLAIN, encoding="utf-8")
    return tmp_path


def test_it_writes_the_settings_and_tells_each_difference(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ultracluster("init", "mine", "--from", "ours.yaml", *GIVEN) == ExitCode.DONE
    said = capsys.readouterr().err
    assert "Changed, against ours.yaml:" in said
    assert "SSM parameter" in said
    assert "  Scheduling.SlurmSettings.QueueUpdateStrategy: 'DRAIN': a change waits for jobs" in said
    path = folder / "config/mine.yaml"
    assert load(path).cluster.queues[0].name == "batch"
    before = path.read_text(encoding="utf-8")
    assert ultracluster("init", "mine", "--from", "ours.yaml", *GIVEN) == ExitCode.FAILED
    assert path.read_text(encoding="utf-8") == before


def test_what_the_file_calls_the_region_is_the_region(folder: Path) -> None:
    text = PLAIN.replace("us-east-2", "${AWS_REGION}").replace("s3://ours", "s3://ours-${AWS_REGION}")
    (folder / "ours.yaml").write_text(text, encoding="utf-8")
    assert ultracluster("init", "mine", "--from", "ours.yaml", "--region", "us-east-2", *GIVEN) == ExitCode.DONE
    settings = load(folder / "config/mine.yaml")
    actions = settings.cluster.queues[0].custom_actions
    assert actions is not None
    assert actions.on_node_configured[0].script == "s3://ours-us-east-2/setup.sh"


def test_without_a_terminal_all_that_is_missing_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PLAIN.replace("ours\n    Allowed", "<key>\n    Allowed")
    (folder / "ours.yaml").write_text(text, encoding="utf-8")
    assert ultracluster("init", "mine", "--from", "ours.yaml") == ExitCode.UNUSABLE
    said = capsys.readouterr().err
    for key in ["--zone ZONE-ID", "ours.yaml:9 HeadNode.Ssh.KeyName", *(KNOWN.keys() - {"region", "zone_id"})]:
        assert key in said
    assert not (folder / "config/mine.yaml").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "ours.yaml", "--nodes", "3"], "--from and --nodes exclude each other"),
        (["--from", "ours.yaml", "--template", "dev"], "--from and --template exclude each other"),
        (["--value", "a=b"], "--value is of use with --from or --from-cluster"),
        (["--new-network"], "--new-network is of use with --from or --from-cluster"),
        (["--from", "ours.yaml", "--value", "a"], "got a; allowed: KEY=VALUE"),
        (
            ["--from", "ours.yaml", *GIVEN, "--value", "typo=1"],
            "got typo; allowed: a key of ours.yaml, or what it leaves open",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    (folder / "config/dev.yaml").write_text("", encoding="utf-8")
    assert ultracluster("init", "mine", *words) == ExitCode.UNUSABLE
    assert said in capsys.readouterr().err


def test_what_was_answered_is_repeated_when_the_configuration_cannot_be_taken(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PLAIN.replace("m5.4xlarge", "${TYPE}")
    (folder / "ours.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("click.prompt", lambda *_, **__: "no-such.type")
    assert ultracluster("init", "mine", "--from", "ours.yaml", *GIVEN) == ExitCode.UNUSABLE
    said = capsys.readouterr().err
    assert "ours.yaml:5: HeadNode.InstanceType" in said
    assert "--value 'TYPE=no-such.type'" in said


class FakeAws:
    """Answers what is asked of a cluster, and notes it."""

    def __init__(self, stack: dict[str, object] | None) -> None:
        self.stack, self.asked = stack, list[tuple[str, dict[str, str]]]()

    def describe_stacks(self, **parameters: str) -> dict[str, object]:
        self.asked.append(("describe_stacks", parameters))
        if self.stack is None:
            error = {"Error": {"Code": "ValidationError", "Message": "Stack with id hpc does not exist"}}
            raise ClientError(error, "DescribeStacks")
        return {"Stacks": [self.stack]}

    def get_object(self, **parameters: str) -> dict[str, object]:
        self.asked.append(("get_object", parameters))
        return {"Body": BytesIO(PLAIN.encode())}


STACK: dict[str, object] = {
    "StackName": "hpc",
    "StackStatus": "UPDATE_COMPLETE",
    "Parameters": [
        {"ParameterKey": "ResourcesS3Bucket", "ParameterValue": "bucket"},
        {"ParameterKey": "ArtifactS3RootDirectory", "ParameterValue": "parallelcluster/3.11.1/clusters/hpc-x"},
        {"ParameterKey": "ConfigVersion", "ParameterValue": "v7"},
    ],
}


def test_a_cluster_of_the_account_is_read_by_two_questions_that_change_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    aws = FakeAws(STACK)
    monkeypatch.setattr(Account, "client", lambda *_: aws)
    assert ultracluster("init", "mine", "--from-cluster", "hpc", "--region", "us-east-2", *GIVEN) == ExitCode.DONE
    key = "parallelcluster/3.11.1/clusters/hpc-x/configs/cluster-config.yaml"
    assert aws.asked == [
        ("describe_stacks", {"StackName": "hpc"}),
        ("get_object", {"Bucket": "bucket", "Key": key, "VersionId": "v7"}),
    ]
    assert "a new cluster beside hpc" in capsys.readouterr().err
    assert load(folder / "config/mine.yaml").tags == {"team": "a"}


@pytest.mark.parametrize(
    ("stack", "name", "said"),
    [
        (None, "mine", "us-east-2 has no cluster hpc"),
        ({**STACK, "Parameters": []}, "mine", "is none that ParallelCluster 3 made"),
        (STACK, "hpc", "another name: the cluster keeps its own"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_is_no_other_cluster_is_refused(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    stack: dict[str, object] | None,
    name: str,
    said: str,
) -> None:
    monkeypatch.setattr(Account, "client", lambda *_: FakeAws(stack))
    assert ultracluster("init", name, "--from-cluster", "hpc", "--region", "us-east-2") == ExitCode.UNUSABLE
    assert said in capsys.readouterr().err
