"""The scripts of the nodes, run by bash as ParallelCluster runs them: with arguments, output in one stream."""

import hashlib
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest

PROJECT = Path(__file__).parents[2]
SCRIPTS = PROJECT / "scripts" / "nodes"
LAUNCHER = PROJECT / "constructs" / "ultracluster" / "node_launcher.sh"
LAUNCHER_SHA256 = "2b4fa7ec09c8642595a9b201b8f4d3960f675d00a6f82582120f42bc53953e98"

MOUNTED = "mount_dir=/proc"
FACTS = {
    "head_node": ["neuron_sdk=2.28.1", "pytorch=2.9", MOUNTED],
    "login_node": [MOUNTED],
    "compute_node": ["queue=trn1", "neuron_sdk=2.28.1", "pytorch=2.9", MOUNTED, "scratch_dir=/usr"],
}
each_kind = pytest.mark.parametrize("kind", FACTS)
each_fact = pytest.mark.parametrize(("kind", "fact"), [(kind, fact) for kind, facts in FACTS.items() for fact in facts])


def run(script: Path, arguments: Sequence[str], path: Path | None = None) -> subprocess.CompletedProcess[str]:
    search = os.environ["PATH"] if path is None else f"{path}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(script), *arguments], capture_output=True, text=True, check=False, env={"PATH": search}
    )


def run_node_script(kind: str, facts: Sequence[str], state: Path) -> subprocess.CompletedProcess[str]:
    return run(SCRIPTS / f"{kind}.sh", [*facts, f"state_dir={state}"])


def test_every_script_is_tested() -> None:
    assert {path.stem for path in SCRIPTS.glob("*.sh")} == FACTS.keys()


@each_kind
def test_a_node_records_what_it_was_given_each_time_it_runs(kind: str, tmp_path: Path) -> None:
    state = tmp_path / "below" / "state"
    given = [*FACTS[kind], f"state_dir={state}"]
    for _ in range(2):
        done = run_node_script(kind, FACTS[kind], state)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"{kind}.sh: done: {' '.join(given)}\n"
        assert (state / "node.env").read_text(encoding="utf-8").splitlines() == given


@each_kind
def test_a_later_run_records_what_is_given_then(kind: str, tmp_path: Path) -> None:
    run_node_script(kind, [*FACTS[kind], "more=1"], tmp_path)
    run_node_script(kind, FACTS[kind], tmp_path)
    assert "more=1" not in (tmp_path / "node.env").read_text(encoding="utf-8")


@each_fact
def test_a_missing_fact_is_told(kind: str, fact: str, tmp_path: Path) -> None:
    done = run_node_script(kind, [given for given in FACTS[kind] if given != fact], tmp_path / "state")
    assert done.returncode != 0
    assert f"{fact.partition('=')[0]}: parameter null or not set" in done.stdout
    assert not (tmp_path / "state").exists()


@each_kind
def test_a_file_system_that_is_not_mounted_is_told(kind: str, tmp_path: Path) -> None:
    facts = [f"mount_dir={tmp_path}" if fact == MOUNTED else fact for fact in FACTS[kind]]
    done = run_node_script(kind, facts, tmp_path / "state")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == f"{kind}.sh: {tmp_path} is not mounted\n"
    assert not (tmp_path / "state").exists()


def test_missing_scratch_space_is_told_and_stops_nothing(tmp_path: Path) -> None:
    """A type without local storage has none."""
    facts = [*FACTS["compute_node"][:-1], f"scratch_dir={tmp_path}/none"]
    done = run_node_script("compute_node", facts, tmp_path / "state")
    assert (done.returncode, done.stderr) == (0, "")
    missing, end = done.stdout.splitlines()
    assert missing == f"compute_node.sh: there is no {tmp_path}/none; this type has no local storage"
    assert end.startswith("compute_node.sh: done: ")
    assert (tmp_path / "state" / "node.env").read_text(encoding="utf-8").splitlines()[: len(facts)] == facts


