"""What holds for the programs: examples can be copied, throttling passes, missing rights and expired ones are told."""

from __future__ import annotations

import argparse
import importlib
import io
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from botocore.retries.bucket import TokenBucket
from rich.console import Console

from scripts import command
from scripts.deployment import Deployment
from tests.scripts.account import Operated
from tests.scripts.fleet.fakes import FakeSlurm
from tests.scripts.logs.log_lines import head_prefix

PROGRAMS = ("status", "diagnose", "connect", "run", "logs", "fleet", "inventory", "destroy", "upgrade")


def call(monkeypatch: pytest.MonkeyPatch, program: str, *arguments: str) -> int:
    """Call a program for config/trn1-16.yaml, and return its exit code."""
    monkeypatch.setattr(sys, "argv", [program, "trn1-16", *arguments])
    code: int = importlib.import_module(f"scripts.{program}").main()
    return code


@pytest.mark.parametrize("program", PROGRAMS)
def test_examples_of_the_help_can_be_copied(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module(f"scripts.{program}")
    for runner in (command, module):
        monkeypatch.setattr(runner, "run", lambda *_: command.DONE, raising=False)
    monkeypatch.setattr(sys, "argv", [program, "--help"])
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == command.DONE
    examples = capsys.readouterr().out.partition("\nexamples:\n")[2].splitlines()
    commands = [re.split(r" {2,}| [|>] ", line.strip())[0] for line in examples if not line.startswith(" " * 8)]
    assert len(commands) >= 2
    for each in commands:
        python, option, name, *arguments = shlex.split(each)
        assert (python, option, name) == ("python", "-m", f"scripts.{program}"), each
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        assert module.main() == command.DONE, each


class Terminal(io.StringIO):
    """Standard output of somebody at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("output", "printed"), [(Terminal(), "\x1b[31mred\x1b[0m\n"), (io.StringIO(), "red\n")])
def test_colours_are_for_a_terminal_alone(output: io.StringIO, printed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", output)

    def program(_: Deployment, __: argparse.Namespace, console: Console) -> int:
        console.print("[red]red[/]")
        return command.DONE

    assert command.run(argparse.Namespace(environment="trn1-16", json=False), program) == command.DONE
    assert output.getvalue() == printed


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time pass before a call is repeated."""
    monkeypatch.setattr(TokenBucket, "acquire", lambda *_, **__: True)
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None))


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize(
    "arguments",
    [["diagnose"], ["inventory", "--json"], ["logs", "--list"], ["connect", "--json"], ["fleet", "stop", "--json"]],
    ids=lambda arguments: arguments[0],
)
def test_throttling_is_outlasted(
    operated: Operated, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind of call is refused once."""
    operated.shell(FakeSlurm(tmp_path / "slurm").shell)
    operated.aws.inject("throttling")
    assert call(monkeypatch, *arguments) == command.DONE


@pytest.mark.parametrize(
    ("arguments", "operation"),
    [
        (["inventory"], "GetResources"),
        (["logs", "slurmctld"], "FilterLogEvents"),
        (["connect", "--json"], "DescribeInstances"),
        (["upgrade", "--dry-run"], "ListStackResources"),
        (["diagnose"], "DescribeInstances"),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_credentials_that_expire_on_the_way_are_told(
    operated: Operated,
    arguments: list[str],
    operation: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    operated.log(f"{head_prefix(operated)}slurmctld", "a line")
    ask = BaseClient._make_api_call

    def expired(client: BaseClient, name: str, parameters: Mapping[str, Any]) -> Any:
        if name == operation:
            raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "The token has expired"}}, name)
        return ask(client, name, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", expired)
    assert call(monkeypatch, *arguments) == command.UNUSABLE
    assert "get new session credentials" in capsys.readouterr().err


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the plugin of Session Manager on PATH."""
    path = tmp_path / "session-manager-plugin"
    path.write_text("#!/bin/bash\n", encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("arguments", "action"),
    [
        (["connect", "--json"], "ec2:DescribeInstances"),
        (["connect"], "ssm:StartSession"),
        (["upgrade", "--dry-run"], "cloudformation:DescribeStacks"),
        (["upgrade", "--dry-run"], "cloudformation:GetTemplate"),
    ],
    ids=" ".join,
)
def test_the_right_that_is_missing_is_told(
    operated: Operated,
    arguments: list[str],
    action: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    allowed = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [allowed, {**allowed, "Effect": "Deny", "Action": action}]}
    with operated.aws.restricted(policy) as environment:
        operated.act_as(environment, monkeypatch)
        assert call(monkeypatch, *arguments) == command.UNUSABLE
    assert action.partition(":")[2] in capsys.readouterr().err
