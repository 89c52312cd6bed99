"""What users of AWS saw, from public issues, is explained: the first cause is the one behind the others."""

from typing import Any

import pytest

from scripts.diagnose.diagnose import diagnose
from tests.scripts.diagnose.causes.recorded import HEAD_NODE, ISSUES, Now, deployment, failed, ids, shown


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
