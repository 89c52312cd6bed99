"""Commands as processes of their own: Ctrl-C, terminals, and what the CDK does beside them."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from scripts.change import deploy
from scripts.check.plan import cdk
from scripts.core import interrupts, options
from scripts.core.errors import ExitCode
from tests.scripts.operated import Operated
from tests.scripts.test_situations import KEYS, STATE, WITHOUT_ACCOUNT, closed_pipe

_PATIENT = """
import sys
from scripts.account import deployment
from scripts.main import run
deployment.SECONDS_FOR_AN_ANSWER = 3600
sys.exit(run())
"""
"""The command line, when it waits for each answer of AWS for an hour."""
_SECONDS = 600
"""When a test gives up."""


def start(*words: str, program: tuple[str, str] = ("-m", "scripts"), **more: Any) -> subprocess.Popen[str]:
    """Start a command as from a terminal, where Ctrl-C is not ignored."""
    return subprocess.Popen(
        [sys.executable, *program, *words],
        cwd=options.ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - the child has one thread
        text=True,
        **more,
    )


@pytest.fixture
def silent_endpoint() -> Iterator[tuple[str, socket.socket]]:
    """An address that takes connections, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}", server


@pytest.mark.slow
def test_ctrl_c_while_the_emulated_aws_starts() -> None:
    with start("emulate", "dev", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Bootstrapping")
        process.send_signal(signal.SIGINT)
        assert "Traceback" not in process.communicate()[1]
    assert process.returncode == ExitCode.INTERRUPTED


def test_ctrl_c_does_not_wait_for_an_answer_of_aws(silent_endpoint: tuple[str, socket.socket]) -> None:
    endpoint, server = silent_endpoint
    environment = os.environ | WITHOUT_ACCOUNT | KEYS | {"AWS_ENDPOINT_URL": endpoint}
    words = ("status", "trn1-16", "-o", "json")
    with start(
        *words, program=("-c", _PATIENT), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        connection, _ = server.accept()
        process.send_signal(signal.SIGINT)
        assert "Traceback" not in process.communicate(timeout=_SECONDS)[1]
        connection.close()
    assert process.returncode == ExitCode.INTERRUPTED


def test_a_terminal_of_40_columns_without_colour(operated: Operated) -> None:
    """`status --watch` shows itself again and again, until Ctrl-C at the keyboard."""
    operated.shell(f"cat >/dev/null; cat {STATE}")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 40, 0, 0))
    environment = os.environ | {"NO_COLOR": "1", "TERM": "xterm"}
    words = ("status", "trn1-16", "--watch", "--every", "0.2")
    with start(*words, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown, is_interrupted = b"", False
        with suppress(OSError):  # the end of a terminal that no program has open
            while piece := os.read(ours, 65536):
                shown += piece
                if shown.count(b"CREATE_COMPLETE") > 6 and not is_interrupted:
                    process.send_signal(signal.SIGINT)
                    is_interrupted = True
    os.close(ours)
    assert process.returncode == ExitCode.INTERRUPTED
    text = shown.decode()
    assert "Traceback" not in text
    assert set(re.findall(r"\x1b\[[0-9;]*m", text)) <= {"\x1b[0m"}
    assert "CREATE_COMPLETE" in text


@pytest.mark.parametrize("code", [ExitCode.INTERRUPTED, ExitCode.DONE])
def test_ctrl_c_during_a_deployment_is_left_to_the_cdk(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"import os; os.kill(os.getppid(), {int(signal.SIGINT)}); raise SystemExit({int(code)})"
    monkeypatch.setattr(cdk, "command", lambda *_: [sys.executable, "-c", program])
    monkeypatch.setattr(deploy, "BUILD", tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert deploy.run_cdk("trn1-16", tmp_path, "unique", ()) == code
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_reader_that_has_gone_does_not_end_the_cdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdk, "command", lambda *_: [sys.executable, "-c", "for _ in range(9): print('x', flush=True)"])
    monkeypatch.setattr(deploy, "BUILD", tmp_path)
    monkeypatch.setattr(sys, "stdout", closed_pipe())
    assert deploy.run_cdk("trn1-16", tmp_path, "unique", ()) == ExitCode.DONE


def test_neither_an_encoding_nor_a_grandchild_with_the_pipe_holds_up_the_cdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupts, "SECONDS_FOR_OUTPUT", 0.5)
    script = "echo before; echo \u2705; head -c 200000 /dev/zero; (sleep 3600 & echo $! >pid); exit 3"
    with (tmp_path / "out").open("w", encoding="ascii") as out:
        assert interrupts.run(["sh", "-c", script], tmp_path, output=out) == 3
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)  # which still runs
    assert (tmp_path / "out").read_text() == "before\n"


_WAITING = """
import sys
from pathlib import Path
from scripts.check.plan import cdk

file = sys.argv[1]
cdk.command = lambda *_: ["sh", "-c", f"echo $$ >{file}.new; mv {file}.new {file}; exec sleep 3600"]
cdk.environment = lambda: None
"""
"""The CDK is a program that waits for an hour."""


@pytest.mark.parametrize("call", ["run()", "diff(Path())", "synthesize('trn1-16', Path())"])
def test_the_cdk_ends_with_a_command_that_is_killed(
    call: str, tmp_path: Path, wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    file = tmp_path / "pid"
    with start(str(file), program=("-c", f"{_WAITING}cdk.{call}"), stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: file.exists() or process.poll() is not None)
        process.kill()
    pid = int(file.read_text(encoding="ascii"))
    wait_for(lambda: not is_running(pid))


@pytest.mark.slow
@pytest.mark.usefixtures("operated")
def test_a_killed_deployment_leaves_no_cdk_and_the_next_command_removes_its_files(
    tmp_path: Path, wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    """The CDK is halted before: it would end by itself, too, but only when it has nothing more to do."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with start("deploy", "trn1-16", "--yes", env=environment, stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: bool(running_cdk(process.pid)) or process.poll() is not None)
        [pid] = running_cdk(process.pid)
        os.kill(pid, signal.SIGSTOP)
        process.kill()
    wait_for(lambda: not is_running(pid))
    [left] = own_files(tmp_path)
    assert (left / "cdk.out" / "manifest.json").exists()
    with start("plan", "trn1-16", env=environment, stdout=subprocess.DEVNULL) as process:
        process.wait(_SECONDS)
    assert own_files(tmp_path) == []


def running_cdk(parent: int) -> list[int]:
    """Return the processes of a command that deploy with the CDK."""
    return [
        int(path.name)
        for path in Path("/proc").glob("[0-9]*")
        if stat(path)[1:2] == [str(parent)] and b"--change-set-name" in (path / "cmdline").read_bytes()
    ]


def is_running(pid: int) -> bool:
    """Tell whether there is a process, which has not ended and only waits for its parent to ask."""
    return stat(Path(f"/proc/{pid}"))[:1] not in ([], ["Z"])


def stat(process: Path) -> list[str]:
    """Return what the kernel says of a process after its name: state, parent and more; nothing if it is gone."""
    try:
        return (process / "stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def own_files(directory: Path) -> list[Path]:
    return list(directory.glob(".ultracluster-*"))
