"""What rungs see: with the answers of commands and AWS as they should be, and as they should not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from scripts.core.errors import ExitCode
from scripts.rehearse.prove.assumptions import of_rung
from scripts.rehearse.prove.ladder import MANY, NAMES, Choices
from scripts.rehearse.prove.redact import Redactor
from scripts.rehearse.prove.report import Observation
from scripts.rehearse.prove.rungs import CLIMBED
from scripts.rehearse.prove.walk import Ran, RungError, Walk
from tests.scripts.rehearse.prove.test_prove import Time, raw

METRICS = "\n".join(
    json.dumps({"step": step, "loss": 11 - step / 100, "sequences_per_second": 7500.0}) for step in range(1, 201)
)
TRAINED = f"compile: exit code 0\n=== train\nall steps are done\n=== metrics\n{METRICS}\n"
NODE = '6.14.0-1018-aws\nfilename: neuron.ko\nneuron 123 0\nrtprio 99\n[{"nc_count": 2}]'
ACCEPTED = json.dumps({"verdict": "good", "runs": [{"bandwidth": 47.0, "passed": True}]})
HEAD_NODE: Mapping[str, tuple[int, str]] = {
    "uname -r; ": (0, NODE),
    "hostname": (0, "ip-10-0-0-1\n6.14.0-1018-aws\n"),
    "ssm get-parameter": (255, "An error occurred (AccessDeniedException)"),
    "findmnt": (0, "/home nfs4"),
    "sacctmgr": (0, "first"),
    "sudo -n": (1, "User ubuntu is not allowed to run sudo on here."),
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
        return {"ValidationMessages": "[]"}

    def physical_ids(self, _: str) -> dict[str, str]:
        return {"FileSystem": "fs-1", "Gateway": "nat-1"}

    def stack(self, name: str) -> dict[str, str]:
        return {"StackName": name, "StackStatus": self.walk.inner}

    def list(self, _: str, operation: str, **__: Any) -> list[dict[str, Any]]:
        is_grown = self.settings.network.nat_addresses == 2
        if operation == "describe_nat_gateways":
            return [{"NatGatewayId": "nat-1", "NatGatewayAddresses": [{}] * (1 + is_grown)}]
        return [
            {
                "FileSystemId": "fs-1",
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

    def _run(self, shown: list[str], words: list[str]) -> Ran:
        code, answer = self.commands.get(shown[1], (0, {})) if shown[0] != "cdk" else (0, {})
        if shown[1] == "deploy" and self.script == "exit 1":
            code, self.statuses["cluster"] = 1, "UPDATE_ROLLBACK_FAILED"
        elif shown[1] == "deploy":
            self.statuses["cluster"] = "UPDATE_COMPLETE" if code == 0 else "UPDATE_ROLLBACK_COMPLETE"
        elif shown[1] == "destroy" and code == 0:
            self.statuses = {}
        return Ran(code, json.dumps(answer), "", 60.0, "logs/1.txt")

    def edit_script(self, line: str) -> None:
        self.script = line

    def on_head_node(self, script: str, *, user: str = "", minutes: int = 20) -> Ran:
        if "squeue" in script:
            return Ran(0, "R" if self.runs else "", "", 1.0, "logs/1.txt")
        [(code, output), *_] = [each for part, each in self.head_node_says.items() if part in script]
        return Ran(code, output, "", 60.0, "logs/1.txt")

    @property
    def deployment(self) -> Any:
        return FakeDeployment(self)

    def head_node(self) -> Mapping[str, Any]:
        return {"InstanceId": "i-1", "State": {"Name": "stopped"}}

    def compute_nodes(self) -> list[dict[str, Any]]:
        count = self.nodes.pop(0) if len(self.nodes) > 1 else (self.nodes or [0])[0]
        return [{"InstanceId": f"i-{each}"} for each in range(count)]

    def status_of(self, part: str) -> str:
        return self.statuses.get(part, "")


def climbed(
    folder: Path, rung: str, head_node: Mapping[str, tuple[int, str]] = {}, commands: Mapping[str, tuple[int, Any]] = {}
) -> ScriptedWalk:
    others = {part: each for part, each in HEAD_NODE.items() if part not in head_node}
    walk = ScriptedWalk(folder, {**head_node, **others}, {**COMMANDS, **commands})
    walk.nodes = [MANY] if rung == "sixteen-nodes" else [0]
    if rung == "storage":
        walk.statuses = {}
    walk.runs = rung == "sixteen-nodes"
    CLIMBED[rung](walk)
    return walk


@pytest.mark.parametrize("rung", NAMES)
def test_a_good_account_is_as_expected(rung: str, tmp_path: Path) -> None:
    walk = climbed(tmp_path, rung)
    looked = {name: each for name, each in walk.seen.items() if each.outcome != "not looked at"}
    assert {name: each.seen for name, each in looked.items() if each.outcome == "differs"} == {}
    wanted = {each.id for each in of_rung(rung) if each.by == "program" and not each.needs}
    assert looked.keys() == wanted


@pytest.mark.parametrize(
    ("rung", "name", "head_node", "commands"),
    [
        ("storage", "ready-account", {}, {"preflight": (1, {"results": [{"check": "quotas", "status": "UNKNOWN"}]})}),
        ("head-node", "kernel", {"hostname": (0, "x 6.18.1-aws")}, {}),
        ("head-node", "session-manager", {"hostname": (1, "")}, {}),
        ("head-node", "parameters-denied", {"ssm get-parameter": (0, "ami-1")}, {}),
        ("head-node", "head-node-software", {}, {"status": (1, {"software": {"state": "failed", "reason": "x"}})}),
        ("roll-back", "failed-update", {"sinfo": (1, "")}, {}),
        ("roll-back", "failed-update", {}, {"diagnose": (0, {})}),
        ("roll-back", "way-out", {}, {"plan": (0, {"empty": False})}),
        ("roll-back", "head-node-recovered", {"cat ~/kept": (1, "")}, {}),
        ("one-chip", "node-start", {"uname -r; ": (0, NODE.replace("2}", "4}"))}, {}),
        ("one-chip", "driver-built", {"uname -r; ": (0, NODE.replace("\nneuron 123", ""))}, {}),
        ("one-chip", "real-time-limit", {"uname -r; ": (0, NODE.replace("rtprio 99", "rtprio 0"))}, {}),
        ("one-chip", "compiled", {"=== train": (0, TRAINED.replace("exit code 0", "exit code 1", 1))}, {}),
        ("one-chip", "loss-on-a-chip", {"=== train": (0, TRAINED.replace("10.99", "1.0"))}, {}),
        ("one-chip", "loss-on-a-chip", {"=== train": (0, TRAINED.replace("are done", "are not"))}, {}),
        ("one-chip", "guard-counts", {}, {"status": (0, {"spending": {"nodes_usd": None}})}),
        ("two-nodes", "efa-only", {"acceptance-7.json": (0, "no file")}, {}),
        ("two-nodes", "efa", {"acceptance-7.json": (0, ACCEPTED.replace("good", "bad-nodes"))}, {}),
        ("two-nodes", "efa-devices", {"fi_info": (0, "domain: rdmap0s0-rdm")}, {}),
        ("two-nodes", "throughput", {"=== train": (0, TRAINED.replace("7500", "3000"))}, {}),
        ("sixteen-nodes", "resumed", {"run.json": (0, '{"attempts": [{"resumed_step": 0}, {"resumed_step": 0}]}')}, {}),
        ("sixteen-nodes", "requeued", {"scontrol show job": (0, "Restarts=0")}, {}),
    ],
)  # fmt: skip
def test_what_is_otherwise_differs(
    rung: str, name: str, head_node: dict[str, tuple[int, str]], commands: dict[str, tuple[int, Any]], tmp_path: Path
) -> None:
    assert climbed(tmp_path, rung, head_node, commands).seen[name].outcome == "differs"


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
    seen = climbed(tmp_path, "head-node").seen
    assert {name for name, each in seen.items() if each.outcome == "not looked at"} == {
        each.id for each in of_rung("head-node") if each.needs
    }


def test_output_that_is_no_json_is_no_crash() -> None:
    assert Ran(ExitCode.FAILED, "Traceback", "", 1, "").json() == {}
