"""What is kept of a compilation when the program ends on a node, with fakes of environment and program."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

JOBS = Path(__file__).parents[2] / "training"
MODULE = "neuronxcc-2.23.6484.0+3b612583/MODULE_graph+1"
PROGRAM = f"""#!/bin/bash
# Compiles one graph, starts another, and ends with $CODE.
mkdir --parents "$NEURON_COMPILE_CACHE_URL/{MODULE}" "$NEURON_COMPILE_CACHE_URL/{MODULE}-half"
echo graph | tee "$NEURON_COMPILE_CACHE_URL/{MODULE}/model.neff" >"$NEURON_COMPILE_CACHE_URL/{MODULE}-half/model.neff"
touch "$NEURON_COMPILE_CACHE_URL/{MODULE}/model.done"
exit "$CODE"
"""
STUCK = """#!/bin/bash
# Once it hangs, the time is up: timeout's own alarm rings.
[[ "$*" == *shared* ]] || exec /bin/cp "$@"
kill -s ALRM "$(tail --lines 1 "$GIVEN")"
exec sleep 20
"""
NOTING_TIMEOUT = '#!/bin/bash\nprintf "%s\\n" "$1" "$$" >"$GIVEN"\nexec /usr/bin/timeout "$@"\n'


class Step:
    """A step of a job on its only node.

    Attributes:
        bin: Commands that come before the system's.
        outcome: Where the node tells how the program ended.
        kept: The graph, where all nodes find it.
    """

    def __init__(self, directory: Path) -> None:
        self.bin, self.outcome = directory / "environment/bin", directory / "outcome"
        self.kept = directory / "shared" / MODULE
        self._directory, self._scripts = directory, directory / "jobs"
        (self._scripts / "pretraining").mkdir(parents=True)
        for name in ("run_node.sh", "compile_cache.sh", "pretraining/environment.sh"):
            shutil.copy(JOBS / name, self._scripts / name)
        (self._scripts / "environment.sh").write_text("MASTER_ADDR=10.0.0.1 MASTER_PORT=41000\n", encoding="utf-8")
        self.bin.mkdir(parents=True)
        self.command("python", PROGRAM)
        self.command("scontrol", "#!/bin/bash\necho trn1-1\n")
        self.command("neuron_parallel_compile", '#!/bin/bash\nexec "$@"\n')

    def command(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text, encoding="utf-8")
        (self.bin / name).chmod(0o755)

    def run(self, purpose: str, code: int) -> subprocess.CompletedProcess[str]:
        settings = {
            "CODE": str(code),
            "GIVEN": str(self._directory / "given"),
            "NEURON_COMPILE_CACHE_URL": str(self._directory / "local"),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "12",
            "SLURM_JOB_NODELIST": "trn1-1",
            "SLURM_JOB_NUM_NODES": "1",
            "SLURM_NODEID": "0",
            "ULTRACLUSTER_COMPILE_CACHE": str(self._directory / "shared"),
            "ULTRACLUSTER_PYTHON": str(self.bin.parent),
        }
        command = ["bash", str(self._scripts / "run_node.sh"), purpose, str(self.outcome), "--phase", "1"]
        return subprocess.run(command, env=settings, capture_output=True, text=True, check=False)


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Step(tmp_path)


@pytest.mark.parametrize(
    ("purpose", "code", "ends_with"), [("compile", 0, 0), ("compile", 137, 137), ("train", 1, 1), ("train", 75, 0)]
)
def test_what_was_compiled_is_kept_however_the_program_ends(
    step: Step, purpose: str, code: int, ends_with: int
) -> None:
    done = step.run(purpose, code)
    assert done.returncode == ends_with, done.stderr
    assert sorted(path.name for path in step.kept.parent.iterdir()) == [step.kept.name]
    assert sorted(path.name for path in step.kept.iterdir()) == ["model.done", "model.neff"]
    assert not step.outcome.exists() if code == 0 else step.outcome.read_text(encoding="utf-8") == f"{code}\n"


def test_a_training_job_does_not_wait_for_a_copy_that_hangs(step: Step, tmp_path: Path) -> None:
    step.command("cp", STUCK)
    step.command("timeout", NOTING_TIMEOUT)
    done = step.run("train", 75)
    assert done.returncode == 0
    assert "run_node.sh: not all graphs were kept: other nodes may compile them again" in done.stdout
    assert (tmp_path / "given").read_text(encoding="utf-8").startswith("60\n")
    for _ in range(200):  # who copies cleans up by itself, and may be a moment later than who waited for it
        if not list((tmp_path / "shared").rglob("*MODULE*")):
            break
        time.sleep(0.1)
    assert not list((tmp_path / "shared").rglob("*MODULE*"))


@pytest.mark.parametrize(("code", "ends_with"), [(0, 1), (137, 137)])
def test_a_compile_job_that_keeps_nothing_has_failed(step: Step, code: int, ends_with: int) -> None:
    step.command("cp", "#!/bin/bash\nexit 1\n")
    assert step.run("compile", code).returncode == ends_with
