"""How the answer of the head node is made and read; tests/end_to_end/slurm/test_slurm_state.py asks a real Slurm."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.account.remote.head_node import OUTPUT_LIMIT
from scripts.account.remote.programs import asking, job_facts, jobs, node_states
from scripts.account.remote.programs import state as program
from scripts.account.slurm import NodeKind, Problem, SlurmError, Wait, parse
from tests.properties import QUICK
from tests.scripts.slurm_samples import IDLE, RECORDED, answer

MARKED = """\
#!/bin/sh
# Prints records as a program of Slurm does with the format in its environment: a mark before each field.
mark=$(printf %s "$SINFO_FORMAT$SQUEUE_FORMAT" | cut -c 1-32)
print() { printf "$mark%s" "$@" && echo; }
"""
SINFO = """
case "$SINFO_FORMAT" in
*%R*%a) print q-1 up && print other inactive ;;
esac
case "$*" in
*--Format=*) [ -z "$BROKEN" ] || exit 1
    printf '%s\\n' 'q-1  q-1-st-a-1  idle' 'q-1  q-1-st-a-22  idle+cloud+planned' \\
        'q-1  q-1-st-a-3  down+not_responding' 'other  other-dy-b-1x-1  idle+cloud+powered_down' ;;
esac
case "$SINFO_FORMAT" in
*%E*) print 'q-1-st-a-[1,22]' Unknown none && print q-1-st-a-3 yesterday 'Not responding' ;;
esac
"""
SCONTROL = "echo 'AccountingStorageType   = accounting_storage/slurmdbd'"
SACCTMGR = "[ -z \"$NO_DATABASE\" ] || { echo 'sacctmgr: error: gone' >&2; exit 1; }"
SQUEUE = """
case "$*" in *--states=all*) print q-1,other PENDING 4 Resources 7 && print q-1 PENDING 2 Resources 8_1 &&
    print q-1 RUNNING 9 None 9 ;;
esac
"""
"""Slurm's programs, which print less than a real one."""


def run(directory: Path, **environment: str) -> str:
    for name, text in {"sinfo": SINFO, "squeue": SQUEUE, "scontrol": SCONTROL, "sacctmgr": SACCTMGR}.items():
        (directory / name).write_text(MARKED + text, encoding="utf-8")
        (directory / name).chmod(0o755)
    path = f"{directory}:{os.environ['PATH']}"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"PATH": path, **environment}.items():
            patch.setitem(asking.ENVIRONMENT, name, value)
        try:
            return asking.dumped({"state": program.state()})
        except SystemExit:
            return ""


def test_the_program_counts_nodes_and_jobs(tmp_path: Path) -> None:
    state = parse(run(tmp_path))
    assert state.availability == {"q-1": "up", "other": "inactive"}
    assert state.nodes == {"q-1": {"idle": 1, "planned": 1, "down": 1}, "other": {"power saving": 1}}
    assert state.kinds == (
        NodeKind("other", "b-1x", static=False, count=1, ready=0),
        NodeKind("q-1", "a", static=True, count=3, ready=2),
    )
    assert (state.missing_static, state.node_count("q-1", "a", static=True), state.active_jobs) == (1, 3, 1)
    assert state.problems == (Problem(1, "down*", "yesterday", "q-1-st-a-3", "Not responding", "q-1"),)
    assert (state.wanted, state.out_in("q-1"), state.out_in("other")) == ({"q-1": 4, "other": 4}, 1, 0)
    assert state.waits == (Wait("Resources", 2, "7"),)


def test_a_database_that_does_not_answer_is_said_in_its_words(tmp_path: Path) -> None:
    said = [parse(run(tmp_path, NO_DATABASE=each)).accounting for each in ("", "1")]
    assert said == ["", "sacctmgr: error: gone"]


def test_nodes_that_slurm_does_not_list_are_not_no_nodes(tmp_path: Path) -> None:
    with pytest.raises(SlurmError):
        parse(run(tmp_path, BROKEN="1"))


