"""What an upgrade checks and changes in AWS; in an emulated account with the CDK and ParallelCluster's own code."""

from __future__ import annotations

import io
import shlex
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from config.settings import load
from scripts.account import compute_fleet
from scripts.account.remote.head_node import Answer
from scripts.account.stacks import all_resources
from scripts.change.candidate import Candidate
from scripts.change.upgrade import backend as upgrade_backend
from scripts.change.upgrade.backend import UpgradeBackend
from scripts.change.upgrade.upgrade import Upgrade, edit
from scripts.check.plan import cdk
from scripts.check.preflight.catalog import CATALOG
from scripts.core.errors import OperationError
from scripts.core.options import CONFIG
from tests.scripts.change.destroy.accounts import FastClock
from tests.scripts.head_node_shell import HeadNodeShell
from tests.scripts.operated import Operated
from tests.scripts.slurm_samples import answer
from tests.stacks.deployments import Raw, edited
from ultracluster.domain.parallelcluster_versions import PINNED, VERSIONS

HEAD_NODE = f"""
script=$(cat)
case $script in
*'"state": state()'*) echo '{answer()}' ;;
*) sh <<<"$script" ;;
esac
"""
"""The shell of a head node without queues and jobs."""
NEWER = [version for version in VERSIONS if version != PINNED][-1]
OTHER_VERSION = f"cluster.parallelcluster_version={NEWER}"
SETTINGS = load(CONFIG / "trn1-16.yaml")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def backend(said: list[str]) -> UpgradeBackend:
    return UpgradeBackend(
        "trn1-16", Console(markup=False, file=io.StringIO(), width=80), FastClock(0), said.append, drain_limit=7200
    )


