"""A run that stands still: who is named, and how the run ends, with real ranks of two launchers."""

from __future__ import annotations

import faulthandler
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.training.programs.bert.runs import TINY
from tests.training.ultracluster_job.test_launch import ENVIRONMENT
from ultracluster_job import heartbeat
from ultracluster_job.heartbeat import Beats, Heartbeat, Stage
from ultracluster_job.watchdog import STALLED, Rank, judge

HOSTS = ("trn1-1", "trn1-2", "trn1-3")
GUILTY = 2
"""A rank of the second of two nodes with two ranks each."""
STEP = 6
"""The first step with a limit: nobody can be taken for stalled before."""
FAULT = """\
from bert import learner
right, calls = learner.losses, 0
def losses(*arguments):
    global calls
    calls += 1
    if calls == STEP:
        ctypes.PyDLL(None).pause()
    return right(*arguments)
learner.losses = losses
"""
"""The rank is stuck in C code, with the interpreter's lock."""
WORKER = """\
import ctypes, os, runpy
STEP = {step}
if os.environ["RANK"] == "{guilty}":
    exec({fault!r})
runpy.run_module("bert", run_name="__main__", alter_sys=True)
"""
WATCHFUL = """\
import sys
from ultracluster_job import launch, watchdog
watchdog._PERIODS = (0.2, 0.2)
sys.exit(launch.main())
"""
"""The launcher, with a watchdog that looks more often."""


@pytest.mark.slow
def test_a_run_that_stands_still_ends_and_names_who_the_others_wait_for(tmp_path: Path) -> None:
    worker = WORKER.format(step=STEP, guilty=GUILTY, fault=FAULT)
    (tmp_path / "worker.py").write_text(worker, encoding="utf-8")
    options = ["train", *TINY, "--output", str(tmp_path / "run"), "--stall-seconds", "15"]
    environment = {
        **ENVIRONMENT, "OMP_NUM_THREADS": "1", "ULTRACLUSTER_NODES": " ".join(HOSTS[:2]),
        "ULTRACLUSTER_STALLS": str(tmp_path / "stall"),
    }  # fmt: skip
    port = free_port()
    launchers = []
    for node in range(2):
        where_it_is = ["--nnodes", "2", "--node-rank", str(node), "--nproc-per-node", "2"]
        where_it_is += ["--master-addr", "127.0.0.1", "--master-port", str(port), "--max-restarts", "0"]
        command = [sys.executable, "-c", WATCHFUL, *where_it_is, str(tmp_path / "worker.py"), *options]
        with (tmp_path / f"log-{node}").open("w") as log:
            launchers.append(subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT))
    try:
        codes = [launcher.wait(timeout=600) for launcher in launchers]
    finally:
        for launcher in launchers:
            launcher.terminate()
    logs = [(tmp_path / f"log-{node}").read_text(encoding="utf-8") for node in range(2)]
    assert codes == [STALLED, STALLED], "\n".join(logs)
    [line, where] = [line for line in logs[0].splitlines() if line.startswith("stalled: ")]
    assert line.startswith(f"stalled: rank {GUILTY} on trn1-2: after step {STEP - 1} it "), line
    assert where.endswith(str(tmp_path / "stall"))
    assert (tmp_path / "stall/named").read_text(encoding="utf-8") == "trn1-2\n"
    for node, name in enumerate(HOSTS[:2]):
        text = (tmp_path / f"stall/{name}.txt").read_text(encoding="utf-8")
        _, *of_ranks = text.split("rank ")
        assert [part[0] for part in of_ranks] == [str(2 * node), str(2 * node + 1)]
        assert all("in _make_step" in part for part in of_ranks), text
    assert "in _make_step" in logs[1], "the stack of the rank that is named is in the log"


