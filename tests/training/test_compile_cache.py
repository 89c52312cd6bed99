"""compile_cache.sh: what nodes compile reaches the others, whole or not at all."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.fake_commands import write_commands

SCRIPT = Path(__file__).parents[2] / "training/compile_cache.sh"
VERSION = "neuronxcc-2.23.6484.0+3b612583"
"""As in https://huggingface.co/aws-neuron/optimum-neuron-cache."""
FILES = ["compile_flags.json", "model.done", "model.neff"]


class Node:
    """A node with a cache of its own, and the cache that all nodes share."""

    def __init__(self, directory: Path, number: int) -> None:
        self.number = number
        self.local, self.shared = directory / f"local-{number}", directory / "shared"
        self.bin = directory / f"bin-{number}"

    def compile(self, name: str) -> None:
        """Make what a compilation leaves."""
        module = self.local / VERSION / name
        module.mkdir(parents=True)
        (module / "model.neff").write_bytes(bytes([self.number]) * 1_000_000)
        (module / "compile_flags.json").write_text(f"{self.number}", encoding="utf-8")
        for file in ("model.done", "model.neff.lock"):
            (module / file).touch()

    def start(self, action: str, **variables: str) -> subprocess.Popen[str]:
        environment = {
            "NEURON_COMPILE_CACHE_URL": str(self.local),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "ULTRACLUSTER_COMPILE_CACHE": str(self.shared),
            **variables,
        }
        return subprocess.Popen(["bash", str(SCRIPT), action], env=environment, stdout=subprocess.PIPE, text=True)

    def run(self, action: str, **variables: str) -> tuple[int, str]:
        with self.start(action, **variables) as process:
            output, _ = process.communicate(timeout=600)
        return process.returncode, output


@pytest.fixture
def nodes(tmp_path: Path) -> list[Node]:
    return [Node(tmp_path, number) for number in range(4)]


def files(cache: Path) -> dict[str, list[str]]:
    """Return the names of what graphs consist of, by graph; what has a hidden name is there, too."""
    return {path.name: sorted(file.name for file in path.iterdir()) for path in cache.glob("*/*")}


def test_of_nodes_that_publish_at_once_the_first_wins_and_all_fetch_the_same(nodes: list[Node]) -> None:
    for node in nodes:
        node.compile("MODULE_common+1")
        node.compile(f"MODULE_own{node.number}+1")
        (node.local / VERSION / "MODULE_unfinished+1").mkdir()
    publishers = [node.start("publish") for node in nodes]
    assert [publisher.wait(60) for publisher in publishers] == [0] * 4
    shared = nodes[0].shared
    assert files(shared) == dict.fromkeys(("MODULE_common+1", *(f"MODULE_own{node}+1" for node in range(4))), FILES)
    assert (shared / VERSION).stat().st_mode & 0o7777 == 0o1777, "other users may add to it"
    module = shared / VERSION / "MODULE_common+1"
    winner = (module / "compile_flags.json").read_text(encoding="utf-8")
    assert set((module / "model.neff").read_bytes()) == {int(winner)}
    new = Node(shared.parent, 5)
    assert new.run("fetch")[0] == 0
    assert files(new.local) == files(shared)


def test_a_node_that_dies_while_it_publishes_leaves_nothing_that_others_see(nodes: list[Node]) -> None:
    first, second, third, _ = nodes
    write_commands(first.bin, {"cp": '/usr/bin/cp "${2%.}model.done" "$3"; kill -KILL "$PPID"'})
    first.compile("MODULE_graph+1")
    assert first.run("publish")[0] == -9
    [left] = files(first.shared)
    assert left.startswith(".MODULE_graph+1.")

    second.compile("MODULE_graph+1")
    assert second.run("publish")[0] == 0
    assert files(first.shared) == {left: ["model.done"], "MODULE_graph+1": FILES}
    yesterday = time.time() - 2 * 86_400
    os.utime(first.shared / VERSION / left, (yesterday, yesterday))
    third.compile("MODULE_graph+1")
    assert third.run("publish")[0] == 0
    assert files(first.shared) == {"MODULE_graph+1": FILES}
    assert (first.shared / VERSION / "MODULE_graph+1/compile_flags.json").read_text(encoding="utf-8") == "1"


def test_what_a_killed_job_left_on_a_node_gives_way_to_what_is_complete(nodes: list[Node]) -> None:
    nodes[0].compile("MODULE_graph+1")
    nodes[0].run("publish")
    half = nodes[1].local / VERSION / "MODULE_graph+1"
    half.mkdir(parents=True)
    (half / "model.neff").write_text("half", encoding="utf-8")
    code, output = nodes[1].run("fetch")
    assert (code, "fetch: 1 of 1 graphs copied" in output) == (0, True)
    assert files(nodes[1].local) == {"MODULE_graph+1": FILES}
    assert nodes[1].run("fetch", SLURM_NODEID="1") == (0, ""), "one node speaks for all"


def test_a_cache_in_s3_needs_no_carrying_and_other_actions_are_refused(nodes: list[Node]) -> None:
    told = "compile_cache.sh: nothing to carry: all nodes share s3://bucket/cache\n"
    assert nodes[0].run("fetch", NEURON_COMPILE_CACHE_URL="s3://bucket/cache") == (0, told)
    assert nodes[0].run("clean") == (2, "compile_cache.sh: got 'clean'; allowed: fetch, publish, has\n")
    assert nodes[0].run("has", NEURON_COMPILE_CACHE_URL="s3://bucket/cache") == (1, "")
