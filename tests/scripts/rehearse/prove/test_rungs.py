"""What rungs see: with the answers of commands and AWS as they should be, and as they should not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from scripts.core import options
from scripts.core.errors import ExitCode
from scripts.rehearse.prove.assumptions import NO_RUNG, assumptions, of_rung
from scripts.rehearse.prove.ladder import MANY, NAMES, Choices
from scripts.rehearse.prove.redact import Redactor
from scripts.rehearse.prove.report import Observation
from scripts.rehearse.prove.rungs import CLIMBED
from scripts.rehearse.prove.walk import Ran, RungError, Walk
from tests.scripts.rehearse.prove.test_prove import START, Time, raw

METRICS = "\n".join(
    json.dumps({"step": step, "loss": 11 - step / 100, "sequences_per_second": 7500.0}) for step in range(1, 201)
)
TRAINED = f"compile: exit code 0\n=== train\nthe program has ended well\n=== metrics\n{METRICS}\n"
NODE = '6.14.0-1018-aws\nfilename: neuron.ko\nneuron 123 0\nrtprio 99\n[{"nc_count": 2}]'
ACCEPTED = json.dumps({"verdict": "good", "runs": [{"bandwidth": 47.0, "passed": True}]})
TEAM = yaml.safe_load((options.CONFIG / "team.yaml").read_text(encoding="utf-8"))
PEOPLE = "User ubuntu is not allowed to run sudo on here.\n" + "".join(
    f"{each['name']}:x:{each['uid']}:{each['uid']}::/home/{each['name']}:/bin/bash\n" for each in TEAM["users"]
)
HEAD_NODE: Mapping[str, tuple[int, str]] = {
    "uname -r; ": (0, NODE),
    "hostname": (0, "ip-10-0-0-1\n6.14.0-1018-aws\n"),
    "ssm get-parameter": (255, "An error occurred (AccessDeniedException)"),
    "findmnt": (0, "/home nfs4"),
    "sacctmgr": (0, "dev"),
    "sudo -n": (0, PEOPLE),
    "sinfo": (0, "trn1 up"),
    "kept-by-prove": (0, ""),
    "=== train": (0, TRAINED),
    "sbatch": (0, "7\n"),
    "submit.py": (0, "compile      job 6, log x\ntrain        job 7, log x\n"),
    "acceptance-7.json": (0, ACCEPTED + "\nlog"),
    "fi_info": (0, "\n".join(f"    domain: rdmap{each}s0-rdm" for each in range(8))),
    "checkpoints": (0, "step-100"),
    "run.json": (0, json.dumps({"attempts": [{"resumed_step": 0}, {"resumed_step": 100}]})),
    "scontrol show job": (0, "JobId=7 Restarts=1 BatchFlag=1"),
    "scancel": (0, ""),
    "tail": (0, "start: from step 100"),
}
"""Exit code and output by a part of a script; the first that is in it counts."""
COMMANDS: Mapping[str, tuple[int, Any]] = {
    "preflight": (0, {"results": [{"check": "quotas", "status": "PASS"}]}),
    "plan": (
        0,
        {
            "empty": True,
            "stacks": [{"name": "dev-storage", "changes": [{"logical_id": "L", "effect": "changed in place"}]}],
        },
    ),
    "deploy": (0, {}),
    "diagnose": (1, {"causes": [{"id": "OnNodeUpdated"}]}),
    "status": (0, {"healthy": True, "software": {"state": "ready"}, "spending": {"nodes_usd": 1.5}}),
    "recover": (0, {}),
    "fleet": (0, {}),
    "destroy": (0, {}),
    "inventory": (0, {"dollars_per_month": 0.0, "resources": [{"type": "AWS::S3::Bucket", "dollars_per_month": None}]}),
}


REPLACED = {"stacks": [{"name": "dev-storage", "changes": [{"logical_id": "L", "effect": "may be replaced"}]}]}
LEFT = {"dollars_per_month": 3.0, "resources": [{"type": "X", "dollars_per_month": 3.0}]}


class Client:
    def stop_instances(self, **_: Any) -> None: ...

    def terminate_instances(self, **_: Any) -> None: ...


class FakeDeployment:
    """A deployment of which AWS says what a test wants."""

    system_user = "ubuntu"

    def __init__(self, walk: ScriptedWalk) -> None:
        self.account, self.walk, self.settings = self, walk, walk.settings

    def client(self, _: str) -> Client:
        return Client()

    def stack_name(self, part: str) -> str:
        return self.settings.stack_name(part)

    def outputs(self, _: str) -> dict[str, str]:
        return {} if self.walk.messages is None else {"ValidationMessages": self.walk.messages}

    def physical_ids(self, _: str) -> dict[str, str]:
        return {"FileSystem": "fs-1", "Other": "fs-2", "Gateway": "nat-1"}

    def stack(self, name: str) -> dict[str, str]:
        return {"StackName": name, "StackStatus": self.walk.inner}

    def list(self, _: str, operation: str, **__: Any) -> list[dict[str, Any]]:
        is_grown = self.settings.network.nat_addresses == 2
        if operation == "describe_nat_gateways":
            count = self.walk.addresses if is_grown else 1
            return [{"NatGatewayId": "nat-1", "NatGatewayAddresses": [{}] * count}]
        is_grown = is_grown and self.walk.grows
        return [
            {
                "FileSystemId": self.walk.file_systems[-1 if is_grown else 0],
                "Lifecycle": "AVAILABLE",
                "StorageCapacity": 2400 if is_grown else 1200,
                "AdministrativeActions": [{"AdministrativeActionType": "FILE_SYSTEM_UPDATE"}] * is_grown,
            }
        ]


class ScriptedWalk(Walk):
    """A walk whose commands answer as a script has it; all jobs run, or have ended."""

    def __init__(
        self, folder: Path, head_node: Mapping[str, tuple[int, str]], commands: Mapping[str, tuple[int, Any]]
    ) -> None:
        self.seen: dict[str, Observation] = {}
        super().__init__(
            "dev", raw(), folder, Choices(Decimal(2000)), False, Redactor("salt"), lambda _: None,
            lambda each: self.seen.__setitem__(each.id, each), Time(),  # type: ignore[arg-type]
        )  # fmt: skip
        self.head_node_says, self.commands = head_node, commands
        self.nodes: list[int] = []
        self.statuses = {"network": "UPDATE_COMPLETE", "storage": "UPDATE_COMPLETE", "cluster": "UPDATE_COMPLETE"}
        self.inner = "UPDATE_ROLLBACK_COMPLETE"
        self.script, self.runs = "", False
        self.messages: str | None = "[]"
        self.seconds, self.grows, self.addresses, self.file_systems = 60.0, True, 2, ["fs-1"]
        self.head_nodes, self.bandwidths, self.answers = ["i-1"], [47.0], [""][:0]
        self.compile_minutes = 0

    def _run(self, shown: list[str], words: list[str]) -> Ran:
        code, answer = self.commands.get(shown[1], (0, {})) if shown[0] != "cdk" else (0, {})
        if shown[1] == "deploy" and self.script == "exit 1":
            code, self.statuses["cluster"] = 1, "UPDATE_ROLLBACK_FAILED"
        elif shown[1] == "deploy":
            self.statuses["cluster"] = "UPDATE_COMPLETE" if code == 0 else "UPDATE_ROLLBACK_COMPLETE"
        elif shown[1] == "destroy" and code == 0:
            self.statuses = {}
        return Ran(code, json.dumps(answer), "", self.seconds, "logs/1.txt")

    def edit_script(self, line: str) -> None:
        self.script = line

    def on_head_node(self, script: str, *, user: str = "", minutes: int = 20) -> Ran:
        if "squeue" in script:
            is_compiling = "jobs=6" in script and self.clock.now() < START + timedelta(minutes=self.compile_minutes)
            says = self.answers.pop() if self.answers else f"{'R' if self.runs or is_compiling else ''}\nrc=0\n"
            return Ran(0, says, "", 1.0, "logs/1.txt")
        [(code, output), *_] = [each for part, each in self.head_node_says.items() if part in script]
        if output.startswith(ACCEPTED):
            output = output.replace("47.0", str(self._next(self.bandwidths)))
        return Ran(code, output, "", 60.0, "logs/1.txt")

    @staticmethod
    def _next(values: list[Any]) -> Any:
        return values.pop(0) if len(values) > 1 else values[0]

    @property
    def deployment(self) -> Any:
        return FakeDeployment(self)

    def head_node(self) -> Mapping[str, Any]:
        return {"InstanceId": self._next(self.head_nodes), "State": {"Name": "stopped"}}

    def compute_nodes(self) -> list[dict[str, Any]]:
        count = self._next(self.nodes)
        return [{"InstanceId": f"i-{each}"} for each in range(count)]

    def status_of(self, part: str) -> str:
        return self.statuses.get(part, "")


def scripted(
    folder: Path, rung: str, head_node: Mapping[str, tuple[int, str]] = {}, commands: Mapping[str, tuple[int, Any]] = {}
) -> ScriptedWalk:
    others = {part: each for part, each in HEAD_NODE.items() if part not in head_node}
    walk = ScriptedWalk(folder, {**head_node, **others}, {**COMMANDS, **commands})
    walk.nodes = [MANY] if rung == "sixteen-nodes" else [0]
    if rung == "storage":
        walk.statuses = {}
    if rung == "head-node":
        walk.raw |= {key: TEAM[key] for key in ("groups", "users", "homes", "accounting")}
    walk.runs = rung == "sixteen-nodes"
    return walk


def climbed(
    folder: Path, rung: str, head_node: Mapping[str, tuple[int, str]] = {}, commands: Mapping[str, tuple[int, Any]] = {}
) -> ScriptedWalk:
    walk = scripted(folder, rung, head_node, commands)
    CLIMBED[rung](walk)
    return walk


@pytest.mark.parametrize("rung", NAMES)
def test_a_good_account_is_as_expected(rung: str, tmp_path: Path) -> None:
    walk = climbed(tmp_path, rung)
    looked = {name: each for name, each in walk.seen.items() if each.outcome != "not looked at"}
    assert {name: each.seen for name, each in looked.items() if each.outcome == "differs"} == {}
    wanted = {each.id for each in of_rung(rung) if each.by == "program"}
    assert looked.keys() == wanted


class Other(NamedTuple):
    """What is otherwise than expected, by which an assumption must differ."""

    rung: str
    name: str
    head_node: Mapping[str, tuple[int, str]] = {}
    commands: Mapping[str, tuple[int, Any]] = {}
    walk: Mapping[str, Any] = {}


UNKNOWN = {"results": [{"check": "quotas", "status": "UNKNOWN"}]}
WARNING = json.dumps([{"level": "WARNING", "type": "UrlValidator", "message": "x"}])
SLOW = {"seconds": 3600.0}
OTHER_HEAD_NODE = {"head_nodes": ["i-1", "i-2"]}
OTHERS = [
    Other("storage", "ready-account", {}, {"preflight": (1, UNKNOWN)}),
    Other("storage", "grown-without-replacement", {}, {"plan": (0, REPLACED)}),
    Other("storage", "grown-without-replacement", {}, {"plan": (0, {"stacks": []})}),
    Other("storage", "grow-in-place", walk={"grows": False}),
    Other("storage", "grow-in-place", walk={"file_systems": ["fs-1", "fs-2"]}),
    Other("storage", "second-nat-address", walk={"addresses": 1}),
    Other("head-node", "creation", walk=SLOW),
    Other("head-node", "validators", walk={"messages": WARNING}),
    Other("head-node", "validators", walk={"messages": f"TRUNCATED:{WARNING[:40]}"}),
    Other("head-node", "validators", walk={"messages": "?"}),
    Other("head-node", "validators", walk={"messages": None}),
    Other("head-node", "kernel", {"hostname": (0, "x 6.18.1-aws")}),
    Other("head-node", "session-manager", {"hostname": (1, "")}),
    Other("head-node", "parameters-denied", {"ssm get-parameter": (0, "ami-1")}),
    Other("head-node", "head-node-software", {}, {"status": (1, {"software": {"state": "failed", "reason": "x"}})}),
    Other("head-node", "homes-mounted", {"findmnt": (1, "")}),
    Other("head-node", "database-reached", {"sacctmgr": (1, "no answer")}),
    Other("head-node", "users-exist", {"sudo -n": (0, PEOPLE.replace("not allowed", "allowed"))}),
    Other("head-node", "users-exist", {"sudo -n": (0, PEOPLE.replace("alan:", "bob:"))}),
    Other("head-node", "users-exist", {"sudo -n": (0, PEOPLE.replace("2003", "2004"))}),
    Other("roll-back", "update-in-place", walk=SLOW),
    Other("roll-back", "update-in-place", walk=OTHER_HEAD_NODE),
    Other("roll-back", "failed-update", {"sinfo": (1, "")}),
    Other("roll-back", "failed-update", {}, {"diagnose": (0, {})}),
    Other("roll-back", "way-out", {}, {"plan": (0, {"empty": False})}),
    Other("roll-back", "head-node-recovered", {"cat ~/kept": (1, "")}),
    Other("one-chip", "new-queue", walk=OTHER_HEAD_NODE),
    Other("one-chip", "node-start", {"uname -r; ": (0, NODE.replace("2}", "4}"))}),
    Other("one-chip", "driver-built", {"uname -r; ": (0, NODE.replace("\nneuron 123", ""))}),
    Other("one-chip", "real-time-limit", {"uname -r; ": (0, NODE.replace("rtprio 99", "rtprio 0"))}),
    Other("one-chip", "compiled", {"=== train": (0, TRAINED.replace("exit code 0", "exit code 1", 1))}),
    Other("one-chip", "loss-on-a-chip", {"=== train": (0, TRAINED.replace("10.99", "1.0"))}),
    Other("one-chip", "loss-on-a-chip", {"=== train": (0, TRAINED.replace("ended well", "failed"))}),
    Other("one-chip", "guard-counts", {}, {"status": (0, {"spending": {"nodes_usd": None}})}),
    Other("two-nodes", "efa-only", {"acceptance-7.json": (0, "no file")}),
    Other("two-nodes", "efa-only", {"acceptance-7.json": (0, '{"verdict": "good"}')}),
    Other("two-nodes", "efa", {"acceptance-7.json": (0, ACCEPTED.replace("good", "bad-nodes"))}),
    Other("two-nodes", "efa", {"acceptance-7.json": (0, '{"verdict": "good"}')}),
    Other("two-nodes", "efa", walk={"bandwidths": [47.0, 43.5]}),
    Other("two-nodes", "efa", walk={"bandwidths": [0.0, 47.0]}),
    Other("two-nodes", "efa-devices", {"fi_info": (0, "domain: rdmap0s0-rdm")}),
    Other("two-nodes", "throughput", {"=== train": (0, TRAINED.replace("7500", "3000"))}),
    Other("two-nodes", "throughput", walk={"compile_minutes": 21}),
    Other("two-nodes", "idle-nodes-end", walk={"nodes": [2]}),
    Other("sixteen-nodes", "all-or-none", walk={"nodes": [0, 5, 11, MANY], "answers": ["CF\nrc=0"] * 3}),
    Other("sixteen-nodes", "all-or-none", walk={"nodes": [0]}),
    Other("sixteen-nodes", "resumed", {"run.json": (0, '{"attempts": [{"resumed_step": 0}, {"resumed_step": 0}]}')}),
    Other("sixteen-nodes", "requeued", {"scontrol show job": (0, "Restarts=0")}),
    Other("destroy", "destroyed", {}, {"destroy": (1, {})}),
    Other("destroy", "nothing-left", {}, {"inventory": (0, LEFT)}),
    Other("destroy", "nothing-left", {}, {"inventory": (0, {"dollars_per_month": 0, "not_listed": ["fsx"]})}),
    Other("destroy", "nothing-left", {}, {"inventory": (1, {})}),
]  # fmt: skip


@pytest.mark.parametrize("other", OTHERS, ids=lambda each: each.name)
def test_what_is_otherwise_differs(other: Other, tmp_path: Path) -> None:
    walk = scripted(tmp_path, other.rung, other.head_node, other.commands)
    for name, value in other.walk.items():
        setattr(walk, name, deepcopy(value))
    with suppress(RungError):
        CLIMBED[other.rung](walk)
    assert walk.seen[other.name].outcome == "differs"


def test_every_assumption_that_the_program_looks_at_can_differ() -> None:
    assert {each.name for each in OTHERS} == {
        each.id for each in assumptions() if each.by == "program" and each.rung != NO_RUNG
    }


@pytest.mark.parametrize("answer", ["", "R", "slurm_load_jobs error: Unable to contact slurm controller\nrc=1", "rc="])
def test_a_lost_answer_is_not_the_end_of_a_job(answer: str, tmp_path: Path) -> None:
    walk = scripted(tmp_path, "two-nodes")
    walk.answers = [answer] * 3
    CLIMBED["two-nodes"](walk)
    assert walk.answers == []
    assert walk.clock.now() > START + timedelta(seconds=80), "it was asked again, some time later"


def test_a_job_that_slurm_has_forgotten_has_ended(tmp_path: Path) -> None:
    walk = scripted(tmp_path, "two-nodes")
    walk.answers = ["slurm_load_jobs error: Invalid job id specified\nrc=1"]
    CLIMBED["two-nodes"](walk)
    assert walk.clock.now() == START


@pytest.mark.parametrize(
    ("rung", "head_node", "commands", "reason"),
    [
        ("storage", {}, {"preflight": (1, {"results": [{"check": "quotas", "status": "FAIL"}]})}, "not ready: quotas"),
        ("storage", {}, {"plan": (0, REPLACED)}, "would replace L"),
        ("head-node", {}, {"deploy": (1, {})}, "deploy dev .*exit code 1"),
        ("roll-back", {}, {"deploy": (1, {})}, "update of an edited script"),
        ("roll-back", {}, {"recover": (1, {})}, "did not come back"),
        ("one-chip", {"uname -r; ": (1, "")}, {}, "did not run srun"),
        ("one-chip", {"submit.py": (2, "refused")}, {}, "was not submitted"),
        ("two-nodes", {"sbatch": (1, "")}, {}, "no job was submitted: no answer"),
        ("two-nodes", {"sbatch": (1, "7; rm")}, {}, "no job was submitted: 7; rm"),
        ("destroy", {}, {"destroy": (1, {})}, "not everything is deleted"),
        ("destroy", {}, {"inventory": (0, LEFT)}, "with a cost: X"),
    ],
)  # fmt: skip
def test_what_ends_a_rung(
    rung: str, head_node: dict[str, tuple[int, str]], commands: dict[str, tuple[int, Any]], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(RungError) as raised:
        climbed(tmp_path, rung, head_node, commands)
    assert re.search(reason, str(raised.value))


def test_sections_that_the_settings_lack_are_passed_over(tmp_path: Path) -> None:
    walk = scripted(tmp_path, "head-node")
    walk.raw = raw()
    CLIMBED["head-node"](walk)
    seen = walk.seen
    assert {name for name, each in seen.items() if each.outcome == "not looked at"} == {
        each.id for each in of_rung("head-node") if each.needs
    }


def test_output_that_is_no_json_is_no_crash() -> None:
    assert Ran(ExitCode.FAILED, "Traceback", "", 1, "").json() == {}