@each_kind
def test_any_other_failure_is_told_in_the_log(kind: str, tmp_path: Path) -> None:
    """Of a script's streams ParallelCluster logs standard output alone."""
    (tmp_path / "file").touch()
    done = run_node_script(kind, FACTS[kind], tmp_path / "file" / "state")
    assert (done.returncode, done.stderr) == (1, "")
    assert f"\n{kind}.sh: failed on line " in done.stdout


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Stand-ins for the AWS command line, which answers from files, and for sleep, which does not."""
    stand_ins = {
        "aws": """\
            echo "$*" >>"$here/calls"
            left=$(cat "$here/failures-$1" 2>/dev/null || echo 0)
            if ((left > 0)); then echo $((left - 1)) >"$here/failures-$1"; echo "no $1" >&2; exit 254; fi
            case "$1" in
                ssm) cat "$here/parameter" ;;
                s3) cp "$here/script" "${@: -1}" ;;
            esac
            """,
        "sleep": """\
            echo "$1" >>"$here/sleeps"
            """,
    }
    for name, body in stand_ins.items():
        stand_in = tmp_path / name
        stand_in.write_text(f"#!/bin/bash\nhere={tmp_path}\n{dedent(body)}", encoding="utf-8")
        stand_in.chmod(0o755)
    parameter = {"script": "s3://assets/head.sh", "arguments": ["a=1", "b=two words", "c='\"$(x)"]}
    (tmp_path / "parameter").write_text(json.dumps(parameter) + "\n", encoding="utf-8")
    (tmp_path / "script").write_text('printf "<%s>" "$@"; echo "to stderr" >&2; exit "${code:-0}"', encoding="utf-8")
    return tmp_path


def launch(node: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(LAUNCHER, arguments or ("/trn1/head", "us-west-2"), node)


def calls(node: Path) -> list[str]:
    return (node / "calls").read_text(encoding="utf-8").splitlines()


def test_the_launcher_has_not_changed() -> None:
    found = hashlib.sha256(LAUNCHER.read_bytes()).hexdigest()
    assert found == LAUNCHER_SHA256, (
        "A change of node_launcher.sh changes OnNodeConfigured of all head and login nodes, which ParallelCluster "
        "refuses: every user would need a new cluster. Change what it runs instead."
    )


def test_the_launcher_runs_the_script_of_the_parameter_with_its_arguments(node: Path) -> None:
    done = launch(node)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "<a=1><b=two words><c='\"$(x)>to stderr\n"
    get, copy = calls(node)
    assert get == "ssm get-parameter --region us-west-2 --name /trn1/head --query Parameter.Value --output text"
    assert copy.startswith("s3 cp --region us-west-2 --only-show-errors s3://assets/head.sh /")
    assert not (node / "sleeps").exists()


def test_the_launcher_runs_a_script_without_arguments(node: Path) -> None:
    (node / "parameter").write_text('{"script": "s3://assets/head.sh", "arguments": []}', encoding="utf-8")
    (node / "script").write_text('echo "$#"', encoding="utf-8")
    assert launch(node).stdout == "0\n"


@pytest.mark.parametrize("service", ["ssm", "s3"])
def test_the_launcher_waits_for_aws(node: Path, service: str) -> None:
    (node / f"failures-{service}").write_text("4", encoding="utf-8")
    done = launch(node)
    assert done.returncode == 0
    assert done.stdout.startswith(f"no {service}\n" * 4 + "<a=1>")
    assert (node / "sleeps").read_text(encoding="utf-8").split() == ["5", "10", "15", "20"]


@pytest.mark.parametrize("service", ["ssm", "s3"])
def test_the_launcher_gives_up_on_aws_after_five_attempts(node: Path, service: str) -> None:
    (node / f"failures-{service}").write_text("9", encoding="utf-8")
    done = launch(node)
    assert (done.returncode, done.stderr) == (1, "")
    assert f"node_launcher.sh: failed five times: aws {service} " in done.stdout
    assert sum(call.startswith(f"{service} ") for call in calls(node)) == 5
    assert "<a=1>" not in done.stdout


@pytest.mark.parametrize("parameter", ["", "None", '{"script": "s3://assets/head.sh"}', '{"arguments": []}'])
def test_the_launcher_runs_nothing_when_the_parameter_is_odd(node: Path, parameter: str) -> None:
    (node / "parameter").write_text(parameter, encoding="utf-8")
    done = launch(node)
    assert (done.returncode, done.stderr) == (1, "")
    assert "node_launcher.sh: failed on line" in done.stdout
    assert len(calls(node)) == 1


def test_the_launcher_fails_like_its_script(node: Path) -> None:
    (node / "script").write_text("exit 7", encoding="utf-8")
    assert launch(node).returncode == 7


@pytest.mark.parametrize(("arguments", "told"), [(("",), "name of the SSM parameter"), (("/trn1/head",), "AWS Region")])
def test_the_launcher_tells_missing_arguments(node: Path, arguments: tuple[str, ...], told: str) -> None:
    done = launch(node, *arguments)
    assert done.returncode != 0
    assert told in done.stdout


@pytest.mark.parametrize("script", [LAUNCHER, *sorted(SCRIPTS.glob("*.sh"))], ids=lambda path: path.stem)
def test_scripts_stop_at_the_first_failure_and_log_both_streams(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/bash\n")
    assert "\nset -euo pipefail\nexec 2>&1\n" in text
    assert "\r" not in text
