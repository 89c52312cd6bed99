"""Training runs that pages and commands recommend pass the launcher's check as they are written."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import submit
from config.settings import load
from emulator.machines.guest.preinstalled import WORKERS_PER_NODE
from scripts.core.errors import UnusableError
from scripts.core.options import ROOT
from scripts.rehearse import emulate, rehearsal
from tests.configurations import CONFIG, SHIPPED
from tests.stacks.choices import use_arm
from tests.stacks.deployments import edited

OF_TRAINIUM = 32
"""Workers of a trn1.32xlarge."""
SUBMIT = re.compile(r"(?:ultracluster submit \S+|submit\.py\"?) (--.*)")
OWN_WORKERS = re.compile(r"export WORKERS_PER_NODE=(\d+)[^`]*$")
"""Before a command, in the same block."""
PLAIN = {"--data", "--start-from", "--reference"}
"""Options whose value names what is on a cluster."""


def commands(text: str) -> Iterator[tuple[str, int]]:
    """Yield the arguments of the runs that a text submits, and how many workers a node has that they are for."""
    text = text.replace("\\\n", " ")
    for found in SUBMIT.finditer(text):
        arguments = found[1].partition("`")[0].partition(" #")[0]
        own = OWN_WORKERS.search(text[: found.start()])
        workers = WORKERS_PER_NODE if "--backend cpu" in arguments else int(own[1]) if own else OF_TRAINIUM
        if "..." not in arguments:
            yield " ".join(arguments.split()), workers


def of_pages() -> Iterator[tuple[str, int]]:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        yield from commands(page.read_text(encoding="utf-8"))


def check(arguments: str, workers: int, directory: Path) -> str:
    """Return why the program refuses a run; empty: it does not."""
    words = shlex.split(arguments)
    end = words.index("--") if "--" in words else len(words)
    given = submit.parser().parse_args(words[:end])
    if given.program != "bert":
        return ""
    further = iter(words[end + 1 :])
    options = [each for word in further if word not in PLAIN or not next(further) for each in (word,)]
    program = [sys.executable, "-m", "bert", "check", "--nodes", str(given.nodes), "--workers-per-node", str(workers)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/training:{ROOT}/training/programs"}
    done = subprocess.run(
        [*program, *options, "--output", directory], env=environment, capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize(("arguments", "workers"), dict.fromkeys(of_pages()))
def test_runs_of_pages_can_start(arguments: str, workers: int, tmp_path: Path) -> None:
    assert check(arguments, workers, tmp_path / "run") == ""


def test_pages_have_a_run_for_emulated_nodes() -> None:
    assert {WORKERS_PER_NODE, OF_TRAINIUM} < {workers for _, workers in of_pages()}, "and one for a smaller type"


@pytest.mark.parametrize("name", SHIPPED)
def test_the_run_that_emulate_proposes_can_start_on_its_nodes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emulate, "borrowed", lambda: (Path("python"),))
    settings = load(CONFIG / f"{name}.yaml")
    [(arguments, workers)] = commands("\n".join(emulate.training(name, settings)))
    nodes = int(re.findall(r"--nodes (\d+)", arguments)[0])
    assert 1 <= nodes <= settings.cluster.queues[0].compute_resources[0].max_count
    assert check(arguments, workers, tmp_path / "run") == ""


def test_without_pytorch_emulate_says_what_is_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulate, "borrowed", tuple)
    [line] = emulate.training("dev", load(CONFIG / "dev.yaml"))
    assert "make setup-training" in line


def test_without_a_neuron_sdk_no_training_is_proposed_or_rehearsed() -> None:
    arm = edited("trn1-16", use_arm)
    assert emulate.training("arm", arm) == []
    with pytest.raises(UnusableError, match=r"neuron_sdk: null"):
        rehearsal.check(arm, rehearsal.Choices(train=True))
