"""What holds now comes first, what is over last and named so."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.account.causes import Cause, Evidence, FoundCause, State, table
from scripts.account.remote.head_node import Answer
from scripts.account.remote.programs.state import PROBLEMS_LISTED
from scripts.watch.diagnose.diagnose import Diagnosis, diagnose
from scripts.watch.diagnose.judge import SUSPICIOUS_SHOWN, ordered, suspicious
from scripts.watch.diagnose.present import SCOPES, evident, known_of
from tests.properties import QUICK
from tests.scripts.slurm_samples import IDLE, answer
from tests.scripts.watch.diagnose.causes.recorded import (
    HEAD_NODE,
    NOW,
    Now,
    Recorded,
    deployment,
    failed,
    ids,
    shown,
    stream,
)

LOST = (
    "2026-05-01 11:40:00,001 - [slurm_plugin.slurm_resources:is_backing_instance_valid] - WARNING - Node state check: "
    "no corresponding instance in EC2 for node trn1-dy-trn1-32xl-1(10.0.1.9), node state: ALLOCATED+CLOUD"
)
SLURM_DEAD = ("", "slurm_load_partitions: Unable to contact slurm controller (connect failure)")
FULL = "error: Can't save state, error writing file /var/spool/slurm.state/job_state.new: No space left on device"
REPLACED = (
    "Scheduler health check failed",
    "Static node maintenance: unhealthy node is being replaced",
    "updating node state during cluster update",
)
"""Reasons of clustermgtd.py and update_head_node.rb of ParallelCluster."""
OTHER_NODE = "ip-10-0-1-9.i-0c"


def states(diagnosis: Diagnosis) -> list[str]:
    return [str(each.state) for each in diagnosis.causes]


@pytest.mark.parametrize(
    ("fleet", "said", "causes", "judged"),
    [
        ("RUNNING", (IDLE, ""), ["instance-lost"], ["ended"]),
        ("PROTECTED", (IDLE, ""), ["protected-mode", "instance-lost"], ["now", "ended"]),
        ("PROTECTED", SLURM_DEAD, ["slurm-silent", "protected-mode", "instance-lost"], ["now", "now", "ended"]),
        ("PROTECTED", None, ["protected-mode", "instance-lost"], ["now", "ended"]),
    ],
    ids=["it is well again", "the fleet is protected", "Slurm is dead as well", "nobody may ask the head node"],
)
def test_a_node_that_was_lost_and_replaced_does_not_hide_what_blocks_now(
    fleet: str, said: tuple[str, str] | None, causes: list[str], judged: list[str]
) -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    account.line(stream("daemon", "clustermgtd"), 40, LOST)
    account.fleet, account.answer = fleet, said
    diagnosis = diagnose(made, Now())
    assert (ids(diagnosis), states(diagnosis)) == (causes, judged)
    assert diagnosis.failed == (judged != ["ended"])
    lines = shown(diagnosis).splitlines()
    for cause in diagnosis.causes:
        commands = {f"  {line.removeprefix('$ ')}" for line in cause.to_do if line.startswith("$ ")}
        assert (commands <= set(lines)) == (cause.state is not State.ENDED), "what helps is said of all that may hold"
    assert ("Was so, and is over" in lines) == ("ended" in judged)
    assert any("ssm:SendCommand is not allowed" in line for line in lines) == (said is None)


@pytest.mark.parametrize(
    ("where", "percent", "present", "state"),
    [
        (stream("slurm", "slurmctld"), 100, True, State.NOW),
        (stream("slurm", "slurmctld"), 40, True, State.ENDED),
        (f"{OTHER_NODE}.slurmd", 40, True, State.SEEN),
        (f"{OTHER_NODE}.slurmd", 40, False, State.ENDED),
        (f"{OTHER_NODE}.chef-client", 40, False, State.SEEN),
    ],
    ids=["full", "freed", "of another node", "of a node that is gone", "of a node that could not start"],
)
def test_a_disk_is_full_until_it_is_freed_or_its_node_is_gone(
    where: str, percent: int, present: bool, state: State
) -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    account.instances |= {"i-0c": "running" if present else "terminated"}
    account.line(where, 50, FULL)
    account.answer = f"Use% Mounted on\n{percent:>3}% /\n{IDLE}", ""
    [cause] = diagnose(made, Now()).causes
    assert (cause.id, cause.state) == ("disk-full", state)


def test_a_larger_disk_of_the_head_node_is_said_to_mean_a_new_cluster() -> None:
    [row] = [each for each in table() if each.id == "disk-full"]
    assert "of the head node means a new cluster" in " ".join(row.do)


def broken_setting(account: Recorded, stack: str) -> None:
    """Let an update fail as after a setting that Slurm does not know."""
    account.line(stream("daemon", "clustermgtd"), 59, "INFO - Managing cluster...")
    account.event(stack, 30, f"UPDATE_IN_PROGRESS AWS::CloudFormation::Stack {stack}: User Initiated")
    account.line(stream("boot", "chef-client"), 35, "sinfo: error: Parsing error at unrecognized key: MaxArraySise")
    account.event(
        stack,
        36,
        "CREATE_FAILED AWS::CloudFormation::WaitCondition W: WaitCondition received failed message: 'Update failed'",
    )


@pytest.mark.parametrize("is_dead", [False, True], ids=["Slurm runs again", "Slurm is dead still"])
def test_a_setting_that_slurm_does_not_know_is_named_and_so_is_the_way_out_of_its_update(is_dead: bool) -> None:
    made, account, stack = failed()
    name = made.settings.cluster_spec.name
    account.stacks |= {stack: "UPDATE_ROLLBACK_FAILED", name: "UPDATE_ROLLBACK_COMPLETE"}
    account.instances = {HEAD_NODE: "running"}
    broken_setting(account, stack)
    account.event(stack, 40, f"UPDATE_ROLLBACK_FAILED AWS::CloudFormation::Stack {stack}: The following resource(s)")
    cluster = {"ResourceType": "Custom::PclusterCluster", "ResourceStatus": "UPDATE_FAILED"}
    account.resources = {stack: [{**cluster, "LogicalResourceId": "ClusterEB0386A7", "PhysicalResourceId": "dev"}]}
    account.answer = ("", "sinfo: error: Parsing error at unrecognized key: MaxArraySise") if is_dead else (IDLE, "")
    diagnosis = diagnose(made, Now())
    assert ids(diagnosis)[0] == "slurm-setting"
    assert diagnosis.causes[0].state is (State.NOW if is_dead else State.SEEN)
    text = " ".join(shown(diagnosis).split())
    assert "MaxArraySise" in diagnosis.causes[0].why
    assert "--resources-to-skip ClusterEB0386A7" in text
    assert ("rollback-failed" in ids(diagnosis), "could not go back to what it was" in text) == (True, False)


ROWS = {row.id: row for row in table()}


def found(row: Cause, state: State) -> FoundCause:
    evidence = Evidence(kind=row.seen[0], source="place", time=NOW, text="line")
    return FoundCause(
        id=row.id, title="", why="", to_do=(), source="", evidence=(evidence,), logs=row.logs, state=state
    )


@QUICK
@given(st.lists(st.tuples(st.sampled_from(list(table())), st.sampled_from(State)), unique_by=lambda each: each[0].id))
def test_none_is_left_out_and_what_is_over_is_behind_what_is_not(rows: Sequence[tuple[Cause, State]]) -> None:
    shown_ones = ordered([found(row, state) for row, state in rows], ROWS)
    assert sorted(each.id for each in shown_ones) == sorted(row.id for row, _ in rows)
    over = [each.state is State.ENDED for each in shown_ones]
    assert over == sorted(over)
    behind = {kind for each in shown_ones if each.state is State.NOW for kind in each.logs or ()}
    last_of_now = max((n for n, each in enumerate(shown_ones) if each.state is State.NOW), default=0)
    for each in shown_ones[:last_of_now]:
        is_behind = each.logs is None and each.evidence[0].kind in behind
        assert each.state is State.NOW or is_behind, "only what can be behind a symptom comes before"
    scopes = [
        min((SCOPES.index(kind) for kind in ROWS[each.id].seen if kind in SCOPES), default=len(SCOPES) - 1)
        for each in shown_ones
        if each.state is State.NOW
    ]
    assert scopes == sorted(scopes), "what concerns more of the cluster comes first"


def test_lines_that_no_cause_explains_are_shown_the_worst_first_and_each_kind_once() -> None:
    def line(minutes: int, kind: str, text: str) -> Evidence:
        return Evidence(kind=kind, source="place", time=NOW + timedelta(minutes=minutes), text=text)

    known = line(1, "slurm", "fatal: known")
    lines = [
        known,
        line(1, "slurm", "[2026-05-01T10:00:00.001] fatal: odd 1"),
        *(line(n, "daemon", f"2026-05-01 10:00:00,00{n} - ERROR - strange thing {n}") for n in range(2, 9)),
        line(9, "boot", "error: of a start"),
        line(9, "system", "kernel: efa: Failed to process command DEREG_MR (opcode 8) comp_status 7 err -22"),
        line(9, "daemon", "INFO - Failed nodes: (x0) []"),
        line(9, "slurm", "error: SchedulerParameters 1 specified more than once, latest value used"),
        *(line(10, "slurm", f"warning {letter}") for letter in "abcdefgh"),
    ]
    listed = suspicious(lines, [known])
    assert [each.text[-7:] for each in listed[:3]] == [": odd 1", "thing 8", "a start"]
    assert len(listed) == SUSPICIOUS_SHOWN


def test_what_was_cut_off_or_not_answered_is_not_known() -> None:
    many = [(1, "drained", "2026-05-01T10:00:00", f"n-{number}", "odd") for number in range(PROBLEMS_LISTED)]
    everything = f" 40% /\n{IDLE}"
    assert known_of("RUNNING", Answer(0, everything, "")) == {"answer", "disk", "fleet", "accounting", "node"}
    assert known_of("RUNNING", Answer(0, answer(problems=many), "")) == {"answer", "fleet", "accounting"}
    assert known_of("UNKNOWN", Answer(1, "", "no answer within 8 s")) == {"answer"}
    assert known_of(None, "not allowed") == set()


def test_a_lack_of_capacity_is_not_over_because_no_node_has_it_between_two_tries() -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    account.line(stream("daemon", "slurm_resume"), 50, "ERROR - (InsufficientInstanceCapacity)")
    account.answer = IDLE, ""
    assert states(diagnose(made, Now())) == ["seen"]


def test_a_node_that_is_being_replaced_is_no_trouble() -> None:
    rows = [(1, "down", "2026-05-01T10:00:00", "trn1-dy-trn1-1", reason) for reason in ("odd", *REPLACED)]
    said = [text for _, text in evident("trn1-16", "RUNNING", Answer(0, answer(problems=rows), ""))]
    assert [text.rpartition(": ")[2] for text in said] == ["odd"]


def test_a_log_line_stays_beside_what_is_so_now() -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    account.line(stream("slurm", "slurmctld"), 50, FULL)
    account.answer = f"Use% Mounted on\n100% /var/spool/slurm.state\n{IDLE}", ""
    [cause] = diagnose(made, Now()).causes
    assert [each.kind for each in cause.evidence] == ["slurm", "disk"]
