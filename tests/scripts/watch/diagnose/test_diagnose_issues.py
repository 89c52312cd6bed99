"""What users of AWS saw, from public issues, is explained: the first cause is the one behind the others."""

import re
from pathlib import Path
from typing import Any

import pytest

from emulator.faults import FAULTS
from scripts.account.causes import table
from scripts.watch.diagnose.diagnose import diagnose
from tests.scripts.watch.diagnose.causes.recorded import HEAD_NODE, ISSUES, Now, deployment, failed, ids, shown

GUIDE = Path(__file__).parents[4] / "docs/guides/faults.md"


def name(case: dict[str, Any]) -> str:
    return f"{case.get('repository', 'aws/aws-parallelcluster').partition('/')[2]}-{case['issue']}"


@pytest.mark.parametrize("case", ISSUES, ids=name)
def test_what_users_saw_is_explained(case: dict[str, Any]) -> None:
    is_operation = any(where == "event" for _, where, _ in case["lines"])
    if is_operation:
        made, account, stack = failed()
    else:
        made, account = deployment(cluster="CREATE_COMPLETE")
        stack = ""
    if case.get("silent"):
        account.lines.clear()
    for minute, where, text in case["lines"]:
        host, _, kind = where.rpartition(" ")
        if where == "event":
            account.event(stack, minute, text)
        else:
            account.line(f"{'ip-10-0-1-9.i-0c' if host else f'ip-10-0-1-2.{HEAD_NODE}'}.{kind}", minute, text)
    diagnosis = diagnose(made, Now())
    assert (ids(diagnosis), diagnosis.unknown) == (case["causes"], ())
    text = shown(diagnosis)
    assert "<" not in diagnosis.causes[0].why, "every placeholder has a value"
    assert text.index(diagnosis.causes[0].title) < text.index("Why this is believed") < text.index("What to do")


def test_the_guide_names_causes_that_exist_and_all_that_users_met() -> None:
    rows = [line for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    named = {cause for row in rows for cause in re.findall(r"`([a-z-]+)`", row.split(" | ")[-1])}
    assert {cause for case in ISSUES for cause in case["causes"]} <= named <= {each.id for each in table()}


def test_the_guide_says_how_to_try_each_fault_of_nodes() -> None:
    named = set(re.findall(r"`--fault ([a-z-]+)", GUIDE.read_text(encoding="utf-8")))
    assert {each for each, fault in FAULTS.items() if fault.node} <= named <= FAULTS.keys()
