"""Comments on configurations that are new, removed, moved or cannot be used; how one is cut; the summary of all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from config.settings import load
from scripts.check.review import comment as comments
from scripts.check.review import review
from scripts.check.review.checkouts import find
from scripts.check.review.comment import CUT, UNCHANGED, costs_table, fitted, read_preflight, readiness
from scripts.core import options
from scripts.core.errors import UnusableError
from tests.command_line import ultracluster
from tests.scripts.check.review.checkouts import CONFIG, checkout

pytestmark = pytest.mark.validation

ACCOUNT = "111122223333"


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout(tmp_path_factory.mktemp("before"), "dev")


def comment(before: Path, after: Path) -> str:
    return comments.comment("dev", find(before, "dev"), find(after, "dev"), None)


def edited(before: Path, directory: Path, old: str, new: str) -> Path:
    """Return a checkout whose settings file is edited; its templates are the same."""
    text = (before / "config" / "dev.yaml").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (directory / "config").mkdir()
    (directory / "config" / "dev.yaml").write_text(text.replace(old, new), encoding="utf-8")
    (directory / "tests").symlink_to(before / "tests")
    return directory


def test_a_new_configuration_has_all_its_costs(before: Path, tmp_path: Path) -> None:
    text = comment(tmp_path, before)
    assert "### `dev`: a new configuration. Nothing blocks this deployment." in text
    assert "**dev-network**: the stack does not exist yet: " in text
    assert "| a month at MinCount | - | " in text
    assert "\n+ Allow " in text


def test_a_removed_configuration_stays_in_aws(before: Path, tmp_path: Path) -> None:
    text = comment(before, tmp_path)
    assert "### `dev`: removed" in text
    assert "until `./ultracluster destroy dev --all` with the old file." in text
    assert "Preflight" not in text


def test_settings_that_cannot_be_used_are_shown_with_their_lines(before: Path, tmp_path: Path) -> None:
    bad = edited(before, tmp_path, "max_count: 2", "max_count: two")
    text = comment(before, bad)
    assert "### `dev`: cannot be used\n\n```\nconfig/dev.yaml:" in text
    assert "max_count" in text
    text = comment(bad, before)
    assert "The old file cannot be used any more, so costs are not compared: " in text
    assert "US dollars" not in text
    assert "Nothing would change." in text


def test_missing_golden_templates(before: Path, tmp_path: Path) -> None:
    after = edited(before, tmp_path, "max_count: 2", "max_count: 3")
    (after / "tests").unlink()
    assert "there are no golden templates of dev: run `make snapshots`" in comment(before, after)


@pytest.mark.parametrize(
    "edits",
    [
        {"name: dev ": "name: other "},
        {"region: us-west-2": "region: us-east-1", "zone_id: usw2-az4": "zone_id: use1-az4"},
    ],
)
def test_another_name_or_region_is_another_deployment(before: Path, tmp_path: Path, edits: dict[str, str]) -> None:
    text = comment(before, checkout(tmp_path, "dev", *edits.items()))
    assert "That is another deployment" in text
    assert text.count("the stack does not exist yet: ") == 4


def test_an_account_that_is_filled_in_is_the_same_deployment(before: Path, tmp_path: Path) -> None:
    text = comment(before, edited(before, tmp_path, "account: null ", f'account: "{ACCOUNT}" '))
    assert text.startswith(f"<!-- ultracluster:dev -->\n### `dev`: nothing changes\n\n{UNCHANGED}\n")


def test_protection_is_compared_although_no_template_has_it(before: Path, tmp_path: Path) -> None:
    after = edited(before, tmp_path, "termination_protection: []", "termination_protection: [storage]")
    assert "- dev-storage is protected against deletion from now on." in comment(before, after)
    text = comment(after, before)
    assert "- dev-storage is **no longer protected** against deletion." in text
    assert UNCHANGED not in text


def test_costs_that_are_not_known() -> None:
    settings = load(CONFIG / "trn1-16.yaml")
    assert "Not in the sums: " not in costs_table(settings, None)
    elsewhere = settings.model_copy(update={"region": "eu-west-1"})
    assert "Not in the sums: " in costs_table(elsewhere, elsewhere)


def document(*results: tuple[str, str, str], ok: bool = False) -> dict[str, Any]:
    shown = [
        {"id": name, "status": status, "sentence": sentence, "hint": "", "command": f"aws --account {ACCOUNT}"}
        for name, status, sentence in results
    ]
    counts = {status: sum(each["status"] == status for each in shown) for status in ("PASS", "FAIL", "WARN")}
    return {"account": ACCOUNT, "results": shown, "counts": counts, "ok": ok}


def test_preflight_is_shown_without_the_account() -> None:
    text = readiness(document(("a", "FAIL", f"of {ACCOUNT}: 8 | 16"), ("b", "PASS", "good"), ("c", "WARN", "d")))
    assert text.splitlines()[0] == "<details><summary>Preflight: not ready to deploy: 1 PASS, 1 FAIL, 1 WARN</summary>"
    assert "| FAIL | a: of ACCOUNT: 8 \\| 16 | `aws --account ACCOUNT` |" in text.splitlines()
    assert "good" not in text
    assert ACCOUNT not in text


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"results": []}', "", None])
def test_only_what_preflight_prints_is_read(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "preflight.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    if text:
        with pytest.raises(UnusableError, match=r"allowed: what `\./ultracluster preflight"):
            read_preflight(path)
    else:
        assert read_preflight(path) is None


def test_a_long_comment_is_cut_below_the_limit() -> None:
    parts = ["heading", "x" * 100, "end"]
    assert fitted(parts) == "\n\n".join(parts) + "\n"
    assert fitted(parts, 113) == f"heading\n\n{CUT}\n"


def test_comments_and_summary_of_a_branch(
    before: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    build = tmp_path / "build"
    build.mkdir()
    monkeypatch.setattr(options, "BUILD", build)
    monkeypatch.setattr(options, "ROOT", before)
    monkeypatch.setattr(review, "extract", lambda *_: None)
    preflight = build / "preflight-dev.json"
    preflight.write_text(json.dumps(document(("a", "FAIL", "b"))), encoding="utf-8")
    assert ultracluster("pipeline", "review", "main") == 0
    assert capsys.readouterr().out == f"{build}/review/dev.md\n{build}/review-summary.md\n"
    text = (build / "review" / "dev.md").read_text(encoding="utf-8")
    assert text.startswith("<!-- ultracluster:dev -->\n")
    assert "### `dev`: a new configuration. Nothing blocks this deployment. The account is not ready.\n" in text
    assert (build / "review-summary.md").read_text(encoding="utf-8") == f"{text}\n"

    preflight.write_text("bad", encoding="utf-8")
    assert ultracluster("pipeline", "review", "main") == 2
    assert "preflight-dev.json" in capsys.readouterr().err


def test_a_commit_that_there_is_not(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match=r"BASE: got no-such-branch; allowed: a commit\."):
        review.extract("no-such-branch", tmp_path)


def test_the_summary_names_what_does_not_change() -> None:
    texts = {"a": f"### `a`: nothing changes\n\n{UNCHANGED}\n", "b": "changes\n"}
    assert review.summary(texts) == "changes\n\nNothing changes: `a`."
