"""The command line's frame: the tree of commands, help, completion, errors and exit codes."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import botocore.exceptions
import click
import pytest

from config.messages import SettingsError
from config.settings import load
from scripts import main
from scripts.commands import emulate, estimate, rehearse
from scripts.core import interrupts, options
from scripts.core.errors import OperationError, UnusableError
from tests.command_line import leaves, ultracluster
from tests.scripts.change.destroy.accounts import Terminal

COMMANDS = Path(main.__file__).parent / "commands"
LEAVES = dict(leaves())


def test_every_module_is_a_command_of_a_help_group() -> None:
    modules = {path.stem.replace("_", "-") for path in COMMANDS.glob("[a-z]*.py")}
    assert set(main.LINES) == modules


PACKAGES = {title: title.lower() for title in main.GROUPS if title != "Help"}


@pytest.mark.parametrize("title", PACKAGES)
def test_the_group_of_a_command_is_the_package_that_it_calls(title: str) -> None:
    """A command may also call what stands below its group, as `layers` in pyproject.toml has it."""
    layers: list[str] = next(
        each["layers"]
        for each in tomllib.loads((options.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
            "importlinter"
        ]["contracts"]
        if each.get("containers") == ["scripts"]
    )
    [own] = [number for number, layer in enumerate(layers) if PACKAGES[title] in layer.split(" | ")]
    allowed = {PACKAGES[title], *(name for layer in layers[own + 1 :] for name in layer.split(" | "))}
    for name in main.GROUPS[title]:
        text = (COMMANDS / f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
        called = set(re.findall(r"^\s*from scripts\.(\w+)", text, re.MULTILINE))
        called |= set(re.findall(r"^\s*from scripts import (\w+)", text, re.MULTILINE))
        assert called <= {"commands", *allowed}, name


@pytest.mark.parametrize("name", LEAVES)
def test_a_command_takes_what_its_options_give(name: str) -> None:
    command = LEAVES[name]
    assert command.callback is not None
    wanted = set(inspect.signature(command.callback).parameters)
    given = {each.name for each in command.params if each.expose_value}
    if isinstance(command, options.Command) and command.further:
        given.add(command.further)
    if "deployment" in wanted:  # `options.deployment` makes it of these
        given = given - {"name", "region"} | {"deployment"}
    kinds = {each.kind for each in inspect.signature(command.callback).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD in kinds or wanted == given


@pytest.mark.parametrize("name", LEAVES)
def test_help_has_an_example_and_exit_codes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ultracluster(*name.split(), "--help") == 0
    text = capsys.readouterr().out
    assert f"./ultracluster {name}" in text
    assert "Exit code" in text or name.split(maxsplit=1)[0] == "fleet"


@pytest.mark.parametrize("group", ["", "env", "fleet", "image", "jobs", "pipeline", "runs"])
def test_help_of_a_group_has_examples_that_its_commands_take(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ultracluster(*group.split(), "--help") == 0
    examples = re.findall(r"^  \./ultracluster (.*)$", capsys.readouterr().out.partition("Examples:")[2], re.MULTILINE)
    assert len(examples) > 1
    for words in map(str.split, examples):
        depth = 2 if group else 1
        command = LEAVES[" ".join(words[:depth])]
        options_given = {word for word in words[depth:] if word.startswith("--")} - {"--"}
        assert options_given <= {option for each in command.params for option in each.opts}


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("image render", "build/image-DEPLOYMENT.yaml"),
        ("image build", "build/image-DEPLOYMENT.yaml"),
        ("pipeline synth", "build/pipeline"),
        ("pipeline deploy", "`pipeline outputs`"),
        ("pipeline review", "build/review-summary.md"),
    ],
)
def test_help_names_what_programs_read_where_a_command_has_no_json(name: str, named: str) -> None:
    command = LEAVES[name]
    assert "output" not in {each.name for each in command.params}
    assert named in (command.help or "")


def test_help_and_completion_load_nothing_heavy() -> None:
    program = """
import os, sys
from scripts.main import main
from tests.command_line import leaves
for name, _ in leaves():
    assert main([*name.split(), "--help"]) == 0, name
os.environ |= {"_ULTRACLUSTER_COMPLETE": "bash_complete", "COMP_WORDS": "ultracluster status ", "COMP_CWORD": "2"}
try:
    main([])
except SystemExit as end:
    assert end.code == 0
