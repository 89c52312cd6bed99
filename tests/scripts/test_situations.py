"""All commands on an account in what can go wrong around them: what they return, and print where.

The commands are those of Click's tree: a new one takes part by itself, in `ROWS` only if it needs more words.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any
from unittest.mock import Mock

import click
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError, EndpointConnectionError

from emulator.aws import EmulatedAws
from scripts.account.remote import head_node, streamed_command
from scripts.change import deploy
from scripts.change.fleet import control
from scripts.change.image import build as images
from scripts.check.plan import cdk, plan
from scripts.core import options, terminal
from scripts.core.clock import Clock
from scripts.core.errors import ExitCode
from scripts.core.text import fit
from tests.command_line import leaves, ultracluster
from tests.scripts.change.fleet.fakes import FakeSlurm
from tests.scripts.operated import Operated
from tests.scripts.use.costs.test_costs import SACCT, write
from tests.scripts.use.test_report import FIRST, STEP
from toolchain.parallelcluster import ParallelCluster
from ultracluster_job.records import Run, described

REQUIREMENTS = str(Path(__file__).parents[2] / "requirements.txt")
COMMANDS = {name: command for name, command in leaves() if "region" in {each.name for each in command.params}}
ROWS: Mapping[str, tuple[str, ...]] = {
    "deploy": ("--yes",),
    "destroy": ("--dry-run",),
    "env create": (REQUIREMENTS,),
    "env remove": ("a.env-0123456789ab",),
    "exec": ("--", "sinfo"),
    "fleet scale": ("--max", "4", "--dry-run", "--no-preflight"),
    "image build": ("--yes",),
    "jobs cancel": ("12", "--yes"),
    "jobs logs": ("12",),
    "jobs show": ("12",),
    "port-forward": ("6006",),
    "recover": ("--dry-run",),
    "restore": ("--list",),
    "runs export": ("/fsx/runs/a", "/fsx/models/a"),
    "runs show": ("/fsx/runs/a",),
    "submit": ("--nodes", "1", "--output", "/fsx/runs/a"),
    "upgrade": ("--dry-run",),
}
"""Words after the deployment with which commands act without a question."""
WITHOUT_ACCOUNT = {
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
STOPPED = "nobody reads standard output any more, so the command stopped"
STATE = Path(__file__).with_name("slurm_state.json")
SUBMITTED = ("--node-dollars=21.5", "--node-tflops=3040", "--node-cores=32")
Situation = Callable[[str], Exception]
"""Returns how a call of AWS fails, by the name of its operation."""


def words_of(name: str, deployment: str = "trn1-16", *more: str) -> list[str]:
    """Return the words of a command, with its result in JSON if it has that."""
    output = next((each for each in COMMANDS[name].params if each.name == "output"), None)
    has_json = output is not None and isinstance(output.type, click.Choice) and "json" in output.type.choices
    return [*name.split(), deployment, *(["--output", "json"] if has_json else []), *more, *ROWS.get(name, ())]


@pytest.fixture
def without_account(monkeypatch: pytest.MonkeyPatch, boto3_data: None) -> pytest.MonkeyPatch:
    """Have no credentials, and no endpoint of an emulated AWS."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in WITHOUT_ACCOUNT.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def refusal(code: str, message: str) -> Situation:
    return lambda operation: ClientError({"Error": {"Code": code, "Message": message}}, operation)


def unreachable(_: str) -> Exception:
    error: Exception = EndpointConnectionError(endpoint_url="http://127.0.0.1:9/")
    return error


