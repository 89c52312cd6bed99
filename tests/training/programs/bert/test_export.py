"""A checkpoint as others use it: transformers loads it, and its card says what was trained on what."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import BertForPreTraining

import export as exporting
from tests.training.programs.bert.runs import steps, train
from tests.training.programs.bert.shard_files import write_shards
from ultracluster_job.checkpoint import Checkpoint

SCRIPT = Path(exporting.__file__)


def export(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ULTRACLUSTER_PYTHON": sys.prefix}
    command = [f"{sys.prefix}/bin/python", str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("export")
    write_shards(directory / "data", (50,))
    write_shards(directory / "held-out", (6,))
    data = ("--data", str(directory / "data"), "--evaluate-data", str(directory / "held-out"))
    assert train(directory / "run", *data, "--steps", "12") == [0]
    return directory / "run"


def test_transformers_loads_what_was_trained(run: Path, tmp_path: Path) -> None:
    target = tmp_path / "bert"
    done = export(run, target)
    assert done.returncode == 0, done.stderr
    assert f"step 12 of {run} is in {target}: " in done.stdout
    assert sorted(path.name for path in target.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    loaded, told = BertForPreTraining.from_pretrained(target, output_loading_info=True)
    assert not told["missing_keys"]
    weights = Checkpoint(12, run / "checkpoints/step-00000012").load()["weights"]
    assert dict(loaded.named_parameters()).keys() == weights.keys()
    assert all(torch.equal(weight, weights[name]) for name, weight in loaded.named_parameters())
    assert (loaded.config.hidden_size, loaded.config.hidden_dropout_prob) == (64, 0.1)

    card = (target / "README.md").read_text(encoding="utf-8")
    last = steps(run)[-1]
    for row in (
        "| steps | 12 of 12 |",
        f"| loss | {last['loss']} |",
        f"| evaluation loss | {last['evaluation_loss']}, after step 12 |",
        "| sequences | 192 |",
        "| attempts, nodes and workers of the last | 1, 1, 1 |",
        "| data | 50 sequences in 1 shards, ",
        "| optimizer | adamw |",
        "| torch | ",
    ):
        assert f"\n{row}" in card, card


def test_an_older_checkpoint_has_the_card_of_its_step(run: Path, tmp_path: Path) -> None:
    assert export(run, tmp_path / "bert", "--step", "5").returncode == 0
    card = (tmp_path / "bert/README.md").read_text(encoding="utf-8")
    assert f"\n| loss | {steps(run)[4]['loss']} |" in card
    assert "\n| sequences | 80 |" in card


def test_what_cannot_be_exported_leaves_nothing(run: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "damaged/checkpoints/step-00000003").mkdir(parents=True)
    (tmp_path / "damaged/checkpoints/step-00000003/state.pt").write_bytes(b"PK")
    (tmp_path / "damaged/run.json").write_text('{"program": "bert"}', encoding="utf-8")
    (tmp_path / "mine/program/1/mine").mkdir(parents=True)
    (tmp_path / "mine/program/1/mine/train.py").touch()
    new = tmp_path / "new"
    for arguments, told in (
        ((run, tmp_path / "there"), "which exists; allowed: another"),
        ((run, new, "--env", "nowhere"), "--env: got nowhere; allowed: a Python environment"),
        ((run, "new"), "DIRECTORY: got new; allowed: an absolute path"),
        ((tmp_path / "no", new), "allowed: the directory of a run"),
        ((tmp_path / "there", new), "with run.json or a copy of its program"),
        ((run, new, "--step", "7"), "--step: got 7; allowed: 5, 10, 12"),
        ((tmp_path / "damaged", new), "which is damaged"),
        ((tmp_path / "mine", new), "whose program.toml has no export"),
    ):
        done = export(*arguments)
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged", "mine", "there"]


def own(run: Path, code: str) -> None:
    """Make a run of a program that exports."""
    folder = run / "program/1/mine"
    folder.mkdir(parents=True)
    (folder / "train.py").touch()
    (folder / "save.py").write_text(code, encoding="utf-8")
    words = 'run = ["train.py"]\nexport = ["save.py", "{checkpoint}", "{directory}"]\n'
    (folder / "program.toml").write_text(words, encoding="utf-8")
    (run / "checkpoints").mkdir()
    for step in (9, 10):
        (run / f"checkpoints/step-{step}").touch()


def test_any_program_exports(tmp_path: Path) -> None:
    own(
        tmp_path / "run",
        "import pathlib, sys; pathlib.Path(sys.argv[2], pathlib.Path(sys.argv[1]).name).mkdir(parents=True)",
    )
    done = export(tmp_path / "run", tmp_path / "model")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["README.md", "step-10"]


def test_a_program_of_somebody_else_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own(tmp_path / "run", "")
    facts = {"program": "mine", "versions": {"program": "1"}}
    assert exporting.folder_of(tmp_path / "run", {}) == exporting.folder_of(tmp_path / "run", facts)
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    with pytest.raises(SystemExit):
        exporting.folder_of(tmp_path / "run", facts)
    assert exporting.folder_of(tmp_path / "run", {"program": "bert"}) == SCRIPT.parent / "programs/bert"
