"""What a comment says of configurations that come, go, move or cannot be used, and how it is cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from config.settings import load
from scripts.commands import review_comment
from scripts.plan.markdown import Block, joined
from scripts.review import comment as comments
from scripts.review.checkouts import find, names
from scripts.review.comment import CUT, LONGEST, UNCHANGED, fitted
from scripts.review.costs import costs_block
from scripts.review.readiness import NOT_ASKED, DocumentError, read, readiness_block
from tests.scripts.review.checkouts import CONFIG, checkout

ACCOUNT = "111122223333"


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout(tmp_path_factory.mktemp("before"), "dev")


def comment(before: Path, after: Path, preflight: dict[str, Any] | None = None) -> str:
    return comments.comment("dev", find(before, "dev"), find(after, "dev"), preflight)


def edit(directory: Path, *edits: tuple[str, str]) -> None:
    """Edit the settings file of a checkout; its templates stay."""
    path = directory / "config" / "dev.yaml"
    text = path.read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def test_nothing_changes(before: Path) -> None:
    text = comment(before, before)
    assert text.startswith(f"<!-- ultracluster:dev -->\n### `dev`: nothing changes\n\n{UNCHANGED}\n")
    assert "US dollars" not in text


def test_a_new_configuration_is_told_as_such_with_all_that_it_costs(before: Path, tmp_path: Path) -> None:
    text = comment(tmp_path, before)
    assert "### `dev`: a new configuration. Nothing stands against this deployment." in text
    assert "**dev-network**: the stack does not exist yet: " in text
    assert "| a month at MinCount | - | " in text
    assert "\n+ Allow " in text


def test_a_removed_configuration_stays_in_aws(before: Path, tmp_path: Path) -> None:
    text = comment(before, tmp_path)
    assert "### `dev`: removed" in text
    assert "until `make destroy ENV=dev ARGS=--all` with the file as it was." in text
    assert "Preflight" not in text


def test_faults_of_the_settings_are_told_with_their_lines(before: Path, tmp_path: Path) -> None:
    after = checkout(tmp_path, "dev")
    edit(after, ("max_count: 2", "max_count: two"))
    text = comment(before, after)
    assert "### `dev`: cannot be used\n\n```\nconfig/dev.yaml:" in text
    assert "max_count" in text
    assert "US dollars" not in text


def test_settings_of_before_that_cannot_be_used_any_more_hide_their_costs_alone(before: Path, tmp_path: Path) -> None:
    old = checkout(tmp_path, "dev")
    edit(old, ("max_count: 2", "max_count: 2\n          gone: 1"))
    text = comment(old, before)
    assert "The file as it was cannot be used any more, so costs are not compared: " in text
    assert "US dollars" not in text
    assert "Nothing would change." in text


def test_missing_golden_templates_are_told(before: Path, tmp_path: Path) -> None:
    after = checkout(tmp_path, "dev")
    for path in (after / "tests" / "snapshots" / "dev").iterdir():
        path.unlink()
    assert "there are no golden templates of dev: run `make snapshots`" in comment(before, after)


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ([("name: dev ", "name: other ")], "`name` from dev to other. That is another deployment"),
        (
            [("region: us-west-2", "region: us-east-1"), ("zone_id: usw2-az4", "zone_id: use1-az4")],
            "`region` from us-west-2 to us-east-1. That is another deployment",
        ),
    ],
)
def test_another_place_is_another_deployment(
    before: Path, tmp_path: Path, edits: list[tuple[str, str]], told: str
) -> None:
    text = comment(before, checkout(tmp_path, "dev", *edits))
    assert told in text
    assert text.count("the stack does not exist yet: ") == 4


def test_an_account_that_is_filled_in_is_no_other_deployment(before: Path, tmp_path: Path) -> None:
    after = checkout(tmp_path, "dev")
    edit(after, ("account: null ", f'account: "{ACCOUNT}" '))
    assert "nothing changes" in comment(before, after)


def test_protection_is_told_although_no_template_has_it(before: Path, tmp_path: Path) -> None:
    after = checkout(tmp_path, "dev")
    edit(after, ("termination_protection: []", "termination_protection: [storage]"))
    assert "- dev-storage is protected against deletion from now on." in comment(before, after)
    text = comment(after, before)
    assert "- dev-storage is **no longer protected** against deletion." in text
    assert UNCHANGED not in text


def test_costs_that_go_down_and_costs_that_are_not_known(tmp_path: Path) -> None:
    settings = load(CONFIG / "trn1-16.yaml")
    text = "\n".join(costs_block(settings, None).lines)
    assert "| - | -" in text
    elsewhere = settings.model_copy(update={"region": "eu-west-1"})
    assert "Not in the sums: " in "\n".join(costs_block(elsewhere, elsewhere).lines)
    assert "Not in the sums: " not in text


def document(*results: tuple[str, str, str], ok: bool = False) -> dict[str, Any]:
    shown = [
        {"id": name, "status": status, "sentence": sentence, "hint": "", "command": f"aws --account {ACCOUNT}"}
        for name, status, sentence in results
    ]
    counts = {status: sum(each["status"] == status for each in shown) for status in ("PASS", "FAIL", "WARN")}
    return {"account": ACCOUNT, "results": shown, "counts": counts, "ok": ok}


def test_preflight_tells_what_is_not_as_it_should_be_without_the_account() -> None:
    block = readiness_block(document(("a", "FAIL", f"of {ACCOUNT}: 8 | 16"), ("b", "PASS", "good"), ("c", "WARN", "d")))
    assert block.lines[0] == "<details><summary>Preflight: not ready to deploy: 1 PASS, 1 FAIL, 1 WARN</summary>"
    assert "| FAIL | a: of ACCOUNT: 8 \\| 16 |  `aws --account ACCOUNT` |" in block.lines
    assert "good" not in joined([block])
    assert ACCOUNT not in joined([block])
    assert readiness_block(document(("b", "PASS", "good"), ok=True)).lines == [
        "**Preflight**: ready to deploy: 1 PASS."
    ]


def test_preflight_that_printed_nothing_was_not_asked(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    assert read(empty) is None
    assert read(tmp_path / "missing") is None
    assert readiness_block(None).lines == [NOT_ASKED]


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"results": []}'])
def test_anything_else_than_what_preflight_prints_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "preflight.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DocumentError, match=r"allowed: what `python -m scripts preflight ENV --json` prints"):
        read(path)


def test_a_comment_that_github_takes_is_left_alone() -> None:
    parts = [Block(["a", "b"]), Block(["c"], ("d",))]
    assert fitted(parts) == joined(parts) == "a\nb\n\nc\nd\n"


@pytest.mark.parametrize("longest", range(110, 200))
def test_a_longer_one_is_cut_below_the_limit_and_closes_what_is_open(longest: int) -> None:
    parts = [Block(["heading"]), Block(["<details>", *("x" * 9 for _ in range(20))], ("</details>",)), Block(["end"])]
    text = fitted(parts, longest)
    assert longest - 11 < len(text) < longest
    assert text.startswith("heading\n\n<details>\n")
    assert text.endswith(f"\n</details>\n\n{CUT}\n")
    assert "end\n" not in text


def test_limit_of_github() -> None:
    text = fitted([Block(["x" * 99] * 10_000)])
    assert LONGEST - 100 < len(text) < LONGEST


def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["review_comment", *map(str, arguments)])
    code = review_comment.main()
    return code, *capsys.readouterr()


def test_command(
    before: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    preflight = tmp_path / "preflight.json"
    preflight.write_text(json.dumps(document(("a", "FAIL", "b"))), encoding="utf-8")
    code, out, _ = run(capsys, monkeypatch, "dev", "--before", tmp_path, "--after", before, "--preflight", preflight)
    assert code == 0
    assert out.startswith("<!-- ultracluster:dev -->\n")
    assert "### `dev`: a new configuration. Nothing stands against this deployment. The account is not ready.\n" in out
    assert "Preflight: not ready to deploy" in out


def test_unusable_arguments(
    before: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run(capsys, monkeypatch, "none", "--before", before, "--after", tmp_path)
    assert (code, out) == (2, "")
    assert err == "no such file in config/ of either checkout: none; there is dev\n"
    (tmp_path / "bad").write_text("bad", encoding="utf-8")
    code, out, err = run(capsys, monkeypatch, "dev", "--before", before, "--preflight", tmp_path / "bad")
    assert (code, out) == (2, "")
    assert err.startswith("got ")


def test_names_are_those_of_both_checkouts(before: Path, tmp_path: Path) -> None:
    assert names(before, tmp_path) == ["dev"]
    assert names(tmp_path) == []
