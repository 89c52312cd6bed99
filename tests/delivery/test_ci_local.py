"""Workflows on this machine: small ones, in repositories of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from config import pipeline
from config.edit import set_value, set_values
from scripts import ci_local
from scripts.delivery.workflows.expressions import ExpressionError
from scripts.delivery.workflows.output import Output
from scripts.delivery.workflows.tree import Tree
from scripts.operations.command import UnusableError

CANARY = "canary-0123456789"
FORK = Path(__file__).parents[1] / "fork"
TEAM = "210987654321"
"""The account of a team."""
CHECKOUT = "      - uses: actions/checkout@0000000000000000000000000000000000000000 # v5\n"


class ToldCloud:
    """An account of which only credentials are there."""

    def credentials(self, workspace: Path, region: str) -> Mapping[str, str]:
        del workspace
        return {"AWS_REGION": region, "AWS_ACCESS_KEY_ID": "workflow", "AWS_SECRET_ACCESS_KEY": CANARY}


class Repository:
    """A git repository with workflows, and what came of running them."""

    def __init__(self, root: Path, directory: Path) -> None:
        self.root = root
        self._directory = directory
        self.lines: list[str] = []
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> None:
        who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
        subprocess.run(["git", "-C", str(self.root), *who, *arguments], check=True, capture_output=True)

    def commit(self, **files: str) -> None:
        """Commit workflows by name, and other files by path with ``__`` for a slash."""
        for name, text in files.items():
            path = self.root / (f".github/workflows/{name}.yaml" if "__" not in name else name.replace("__", "/"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=change")

    def run(self, *arguments: str) -> int:
        """Run workflows, and return the exit code; what was printed is in `lines`."""
        self.lines = []
        given = ci_local.parser().parse_args(arguments)
        directory = self._directory / str(len(list(self._directory.iterdir())))
        directory.mkdir()
        return ci_local.run(self.root, given, ToldCloud(), Output(self.lines.append), directory)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def statuses(self) -> dict[str, str]:
        """What became of the steps by name."""
        table = self.lines[self.lines.index("-- Steps") + 1 :]
        table = table[: table.index("")]
        return {line.rpartition(": ")[2]: line[:9].strip() for line in table}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    for name in ("tree", "runs"):
        (tmp_path / name).mkdir()
    return Repository(tmp_path / "tree", tmp_path / "runs")


def workflow(*jobs: str, event: str = "push", head: str = "") -> str:
    return f"on: {event}\n{head}jobs:\n" + "".join(jobs)


def job(name: str, steps: str, more: str = "") -> str:
    return f"  {name}:\n    runs-on: ubuntu-24.04\n{more}    steps:\n{steps}"


def step(name: str, run: str, more: str = "") -> str:
    script = "".join(f"          {line}\n" for line in run.splitlines())
    return f"      - name: {name}\n{more}        run: |\n{script}"


def test_a_failing_step_ends_a_job_but_for_what_asks_for_it(repository: Repository) -> None:
    steps = (
        step("fine", "true")
        + step("forgiven", "false", "        continue-on-error: true\n")
        + step("bad", "echo before\nfalse\necho after")
        + step("next", "true")
        + step("on failure", "echo mending", "        if: failure()\n")
        + step("in any case", "true", "        if: always()\n")
    )
    after = job("after", step("never", "true"), "    needs: first\n")
    cleaning = job("cleaning", step("clean", "true"), "    needs: [first]\n    if: always()\n")
    repository.commit(a=workflow(job("first", steps), after, cleaning))
    assert repository.run() == 1
    assert repository.statuses() == {
        "fine": "success",
        "forgiven": "forgiven",
        "bad": "failure",
        "next": "skipped",
        "on failure": "success",
        "in any case": "success",
        "clean": "success",
    }
    assert "    before" in repository.lines
    assert "    after" not in repository.lines
    assert "after: skipped\n" in repository.lines


def test_a_failure_that_is_forgiven_is_none(repository: Repository) -> None:
    forgiven = step("forgiven", "false", "        id: it\n        continue-on-error: true\n")
    steps = forgiven + step("look", "echo ${{ steps.it.outcome }} ${{ steps.it.conclusion }}")
    repository.commit(a=workflow(job("one", steps)))
    assert repository.run() == 0
    assert "    failure success" in repository.lines


def test_outputs_environment_path_and_summary(repository: Repository) -> None:
    telling = step(
        "telling",
        "echo one=1 >> $GITHUB_OUTPUT\n"
        "printf 'many<<END\\na=b\\nc\\nEND\\n' >> $GITHUB_OUTPUT\n"
        "echo LATER=now >> $GITHUB_ENV\n"
        "mkdir bin; printf '#!/bin/sh\\necho from the path\\n' > bin/told; chmod +x bin/told\n"
        "echo $PWD/bin >> $GITHUB_PATH\n"
        "echo '### Said' >> $GITHUB_STEP_SUMMARY",
        "        id: telling\n",
    )
    hearing = step(
        "hearing ${{ steps.telling.outputs.one }}",
        'echo "${{ steps.telling.outputs.many }}|$LATER|$OWN|$LEVEL|$(told)|${{ env.OWN }}"',
        "        env:\n          OWN: x${{ steps.telling.outputs.one }}\n",
    )
    first = job("first", telling + hearing, "    outputs:\n      one: ${{ steps.telling.outputs.one }}\n")
    second = job("second", step("needing", "echo got ${{ needs.first.outputs.one }}"), "    needs: first\n")
    repository.commit(a=workflow(second, first, head="env:\n  LEVEL: top\n"))
    assert repository.run() == 0
    assert {"    a=b", "    c|now|x1|top|from the path|x1", "    got 1"} <= set(repository.lines)
    assert "hearing 1" in repository.statuses()
    assert repository.lines[repository.lines.index("-- Summary of first") + 1] == "### Said"


def test_secrets_are_masked_wherever_they_are_printed(repository: Repository) -> None:
    credentials = (
        "      - uses: aws-actions/configure-aws-credentials@0 # v5\n        with:\n          aws-region: us-west-2\n"
    )
    leaking = step(
        "leaking ${{ env.AWS_SECRET_ACCESS_KEY }}",
        "echo key=$AWS_SECRET_ACCESS_KEY token=$TOKEN\n"
        "echo $AWS_SECRET_ACCESS_KEY >&2\n"
        "echo ::add-mask::own-secret\n"
        "echo an own-secret\n"
        'echo "summary $AWS_SECRET_ACCESS_KEY own-secret" >> $GITHUB_STEP_SUMMARY\n'
        'printf %s "$TOKEN" > $GITHUB_WORKSPACE/token\n'
        "test ${#TOKEN} = 40",
        "        env:\n          TOKEN: ${{ secrets.GITHUB_TOKEN }}\n",
    )
    repository.commit(a=workflow(job("one", credentials + leaking)))
    assert repository.run() == 1
    assert set(repository.statuses().values()) == {"success"}
    assert CANARY not in repository.text
    assert "own-secret" not in repository.text
    assert {"    key=*** token=***", "    ***", "    an ***", "summary *** ***"} <= set(repository.lines)
    assert repository.lines[-2].endswith(" lines had secrets, which are masked: no step may print any.")


def test_a_mask_hides_the_lines_of_a_longer_secret() -> None:
    lines: list[str] = []
    output = Output(lines.append)
    output.hide("secret")
    output.hide("secret-and-more\n\nsecond line")
    output.line("secret-and-more, second line, secret")
    output.line("nothing of it")
    assert lines == ["***, ***, ***", "nothing of it"]
    assert output.masked_lines == 1


def test_credentials_are_there_from_their_step_on_and_no_others(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of this machine")
    monkeypatch.setenv("MAKEFLAGS", "ENV=other")
    monkeypatch.setenv("PATH", f"{repository.root}/.venv/bin:{os.environ['PATH']}")
    of_tree = f"$(case $PATH in {repository.root}*) echo tree ;; esac)"
    look = f'echo "[$AWS_ACCESS_KEY_ID$AWS_PROFILE] [$MAKEFLAGS{of_tree}] $AWS_CONFIG_FILE $CI"'
    credentials = "      - uses: aws-actions/configure-aws-credentials@0\n        with: {aws-region: us-west-2}\n"
    steps = step("before", look) + credentials + step("afterwards", look)
    repository.commit(a=workflow(job("one", steps), job("two", step("other job", look))))
    assert repository.run() == 0
    printed = [line.strip() for line in repository.lines if line.startswith("    [")]
    without, with_some = "[] [] /dev/null true", "[workflow] [] /dev/null true"
    assert printed == [without, with_some, without]


def test_a_clean_clone_of_the_newest_commit(repository: Repository) -> None:
    steps = CHECKOUT + step("look", "cat file; ls; git log --format=%s | wc --lines; git diff --stat")
    repository.commit(a=workflow(job("one", steps)), tree__file="committed\n")
    (repository.root / "tree/file").write_text("not committed", encoding="utf-8")
    (repository.root / "untracked").touch()
    steps = steps.replace("cat file", "cat tree/file")
    repository.git("add", ".github")
    (repository.root / ".github/workflows/a.yaml").write_text(workflow(job("one", steps)), encoding="utf-8")
    repository.git("commit", "--quiet", "--message=other", ".github")
    assert repository.run() == 0
    printed = [line.strip() for line in repository.lines if line.startswith("    ")]
    assert printed == ["committed", "tree", "2"]


def test_pipeline_yaml_is_filled_in(repository: Repository) -> None:
    steps = CHECKOUT + step("look", "cat pipeline.yaml; echo ${{ github.repository }}")
    text = "repository: your-org/your-fork # give yours\naccount: null\noidc_provider_arn: null\n"
    (repository.root / "pipeline.yaml").write_text(text, encoding="utf-8")
    repository.commit(a=workflow(job("one", steps)))
    assert repository.run() == 0
    assert {"    repository: example-org/ultracluster # give yours", '    account: "123456789012"'} <= set(
        repository.lines
    )
    assert "    example-org/ultracluster" in repository.lines


@pytest.fixture
def fork(repository: Repository) -> Repository:
    """A repository that a team has filled in, with settings of its own for the first stage."""
    shutil.copytree(FORK, repository.root, dirs_exist_ok=True)
    path = repository.root / "pipeline.yaml"
    text = path.read_text(encoding="utf-8").replace("environment: dev", "environment: mine")
    path.write_text(text.replace("name: dev", "name: trial"), encoding="utf-8")
    (repository.root / "config/dev.yaml").rename(repository.root / "config/mine.yaml")
    set_value(repository.root / "config/mine.yaml", ("name",), "acme-dev")
    return repository


def test_a_team_that_names_its_account_and_its_identity_provider(fork: Repository) -> None:
    provider = f"arn:aws:iam::{TEAM}:oidc-provider/token.actions.githubusercontent.com"
    set_values(fork.root / "pipeline.yaml", {("account",): TEAM, ("oidc_provider_arn",): provider})
    set_value(fork.root / "config/mine.yaml", ("account",), TEAM)
    fork.commit()
    checked_out = fork.root.parent / "checked-out"
    tree = Tree(fork.root, reuse_environments=False)
    tree.checkout(checked_out, "")
    tree.fill_in(checked_out, "example-org/ultracluster", "123456789012")
    found = pipeline.load(checked_out / "pipeline.yaml")
    assert (found.account, found.oidc_provider_arn, found.missing) == ("123456789012", None, [])
    assert [stage.settings(checked_out / "config").account for stage in found.stages] == [None, None]


def test_actions_and_workflows_of_the_repository(repository: Repository) -> None:
    action = """\