BASES = ("UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE")
"""node_states of Slurm 25.11 (src/common/slurm_protocol_defs.c, by slurm/slurm.h)."""
FLAGS = (
    "BLOCKED", "CLOUD", "COMPLETING", "DRAIN", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "EXTERNAL", "INVALID_REG", "FAIL",
    "MAINTENANCE", "POWER_DOWN", "POWER_UP", "POWERED_DOWN", "REBOOT_REQUESTED", "REBOOT_ISSUED", "RESERVED", "RESUME",
    "NOT_RESPONDING", "PLANNED", "POWERING_UP", "POWERING_DOWN",
)  # fmt: skip
"""node_state_flags of the same."""
STATES = st.builds(
    lambda base, flags: "+".join((base, *sorted(flags))), st.sampled_from(BASES), st.sets(st.sampled_from(FLAGS))
)


def can_be_allocated(state: str) -> bool:
    """Tell whether a job that may wait for a node to start gets one in this state, by Slurm's source.

    avail_node_bitmap (node_mgr.c, read_config.c): IDLE, ALLOCATED and MIXED nodes that respond and are not to be
    drained or powered down. One that powers up is NOT_RESPONDING until it has registered, one that is to be powered
    down or is being so is available again when it is off, and POWER_DOWN ends a drain (power_save.c).
    """
    base, *listed = state.split("+")
    flags = {*listed}
    if base not in ("IDLE", "ALLOCATED", "MIXED") or "FAIL" in flags:
        return False
    if "DRAIN" in flags and "POWER_DOWN" not in flags:
        return False
    is_on_its_way = flags & {"POWERING_UP", "POWER_UP", "POWER_DOWN", "POWERING_DOWN"}
    return "NOT_RESPONDING" not in flags or bool(is_on_its_way)


def called(state: str) -> str:
    """Return what a node is called, as all commands do."""
    parsed = parse(answer({"trn1": "up"}, {"trn1": {"st-a": {state: 3}}}))
    [name] = parsed.nodes["trn1"]
    assert parsed.out_in("trn1") == (0 if node_states.takes_jobs(name) else 3)
    assert parsed.kinds[0].ready == (3 if name in node_states.TAKES else 0)
    return name


@QUICK
@given(STATES)
def test_a_node_that_slurm_gives_to_no_job_is_out_whatever_else_is_said_of_it(state: str) -> None:
    name, flags = called(state), {*state.split("+")}
    assert called(state.lower()) == name
    if node_states.takes_jobs(name):
        assert can_be_allocated(state), name
    if name in node_states.TAKES:
        assert not flags & {"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWERING_UP", "POWER_UP", "NOT_RESPONDING"}


@pytest.mark.parametrize("base", BASES)
def test_every_state_with_at_most_one_flag(base: str) -> None:
    """So that none is out that is not: the states that ParallelCluster's nodes have most of the time."""
    fit = {each for each in ("", *FLAGS) if node_states.takes_jobs(called(f"{base}+{each}".rstrip("+")))}
    says_nothing = {"", "CLOUD", "DYNAMIC_NORM", "COMPLETING", "PLANNED", "RESERVED", "BLOCKED"}
    of_power = {"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWERING_UP", "POWER_UP"}
    with_jobs = {"MAINTENANCE", "REBOOT_REQUESTED", "REBOOT_ISSUED"} if base in ("ALLOCATED", "MIXED") else set()
    assert fit == (says_nothing | of_power | with_jobs if base in ("IDLE", "ALLOCATED", "MIXED") else set())


@pytest.mark.parametrize("state", ["idle+cloud+a_flag_of_tomorrow", "sleepy", "idle+resume"])
def test_a_state_that_nobody_knows_takes_no_jobs(state: str) -> None:
    assert called(state) == "unknown"


@pytest.mark.parametrize(
    ("state", "name"),
    [
        ("idle+powered_down+not_responding", "stuck off"),
        ("idle+powered_down", "power saving"),
        ("idle+powered_down+reserved", "reserved off"),
        ("mixed+powered_down+reserved", "powering up"),
        ("mixed+powered_down", "powering up"),
        ("mixed+not_responding+powering_up", "powering up"),
        ("idle+completing+not_responding", "not responding"),
        ("allocated+drain+not_responding", "draining"),
        ("idle+drain+powered_down", "drained"),
        ("idle+drain+power_down", "powering down"),
        ("idle+drain+powering_down", "drained"),
        ("down+powered_down", "down"),
        ("allocated+completing", "allocated"),
        ("mixed+planned", "mixed"),
    ],
)
def test_what_a_node_is_called_that_is_in_several_states(state: str, name: str) -> None:
    assert called(state) == name


