"""The commands of a walk: processes in a copy of the checkout, which end with their rung, and what is kept of them."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from unittest.mock import Mock

import pytest

from scripts.account.remote.program import of_file
from scripts.core.errors import ExitCode
from scripts.core.interrupts import listening
from scripts.core.options import ROOT
from scripts.rehearse.prove import prove
from scripts.rehearse.prove.ladder import Choices
from scripts.rehearse.prove.redact import Redactor
from scripts.rehearse.prove.walk import EDITED, END_JOBS, RungError, TimeUpError, Walk
from tests.scripts.head_node_shell import HeadNodeShell, run
from tests.scripts.rehearse.prove.test_prove import raw
from tests.scripts.test_stops import lose

FOREVER = "import time\nprint('started', flush=True)\ntime.sleep(600)"


@pytest.fixture
def walk(tmp_path: Path) -> Walk:
    made = Walk("dev", raw(), tmp_path, Choices(Decimal(100)), False, Redactor("salt"), lambda _: None, lambda _: None)
    (tmp_path / "checkout").mkdir()
    return made


@pytest.fixture
def program(walk: Walk) -> Callable[[str], None]:
    """Return a function that replaces the command line of the copy by a program."""

    def write(text: str) -> None:
        package = walk.folder / "checkout" / "scripts"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(text, encoding="utf-8")

    return write


def test_a_command_runs_in_the_copy_with_its_settings_and_its_log_is_kept(
    walk: Walk, program: Callable[[str], None]
) -> None:
    program(
        "import os, sys\nprint(os.environ['ULTRACLUSTER_CONFIG'], sys.argv[1:])\n"
        "print('of 123456789012 at 10.0.0.1', file=sys.stderr)"
    )
    ran = walk.run("status", "dev")
    assert ran.output == f"{walk.config} ['status', 'dev']\n"
    assert "123456789012" in ran.errors, "what is looked at is whole"
    kept = (walk.report / ran.log).read_text(encoding="utf-8")
    assert "of <account> at <address>" in kept
    assert kept.startswith("$ ./ultracluster status dev\n")


def test_each_command_has_a_log_and_what_is_waited_for_has_one_with_the_last_answer(
    walk: Walk, program: Callable[[str], None]
) -> None:
    counter = walk.folder / "counter"
    program(f"file = open({str(counter)!r}, 'a+')\nfile.write('x')\nfile.seek(0)\nprint('answer', len(file.read()))")
    logs = [walk.run("deploy", "dev").log for _ in range(2)]
    assert walk.until(lambda: "answer 5" in walk.run("status", "dev").output, minutes=1, every=0.01)
    logs.append(walk.run("deploy", "dev").log)
    assert len(set(logs)) == 3
    kept = sorted((walk.report / "logs").iterdir())
    assert len(kept) == 4
    assert "answer 5" in kept[2].read_text(encoding="utf-8")


def test_an_exit_code_that_is_not_expected_ends_the_rung(walk: Walk, program: Callable[[str], None]) -> None:
    program("raise SystemExit(1)")
    with pytest.raises(RungError, match=r"\./ultracluster deploy dev: exit code 1, logs/001"):
        walk.run("deploy", "dev")
    assert walk.run("deploy", "dev", codes=None).code == ExitCode.FAILED


def test_a_command_ends_with_the_time_of_its_rung(walk: Walk, program: Callable[[str], None]) -> None:
    program(FOREVER)
    walk.deadline = datetime.now(UTC) + timedelta(seconds=2)
    with pytest.raises(TimeUpError):
        walk.run("deploy", "dev")
    with pytest.raises(TimeUpError):
        walk.run("status", "dev")
    with pytest.raises(TimeUpError):
        walk.until(lambda: False, minutes=1)


def test_nothing_is_started_after_a_signal_that_was_lost(walk: Walk, program: Callable[[str], None]) -> None:
    program(f"open({str(walk.folder / 'ran')!r}, 'w')")

    with listening():
        lose()
        with pytest.raises(KeyboardInterrupt):
            walk.run("deploy", "dev")
    assert not (walk.folder / "ran").exists()


def test_a_command_ends_with_a_walk_that_is_killed(walk: Walk, program: Callable[[str], None]) -> None:
    program(f"import os\nopen({str(walk.folder / 'pid')!r}, 'w').write(str(os.getpid()))\n{FOREVER}")
    text = (
        "from decimal import Decimal; from pathlib import Path\n"
        "from scripts.rehearse.prove.ladder import Choices; from scripts.rehearse.prove.redact import Redactor\n"
        "from scripts.rehearse.prove.walk import Walk\n"
        f"folder = Path({str(walk.folder)!r})\n"
        "Walk('dev', {}, folder, Choices(Decimal(1)), False, Redactor('s'), print, print).run('deploy')"
    )
    with subprocess.Popen([sys.executable, "-c", text], cwd=ROOT) as process:
        wait(lambda: (walk.folder / "pid").exists() and (walk.folder / "pid").read_text() != "")
        process.kill()
    pid = int((walk.folder / "pid").read_text())
    wait(lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text())


def wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_an_edited_script_is_in_the_copy_alone(walk: Walk) -> None:
    before = (ROOT / EDITED).read_bytes()
    walk.copy_checkout()
    copy = walk.folder / "checkout"
    assert (copy / EDITED).read_bytes() == before
    assert (copy / "constructs/ultracluster" / EDITED).read_bytes() == before, "the link leads into the copy"
    walk.edit_script("exit 1")
    assert "\nuse_system\nexit 1\n" in (copy / "constructs/ultracluster" / EDITED).read_text(encoding="utf-8")
    assert (ROOT / EDITED).read_bytes() == before
    walk.edit_script("")
    assert (copy / EDITED).read_bytes() == before
    assert not (copy / "build").exists()


class HeadNode:
    """A head node at a time, with a job that runs."""

    def __init__(self, folder: Path) -> None:
        self.root, self.seen = folder / "root", folder / "seen"
        for name in ("etc/systemd/system", "usr/local/sbin"):
            (self.root / name).mkdir(parents=True)
        fakes = {
            "date": 'cat "$WORLD/now"', "sleep": "kill $PPID", "squeue": "echo 12; echo 13",
            "scancel": 'echo "scancel $*" >>"$WORLD/seen"', "systemctl": 'echo "systemctl $*" >>"$WORLD/seen"',
        }  # fmt: skip
        self.shell = HeadNodeShell(folder, **fakes)
        self.service = self.root / "etc/systemd/system/ultracluster-prove.service"

    def at(self, second: int, words: Sequence[str]) -> str:
        """Run something at a time, and return what it called."""
        (self.shell.world / "now").write_text(str(second), encoding="utf-8")
        self.seen.write_text("", encoding="utf-8")
        run(self.shell.plain, words)
        return self.seen.read_text(encoding="utf-8")


def test_the_head_node_cancels_all_jobs_from_a_time_on(tmp_path: Path) -> None:
    node = HeadNode(tmp_path)
    called = node.at(1000, of_file(END_JOBS, "3", str(node.root)))
    assert "systemctl restart ultracluster-prove" in called
    [command] = re.findall(r"^ExecStart=(.*)$", node.service.read_text(encoding="utf-8"), re.MULTILINE)
    assert node.at(1179, ["sh", command]) == ""
    assert node.at(1180, ["sh", command]) == "scancel 12 13\n"
    assert node.at(99_000, ["sh", command]) == "scancel 12 13\n"
    called = node.at(1000, of_file(END_JOBS, "0", str(node.root)))
    assert "systemctl stop ultracluster-prove" in called
    assert not node.service.exists()
    assert not Path(command).exists()


def test_nobody_who_reads_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "echo", Mock(side_effect=BrokenPipeError))
    prove.tell("x")