heavy = {"boto3", "botocore", "pydantic", "rich", "config.settings", "moto", "jinja2"} & set(sys.modules)
sys.exit(f"loaded: {heavy}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "plain,trn1-16" in done.stdout


def complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    monkeypatch.setenv("_ULTRACLUSTER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["ultracluster", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    with pytest.raises(SystemExit):
        ultracluster()
    return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["de"], ["deploy", "destroy"]),
        (["status", "tr"], ["trn1-16"]),
        (["fleet", "st"], ["start", "status", "stop"]),
        (["fleet", "scale", "two-queues", "--queue", "trn1-a"], ["trn1-a", "trn1-a/trn1-32xl"]),
        (["submit", "two-queues", "--nodes", "1", "--queue", "trn1-a"], ["trn1-a"]),
        (["submit", "two-queues", "--nodes", "trn1-a"], [""]),
        (["plan", "dev", "--output", "m"], ["markdown"]),
        (["rehearse", "--fault", "cap"], ["capacity"]),
    ],
)
def test_completion(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], expected: list[str]
) -> None:
    assert complete(monkeypatch, capsys, *words) == expected


def test_names_that_help_must_not_import_are_those_of_their_modules() -> None:
    from emulator.faults import FAULTS
    from emulator.scenarios import SCENARIOS
    from scripts.check.estimate.workloads import WORKLOADS
    from scripts.rehearse.faults import RUNNING, STARTING, UPDATING

    assert set(rehearse.FAULTS) == set(FAULTS)
    assert {*STARTING, *RUNNING, *UPDATING} - {"capacity"} == {
        name for name, each in FAULTS.items() if each.node and not each.node.is_played
    }
    assert set(emulate.SCENARIOS) == set(SCENARIOS)
    assert set(estimate.WORKLOADS) == set(WORKLOADS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stat"], "No such command 'stat'. (Did you mean one of"),
        (["status"], "got no DEPLOYMENT; allowed: dev, reserved, team, trn1-16"),
        (["status", "nope"], "got nope; allowed: files in config/, dev, reserved"),
        (["status", "../config/dev"], "got ../config/dev; allowed: files in config/"),
        (["status", "dev", "--region", "eu-west-1"], "--region: got eu-west-1; allowed: us-west-2"),
        (["status", "dev", "--every", "0"], "got 0; allowed: numbers above 0"),
        (["status", "dev", "--timeout", "5"], "--timeout goes with --watch"),
        (["fleet", "stop", "dev", "--drain", "--force"], "--drain and --force exclude each other"),
        (["fleet", "scale", "dev"], "--min, --max or both"),
        (["deploy", "dev"], "standard input is not a terminal; pass --yes"),
        (["deploy", "dev", "--yes", "--", "--all"], "after --: got --all; allowed: --verbose"),
        (["destroy", "dev"], "standard input is not a terminal; pass --confirm dev"),
        (["destroy", "dev", "--confirm", "trn1-16"], "--confirm: got trn1-16; allowed: dev"),
        (["destroy", "dev", "--retained-bucket", "--dry-run"], "--retained-bucket goes with --storage"),
        (["exec", "dev"], "got neither; allowed: -- COMMAND"),
        (["jobs", "cancel", "dev", "1;reboot"], "got 1;reboot; allowed: a job's number"),
        (["estimate", "dev", "--nodes", "2"], "--nodes and --tokens go with --workload"),
        (["estimate", "dev", "--workload", "llama-2-7b", "--tokens", "many"], "got many; allowed: a number of tokens"),
        (["init", "Bad Name"], "got Bad Name; allowed: 2 to 40 of a-z"),
        (["init", "my-users"], "got my-users; allowed: a name that does not end in users"),
        (["init", "mine", "--region", "us-west-9"], "--region: got us-west-9; allowed: a Region of AWS, us-west-2"),
        (["init", "mine", "--zone", "usw2-az9"], "got usw2-az9; allowed: usw2-az1, usw2-az4, which have trn1.32xlarge"),
        (["init", "mine", "--region", "eu-west-1"], "zone_id: got 'usw2-az4'; allowed: euw1-az1"),
        (["init", "mine", "--nodes", "65000"], "config/mine.yaml:1: network.private_subnet_cidr: got"),
    ],
)
def test_what_cannot_be_used(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert ultracluster(*words) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert message in " ".join(captured.err.split())
    assert captured.out == ""


def test_a_usage_error_looks_as_all_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert ultracluster("fleet", "stop", "dev", "--forse") == 2
    assert capsys.readouterr().err == (
        "error: No such option '--forse'. Did you mean '--force'?\n"
        "\nUsage: ultracluster fleet stop [OPTIONS] DEPLOYMENT\nhint: ./ultracluster fleet stop --help\n"
    )


def failing(error: BaseException) -> Callable[..., Any]:
    return Mock(side_effect=error)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OperationError("It failed.", "do this"), 1, "error: It failed.\n\nhint: do this"),
        (UnusableError("got x"), 2, "error: got x"),
        (SettingsError("config/dev.yaml:3: name: got 1"), 2, "error: config/dev.yaml:3"),
        (botocore.exceptions.NoCredentialsError(), 2, "hint: `export AWS_PROFILE=...`"),
        (botocore.exceptions.EndpointConnectionError(endpoint_url="https://x"), 2, "Could not connect"),
        (PermissionError(13, "Permission denied", "config/x"), 2, "error: [Errno 13] Permission denied: 'config/x'"),
        (KeyboardInterrupt(), 130, ""),
        (interrupts.Terminated(15), 143, ""),
        (click.Abort(), 130, ""),
    ],
)
def test_how_a_command_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, message: str
) -> None:
    monkeypatch.setattr("scripts.core.options.settings_of", failing(error))
    assert ultracluster("synth", "dev") == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", LEAVES)