def rank(number: int, count: int, state: str = "S") -> Rank:
    return Rank(number, HOSTS[number // 2], count, step=5, stage=Stage.READ, seconds=900, state=state)


# Ranks of three nodes with two each: heartbeats and states, and who is named.
JUDGED = {
    "the rank that is behind": ([9, 9, 8, 9, 9, 9], "SSSSSS", [2], ["trn1-2"]),
    "not one that has continued": ([9, 9, 9, 9, 9, 7], "SSRSSS", [5], ["trn1-3"]),
    "not one that came to the collective first": ([10, 9, 9, 9, 9, 8], "SSSSSS", [5], ["trn1-3"]),
    "a process that was stopped in the collective": ([9, 9, 9, 9, 9, 9], "SSSSTS", [4], ["trn1-3"]),
    "a process that is gone": ([9, 9, 9, 9, 9, 9], ["S", "", "S", "S", "S", "S"], [1], ["trn1-1"]),
    "nobody where all wait for each other": ([9, 9, 9, 9, 9, 9], "SSSSSS", [], []),
    "no node where most are behind": ([9, 9, 7, 9, 7, 9], "SSSSSS", [2, 4], []),
}


@pytest.mark.parametrize("case", JUDGED)
def test_who_is_named(case: str) -> None:
    counts, states, ranks, nodes = JUDGED[case]
    reports = {node: [rank(each, counts[each], states[each]) for each in (2 * node, 2 * node + 1)] for node in range(3)}
    verdict = judge(reports, HOSTS)
    assert (verdict.ranks, verdict.nodes) == (ranks, nodes)
    assert verdict.lines


def test_a_node_that_does_not_answer_is_named() -> None:
    verdict = judge({0: [rank(0, 9), rank(1, 9)], 2: [rank(4, 9), rank(5, 9)]}, HOSTS)
    assert (verdict.nodes, verdict.lines) == (["trn1-2"], ["node trn1-2 does not answer"])


# Ranks of two nodes, which have (heartbeats, steps, state), and who is named.
STARTING = {
    "who has not told anything yet": ([(1, 0, "S"), (1, 0, "S"), (0, 0, ""), (1, 0, "S")], [2]),
    "not who is silent by its program": ([(9, 5, "S"), (0, 0, ""), (8, 5, "S"), (0, 0, "")], [2]),
    "nobody where that is all": ([(9, 5, "S"), (0, 0, ""), (9, 5, "S"), (0, 0, "")], []),
}


@pytest.mark.parametrize("case", STARTING)
def test_who_is_named_of_ranks_without_heartbeats(case: str) -> None:
    told, named = STARTING[case]
    ranks = [
        Rank(number, HOSTS[number // 2], count, step=step, stage=Stage.START, seconds=900, state=state)
        for number, (count, step, state) in enumerate(told)
    ]
    assert judge({0: ranks[:2], 1: ranks[2:]}, HOSTS[:2]).ranks == named


@pytest.mark.parametrize(
    ("least", "start", "limits"),
    [
        (900, None, [7200] * 5 + [1000, 1000]),
        (1200, "600", [1200] * 7),
        (900, "1200", [1200] * 5 + [1000, 1000]),
        (900, "0", [0] * 5 + [1000, 1000]),
        (0, None, [0] * 7),
    ],
)
def test_the_limit_is_ten_median_steps_or_the_option_and_the_starts_while_graphs_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int, start: str | None, limits: list[float]
) -> None:
    now = 0.0
    if start:
        monkeypatch.setenv(heartbeat.START_SECONDS, start)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(faulthandler, "register", lambda *_, **__: None)
    beats = Beats(tmp_path, workers=2)
    monkeypatch.setenv(heartbeat.DIRECTORY, str(tmp_path))
    beating = Heartbeat(least, 1)
    seen_limits = [beats.read()[1].limit]
    for step in range(41, 47):  # of which the first compiles, and one waits for a checkpoint
        now += 2400 if step == 41 else 700 if step == 44 else 100
        beating.step(step)
        seen_limits.append(beats.read()[1].limit)
    assert seen_limits == limits
    silent, beat = beats.read()
    assert (beat.step, beat.time, silent.count) == (46, now, 0)
    for later in (now + limits[-1], now + 10_000):
        assert beat.is_overdue(later) == (0 < limits[-1] < later - now)
        assert not silent.is_overdue(later), "who never told anything"
    beating.stop()
    assert beats.read()[1].limit == 0
