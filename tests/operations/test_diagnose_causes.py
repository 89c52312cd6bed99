"""The table of causes: each is known again by the words of AWS, ParallelCluster, Slurm or our own scripts."""

import re
from collections.abc import Mapping

import pytest

from scripts.operations.causes import SEEN, Cause, find, table
from scripts.operations.diagnosis import diagnose
from scripts.operations.evidence import KINDS, LOG_TERMS, Evidence
from tests.operations.causes.recorded import NOW, SAMPLES, Now, record

NAMES = {"env": "dev", "cluster": "dev", "region": "us-west-2", "stack": "dev-cluster", "resource": "Cluster"}
IDS = [f"{each['cause']}-{each['kind']}-{number}" for number, each in enumerate(SAMPLES)]


def test_there_are_many_causes_and_each_is_told_once() -> None:
    ids = [each.id for each in table()]
    assert len(ids) >= 40
    assert len(set(ids)) == len(ids)


def test_every_cause_has_a_sample() -> None:
    assert {each["cause"] for each in SAMPLES} == {each.id for each in table()}


@pytest.mark.parametrize("cause", table(), ids=lambda cause: cause.id)
def test_a_cause_is_complete(cause: Cause) -> None:
    assert set(cause.seen) <= set(SEEN) == {"event", "provider", *KINDS}
    assert set(cause.logs or ()) <= {"provider", *KINDS}
    assert cause.source.startswith("https://")
    assert any(line.startswith("$ ") for line in cause.do), "something can be done or looked at"
    placeholders = set(re.findall(r"{(\w+)}", cause.why + " ".join(cause.do)))
    assert placeholders <= {*NAMES, *cause.pattern.groupindex}


@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_a_sample_is_known_and_its_words_are_filled_in(sample: Mapping[str, str]) -> None:
    found = find(Evidence(sample["kind"], "place", NOW, sample["text"], "Cluster"), NAMES)
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


@pytest.mark.parametrize("sample", [each for each in SAMPLES if each["kind"] != "event"])
def test_a_line_passes_the_filter_that_logs_are_asked_with(sample: Mapping[str, str]) -> None:
    assert any(term in sample["text"] for term in LOG_TERMS)


def test_the_filter_is_short_enough_for_cloudwatch() -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
    assert len(" ".join(f'?"{each}"' for each in LOG_TERMS)) <= 1024


def test_what_is_not_known_is_not_guessed() -> None:
    assert find(Evidence("event", "s", NOW, "CREATE_FAILED AWS::X::Y Z: the moon is in the wrong house"), NAMES) is None
    sample = next(each for each in SAMPLES if each["cause"] == "address-quota")
    assert find(Evidence("boot", "s", NOW, sample["text"]), NAMES) is None, "an event's words, but in a log"
