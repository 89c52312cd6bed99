"""The table of causes: each is recognized by the words of AWS, ParallelCluster, Slurm or our own scripts."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts.account import log_streams
from scripts.account.causes import SEEN, Cause, Evidence, FoundCause, State, find, table
from scripts.watch.diagnose.diagnose import diagnose
from scripts.watch.diagnose.present import SCOPES
from scripts.watch.diagnose.reader import KINDS, LOG_TERMS
from tests.scripts.watch.diagnose.causes.recorded import ISSUES, NOW, SAMPLES, Now, record, shown, stream

NAMES = {
    "file": "config/trn1-16.yaml",
    "deployment": "dev",
    "cluster": "dev",
    "region": "us-west-2",
    "stack": "dev-cluster",
    "root": "dev-cluster",
    "resource": "Cluster",
    "vpc": "vpc-0a1b",
    "type": "the type",
    "zone": "the zone",
}
IMAGE = "The image id '[ami-0a1b]' does not exist"
FAILURE_CODES = {
    "AmiVersionMismatch": "image-version",
    "InvalidAmi": "image-foreign",
    "OnNodeConfiguredExecutionFailure": "custom-action",
    "OnNodeConfiguredDownloadFailure": "script-missing",
    "OnNodeConfiguredFailure": "custom-action",
    "OnNodeStartExecutionFailure": "custom-action",
    "OnNodeStartDownloadFailure": "script-missing",
    "OnNodeStartFailure": "custom-action",
    "EbsMountFailure": "file-system-not-mounted",
    "EfsMountFailure": "file-system-not-mounted",
    "FsxMountFailure": "file-system-not-mounted",
    "RaidMountFailure": "file-system-not-mounted",
    "HeadNodeBootstrapFailure": "head-node-failed",
    "ResourceCreationFailure": "cluster-failed",
    "StaticNodeBootstrapFailure": "static-nodes",
    "ClusterCreationFailure": "cluster-failed",
}
"""Of pcluster/models/cluster_resources.py of aws-parallelcluster 3.16.1."""
ORDINARY = Path(__file__).with_name("causes") / "ordinary.txt"
"""Lines as nodes write them at each start, some with words of failure."""


def found_in(kind: str, text: str) -> FoundCause | None:
    return find(Evidence(kind=kind, source="place", time=NOW, text=text), NAMES)


def kind_of(where: str) -> str:
    """Return the kind of evidence of a line of an issue."""
    end = where.rpartition(" ")[2]
    return next((kind for kind, ends in KINDS.items() if end in ends), end)


def test_every_cause_has_one_row_and_a_sample_of_every_place_where_it_is_seen() -> None:
    assert len({each.id for each in table()}) == len(table())
    sampled = {(each["cause"], each["kind"]) for each in SAMPLES}
    lines = [(kind_of(where), text) for case in ISSUES for _, where, text in case["lines"]]
    sampled |= {(cause.id, kind) for kind, text in lines if (cause := found_in(kind, text))}
    silent = {("head-node-silent", "instance")}  # what is not there
    assert sampled | silent == {(each.id, kind) for each in table() for kind in each.seen}


@pytest.mark.parametrize("cause", table(), ids=lambda cause: cause.id)
def test_a_cause_is_complete(cause: Cause) -> None:
    assert set(cause.seen) <= set(SEEN) == {"event", "provider", "job", *SCOPES, *KINDS}
    assert set(cause.logs or ()) <= {"provider", *KINDS}
    assert set(cause.behind) <= {each.id for each in table() if each.logs is not None}
    assert cause.source.startswith("https://")
    assert any(line.startswith("$ ") for line in cause.do), "something can be done or read"
    placeholders = set(re.findall(r"{(\w+)}", cause.why + " ".join(cause.do)))
    assert placeholders <= {*NAMES, *cause.pattern.groupindex}
    ends = set(re.findall(r"{(\w+)}", cause.healed))
    assert ends <= set(cause.pattern.groupindex) <= placeholders | ends, "a group is there to be shown"
    assert not [each for each in cause.do if each.startswith("$ ") and re.search("[<>]", each)], "it can be typed"


@pytest.mark.parametrize("sample", [each for each in SAMPLES if each["kind"] == "job"], ids=lambda each: each["text"])
def test_why_a_job_waits_is_explained(sample: Mapping[str, str]) -> None:
    finding = found_in("job", sample["text"])
    assert finding is not None
    assert (finding.id, "<" in finding.why) == (sample["cause"], False)


BEHIND = {each.id for each in table() if each.behind}
RECORDED = [each for each in SAMPLES if each["kind"] != "job" and each["cause"] not in BEHIND]


@pytest.mark.parametrize("sample", RECORDED, ids=[f"{each['cause']}-{n}" for n, each in enumerate(RECORDED)])
def test_a_sample_is_diagnosed_as_its_cause_and_as_no_other_first(sample: Mapping[str, str]) -> None:
    """Among much else, and on a screen of 80 columns."""
    diagnosis = diagnose(record(sample, noise=True), Now())
    first = diagnosis.causes[0]
    assert first.id == sample["cause"]
    assert sample["text"].partition(": ")[2][:60] in first.evidence[-1].text
    assert not re.search(r"<\w+>", first.why), "every placeholder of the sentence has a value"
    assert sample["source"]
    lines = shown(diagnosis).splitlines()
    commands = [f"  {line.removeprefix('$ ')}" for line in first.to_do if line.startswith("$ ")]
    assert set(commands) <= set(lines), "a command can be copied"
    assert max(len(line) for line in lines if line not in commands) <= 80


def test_a_command_whose_name_is_not_known_is_left_out() -> None:
    known, unknown = (found_in("daemon", f"(InvalidAMIID.NotFound) {text}") for text in (IMAGE, ""))
    assert known is not None
    assert unknown is not None
    assert [line for line in known.to_do if line not in unknown.to_do] == [
        "$ aws ec2 describe-images --image-ids ami-0a1b --region us-west-2"
    ]
    assert unknown.to_do


def test_the_line_that_ends_a_cause_ends_it_for_the_same_subject_only() -> None:
    healing = [each for each in SAMPLES if "healed" in each]
    assert {each["cause"] for each in healing} >= {row.id for row in table() if "{" in row.healed}
    for sample in healing:
        made = record(sample)
        other = sample["healed"].replace("100.73", "100.74").replace("OST0001", "OST0002").replace("MDT0000", "MDT0001")
        names = (other if other != sample["healed"] else "nothing of it"), sample["healed"]
        states = []
        for minute, text in enumerate(names, 58):
            made.account.line(stream(sample["kind"], sample["stream"]), minute, text)  # type: ignore[attr-defined]
            states.append(diagnose(made, Now()).causes[0].state)
        assert (states[0] is State.ENDED, states[1]) == (False, State.ENDED), sample


def test_the_log_filter_passes_every_sample_and_is_short_enough_for_cloudwatch() -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
    assert len(" ".join(f'?"{each}"' for each in LOG_TERMS)) <= 1024
    logged = [each["text"] for each in SAMPLES if each["kind"] in ("provider", *KINDS)]
    logged += [each["healed"] for each in SAMPLES if "healed" in each]
    assert [text for text in logged if not any(term in text for term in LOG_TERMS)] == []


@pytest.mark.parametrize("code", FAILURE_CODES)
def test_every_failure_code_of_parallelcluster_is_known(code: str) -> None:
    text = f"CREATE_FAILED Custom::PclusterCluster Cluster: Message returned: dev: {code} (LogGroup: x)"
    finding = found_in("event", text)
    assert finding is not None
    assert (finding.id, "<" in finding.why) == (FAILURE_CODES[code], False)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("event", "CREATE_FAILED AWS::X::Y Z: the moon is in the wrong house"),
        ("event", 'UPDATE_FAILED Custom::PclusterCluster Cluster: {"message": "Internal error", "x": 1}'),
        ("provider", '{"timestamp": "2026-05-01 10:00:00,001", "level": "ERROR", "location": "x", "message": "y"}'),
        ("event", "DELETE_FAILED AWS::RDS::DBSubnetGroup Group: it is currently in use"),
        ("boot", "CREATE_FAILED AWS::EC2::EIP Address: The maximum number of addresses has been reached."),
        ("job", "Resources"),
        ("job", "AssociationX"),
        ("boot", "Curl attempt 1 failed, retrying in 1s..."),
        ("boot", "gpg: Signature expired Tue 03 Mar 2026 10:00:00 AM UTC"),
        (
            "daemon",
            "no corresponding instance in EC2 for node a-dy-b-1(10.0.1.9), node state: IDLE+CLOUD+POWERING_DOWN",
        ),
        (
            "daemon",
            "no corresponding instance in EC2 for node a-st-b-1(10.0.1.9), node state: DOWN+CLOUD+NOT_RESPONDING",
        ),
        ("system", "ntpd[412]: bind() fd 24, family AF_INET6 failed: Network is unreachable"),
        ("boot", "mine.py failed (10): bad, failed (18): worse, failed (21): worst"),
    ],
)
def test_a_text_that_resembles_a_cause_is_not_taken_for_it(kind: str, text: str) -> None:
    assert found_in(kind, text) is None


@pytest.mark.parametrize("kind", KINDS)
def test_ordinary_logs_show_no_cause(kind: str) -> None:
    lines = ORDINARY.read_text(encoding="utf-8").splitlines()
    assert (len(lines) > 40, [line for line in lines if found_in(kind, line)]) == (True, [])


def test_the_kinds_of_logs_are_those_that_the_logs_command_shows() -> None:
    ends = [end for ends in KINDS.values() for end in ends]
    assert sorted(ends) == sorted(log_streams.HEAD_KINDS | log_streams.NODE_KINDS)