SITUATIONS: Mapping[str, tuple[Situation | None, Mapping[str, str], str, str]] = {
    "no credentials": (None, {}, "Unable to locate credentials", "`export AWS_PROFILE=...`, or set one up"),
    "expired": (refusal("ExpiredToken", "is expired"), KEYS, "(ExpiredToken)", "get new session credentials"),
    "unknown key": (refusal("UnrecognizedClientException", "x"), KEYS, "(Unrecognized", "AWS does not know the access"),
    "throttled": (refusal("Throttling", "Rate exceeded"), KEYS, "Rate exceeded", "try again in a minute"),
    "denied": (refusal("AccessDenied", "not authorized"), KEYS, "(AccessDenied)", ""),
    "no network": (unreachable, KEYS, "Could not connect", "check this machine's network"),
    "emulator ended": (
        unreachable, KEYS | {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "Could not connect",
        "AWS_ENDPOINT_URL is http://127.0.0.1:9, where nothing listens",
    ),
}  # fmt: skip
"""How each call fails, the variables of the environment, the cause and the hint."""
SHOWN = {"throttled": {"status"}, "denied": {"status", "diagnose", "inventory"}, "no network": {"status"}}
"""Commands whose result says what they could not read; that of `preflight` always does."""


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_wrong_is_said_once(
    name: str, situation: str, without_account: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fails, variables, cause, hint = SITUATIONS[situation]
    for variable, value in variables.items():
        without_account.setenv(variable, value)
    if fails:

        def call(_: object, operation: str, __: object) -> None:
            raise fails(operation)

        without_account.setattr(BaseClient, "_make_api_call", call)
    code = ultracluster(*words_of(name))
    out, err = capfd.readouterr()
    if name == "preflight" or name in SHOWN.get(situation, ()):
        assert (code, err) == (ExitCode.FAILED, "")
        assert cause in json.dumps(json.loads(out)) or "these credentials lack" in out or "not allowed" in out
        return
    assert (code, out) == (ExitCode.UNUSABLE, "")
    if (name, situation) == ("jobs logs", "denied"):  # remarks say first that Slurm could not be asked
        err = err[err.index("error: ") :]
    assert err.startswith("error: ")
    assert cause in err
    assert hint in err
    assert len(err.splitlines()) == (3 if hint else 1), err


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_in_the_first_call(
    name: str, without_account: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    calls: list[str] = []
    of_others = {*threading.enumerate()} - {threading.current_thread()}  # such as of a command that was interrupted

    def call(_: object, operation: str, __: object) -> None:
        if threading.current_thread() in of_others:
            raise unreachable(operation)
        calls.append(operation)
        if len(calls) == 1:  # others come from other threads
            os.kill(os.getpid(), signal.SIGINT)
        raise unreachable(operation)

    without_account.setattr(BaseClient, "_make_api_call", call)
    for variable, value in KEYS.items():
        without_account.setenv(variable, value)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert ultracluster(*words_of(name)) == ExitCode.INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, before)
    assert capfd.readouterr() == ("", "\n")  # Click ends the line with ^C


@pytest.mark.parametrize("name", COMMANDS)
def test_values_that_name_another_deployment(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    for deployment in ("../config/trn1-16", "config/trn1-16.yaml", "trn1-16; id", "$(id)", "trn1-16\n", " "):
        assert ultracluster(*words_of(name, deployment)) == ExitCode.UNUSABLE
        out, err = capfd.readouterr()
        assert out == ""
        assert f"got {deployment}; allowed: files in config/, dev" in err
    assert ultracluster(*words_of(name, "--region=us-east-1", "trn1-16")) == ExitCode.UNUSABLE
    assert "--region: got us-east-1; allowed: us-west-2, the region of config/trn1-16.yaml" in capfd.readouterr().err


ASKING: Mapping[str, tuple[tuple[str, ...], str]] = {
    "deploy": ((), "--yes"),
    "destroy": ((), "--confirm trn1-16, or --dry-run"),
    "fleet scale": (("--max", "4"), "--yes or --dry-run"),
    "fleet stop": (("--force",), "--yes"),
    "image build": ((), "--yes"),
    "jobs cancel": (("12",), "--yes"),
    "recover": ((), "--confirm trn1-16, or --dry-run"),
    "upgrade": ((), "--confirm trn1-16, or --dry-run"),
}
"""Commands that ask, with what to add to them, and what replaces the answer."""


def test_without_a_terminal_nobody_is_asked(capfd: pytest.CaptureFixture[str]) -> None:
    asking = {name for name, each in COMMANDS.items() if {"yes", "confirm"} & {option.name for option in each.params}}
    assert asking == set(ASKING)
    for name, (words, instead) in ASKING.items():
        assert ultracluster(*name.split(), "trn1-16", *words) == ExitCode.UNUSABLE
        assert capfd.readouterr() == ("", f"error: standard input is not a terminal; pass {instead}\n")


def test_the_pipelines_roles_are_deployed_without_a_question_by_yes_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The CDK would print all permissions before it asks."""
    deployed = Mock(return_value=(ExitCode.DONE, []))
    monkeypatch.setattr(options, "BUILD", tmp_path)
    monkeypatch.setattr("scripts.change.pipeline.deploy", deployed)
    assert ultracluster("pipeline", "deploy") == ExitCode.UNUSABLE
    assert capfd.readouterr() == ("", "error: standard input is not a terminal; pass --yes\n")
    assert not deployed.called
    assert ultracluster("pipeline", "deploy", "--yes", "--", "--verbose") == ExitCode.DONE
    assert ultracluster("pipeline", "deploy", "--", "--require-approval=never") == ExitCode.DONE
    assert [each.args for each in deployed.call_args_list] == [
        ("--require-approval", "never", "--verbose"),
        ("--require-approval=never",),
    ]


def test_yes_is_no_answer_to_what_deletes(capfd: pytest.CaptureFixture[str]) -> None:
    deleting = [name for name, each in COMMANDS.items() if "confirm" in {option.name for option in each.params}]
    assert deleting == ["upgrade", "recover", "destroy"]
    for name in deleting:
        assert ultracluster(name, "trn1-16", "--yes") == ExitCode.UNUSABLE
        assert f"error: --yes is not enough for `{name}`" in (printed := capfd.readouterr().err)
        assert "hint: --confirm NAME" in printed


class Interrupting:
    """A terminal at which somebody types Ctrl-C."""

    def readline(self) -> str:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (terminal.confirm, "Nothing was changed."),
        (lambda: terminal.confirm_name("dev"), "Nothing was changed."),
        (terminal.agreed, "Stopped before this step. The same command continues with it."),
    ],
)
def test_ctrl_c_at_a_question(
    ask: Callable[[], object], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Interrupting())
    with pytest.raises(KeyboardInterrupt):
        ask()
    assert capsys.readouterr().err.endswith(f"\n{said}\n")


@pytest.mark.parametrize(
    "words",
    [
        *(
            ["deploy", "dev", "--yes"],
            ["image", "render", "dev"],
            ["image", "build", "dev", "--yes"],
            ["review", "dev"],
        ),
        *(["pipeline", "synth"], ["pipeline", "deploy", "--yes"], ["pipeline", "review", "main"], ["rehearse", "dev"]),
    ],
    ids=" ".join,
)
def test_a_checkout_that_cannot_be_written_is_named_before_any_work(
    words: list[str], tmp_path: Path, without_account: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    without_account.setattr(options, "BUILD", tmp_path / "file" / "build")
    assert ultracluster(*words) == ExitCode.UNUSABLE
    assert capfd.readouterr() == (
        "",
        f"error: {tmp_path}/file/build cannot be made: Not a directory\n\n"
        "hint: run it in a checkout that you may write, such as a clone of this one\n",
    )


# --- what runs on a node ---

HOSTILE = "; touch pwned; $(touch pwned) `touch pwned` | touch pwned & \" ' \\ * ~ \n touch pwned\n"
RUNS = ["--user=ubuntu", "-I", "-c", ..., "runs", HOSTILE, "50"]
CANCEL = ["-I", "-c", ..., "cancel", "tasks", "12", "13_[4-9]"]
RUNUSER = """\
#!/bin/sh
case $1 in
--user=*) printf "%s\\0" "$1" >>called && shift 2 && exec "$@" ;;
*) printf "%s\\0" "$5" >>called && exec sh -c "$3" ;;
esac
"""
PROGRAM = '#!/bin/sh\nprintf "%s\\0" "$@" >>called\n'


class SentError(Exception):
    """Carries the script that Systems Manager would run on the head node."""


@pytest.fixture
def sending(without_account: pytest.MonkeyPatch) -> None:
    """Have a head node, and end a command with the first script that it sends there."""
    tags = {"parallelcluster:cluster-name": "trn1-16", "parallelcluster:node-type": "HeadNode"}
    instance = {
        "InstanceId": "i-0123456789abcdef0",
        "PrivateIpAddress": "10.0.0.1",
        "State": {"Name": "running"},
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }
    answers: Mapping[str, Any] = {
        "DescribeInstances": {"Reservations": [{"Instances": [instance]}]},
        "DescribeLogGroups": {"logGroups": [{"logGroupName": "/aws/parallelcluster/trn1-16-202601010000"}]},
        "DescribeLogStreams": {"logStreams": []},
    }

    def call(_: object, operation: str, parameters: Mapping[str, Any]) -> Any:
        if operation == "SendCommand":
            raise SentError(parameters["Parameters"]["commands"][0])
        return answers.get(operation, {})

    without_account.setattr(BaseClient, "_make_api_call", call)
    without_account.setattr(shutil, "which", lambda _: None)  # no Slurm here
    for variable, value in KEYS.items():
        without_account.setenv(variable, value)


@pytest.mark.usefixtures("sending")
@pytest.mark.parametrize(
    ("words", "called"),
    [
        (["exec", "trn1-16", "--", "sinfo", HOSTILE], ["ubuntu", HOSTILE]),
        (["exec", "trn1-16", "--user", "grace", "--", "sinfo", "a"], ["grace", "a"]),
        (["submit", "trn1-16", "--nodes=1", "--output", HOSTILE], [*[...] * 4, f"--output={HOSTILE}", *SUBMITTED]),
        (["runs", "list", "trn1-16", "--directory", HOSTILE], RUNS),
        (["jobs", "cancel", "trn1-16", "12", "13_[4-9]", "--yes"], CANCEL),
    ],
)  # fmt: skip
def test_words_reach_a_node_unchanged(words: list[str], called: list[Any], tmp_path: Path) -> None:
    with pytest.raises(SentError) as sent:
        ultracluster(*words)
    for name in ("runuser", "sinfo", "python3", "scancel"):
        (tmp_path / name).write_text(RUNUSER if name == "runuser" else PROGRAM, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.defpath}"
    subprocess.run(["sh", "-c", str(sent.value)], cwd=tmp_path, env={"PATH": path}, check=True, capture_output=True)
    given = (tmp_path / "called").read_text(encoding="utf-8").split("\0")[:-1]
    assert [each for each, wanted in zip(given, called, strict=True) if wanted is not ...] == [
        each for each in called if each is not ...
    ]
    assert not (tmp_path / "pwned").exists()


@pytest.mark.usefixtures("sending")
@pytest.mark.parametrize(
    "words",
    [
        ["jobs", "cancel", "trn1-16", HOSTILE, "--yes"],
        ["logs", "trn1-16", "--job", HOSTILE],
        ["logs", "trn1-16", HOSTILE],
        ["ssh", "trn1-16", "--node", HOSTILE],
        ["port-forward", "trn1-16", HOSTILE],
        ["shell", "trn1-16", "--node", "--queue", HOSTILE],
        ["shell", "trn1-16", "--node", "--time", HOSTILE],
        ["port-forward", "trn1-16", "6006", "--node", HOSTILE],
        ["exec", "trn1-16", "--timeout", HOSTILE, "--", "sinfo"],
        ["exec", "trn1-16", "--user", HOSTILE, "--", "sinfo"],
        ["exec", "trn1-16", "--user=--shell=/bin/sh", "--", "sinfo"],
        ["exec", "trn1-16", "--", "{{ssm:parameter}}"],  # Systems Manager would replace it
        ["fleet", "scale", "trn1-16", "--queue", HOSTILE, "--max", "4", "--yes"],
    ],
)
def test_what_no_shell_may_see_is_rejected(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert ultracluster(*words) in (ExitCode.UNUSABLE, ExitCode.FAILED)
    assert re.search("got .*; allowed: |Invalid value", capfd.readouterr().err, re.DOTALL)


# --- an account with nothing in it, and one with a deployment ---

WITHOUT_STACKS = {
    "destroy": ExitCode.DONE, "diagnose": ExitCode.DONE, "drift": ExitCode.DONE, "image render": ExitCode.UNUSABLE,
    "inventory": ExitCode.DONE, "restore": ExitCode.DONE,
}  # fmt: skip
"""What commands return without a deployment, if that is not FAILED."""
SLOW = {"bootstrap", "deploy", "image build", "plan", "preflight"}
"""Commands that do not need a deployment; tests of their own have them."""


@pytest.mark.slow
def test_nothing_is_deployed(
    aws: EmulatedAws, without_account: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for variable, value in aws.settings.items():
        without_account.setenv(variable, value)
    for name in COMMANDS.keys() - SLOW:
        code = ultracluster(*words_of(name))
        out, err = capfd.readouterr()
        assert code == WITHOUT_STACKS.get(name, ExitCode.FAILED), name
        assert (err == "") is (code == ExitCode.DONE or name == "status")
        assert "Traceback" not in err
        if out:
            json.loads(out)


SHOWING: Mapping[str, tuple[str, ...]] = {
    "costs": ("--by", "job"), "destroy": ("--dry-run", "--force"), "diagnose": (), "exec": ("--", "sinfo"),
    "env create": (REQUIREMENTS,), "env list": (), "env remove": ("a.env-0123456789ab",),
    "fleet status": (), "inventory": (), "jobs cancel": ("12", "--yes"), "jobs list": (), "jobs logs": ("1",),
    "jobs show": ("2",), "logs": ("--list",), "restore": ("--list",), "runs list": (),
    "runs export": ("/fsx/runs/a", "/fsx/models/a"), "runs show": ("/fsx/runs/a",), "ssh": ("--print-config",),
    "status": (), "submit": ("--nodes", "1", "--output", "/fsx/runs/a"),
}  # fmt: skip
"""Commands that print within a second: others let the CDK, ParallelCluster or the fleet work first."""
COMPARED = described(Run("bert", {"steps": 9}, [FIRST], [STEP]), None)
NODE = """\
script=$(cat)
case $script in
*" as_owner.sh "*) sh() { echo "$4"; }; eval "$script" ;;
*" /fsx/runs/a"*) echo 'COMPARED' ;;
*" runs /"*) echo '{"runs": {"total": 1, "runs": [{"directory": "/fsx/runs/a", "problem": "a damaged run.json"}]}}' ;;
*" list --format=json"*) echo '{"environments": [{"name": "a.env-0123456789ab", "user": "ann"}]}' ;;
*" job 1 "*) echo '{"job": null}' ;;
*" job 2 "*) echo '{"job": {"number": "2", "state": "PENDING", "user": "ann", "output": "", "name": "a name"}}' ;;
*" cancel tasks 12"*) echo '{"cancel": [["12", "", ["12"], 1, {}, "", {"RUNNING": 1}, {}, "ann", "a name"]]}' ;;
*ultracluster-costs-*) PATH=$SLURM:$PYTHON:$PATH TMPDIR=$SLURM; export PATH TMPDIR; eval "$script" ;;
*--session-command*) runuser() { echo "$5"; }; eval "$script" ;;
*) cat "$STATE" ;;
esac
""".replace("COMPARED", json.dumps({"compared": {"problems": [], "runs": [COMPARED]}}))
"""A head node with runs, users, Slurm and its accounting."""
KNOWN = {"number": "2", "state": "PENDING", "user": "ann", "output": ""}
TOLD = ("name", "comment", "reason", "directory", "command", "features", "dependency", "account", "qos", "node_list")
"""What users choose of a job, and what is shown of it."""
IDENTIFIER = re.compile(r"\b(?:(?:i|fs|vpc|subnet|sg|eni|nat|igw|rtb|vol)-[0-9a-f]{17}|[A-Z]+_COMPLETE)\b")


def test_a_narrow_terminal_and_a_closed_pipe(
    operated: Operated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    [head] = operated.deployment().nodes()
    host = f"ip-{head['PrivateIpAddress'].replace('.', '-')}"
    operated.log(f"{host}.{head['InstanceId']}.slurmctld", "sched: Allocate JobId=1 NodeList=trn1-st-trn1-32xl-1")
    operated.launch(2)
    write(tmp_path, SACCT.replace("|trn1|1|", f"|trn1|{int(time.time()) - 60}|"))
    operated.shell(f"STATE={STATE} SLURM={tmp_path} PYTHON={Path(sys.executable).parent}; {NODE}")
    monkeypatch.setattr(head_node, "SECONDS_BETWEEN_POLLS", 0.05)
    monkeypatch.setattr(streamed_command, "SECONDS_BETWEEN_READS", 0.05)
    (tmp_path / "key.pub").touch()
    for name, more in SHOWING.items():
        words = [*name.split(), "trn1-16", *more, *(["--identity", str(tmp_path / "key")] if name == "ssh" else [])]
        unwell = name in {"status", "diagnose"}  # nodes are drained
        check_narrow_and_closed(words, monkeypatch, capfd, ExitCode.FAILED if unwell else ExitCode.DONE)


HARMFUL = "[/b] \x1b[2J\x1b]52;c;eA==\x1b\\ \x00\u202e\x9b31m <b> --x\n'\"`id` $(id)"
"""What a user may give a name or write into a file."""


def test_what_users_write_is_shown_as_harmless_text_of_the_same_length_would_be(
    operated: Operated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """By each command in each format, but for programs that `env`, `exec` and `submit` run, and output in a pipe."""
    [head] = operated.deployment().nodes()
    stream = f"ip-{head['PrivateIpAddress'].replace('.', '-')}.{head['InstanceId']}.slurmctld"
    now = datetime.now(UTC)
    monkeypatch.setattr(Clock, "now", lambda _: now)
    monkeypatch.setattr(head_node, "SECONDS_BETWEEN_POLLS", 0.05)
    monkeypatch.setenv("COLUMNS", "400")  # an age of 9 s is shorter than one of 10 s, and would move the end of a line
    shown: dict[str, dict[tuple[str, ...], str]] = {}
    for text in (re.sub(r"\S", "x", HARMFUL), HARMFUL):
        operated.log(stream, f"sched: Allocate JobId=1 {text}")
        write(tmp_path, SACCT.replace("|trn1|1|", f"|trn1|{int(time.time()) - 60}|").replace("research", text))
        reason, since = f"Kill task failed {text}", "2026-11-21T12:00:00"
        state = {
            "queues": {"trn1": "up"},
            "nodes": {"trn1": {"dy-trn1-32xl": {"idle+drain": 1}}},
            "problems": [[1, "drained", since, "trn1-dy-trn1-32xl-1", reason, "trn1"]],
            "counts": {"PENDING": 1},
            "queue_counts": {"trn1": {"PENDING": 1}},
            "jobs": [[1, "ann", "trn1", "PENDING", 1, "0:00", text, text]],
            "wanted": {"trn1": 1},
            "waits": [[text, 1, "1"]],
            "seconds": 0.1,
            "accounting": text,
        }
        facts = dict.fromkeys(("state", "unit", "environment", "reason"), text)
        software = {**facts, "since": since, "log": [text], "failed_nodes": [[text, since, text]], "by_hand": [text]}
        answers: dict[str, Any] = {"state": state, "software": software, "job": None}
        (tmp_path / "state").write_text("".join(f"{json.dumps({key: answers[key]})}\n" for key in answers))
        listed = [{"directory": f"/fsx/{text}", "problem": text}]
        (tmp_path / "runs").write_text(json.dumps({"runs": {"total": 1, "runs": listed}}))
        node = NODE.replace('echo \'{"runs"', 'cat $SLURM/runs; : \'{"runs"')
        (tmp_path / "known").write_text(json.dumps({"job": {**KNOWN, **dict.fromkeys(TOLD, text)}}))
        node = node.replace('echo \'{"job": {', 'cat $SLURM/known; : \'{"job": {')
        operated.shell(f"STATE={tmp_path}/state SLURM={tmp_path} PYTHON={Path(sys.executable).parent}; {node}")
        for name in SHOWING.keys() - {"env create", "env remove", "exec", "runs export", "ssh", "submit"}:
            formats = next((each.type for each in COMMANDS[name].params if each.name == "output"), None)
            for output in formats.choices if isinstance(formats, click.Choice) else ("text",):
                words = (*name.split(), "trn1-16", *SHOWING[name], "--output", output)
                assert ultracluster(*words) in (ExitCode.DONE, ExitCode.FAILED), words
                out, err = capfd.readouterr()
                for each in (out, err):
                    assert fit(each) == each, words
                shown.setdefault(text, {})[words] = out if output == "json" else f"{out}{err}"
    harmless, harmful = shown.values()
    for words in harmless:
        if "json" in words:
            assert layout(json.loads(harmless[words])) == layout(json.loads(harmful[words])), words
        else:
            assert len(harmless[words].splitlines()) == len(harmful[words].splitlines()), words


def layout(document: Any) -> Any:
    """Return a document of JSON without its texts and numbers."""
    if isinstance(document, dict):
        return {key: layout(value) for key, value in document.items()}
    return [layout(each) for each in document] if isinstance(document, list) else type(document).__name__


def closed_pipe() -> IO[str]:
    """Return a pipe that nobody reads any more."""
    read, write = os.pipe()
    os.close(read)
    return os.fdopen(write, "w", buffering=1)


def check_narrow_and_closed(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], code: int = ExitCode.DONE
) -> None:
    """Run a command on a wide and on a narrow terminal, and with a reader that has gone."""
    assert ultracluster(*words) == code, words
    wide = capfd.readouterr().out
    assert wide, words
    monkeypatch.setenv("COLUMNS", "40")
    assert ultracluster(*words) == code, words
    narrow = capfd.readouterr().out
    monkeypatch.delenv("COLUMNS")
    assert set(IDENTIFIER.findall(wide)) <= set(IDENTIFIER.findall(narrow)), words
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", closed_pipe())
        code = ultracluster(*words)
    out, err = capfd.readouterr()
    assert out == "", words
    if {"--yes", "--confirm", "create", "export", "remove", "start", "submit"} & set(words):
        assert code == ExitCode.FAILED, words
        assert err.endswith(f"error: {STOPPED}\n\nhint: the same command does what is left\n"), (words, err)
    else:
        assert code == ExitCode.DONE, words
        assert re.fullmatch(r"(The command \S+ is cancelled\.\n|Slurm knows no job 1, .*\n.*\n)?", err), (words, err)


PLANNING: Mapping[str, tuple[str, ...]] = {
    "bootstrap": (),
    "deploy": ("--yes",),
    "drift": (),
    "fleet scale": ("--max", "17", "--dry-run", "--no-preflight"),
    "fleet stop": ("--force", "--yes"),
    "fleet start": (),
    "image build": ("--parent-image", "ami-0123456789abcdef0", "--yes"),
    "image render": ("--parent-image", "ami-0123456789abcdef0"),
    "plan": (),
    "preflight": ("--only", "zone,vpc,stack-names,quota-gp3,free-addresses"),
    "recover": ("--dry-run", "--skip", "parallelcluster"),
    "upgrade": ("--dry-run", "--anyway", "--skip", "parallelcluster"),
}
"""Commands for which the CDK, ParallelCluster or the fleet works first."""
NOT_WALKED = {"port-forward", "shell"}
"""The plugin of Session Manager replaces it."""


def test_all_commands_are_walked() -> None:
    assert COMMANDS.keys() == SHOWING.keys() | PLANNING.keys() | NOT_WALKED


def test_the_same_of_commands_that_work_first(
    operated: Operated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    operated.shell(FakeSlurm(tmp_path / "slurm").shell)
    monkeypatch.setattr(head_node, "SECONDS_BETWEEN_POLLS", 0.05)
    monkeypatch.setattr(Clock, "sleep", lambda *_: time.sleep(0.05))
    synthesized = operated.synthesized.directory
    monkeypatch.setattr(cdk, "synthesize", lambda _, directory: shutil.copytree(synthesized, directory))
    monkeypatch.setattr(deploy, "run_cdk", lambda *_, **__: 0)
    monkeypatch.setattr(options, "BUILD", tmp_path)
    monkeypatch.setattr(images, "EmulatedAws", lambda: nullcontext(operated.aws))
    monkeypatch.setattr(cdk, "command", lambda *_: ["echo", "bootstrapped"])
    monkeypatch.setattr(images, "run", lambda *_: 0)  # the emulated AWS builds no images
    with ParallelCluster(os.environ) as parallelcluster:
        for module in (control, images, plan):
            monkeypatch.setattr(module, "ParallelCluster", lambda _: nullcontext(parallelcluster))
        for name, more in PLANNING.items():
            check_narrow_and_closed([*name.split(), "trn1-16", *more], monkeypatch, capfd)


def test_ctrl_c_while_a_command_waits(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    operated.shell("sleep 600")
    monkeypatch.setattr(Clock, "sleep", lambda *_: signal.raise_signal(signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for name, hint in {
            "exec": "The command ",
            "jobs list": "",
            "jobs cancel": "",
            "submit": "The command ",
        }.items():
            assert ultracluster(*words_of(name)) == ExitCode.INTERRUPTED, name
            out, err = capfd.readouterr()
            assert (out, hint in err, "Traceback" in err) == ("", True, False), (name, err)
    finally:
        signal.signal(signal.SIGINT, before)