def test_debug_is_an_option_of_every_command(name: str) -> None:
    assert "debug" in {each.name for each in LEAVES[name].params}


def test_debug_tells_where_and_which_requests_of_aws_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: str) -> None:
        refused: Any = {"Error": {"Code": "X"}, "ResponseMetadata": {"RequestId": "4711-abc"}}
        try:
            raise botocore.exceptions.ClientError(refused, "DescribeStacks")
        except botocore.exceptions.ClientError as error:
            raise UnusableError(str(error)) from None

    monkeypatch.setattr("scripts.core.options.settings_of", fail)
    assert ultracluster("synth", "dev") == 2
    assert "4711-abc" not in capsys.readouterr().err
    assert ultracluster("synth", "dev", "--debug") == 2
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    assert "AWS request id: 4711-abc" in printed


def test_another_python_is_told_what_to_call() -> None:
    words = [sys.executable, "-S", "-m", "scripts", "validate", "dev"]  # -S: without any package
    done = subprocess.run(words, cwd=options.ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: \S+ has no package \w+\n\nhint: `./ultracluster version` builds .*\n", done.stderr)


def test_without_the_environment_of_parallelcluster_it_is_said_what_builds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("toolchain.parallelcluster.PYTHON", tmp_path / "python")
    assert ultracluster("validate", "dev") == 2
    assert "no such environment; `./ultracluster version` builds it" in capsys.readouterr().err


def test_estimate_asks_for_prices_with_the_profile_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "")
    assert ultracluster("estimate", "dev", "--prices", "table", "--profile", "finance") == 0
    assert os.environ["AWS_PROFILE"] == "finance"


def test_the_exit_code_of_what_a_command_calls_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.core.options.settings_of", failing(SystemExit(7)))
    with pytest.raises(SystemExit) as ended:
        ultracluster("synth", "dev")
    assert ended.value.code == 7


def test_an_unexpected_error_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.core.options.settings_of", failing(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        ultracluster("synth", "dev")


def test_the_deployment_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ULTRACLUSTER_DEPLOYMENT", "two-queues")
    assert ultracluster("estimate", "--prices", "table") == 0
    assert "two-queues" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("variable", "words", "expected"),
    [
        ("", ["dev", "slurmctld"], ("dev", "slurmctld")),
        ("dev", ["slurmctld"], ("dev", "slurmctld")),
        ("dev", ["trn1-16"], ("trn1-16", None)),
        ("dev", ["nowhere", "slurmctld"], "got nowhere; allowed: files in config/"),
        ("", ["slurmctld"], "got slurmctld; allowed: files in config/"),
        ("nowhere", ["slurmctld"], "got nowhere from ULTRACLUSTER_DEPLOYMENT; allowed: files in config/"),
    ],
)
def test_a_word_is_the_next_argument_if_the_deployment_is_known(
    variable: str, words: list[str], expected: tuple[str, str | None] | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ULTRACLUSTER_DEPLOYMENT", variable)
    if isinstance(expected, str):
        with pytest.raises(click.UsageError) as error:
            LEAVES["logs"].make_context("logs", words)
        assert expected in error.value.message
    else:
        given = LEAVES["logs"].make_context("logs", words).params
        assert (given["name"], given["what"]) == expected


@pytest.mark.parametrize(
    ("variable", "words", "rehearsed"),
    [("", [], "trn1-16"), ("two-queues", [], "two-queues"), ("two-queues", ["dev"], "dev")],
)
def test_what_is_rehearsed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, words: list[str], rehearsed: str
) -> None:
    monkeypatch.setattr(options, "BUILD", tmp_path)
    monkeypatch.setenv("ULTRACLUSTER_DEPLOYMENT", variable)
    rehearsal = Mock()
    monkeypatch.setattr("scripts.rehearse.rehearsal.rehearse", rehearsal)
    assert ultracluster("rehearse", *words) == 0
    assert rehearsal.call_args.args[0] == rehearsed


