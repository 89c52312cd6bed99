"""`open`: with a deployment, a page, both or none, and what ULTRACLUSTER_DEPLOYMENT names."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout

import pytest

from tests.command_line import ultracluster


@pytest.mark.parametrize(
    ("variable", "words", "code", "said"),
    [
        ("", ["dev", "dashboard"], 0, "cloudwatch/home?region=us-west-2#dashboards"),
        ("dev", ["dashboard"], 0, "cloudwatch/home?region=us-west-2#dashboards"),
        ("dev", ["trn1-16"], 0, "filteringText=trn1-16"),
        ("dev", ["nowhere", "logs"], 2, "got nowhere; allowed: files in config/"),
        ("", ["dashboard"], 2, "got dashboard; allowed: files in config/"),
        ("nowhere", ["dashboard"], 2, "got nowhere from ULTRACLUSTER_DEPLOYMENT; allowed: files in config/"),
    ],
)
def test_a_word_is_the_page_if_the_deployment_is_known(
    variable: str, words: list[str], code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ULTRACLUSTER_DEPLOYMENT", variable)
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        assert ultracluster("open", *words, "--print") == code
    assert said in output.getvalue()
