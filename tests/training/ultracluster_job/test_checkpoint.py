"""Checkpoints: complete or not there, whatever kills, fills or damages."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pytest
import torch

from tests.training.programs.bert.runs import in_a_process_of_its_own
from ultracluster_job.checkpoint import Checkpoints
from ultracluster_job.files import STATE

LARGE_VALUES = 1_000_000


def state(step: int) -> dict[str, Any]:
    """What a run saves: tensors and plain values, nested."""
    return {
        "model": {"weight": torch.full((LARGE_VALUES,), float(step)), "bias": torch.arange(3)},
        "optimizer": {
            "state": {0: {"step": torch.tensor(step)}},
            "param_groups": [{"lr": 1e-3, "betas": (0.9, 0.999)}],
        },
        "step": step,
    }


def saved(directory: Path, *steps: int, keep: int = 3) -> Checkpoints:
    checkpoints = Checkpoints(directory, keep)
    for step in steps:
        checkpoints.save(step, state(step))
        assert checkpoints.wait() is None
    return checkpoints


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def newest_step(directory: Path) -> int:
    newest = Checkpoints(directory, 3).newest()
    assert newest is not None
    loaded = newest.load()
    assert torch.equal(loaded["model"]["weight"], torch.full((LARGE_VALUES,), float(newest.step)))
    return newest.step


class Waiting:
    """A value that cannot be written before an event has come."""

    def __init__(self, event: Event) -> None:
        self.event = event

    def __reduce__(self) -> tuple[type[int], tuple[()]]:
        self.event.wait()
        return int, ()


def test_what_is_loaded_is_the_file_itself_and_not_changed_through_it(tmp_path: Path) -> None:
    """So the ranks of a node share it, instead of a copy of some gigabytes in each."""
    saved(tmp_path, 10)
    newest = Checkpoints(tmp_path, 1).newest()
    assert newest is not None
    weight = newest.load()["model"]["weight"]
    mapped = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    ranges = [line[0].split("-") for line in mapped if line[-1] == str(newest.path / STATE)]
    assert any(int(first, 16) <= weight.data_ptr() < int(end, 16) for first, end in ranges)
    weight.zero_()
    assert newest.problem() is None


def truncate(checkpoint: Path) -> None:
    os.truncate(checkpoint / STATE, 1000)


def flip_a_bit(checkpoint: Path) -> None:
    data = bytearray((checkpoint / STATE).read_bytes())
    data[len(data) // 2] ^= 1
    (checkpoint / STATE).write_bytes(data)


def encrypt_in_the_directory(checkpoint: Path) -> None:
    """Set the lowest flag of the first entry: zipfile refuses such a record with an error of its own."""
    data = bytearray((checkpoint / STATE).read_bytes())
    data[data.index(b"PK\x01\x02") + 8] ^= 1
    (checkpoint / STATE).write_bytes(data)


def flip_a_flag_for_torch(checkpoint: Path) -> None:
    """Set a flag of the first entry that zipfile passes over, and torch does not."""
    data = bytearray((checkpoint / STATE).read_bytes())
    data[data.index(b"PK\x01\x02") + 9] ^= 1 << 5
    (checkpoint / STATE).write_bytes(data)


def put_a_file_in_its_place(checkpoint: Path) -> None:
    for path in checkpoint.iterdir():
        path.unlink()
    checkpoint.rmdir()
    checkpoint.touch()


DAMAGES: dict[Callable[[Path], None], str] = {
    truncate: "File is not a zip file",
    flip_a_bit: "/data/0 is wrong",
    encrypt_in_the_directory: "is encrypted",
    flip_a_flag_for_torch: "unsupported encryption",
    put_a_file_in_its_place: "Not a directory",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_checkpoint_is_passed_over_and_then_replaced(
    damage: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(tmp_path, 10, 20)
    damage(tmp_path / "step-00000020")
    checkpoints = Checkpoints(tmp_path, 3)
    newest = checkpoints.newest()
    told = capsys.readouterr().err
    assert newest is not None
    assert newest.step == 10
    assert told.count("\n") == 1
    assert str(tmp_path / "step-00000020") in told
    assert DAMAGES[damage] in told
    checkpoints.save(20, state(20))
    assert checkpoints.wait() is None
    assert newest_step(tmp_path) == 20
    assert names(tmp_path) == ["step-00000010", "step-00000020"]


def test_a_directory_that_cannot_be_listed_is_no_fresh_start(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").touch()
    with pytest.raises(NotADirectoryError):
        Checkpoints(tmp_path / "checkpoints", 3).newest()


def test_a_newer_complete_one_stays_and_what_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "step-00000001.kept-by-hand").mkdir()
    saved(tmp_path, 10, 20, 40)
    saved(tmp_path, 30, keep=1)
    assert names(tmp_path) == ["step-00000001.kept-by-hand", "step-00000030", "step-00000040"]


def test_what_cannot_be_removed_is_reported_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise OSError(f"{path.name} is busy")

    saved(tmp_path, 10)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", refuse)
        saved(tmp_path, 20, keep=1)
    assert capsys.readouterr().err == "An old checkpoint was not removed: .step-00000010.removed is busy\n"
    saved(tmp_path, 30, keep=1)
    assert names(tmp_path) == ["step-00000030"]


def test_a_save_does_not_hold_up_the_run_but_the_next_one(tmp_path: Path) -> None:
    checkpoints, event = Checkpoints(tmp_path, 3), Event()
    checkpoints.save(10, {"value": Waiting(event)})
    assert not (tmp_path / "step-00000010").exists()
    Timer(0.2, event.set).start()
    checkpoints.save(20, {"step": 1})
    assert event.is_set()
    assert checkpoints.wait() is None
    assert names(tmp_path) == ["step-00000010", "step-00000020"]


def test_all_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    synchronize, rename = os.fsync, Path.rename

    def noted_fsync(descriptor: int) -> None:
        done.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        synchronize(descriptor)

    def noted_rename(path: Path, target: Path) -> Path:
        done.append(f"{path.name} -> {target.name}")
        return rename(path, target)

    monkeypatch.setattr("os.fsync", noted_fsync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    saved(tmp_path, 10)
    renamed = ".step-00000010 -> step-00000010"
    assert done == [STATE, ".step-00000010", renamed, tmp_path.name]


def test_a_run_killed_at_any_file_leaves_a_complete_checkpoint(tmp_path: Path) -> None:
    """Kill the writer before the first thing that it does to a file, then before the second, until it comes through."""

    def save_until(event_number: int, directory: Path) -> None:
        count = 0

        def kill(event: str, _: tuple[Any, ...]) -> None:
            nonlocal count
            if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"):
                count += 1
                if count == event_number:
                    os.kill(os.getpid(), signal.SIGKILL)

        checkpoints = Checkpoints(directory, keep=1)
        assert checkpoints.newest() is not None
        sys.addaudithook(kill)
        checkpoints.save(20, next_state)
        checkpoints.wait()

    next_state = state(20)
    codes: list[int] = []
    newest_steps = []
    while not codes or codes[-1]:
        directory = tmp_path / str(len(codes))
        saved(directory, 10, 20)
        truncate(directory / "step-00000020")
        codes.append(in_a_process_of_its_own(partial(save_until, len(codes) + 1, directory)))
        newest_steps.append(newest_step(directory))
        saved(directory, 30, keep=1)
        assert names(directory) == ["step-00000030"]
    assert set(codes[:-1]) == {-signal.SIGKILL}
    assert newest_steps == sorted(newest_steps)
    assert set(newest_steps) == {10, 20}


def test_a_failed_write_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    checkpoints, next_state = saved(tmp_path, 10, keep=1), state(20)

    def save() -> None:
        _, allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, allowed))
        checkpoints.save(20, next_state)
        assert checkpoints.wait() == "The checkpoint of step 20 was not saved: [Errno 27] File too large"
        assert names(tmp_path) == ["step-00000010"]
        resource.setrlimit(resource.RLIMIT_FSIZE, (allowed, allowed))
        checkpoints.save(20, next_state)
        assert checkpoints.wait() is None
        assert checkpoints.failure is None

    assert in_a_process_of_its_own(save) == 0
    assert names(tmp_path) == ["step-00000020"]