@given(st.lists(st.builds("{}-{}".format, st.sampled_from(("a-dy-b", "a-st-b", "c")), st.integers(0, 30)), unique=True))
def test_names_of_nodes_are_folded_as_slurm_does(names: list[str]) -> None:
    assert sorted(program.unfold(program.fold(names))) == sorted(names)


def test_folded_names_are_short() -> None:
    assert program.fold(["a-dy-b-3", "a-dy-b-1", "a-dy-b-2", "a-dy-b-7", "x"]) == "a-dy-b-[1-3,7],x"
    assert program.unfold("a-[08-10,12],b") == ["a-08", "a-09", "a-10", "a-12", "b"]


def test_reasons_and_names_hold_any_character() -> None:
    state = parse(RECORDED)
    assert [each.reason for each in state.problems] == [
        "drained while off",
        "none",
        'a|b ~ # 5|drained "quoted" \\n \\c é',
        "two # end",
    ]
    assert [(each.number, each.name) for each in state.jobs] == [(1, "train"), (2, "two # end"), (3, "sweep")]


def test_a_job_that_waits_in_two_queues_is_one() -> None:
    state = parse(RECORDED)
    assert (state.active_jobs, state.waiting_jobs) == (2, 30)
    assert [(state.active_in(queue), state.waiting_in(queue)) for queue in ("trn1", "cpu")] == [(1, 30), (1, 30)]
    assert (state.active_in("other"), state.waiting_in("other")) == (0, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        IDLE[:-9],
        answer(counts=[(3, "trn1", "no state")]),
        answer(jobs=[(1, "ann", "trn1", "--x", 1, "0:00", "None", "a")]),
    ],
)
def test_output_that_is_not_slurms_is_an_error(text: str) -> None:
    with pytest.raises(SlurmError):
        parse(text)


