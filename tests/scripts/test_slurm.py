"""How the answer of the head node is read. tests/end_to_end/slurm/test_slurm_state.py asks a real Slurm."""

from __future__ import annotations

import pytest

from scripts.slurm import SlurmError, parse
from tests.scripts.slurm_samples import IDLE, RECORDED


def answer(**sections: str) -> str:
    found = {"nodes": "", "problems": "", "counts": "", "jobs": "", **sections}
    return "".join(f"# {name}\n{body}" for name, body in found.items()) + "# end\n"


@pytest.mark.parametrize(
    ("written", "state"),
    [
        ("idle", "idle"),
        ("idle~", "power saving"),
        ("idle#", "powering up"),
        ("idle%", "powering down"),
        ("idle!", "powering down"),
        ("idle*", "not responding"),
        ("idle$", "idle"),
        ("idle@", "idle"),
        ("idle-", "idle"),
        ("allocated+", "allocated"),
        ("allocated#", "powering up"),
        ("allocated~", "powering up"),
        ("allocated*", "not responding"),
        ("mixed-", "mixed"),
        ("mixed#", "powering up"),
        ("completing*", "not responding"),
        ("planned", "planned"),
        ("reboot^", "reboot"),
        ("drained*", "drained"),
        ("drained~", "drained"),
        ("draining@", "draining"),
        ("down~", "down"),
        ("down*", "down"),
    ],
)
def test_states_of_nodes(written: str, state: str) -> None:
    assert parse(answer(nodes=f" trn1|{written}|3|up\n")).nodes == {"trn1": {state: 3}}


def test_states_that_read_the_same_are_added_up() -> None:
    assert parse(answer(nodes=" trn1|idle|3|up\n trn1|idle-|4|up\n")).nodes == {"trn1": {"idle": 7}}


def test_reasons_and_names_hold_any_character() -> None:
    state = parse(RECORDED)
    assert [each.reason for each in state.problems] == [
        "drained while off",
        'a|b ~ # 5|drained "quoted" \\n \\c é',
        "two # end",
    ]
    assert [(each.number, each.name) for each in state.jobs] == [(1, "train"), (2, "two # end"), (3, "sweep")]


def test_a_job_that_waits_in_two_queues_is_one() -> None:
    state = parse(RECORDED)
    assert (state.active_jobs, state.waiting_jobs) == (2, 30)
    assert [(state.active_in(queue), state.waiting_in(queue)) for queue in ("trn1", "cpu")] == [(1, 30), (1, 30)]
    assert (state.active_in("other"), state.waiting_in("other")) == (0, 0)


def test_an_idle_cluster() -> None:
    state = parse(IDLE)
    assert state.nodes == {"trn1": {"power saving": 1873, "idle": 2}}
    assert (state.problems, state.jobs, state.counts) == ((), (), {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "slurm_load_partitions: Unable to contact slurm controller",
        IDLE.removesuffix("# end\n"),
        answer(nodes=" trn1|idle\n"),
        answer(counts=" 3 RUNNING\n"),
    ],
)
def test_what_slurm_does_not_print_is_refused(text: str) -> None:
    with pytest.raises(SlurmError):
        parse(text)
