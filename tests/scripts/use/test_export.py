"""`runs export`: who runs it on the head node, and what is called there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts.account.deployment import Deployment
from scripts.account.remote import streamed_command
from scripts.account.remote.program import of_file
from scripts.core.errors import UnusableError
from scripts.use.export import _AS_OWNER, export
from tests.command_line import ultracluster
from tests.fake_commands import write_commands
from tests.scripts.operated import Operated
from tests.stacks.choices import use_arm
from tests.stacks.deployments import edited

COMMAND = "python3 /fsx/ultracluster/jobs/current/export.py --step=5 --env=mine -- '/fsx/my run' /fsx/models/a"


def test_the_owner_of_the_run_exports_it_on_the_head_node(
    operated: Operated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(streamed_command, "SECONDS_BETWEEN_READS", 0.05)
    write_commands(tmp_path / "bin", {"stat": "echo ann", "runuser": 'printf "%s\\n" "$@" >>"$CALLED"; exit 2'})
    operated.shell(f"export PATH={tmp_path}/bin:$PATH CALLED={tmp_path}/called; source /dev/stdin")
    monkeypatch.setenv("PATH", str(tmp_path))  # no Slurm here
    assert (
        ultracluster("runs", "export", "trn1-16", "/fsx/my run", "/fsx/models/a", "--step", "5", "--env", "mine") == 2
    )
    called = (tmp_path / "called").read_text(encoding="utf-8")
    assert called.splitlines() == ["--login", "--session-command", COMMAND, "--", "ann"]
    assert ultracluster("runs", "export", "trn1-16", "run", "/fsx/models/a") == 2
    assert "got run; allowed: absolute paths" in capsys.readouterr().err


@pytest.mark.parametrize("owner", ["root", "UNKNOWN"])
def test_what_root_has_is_not_run(tmp_path: Path, owner: str) -> None:
    write_commands(tmp_path / "bin", {"stat": f"echo {owner}", "runuser": 'touch "$0.ran"'})
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    words = of_file(_AS_OWNER, "/fsx/runs/a", "true")
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"got /fsx/runs/a, which belongs to {owner}; allowed: " in done.stderr
    assert not (tmp_path / "bin/runuser.ran").exists()


def test_without_a_neuron_sdk_there_is_nothing_to_call() -> None:
    with pytest.raises(UnusableError, match=r"`cluster\.neuron_sdk` is null in"):
        export(Deployment("arm", edited("trn1-16", use_arm)), "/fsx/runs/a", "/fsx/models/a", [])
