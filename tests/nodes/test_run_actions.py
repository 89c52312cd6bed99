"""run_actions.sh, run by bash as on a node: scripts of files, with fakes of the AWS command line, curl and pauses."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.fake_commands import write_commands

pytestmark = pytest.mark.slow

RUNNER = Path(__file__).parents[2] / "constructs" / "ultracluster" / "run_actions.sh"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node for which s3://b/NAME and https://web/NAME are files of its folder."""
    copy = 'cp "$here/$(basename "${address#*://}")" "$to"'
    fakes = {
        "aws": f"address=${{@: -2:1}} to=${{@: -1}}; {copy}",
        "curl": f"address=${{@: -1}} to=${{@: -2:1}}; {copy}",
        "sleep": 'echo "$1" >>"$here/sleeps"',
    }
    write_commands(tmp_path / "bin", fakes)
    return tmp_path


def action(name: str, *arguments: str, on: str = "created", source: str = "s3://b") -> str:
    return json.dumps({"name": name, "on": on, "script": f"{source}/{name}", "args": arguments})


def write(node: Path, name: str, text: str = 'echo "$0 ran with $#: $*" | sed "s:.*script ::"') -> None:
    (node / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")


def run(node: Path, event: str, *actions: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(RUNNER), "us-west-2", event, *actions],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": f"{node}/bin:{os.environ['PATH']}",
            "here": str(node),
            "ULTRACLUSTER_HOME": str(node / "home"),
        },
    )


def ran(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stdout
    return [line.removeprefix("run_actions.sh: ") for line in done.stdout.splitlines() if "run_actions.sh" in line]


def test_scripts_run_in_their_order_with_their_arguments(node: Path) -> None:
    for name in ("a.sh", "b.py"):
        write(node, name, "printf '<%s>' \"$@\"; echo")
    hostile = ["x y", "$(id)", "'\"`", "-n", "é"]
    done = run(node, "created", action("a.sh", *hostile), action("b.py", source="https://web"))
    assert done.stdout.splitlines()[:2] == ["run_actions.sh: a.sh", "".join(f"<{each}>" for each in hostile)]
    assert ran(done) == ["a.sh", "b.py"]


def test_an_event_runs_its_scripts_and_an_update_those_that_are_new_or_changed(node: Path) -> None:
    for name in ("nodes.sh", "once.sh", "update.sh", "start.sh"):
        write(node, name)
    ours, once = action("nodes.sh", on="created updated"), action("once.sh")
    update, start = action("update.sh", on="updated"), action("start.sh", on="start")
    assert ran(run(node, "start", start)) == ["start.sh"]
    assert ran(run(node, "created", ours, once, update)) == ["nodes.sh", "once.sh"]
    assert ran(run(node, "updated", ours, once, update)) == ["nodes.sh", "update.sh"]
    changed = action("once.sh", "now")
    assert ran(run(node, "updated", ours, changed, update)) == ["nodes.sh", "once.sh", "update.sh"]
    assert ran(run(node, "updated", ours, changed)) == ["nodes.sh"]
    assert ran(run(node, "updated", ours, once)) == ["nodes.sh", "once.sh"], "what comes back is a change"


def test_what_a_script_leaves_in_the_background_holds_nothing_up(node: Path) -> None:
    write(node, "daemon.sh", "echo started; /bin/sleep 600 & echo $! >$here/daemon")
    try:
        assert "started" in run(node, "created", action("daemon.sh")).stdout
    finally:
        os.kill(int((node / "daemon").read_text(encoding="ascii")), signal.SIGKILL)


def test_one_that_fails_is_named_with_its_last_lines_and_runs_again(node: Path) -> None:
    write(node, "bad.sh", "echo first\nprintf 'second \\x1b[31m\\n'\necho third >&2\necho last\nexit 3")
    write(node, "after.sh")
    done = run(node, "created", action("bad.sh"), action("after.sh"))
    assert (done.returncode, "after.sh" in done.stdout) == (26, False)
    assert done.stdout.splitlines()[-1] == (
        "run_actions.sh: failed (26): bad.sh ended with 3 after: second  [31m third last. To do: correct bad.sh, then "
        "deploy again."
    )
    write(node, "bad.sh")
    assert ran(run(node, "updated", action("bad.sh"), action("after.sh"))) == ["bad.sh", "after.sh"]


def test_a_failure_of_our_own_scripts_stays_what_it_is(node: Path) -> None:
    write(node, "head_node.sh", "echo 'head_node.sh: failed (18): full. To do: free it.'\nexit 18")
    done = run(node, "created", action("head_node.sh"))
    assert (done.returncode, done.stdout.count("failed (")) == (18, 1)


@pytest.mark.parametrize("source", ["s3://b", "https://web"])
def test_one_that_cannot_be_fetched_is_tried_five_times(node: Path, source: str) -> None:
    done = run(node, "created", action("missing.sh", source=source))
    assert done.returncode == 10
    assert f"failed (10): {source}/missing.sh could not be fetched in five attempts. To do: see above" in done.stdout
    assert (node / "sleeps").read_text(encoding="utf-8").split() == ["5", "10", "15", "20", "0"]


def test_one_without_execute_permission_or_with_another_interpreter_runs(node: Path) -> None:
    (node / "a.py").write_text("#!/usr/bin/env python3\nprint('from Python')\n", encoding="utf-8")
    assert "from Python" in run(node, "created", action("a.py")).stdout