def test_what_users_write_makes_no_answer_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, reasons and lists of queues as long as they can be, in 50 queues with nodes in all states."""
    queues = [f"queue-of-25-characters-{number:02}" for number in range(50)]
    states = (
        "idle+cloud",
        "allocated+cloud",
        "idle+cloud+drain+not_responding",
        "down+cloud",
        "idle+cloud+powered_down",
    )
    nodes = [f"{queue} {queue}-dy-{'r' * 25}-{n} {state}" for queue in queues for n, state in enumerate(states)]
    wide = {"%A": "1" * 12, "%u": "u" * 64, "%P": ",".join(queues), "%T": "RUNNING", "%D": "9" * 12, "%M": "1" * 20}

    def records(fields: tuple[str, ...], *command: str) -> list[list[str]]:
        if fields == ("%R", "%a"):
            return [[queue, "inactive"] for queue in queues]
        if fields[:3] == ("%P", "%T", "%D"):
            reasons = [f"{n}\x1b\N{GRINNING FACE}" * 60 for n in range(50)]
            return [[",".join(queues[n:]), "PENDING", "1875", reasons[n], "9999999_9999999"] for n in range(50)] * 20
        if fields == ("%N", "%H", "%E"):
            return [[line.split()[1], "2026-11-21T12:00:00", "\x1b\N{GRINNING FACE}" * 200] for line in nodes]
        return [[wide.get(each, "\x1b\N{GRINNING FACE}" * 200) for each in fields]] * 500

    monkeypatch.setattr(program, "records", records)
    monkeypatch.setattr(program, "call", lambda _: "\n".join(nodes))
    text = asking.dumped({"state": program.state()})
    state = parse(text)
    assert len(text) < OUTPUT_LIMIT - 5_600, "the software of jobs stands beside it"
    assert (state.waiting_in(queues[49]), state.waiting_in(queues[0])) == (1000, 20)
    assert state.problems
    assert [each.count for each in state.waits] == [20] * program.REASONS_LISTED
    assert all(each.queue.startswith(f"{queues[0]},{queues[1]}") for each in state.jobs)


# --- which jobs are meant ---

KNOWN = {
    (row[1], row[2]): list(row)
    for row in (
        ("25", "25", "3", "PENDING", "ann", "sweep", "25_3"),  # those that wait have the number of the array
        ("25", "25", "4", "PENDING", "ann", "sweep", "25_4"),
        ("26", "25", "1", "RUNNING", "ann", "sweep", "25_1"),
        ("27", "25", "2", "COMPLETED", "ann", "sweep", "25_2"),
        ("12", "12", "", "RUNNING", "eve", "one", "12"),
        ("13", "13", "", "FAILED", "eve", "over", "13"),
        ("30", "30", "", "RUNNING", "eve", "pair", "30+0"),  # a heterogeneous job
        ("31", "31", "", "RUNNING", "eve", "pair", "30+1"),
    )
}


@pytest.mark.parametrize(
    ("asked", "arrays", "problem", "words"),
    [
        ("12", False, "", ["12"]),
        ("13", False, "", []),
        ("999", False, "unknown", []),
        ("25", False, "array", ["25"]),
        ("25", True, "", ["25"]),
        ("25_1", False, "", ["25_1"]),
        ("25_2", False, "", []),
        ("25_9", False, "unknown", []),
        ("25_[3-4]", False, "", ["25_[3-4]"]),
        ("25_[3-9%2]", False, "", ["25_[3-4]"]),
        ("25_1,3", False, "", ["25_[1,3]"]),
        ("25_[1-9:2]", False, "", ["25_[1,3]"]),
        ("26", False, "", ["25_1"]),
        ("12_1", False, "unknown", []),
        ("30", False, "", ["30"]),
        ("30+0", False, "", ["30"]),
        ("30+1", False, "", ["30+1"]),
        ("30+2", False, "unknown", []),
        ("31", False, "", ["31"]),
    ],
)
def test_a_word_means_its_row_and_nothing_beside(asked: str, arrays: bool, problem: str, words: list[str]) -> None:
    """Of an array what waits has the number of the array, by which scancel would cancel what runs, too."""
    found = jobs.choose(asked, KNOWN, arrays=arrays)
    assert (found["problem"], found["words"]) == (problem, words)


@given(st.sets(st.integers(0, 40)))
def test_tasks_are_written_as_slurm_writes_them(tasks: set[int]) -> None:
    written = job_facts.condensed(tasks)
    assert {number for each in jobs.ranges(written) for number in each} == tasks if tasks else written == ""
    assert written.count(",") < max(1, len(tasks))


@pytest.mark.parametrize(
    ("asked", "obeys", "cancelled", "left"),
    [(["12"], True, ["12"], {}), (["12"], False, ["12"], {"RUNNING": 1}), (["12", "999"], True, [], {})],
)
def test_slurm_is_asked_what_it_has_cancelled(
    monkeypatch: pytest.MonkeyPatch,
    asked: list[str],
    obeys: bool,
    cancelled: list[str],
    left: dict[str, int],
) -> None:
    """Scancel ends with 0 whatever it was told, and all are cancelled or none."""
    told: list[str] = []
    known = dict(KNOWN)

    def scancel(command: Sequence[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        told.extend(command[2:])
        if obeys:
            del known[("12", "")]
        return subprocess.CompletedProcess(command, 0, b"", b"")

    monkeypatch.setattr(jobs, "tasks_of_all", lambda: dict(known))
    monkeypatch.setattr(subprocess, "run", scancel)
    found = jobs.chosen("tasks", asked, cancel=True, wait=lambda _: None)
    assert told == cancelled
    assert found[0]["left"] == (left if len(asked) == 1 else {"RUNNING": 1})


def test_a_controller_that_does_not_answer_has_not_forgotten_a_job(tmp_path: Path) -> None:
    """Asked for JSON, scontrol 24.11 prints no jobs, no error and exit code 0."""
    scontrol = """#!/bin/sh
    case "$*" in
    *--json) echo '{"jobs": []}' ;;
    *) echo "$SAID" >&2; exit 1 ;;
    esac
    """
    (tmp_path / "scontrol").write_text(scontrol, encoding="utf-8")
    (tmp_path / "scontrol").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(asking.ENVIRONMENT, "PATH", path)
        patch.setitem(asking.ENVIRONMENT, "SAID", "slurm_load_jobs error: Invalid job id specified")
        assert job_facts.described("7") is None
        patch.setitem(asking.ENVIRONMENT, "SAID", "slurm_load_jobs error: Socket timed out")
        with pytest.raises(SystemExit, match="Socket timed out"):
            job_facts.described("7")