inputs:
  word: {default: none}
  other: {default: also}
outputs:
  said: {value: "${{ steps.say.outputs.said }}"}
runs:
  using: composite
  steps:
    - id: say
      shell: bash
      run: |
        echo "said=${{ inputs.word }} ${{ inputs.other }}" >> "$GITHUB_OUTPUT"
        echo FROM_ACTION=1 >> "$GITHUB_ENV"
"""
    steps = (
        CHECKOUT
        + '      - uses: ./.github/actions/say\n        id: said\n        with: {word: "${{ inputs.word }}"}\n'
        + step("look", 'echo "${{ steps.said.outputs.said }} $FROM_ACTION"')
    )
    outputs = '    outputs: {said: "${{ steps.said.outputs.said }}"}\n'
    called = """\
on:
  workflow_call:
    inputs: {word: {type: string}}
    outputs: {said: {value: "${{ jobs.inner.outputs.said }}"}}
jobs:
""" + job("inner", steps, outputs)
    calling = "  outer:\n    uses: ./.github/workflows/called.yaml\n    with: {word: hello}\n"
    after = job("after", step("heard", "echo heard ${{ needs.outer.outputs.said }}"), "    needs: outer\n")
    path = repository.root / ".github/actions/say/action.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(action, encoding="utf-8")
    repository.commit(a=workflow(calling, after), called=called)
    assert repository.run() == 0
    assert {"    hello also 1", "    heard hello also", "outer / inner: success\n"} <= set(repository.lines)
    assert [line for line in repository.lines if line.startswith("== ")] == ["== a.yaml"]


def test_artifacts_go_from_job_to_job(repository: Repository) -> None:
    up = "      - uses: actions/upload-artifact@0\n        with: {name: found, path: "
    first = job("first", step("make", "mkdir out; echo 1 > out/a; echo 2 > b") + f"{up}out}}\n{up}b}}\n")
    down = "      - uses: actions/download-artifact@0\n        with: {name: found, path: here}\n"
    second = job("second", down + step("look", "cat here/a here/b"), "    needs: first\n")
    repository.commit(a=workflow(first, second))
    assert repository.run() == 0
    assert [line for line in repository.lines if line in ("    1", "    2")] == ["    1", "    2"]


def test_what_does_not_run_here_is_said(repository: Repository) -> None:
    repository.commit(a=workflow(job("one", "      - uses: actions/github-script@0\n      - uses: actions/cache@0\n")))
    assert repository.run() == 0
    assert repository.statuses() == {"actions/github-script": "left out", "actions/cache": "success"}
    assert repository.lines[-1] == "2 steps: 0 failed, 1 do not run here."


def test_a_matrix(repository: Repository) -> None:
    more = "    strategy:\n      matrix:\n        stage: [dev, prod]\n        n: [1]\n"
    repository.commit(a=workflow(job("one", step("on ${{ matrix.stage }}", "test ${{ matrix.stage }} = dev"), more)))
    assert repository.run() == 1
    assert repository.statuses() == {"on dev": "success", "on prod": "failure"}
    assert "one (dev, 1): success\n" in repository.lines


@pytest.mark.parametrize(
    ("head", "more", "status"),
    [
        ("", "", "success"),
        ("", "        shell: bash\n", "failure"),
        ("defaults: {run: {shell: bash}}\n", "", "failure"),
    ],
)
def test_a_pipe_fails_as_on_github(head: str, more: str, status: str, repository: Repository) -> None:
    repository.commit(a=workflow(job("one", step("pipe", "false | true", more)), head=head))
    repository.run()
    assert repository.statuses() == {"pipe": status}


def test_inputs_of_who_begins_it_by_hand(repository: Repository) -> None:
    head = """\
  workflow_dispatch:
    inputs:
      name: {description: The name, required: true}
      all: {type: boolean, default: false}
