"""The summary of a pull request's run."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.commands import review_summary
from scripts.commands.review_summary import summary
from scripts.review.comment import UNCHANGED

TELLING = "<!-- ultracluster:dev -->\n\n### `dev`: 1 resource is replaced\n"
SILENT = f"<!-- ultracluster:x -->\n\n### `x`: nothing changes\n\n{UNCHANGED}\n"


def test_what_does_not_change_is_one_line() -> None:
    assert summary({"a": SILENT, "dev": TELLING, "z": SILENT}) == f"{TELLING}\nNothing changes: `a`, `z`."
    assert summary({"dev": TELLING}) == TELLING


def test_program(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("a", SILENT), ("dev", TELLING)):
        (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["review_summary", str(tmp_path)])
    assert review_summary.main() == 0
    assert capsys.readouterr().out == f"{TELLING}\nNothing changes: `a`.\n"