@pytest.mark.parametrize(
    "words", [["status"], ["submit", "--nodes", "1", "--output", "/fsx/runs/a"], ["validate"], ["rehearse"]]
)
def test_a_variable_that_names_no_deployment_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.setenv("ULTRACLUSTER_DEPLOYMENT", "nope")
    assert ultracluster(*words) == 2
    assert "got nope from ULTRACLUSTER_DEPLOYMENT; allowed: files in config/" in capsys.readouterr().err


def test_a_number_may_follow_an_option_of_the_same_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ULTRACLUSTER_DEPLOYMENT", "two-queues")
    monkeypatch.setattr(
        "scripts.account.remote.nodes.running", Mock(side_effect=OperationError("two-queues was asked"))
    )
    assert ultracluster("port-forward", "--local-port", "8888", "8888") == 1
    assert "two-queues was asked" in capsys.readouterr().err


def test_version_is_an_option_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert ultracluster("version") == 0
    versions = capsys.readouterr().out
    assert ultracluster("--version") == 0
    assert capsys.readouterr().out == versions
    assert ultracluster("version", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out) == dict(line.rsplit(maxsplit=1) for line in versions.splitlines())


def test_init_checks_each_answer_when_it_is_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shutil.copy(options.CONFIG / "trn1-16.yaml", tmp_path)
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    answers = ("us-east-9", "us-east-1", "usw2-az4", "use1-az5", "0", "many", "99999", "4")
    monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{answer}\n" for answer in answers)))
    assert ultracluster("init", "mine") == 0
    rejected = re.findall(r"error: .*?(us-east-9|usw2-az4|0 is|many|99999)", capsys.readouterr().err)
    assert rejected == ["us-east-9", "usw2-az4", "0 is", "many", "99999"]
    settings = load(tmp_path / "mine.yaml")
    assert (settings.name, settings.region, settings.zone_id) == ("mine", "us-east-1", "use1-az5")
    assert settings.cluster_spec.max_nodes == 4
    version = settings.cluster.parallelcluster_version
    text = (tmp_path / "mine.yaml").read_text(encoding="utf-8")
    assert f"  parallelcluster_version: {version}\n" in text, "it keeps it when the default moves"


def test_init_without_a_terminal_says_what_nobody_chose(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shutil.copy(options.CONFIG / "trn1-16.yaml", tmp_path)
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    assert ultracluster("init", "mine", "--region", "us-east-1") == 0
    assert capsys.readouterr() == (
        "",
        f"Wrote {tmp_path}/mine.yaml:\n"
        "  region: us-east-1\n"
        "  zone_id: use1-az6, known to have trn1.32xlarge; another: --zone\n"
        f"  max_count: 16, as in {tmp_path}/trn1-16.yaml; another: --nodes\n"
        "All settings: docs/reference/settings.md\n"
        "\nNext: ./ultracluster estimate mine  # sizes and costs\n",
    )


def test_the_only_deployment_needs_no_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "only.yaml").write_text(
        (options.CONFIG / "dev.yaml").read_text(encoding="utf-8").replace("name: dev", "name: only"), encoding="utf-8"
    )
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    monkeypatch.setattr(options, "deployments", lambda: ["only"])
    assert ultracluster("estimate", "--prices", "table") == 0
    assert "Estimate of only," in capsys.readouterr().out


@pytest.mark.parametrize("words", [["version"], ["estimate", "trn1-16"], ["--help"]])
def test_a_closed_pipe_is_no_error(words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "scripts", *words]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