"""
    text = workflow(job("one", step("look", "echo ${{ inputs.name }} ${{ inputs.all && 'all' || 'some' }}")))
    repository.commit(a=text.replace("on: push\n", f"on:\n{head}"))
    with pytest.raises(UnusableError, match=r"got no input name; allowed: --input name=VALUE \(The name\)"):
        repository.run()
    with pytest.raises(UnusableError, match="got inputs nam; allowed: name, all"):
        repository.run("--input", "nam=x")
    with pytest.raises(UnusableError, match="got --input name; allowed: NAME=VALUE"):
        repository.run("--input", "name")
    assert repository.run("--input", "name=dev", "--input", "all=true") == 0
    assert "    dev all" in repository.lines
    repository.commit(b=workflow(job("one", step("look", "true"))))
    with pytest.raises(UnusableError, match="got inputs name; allowed: none"):
        repository.run("--workflow", "b.yaml", "--input", "name=dev")


def test_a_pull_request_knows_its_commits(repository: Repository) -> None:
    repository.commit(tree__a="1")
    look = "echo ${{ github.event.pull_request.base.sha == github.sha }} ${{ github.base_ref }} $GITHUB_EVENT_NAME"
    repository.commit(a=workflow(job("one", step("look", look)), event="pull_request"))
    assert repository.run() == 0
    assert "    false main pull_request" in repository.lines


def test_chosen_jobs(repository: Repository) -> None:
    second = job("second", step("two", "true"), "    needs: first\n")
    jobs = (job("first", step("one", "true")), second, job("third", step("three", "true")))
    repository.commit(a=workflow(*jobs), b=workflow(job("other", step("four", "true"))))
    assert repository.run("--workflow", "a.yaml", "--job", "second") == 0
    assert list(repository.statuses()) == ["one", "two"]
    assert repository.run("--without", "first") == 0
    assert list(repository.statuses()) == ["three", "four"]
    with pytest.raises(UnusableError, match=r"got workflow c\.yaml; allowed: a\.yaml, b\.yaml"):
        repository.run("--workflow", "c.yaml")
    assert repository.run("--job", "third") == 0
    assert list(repository.statuses()) == ["three"]
    for arguments in (("--job", "fourth"), ("--without", "fourth")):
        with pytest.raises(UnusableError, match="got job fourth; allowed: first, other, second, third"):
            repository.run(*arguments)


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        (step("bad", "echo nonsense >> $GITHUB_OUTPUT"), "got 'nonsense'; allowed: NAME=VALUE"),
        (step("bad", "echo 'a<<END' >> $GITHUB_OUTPUT"), "got 'a<<END', whose value has no end"),
        (step("bad", "true", "        if: unknown()\n"), "got function unknown; allowed: "),
        (
            "      - name: bad\n        uses: actions/download-artifact@0\n        with: {name: none}\n",
            "artifacts/none",
        ),
    ],
)
def test_a_step_that_cannot_be_run_fails(steps: str, complaint: str, repository: Repository) -> None:
    repository.commit(a=workflow(job("one", steps)))
    assert repository.run() == 1
    assert repository.statuses() == {"bad": "failure"}
    assert complaint in repository.text


def test_workflows_that_cannot_be_run(repository: Repository) -> None:
    repository.commit(a=workflow(job("one", step("x", "true"), "    needs: one\n")))
    with pytest.raises(UnusableError, match="got jobs that need one another: one; allowed: no circle"):
        repository.run()
    more = "    strategy: {matrix: {include: [{a: 1}]}}\n"
    repository.commit(a=workflow(job("one", step("x", "true"), more)))
    with pytest.raises(UnusableError, match="got include in a matrix; allowed: lists of values"):
        repository.run()
    repository.commit(a=workflow(job("one", step("x", "true"), "    if: a b\n")))
    with pytest.raises(ExpressionError, match="cannot be read at 'b'"):
        repository.run()


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match="allowed: a git repository with a commit"):
        ci_local.run(tmp_path, ci_local.parser().parse_args([]), ToldCloud(), Output(), tmp_path)


def test_what_is_typed_destroys_all_of_the_first_stage(fork: Repository) -> None:
    names = ("stage", "name", "everything", "without_backup")
    head = "  workflow_dispatch:\n    inputs:\n" + "".join(f"      {name}: {{type: string}}\n" for name in names)
    echo = " ".join(f"${{{{ inputs.{name} }}}}" for name in names)
    text = workflow(job("one", step("look", f"echo {echo}")))
    fork.commit(destroy=text.replace("on: push\n", f"on:\n{head}"))
    assert fork.run() == 0
    assert "    trial acme-dev true true" in fork.lines


def test_environments_are_reused_if_they_are_of_the_same_pins(repository: Repository) -> None:
    (repository.root / ".venv").mkdir()
    (repository.root / ".venv/.complete").touch()
    (repository.root / ".gitignore").write_text("/.venv\n", encoding="utf-8")
    (repository.root / "requirements.txt").write_text("a==1\n", encoding="utf-8")
    (repository.root / "Makefile").write_text(".venv/.complete: requirements.txt\n\techo built\n", encoding="utf-8")
    repository.commit(a=workflow(job("one", CHECKOUT + step("environments", "make .venv/.complete; ls -d .venv/"))))
    assert repository.run("--reuse-environments") == 0
    assert "    echo built" not in repository.lines
    assert "    .venv/" in repository.lines
    assert repository.run() == 1
    assert "    echo built" in repository.lines
    (repository.root / "requirements.txt").write_text("a==2\n", encoding="utf-8")
    with pytest.raises(UnusableError, match="differs from the newest commit"):
        repository.run("--reuse-environments")


Main = Callable[..., int]


@pytest.fixture
def main(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Main:
    """Return a function that runs the program on the repository."""
    monkeypatch.setattr(ci_local, "ROOT", repository.root)
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def called(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["ci_local", *arguments])
        return ci_local.main()

    return called


def test_the_program(main: Main, repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.commit(a=workflow(job("one", step("bad", "exit 3"))))
    assert main() == 1
    assert capsys.readouterr().out.endswith("1 steps: 1 failed, 0 do not run here.\n")
    assert main("--workflow", "none.yaml") == 2
    assert capsys.readouterr().err == "got workflow none.yaml; allowed: a.yaml\n"
    assert not [name for name in os.environ if name.startswith("GITHUB_OUTPUT")]
