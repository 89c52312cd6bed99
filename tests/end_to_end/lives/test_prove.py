"""The ladder of the first deployment in an emulated AWS: what that has is as expected, and nothing private is kept."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from emulator.machines import image
from scripts.rehearse.prove.assumptions import assumptions
from tests.end_to_end.lives.life import ROOT, edited
from tests.stacks.deployments import Raw

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.system, pytest.mark.validation]
PRIVATE = re.compile(r"(?<![0-9])(?:[0-9]{12}|(?:[0-9]{1,3}\.){3}[0-9]{1,3})(?![0-9])|ops@example\.com|fs-[0-9a-f]{17}")


def with_address(raw: Raw) -> None:
    raw["monitoring"] = {"emails": ["ops@example.com"]}


def test_the_whole_ladder(tmp_path: Path) -> None:
    image.prepare()  # it may take longer than a rung
    done = subprocess.run(
        ["./ultracluster", "prove", "dev", "--max-usd", "1600", "--emulate"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=7200,
        env={**os.environ, **edited(tmp_path, "dev", with_address)},
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    report = ROOT / "build" / "prove-dev-emulated" / "report"
    read = json.loads((report / "report.json").read_text(encoding="utf-8"))
    assert {each["state"] for each in read["rungs"]} == {"done"}, said
    assert len(read["rungs"]) == 7
    seen = {each["id"] for each in read["observations"] if each["outcome"] == "as expected"}
    assert seen == {each.id for each in assumptions() if each.emulated}, said
    for file in (each for each in report.rglob("*") if each.is_file()):
        assert not PRIVATE.search(file.read_text(encoding="utf-8")), file