def test_an_unhealthy_cluster_is_an_error(backend: UpgradeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = iter(["STARTING", "RUNNING"])
    monkeypatch.setattr(compute_fleet, "status", lambda _: next(statuses))
    head_node = SimpleNamespace(run=lambda _: Answer(1, "", "no contact"))
    monkeypatch.setattr(upgrade_backend, "HeadNode", lambda *_: head_node)
    with pytest.raises(OperationError, match="The head node of trn1-16 is unhealthy: no contact"):
        backend.verify(SETTINGS)
    monkeypatch.setattr(compute_fleet, "status", lambda _: "PROTECTED")
    with pytest.raises(OperationError, match=r"The fleet of trn1-16 is PROTECTED\..*after 15 min"):
        backend.verify(SETTINGS)


@pytest.mark.slow
def test_in_an_account(operated: Operated, backend: UpgradeBackend, said: list[str]) -> None:
    """Clusters and alarms by their stacks, and whether there is room for a second cluster."""
    assert backend.clusters(operated.settings) == {1: "CREATE_COMPLETE"}
    assert backend.clusters(operated.settings.of_generation(3)) == {1: "CREATE_COMPLETE"}
    assert backend.metric_sources(operated.settings) == {"trn1-16"}
    cluster = operated.settings.cluster.model_copy(update={"name": "other"})
    with pytest.raises(OperationError, match=r"trn1-16-cluster is called trn1-16, in config/trn1-16\.yaml other"):
        backend.clusters(operated.settings.model_copy(update={"cluster": cluster}))

    def grow(raw: Raw) -> None:
        raw["cluster"]["generation"] = 2
        raw["cluster"]["queues"][0]["compute_resources"][0] |= {"min_count": 2, "max_count": 2500}

    candidate = Candidate("trn1-16", Path(), edited("trn1-16", grow))
    with pytest.raises(OperationError, match=r"The account has no room for this:\n(.*\n)*quota-") as error:
        backend.check(candidate)
    assert "--skip" in error.value.hint
    assert said[0].startswith("trn1-16-2 has 2 static nodes (min_count)")
    skip = [each.id for each in CATALOG[1:]]
    UpgradeBackend("trn1-16", Console(markup=False), FastClock(0), said.append, skip=skip).check(candidate)
    assert said[-1] == "The account has room for a second cluster beside the first."


class Person:
    """Runs upgrades of a file, and answers no after some steps."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.screen = io.StringIO()
        self._runs = 0

    def upgrade(self, *edits: str, steps: int = 99) -> Upgrade:
        self._runs += 1
        directory = self.path.parent / f"run-{self._runs}"
        directory.mkdir()
        answers = iter([True] * steps)
        backend = UpgradeBackend(
            "trn1-16", Console(markup=False, file=self.screen, width=80), FastClock(0.05), self._say
        )
        values = dict(map(edit, edits))
        return Upgrade(
            self.path, load(self.path), directory, backend, lambda _: next(answers, False), self._say, values
        )

    def _say(self, message: str) -> None:
        self.screen.write(f"{message}\n")


def clusters(account: Operated) -> set[str]:
    """Return the stacks of clusters, and those that ParallelCluster created."""
    stacks = account.client("cloudformation").describe_stacks()["Stacks"]
    wanted = {"trn1-16", "trn1-16-2", "trn1-16-cluster", "trn1-16-cluster-2"}
    return {each["StackName"] for each in stacks} & wanted


def resources(account: Operated, *stacks: str) -> set[tuple[str, str]]:
    """Return the types and ids of all resources of stacks, but for labels that ParallelCluster gives to actions."""
    deployment = account.deployment()
    listed = [each for stack in stacks for each in all_resources(deployment, stack)]
    return {(each.type, each.physical_id) for each in listed if each.type != "AWS::CloudFormation::CustomResource"}


def kill_while_the_second_cluster_is_created(account: Operated, work: Upgrade) -> None:
    """Write the second generation, let the CDK start to deploy it, and kill it: CloudFormation continues."""
    work._write(2)
    candidate = Candidate.create(work.path, work.directory / "started", {})
    work.backend.plan(candidate)
    assembly = str(candidate.path.parent / "cdk.out")
    arguments = ("deploy", "trn1-16-cluster-2", "--app", assembly, "--require-approval", "never")
    with subprocess.Popen(cdk.command(*arguments), cwd=cdk.ROOT, env=cdk.environment()) as process:
        while "trn1-16-2" not in clusters(account):
            time.sleep(0.05)
        process.kill()


@pytest.mark.scenario
@pytest.mark.slow
def test_blue_green_with_two_interruptions(operated: Operated, tmp_path: Path) -> None:
    """To another version of ParallelCluster, whose provider answers in the emulated account under its number."""
    path = tmp_path / "trn1-16.yaml"
    path.write_bytes((CONFIG / "trn1-16.yaml").read_bytes())
    person, account = Person(path), operated
    mounted = "echo fs-1.fsx.us-west-2.amazonaws.com@tcp:/abc"
    node = HeadNodeShell(tmp_path, sinfo="", findmnt=mounted)
    account.shell(HEAD_NODE.replace("sh <", f"{shlex.join(node.plain)} <"))
    first = {"trn1-16", "trn1-16-cluster"}
    second = {"trn1-16-2", "trn1-16-cluster-2"}
    of_the_first = resources(account, *first)

    kill_while_the_second_cluster_is_created(account, person.upgrade(OTHER_VERSION))
    assert clusters(account) == first | second

    assert person.upgrade(OTHER_VERSION, steps=2).run().outcome == "stopped"
    assert person.screen.getvalue().count("trn1-16-cluster-2 is CREATE_IN_PROGRESS: waiting.") == 1
    assert clusters(account) == second
    assert resources(account, *second) & of_the_first == set()
    with pytest.raises(OperationError, match=r"There is no upgrade to go back from|there is no way back"):
        person.upgrade().run(abandon=True)

    last = person.upgrade(OTHER_VERSION)
    assert last.run().outcome == "complete"
    assert [each.name for each in last.steps] == ["monitoring"]
    assert last.backend.metric_sources(last.settings) == {"trn1-16-2"}
    assert load(path).cluster.parallelcluster_version == NEWER
    [own] = account.client("cloudformation").describe_stacks(StackName="trn1-16-2")["Stacks"]
    assert {"Key": "parallelcluster:version", "Value": NEWER} in own["Tags"]
