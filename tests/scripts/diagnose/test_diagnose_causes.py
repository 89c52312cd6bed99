"""The table of causes: each is known again by the words of AWS, ParallelCluster, Slurm or our own scripts."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts.diagnose.causes import SEEN, Cause, find, table
from scripts.diagnose.diagnose import diagnose
from scripts.diagnose.evidence import KINDS, LOG_TERMS, Evidence
from scripts.logs import streams
from tests.scripts.diagnose.causes.recorded import NOW, SAMPLES, Now, record

NAMES = {
    "env": "dev",
    "cluster": "dev",
    "region": "us-west-2",
    "stack": "dev-cluster",
    "root": "dev-cluster",
    "resource": "Cluster",
    "vpc": "vpc-0a1b",
    "type": "the type",
    "zone": "the zone",
}
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
IDS = [f"{each['cause']}-{each['kind']}-{number}" for number, each in enumerate(SAMPLES)]


def test_there_are_many_causes_and_each_is_told_once() -> None:
    ids = [each.id for each in table()]
    assert len(ids) >= 40
    assert len(set(ids)) == len(ids)


def test_every_cause_has_a_sample_of_every_place_where_it_shows() -> None:
    sampled = {(each["cause"], each["kind"]) for each in SAMPLES}
    assert sampled == {(each.id, kind) for each in table() for kind in each.seen}


@pytest.mark.parametrize("cause", table(), ids=lambda cause: cause.id)
def test_a_cause_is_complete(cause: Cause) -> None:
    assert set(cause.seen) <= set(SEEN) == {"event", "instance", "provider", *KINDS}
    assert set(cause.logs or ()) <= {"provider", *KINDS}
    assert cause.source.startswith("https://")
    assert any(line.startswith("$ ") for line in cause.do), "something can be done or looked at"
    placeholders = set(re.findall(r"{(\w+)}", cause.why + " ".join(cause.do)))
    assert placeholders <= {*NAMES, *cause.pattern.groupindex}
    assert placeholders >= set(cause.pattern.groupindex), "a group is there to be told"


@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_a_sample_is_known_and_its_words_are_filled_in(sample: Mapping[str, str]) -> None:
    found = find(Evidence(sample["kind"], "place", NOW, sample["text"]), NAMES)
    assert found is not None
    assert found.cause.id == sample["cause"]
    assert "<" not in found.why, "every placeholder of the sentence has a value"
    assert sample["source"]


@pytest.mark.parametrize("noise", [False, True], ids=["alone", "among noise"])
@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_a_sample_is_diagnosed_as_its_cause_and_as_no_other_first(sample: Mapping[str, str], noise: bool) -> None:
    found = diagnose(record(sample, noise=noise), Now())
    assert found.findings[0].cause.id == sample["cause"]
    assert sample["text"].partition(": ")[2][:60] in found.findings[0].evidence[-1].text


def test_samples_are_of_the_daemons_that_launch_nodes_and_that_stop_the_fleet() -> None:
    assert {each["stream"] for each in SAMPLES if "stream" in each} == {"clusterstatusmgtd", "slurm_resume"}


@pytest.mark.parametrize("sample", [each for each in SAMPLES if each["kind"] not in ("event", "instance")])
def test_a_line_passes_the_filter_that_logs_are_asked_with(sample: Mapping[str, str]) -> None:
    assert any(term in sample["text"] for term in LOG_TERMS)


def test_the_filter_is_short_enough_for_cloudwatch() -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
    assert len(" ".join(f'?"{each}"' for each in LOG_TERMS)) <= 1024


def test_what_is_not_known_is_not_guessed() -> None:
    assert find(Evidence("event", "s", NOW, "CREATE_FAILED AWS::X::Y Z: the moon is in the wrong house"), NAMES) is None
    sample = next(each for each in SAMPLES if each["cause"] == "address-quota")
    assert find(Evidence("boot", "s", NOW, sample["text"]), NAMES) is None, "an event's words, but in a log"


@pytest.mark.parametrize("code", FAILURE_CODES)
def test_every_failure_code_of_parallelcluster_is_known(code: str) -> None:
    text = f"CREATE_FAILED Custom::PclusterCluster Cluster: Message returned: dev: {code} (LogGroup: x)"
    found = find(Evidence("event", "dev-cluster", NOW, text), NAMES)
    assert found is not None
    assert (found.cause.id, "<" in found.why) == (FAILURE_CODES[code], False)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("event", 'UPDATE_FAILED Custom::PclusterCluster Cluster: {"message": "Internal error", "x": 1}'),
        ("event", 'UPDATE_FAILED AWS::X::Y Z: {"current_value": 7}'),
        ("provider", '{"timestamp": "2026-05-01 10:00:00,001", "level": "ERROR", "location": "x", "message": "y"}'),
        ("event", "DELETE_FAILED AWS::RDS::DBSubnetGroup Group: it is currently in use"),
        ("boot", "Curl attempt 1 failed, retrying in 1s..."),
        ("system", "ntpd[412]: bind() fd 24, family AF_INET6 failed: Network is unreachable"),
        ("system", "ntpd[412]: error: Temporary failure in name resolution"),
        ("boot", "mine.py failed (10): bad, failed (18): worse, failed (21): worst"),
    ],
)
def test_what_is_like_a_cause_and_none_is_not_taken_for_it(kind: str, text: str) -> None:
    assert find(Evidence(kind, "place", NOW, text), NAMES) is None


@pytest.mark.parametrize("kind", KINDS)
def test_ordinary_logs_name_no_cause(kind: str) -> None:
    page = ORDINARY.read_text(encoding="utf-8").splitlines()
    told = [line for line in page if find(Evidence(kind, "place", NOW, line), NAMES)]
    assert (len(page) > 40, told) == (True, [])


def test_the_kinds_of_logs_are_those_that_logs_shows() -> None:
    ends = [end for ends in KINDS.values() for end in ends]
    assert sorted(ends) == sorted(streams.HEAD_KINDS | streams.NODE_KINDS)
