"""What all commands on a deployment have in common: examples that can be copied, exit codes and messages of errors."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from scripts import command

COMMANDS = ("status", "diagnose", "connect", "run", "logs", "fleet", "inventory", "destroy", "upgrade")


@pytest.mark.parametrize("program", COMMANDS)
def test_examples_of_the_help_can_be_copied(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module(f"scripts.commands.{program}")
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
        python, option, package, name, *arguments = shlex.split(each)
        assert (python, option, package, name) == ("python", "-m", "scripts", program), each
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        assert module.main() == command.DONE, each


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeStacks")


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (command.OperationError("the stack failed"), command.FAILED, "the stack failed\n"),
        (command.UnusableError("got x; allowed: y"), command.UNUSABLE, "got x; allowed: y\n"),
        (refusal("AccessDenied"), command.UNUSABLE, f"{refusal('AccessDenied')}\n"),
        (refusal("ExpiredToken"), command.UNUSABLE, f"{refusal('ExpiredToken')}\nget new session credentials"),
        (NoCredentialsError(), command.UNUSABLE, "Unable to locate credentials\n`export AWS_PROFILE"),
        (KeyboardInterrupt(), command.INTERRUPTED, ""),
    ],
    ids=repr,
)
def test_an_error_has_an_exit_code_and_a_message(
    error: BaseException, code: int, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def program(*_: object) -> int:
        raise error

    assert command.run(argparse.Namespace(environment="trn1-16", json=False), program) == code
    assert capsys.readouterr().err.startswith(printed)


def test_settings_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text("name: 1\n", encoding="utf-8")
    monkeypatch.setattr(command, "CONFIG", tmp_path)
    given = argparse.Namespace(environment="mine", json=False)
    assert command.run(given, lambda *_: command.DONE) == command.UNUSABLE
    assert "name: got 1" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan"])
def test_numbers_above_zero(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"got {text}; allowed: numbers above 0"):
        command.above_zero(text)
