"""The scripts of the nodes, run by bash as ParallelCluster runs them: with arguments, output in one stream.

What they do to a whole node is tested in test_compute_node.py and test_head_node.py.
"""

import hashlib
import os
import re
import shlex
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from submit import NODE_CORES
from tests.constructs.domain.specs import NODES, changed, with_queue
from ultracluster.domain import node_arguments
from ultracluster.domain.instance_types import TRAINIUM_TYPES
from ultracluster.domain.names import SNAPSHOT_TAG
from ultracluster.domain.neuron import RELEASES
from ultracluster.domain.type_facts import TypeFactsSpec

PROJECT = Path(__file__).parents[2]
SCRIPTS = PROJECT / "nodes"
LAUNCHER = PROJECT / "constructs" / "ultracluster" / "node_launcher.sh"
LAUNCHER_SHA256 = "2b4fa7ec09c8642595a9b201b8f4d3960f675d00a6f82582120f42bc53953e98"


def call(commands: str, *libraries: str) -> subprocess.CompletedProcess[str]:
    """Run commands as a script that has the common library and others."""
    sources = "".join(f"source {SCRIPTS}/{library}\n" for library in ("lib/common.sh", *libraries))
    script = f"set -euo pipefail\nexec 2>&1\n{sources}{dedent(commands)}"
    return subprocess.run(["bash", "-c", script, "test.sh"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "failure"),
    [
        ("a=1 b=", "the argument b= is missing. To do: give it a value"),
        ("a=1 b=2 aa=3", "got the argument 'aa=3'. To do: name one of: a b c, as name=value"),
        ("a=1 b=2 a", "got the argument 'a'. To do: name one of: a b c, as name=value"),
    ],
)
def test_an_argument_that_is_missing_or_not_known_is_reported(arguments: str, failure: str) -> None:
    done = call(f"parse_arguments 'a b' 'c' {arguments}")
    assert (done.returncode, done.stdout) == (2, f"test.sh: failed (2): {failure}.\n")


def test_the_services_of_metrics_differ_by_their_module_and_queue() -> None:
    facts = "here=. region=us-west-2 cluster=trn1-16"
    done = call(f"{facts}\nmetrics_unit head_node\nqueue=trn1\nmetrics_unit compute_node", "install/metrics.sh")
    assert re.findall("ExecStart=(.*)", done.stdout) == [
        "/usr/bin/python3 -Bu -m metrics.head_node us-west-2 trn1-16",
        "/usr/bin/python3 -Bu -m metrics.compute_node us-west-2 trn1-16 trn1",
    ]


def test_values_are_taken_as_they_are() -> None:
    done = call("parse_arguments 'a b' 'c' a='x y' b='$(id)=\"' c=\nprintf '<%s>' \"$a\" \"$b\" \"$c\"")
    assert (done.returncode, done.stdout) == (0, '<x y><$(id)="><>')


def test_pauses_grow_and_none_goes_beyond_the_time_limit_which_leaves_room_within_parallelclusters() -> None:
    done = call("""\
        sleep() { echo "pause $1"; SECONDS=$((SECONDS + $1)); }
        trap 'echo "$SECONDS of $TIME_LIMIT"' EXIT
        retry 10 "no answer" "look" false
        """)
    assert done.returncode == 10
    pauses = list(map(int, re.findall(r"^pause (\d+)$", done.stdout, re.MULTILINE)))
    assert all(0 <= pause - least <= least / 2 for pause, least in zip(pauses, (5, 10, 20, 40, 60, 60), strict=False))
    assert f": no answer; once more in {pauses[0]} s\n" in done.stdout
    failure, times = done.stdout.splitlines()[-2:]
    assert failure == "test.sh: failed (10): no answer. To do: look."
    spent, limit = map(int, re.findall(r"\d+", times))
    assert limit - 90 <= spent < limit <= 2100 - 600


def test_an_unforeseen_failure_is_reported_with_its_place() -> None:
    done = call("broken() {\n    grep nothing /dev/null\n}\nbroken\necho not reached")
    assert done.returncode == 1
    place = r"line \d+ of \S*: grep nothing /dev/null"
    assert re.fullmatch(rf"test\.sh: failed \(1\): {place}\. To do: .* run test\.sh again\.\n", done.stdout)


@pytest.mark.parametrize(
    ("manager", "output", "code"),
    [
        ("apt", "W: Failed to fetch https://x/InRelease\nE: Unable to locate package p", 0),
        ("apt", "E: Unable to locate package p", 12),
        ("apt", "E: Sub-process /usr/bin/dpkg returned an error code (1)", 13),
        ("apt", "E: You don't have enough free space in /var/cache/apt/archives/.", 18),
        ("apt", "E: Failed to fetch https://x/y.deb  Write error - write (28: No space left on device)", 18),
        ("dnf", "Curl error (6)\nError: Unable to find a match: p", 0),
        ("dnf", "Error: Unable to find a match: p", 12),
        ("dnf", "Error: Transaction failed", 13),
        ("dnf", "Disk Requirements:\n   At least 50MB more space needed on the / filesystem.", 18),
        ("dnf", "Error: GPG check FAILED", 11),
    ],
)  # fmt: skip
def test_what_may_pass_is_reported_from_what_will_not(manager: str, output: str, code: int) -> None:
    commands = f"has_room() {{ true; }}\nexplain {shlex.quote(output)} p"
    done = call(commands, "lib/packages.sh", f"lib/packages_{manager}.sh")
    assert done.returncode == code
    assert done.stdout.startswith(f"{output}\n")
    assert call(f"SECONDS=$TIME_LIMIT\n{commands}", "lib/packages.sh", f"lib/packages_{manager}.sh").returncode == 0


def test_a_file_is_written_once(tmp_path: Path) -> None:
    file = tmp_path / "new" / "file.conf"
    commands = f"printf 'a\\nb\\n\\n' | write_file {file} 640"
    assert re.fullmatch(rf"test\.sh: \d+ s: wrote {file}\n", call(commands).stdout)
    assert (file.read_text(encoding="utf-8"), file.stat().st_mode & 0o777) == ("a\nb\n\n", 0o640)
    os.utime(file, ns=(0, 0))
    assert call(commands).stdout == ""
    assert file.stat().st_mtime_ns == 0
    assert call(commands.replace("640", "600")).stdout.endswith(f"wrote {file}\n")
    assert list(tmp_path.rglob("*")) == [file.parent, file]


@pytest.mark.parametrize(
    ("installed", "same"),
    [
        ("2.30.51.0", True),
        ("2.30.51.0-faafe26f0", True),
        ("2.30.51.0_faafe26f0-1", True),
        ("2.30.51.01", False),
        ("2.30.51.0.1", False),
        ("2.30.5", False),
        ("", False),
    ],
)
def test_a_version_is_the_wanted_one_whatever_build_a_repository_adds(installed: str, same: bool) -> None:
    done = call(f"is_version 2.30.51.0 '{installed}' && echo yes || echo no", "install/neuron.sh")
    assert done.stdout == ("yes\n" if same else "no\n")


@pytest.mark.parametrize(
    ("kernel", "broken", "code", "said"),
    [
        ("6.8.0-1035-aws", "", 0, ""),
        (
            "6.14.0-1018-aws",
            "",
            0,
            "warning: the kernel is 6.14.0-1018-aws, and Neuron SDK 2.28 was tested with 6.1 and 6.8",
        ),
        ("6.14.0-1018-aws", "6.15", 0, "warning: the kernel is 6.14.0-1018-aws"),
        # Numbers, not texts: 6.14 comes after 6.9.
        (
            "6.14.0-1018-aws",
            "6.9",
            15,
            "failed (15): the kernel is 6.14.0-1018-aws, and the driver 2.26 of Neuron SDK 2.28",
        ),
        ("6.14.0-1018-aws", "6.14", 15, "fails from 6.14 on. To do: choose a newer neuron_sdk, or an image with"),
    ],
)
def test_a_kernel_that_the_release_was_not_tested_with_is_reported_and_one_that_breaks_it_refused(
    kernel: str, broken: str, code: int, said: str
) -> None:
    facts = f"kernels=6.1,6.8 broken_kernel={broken} driver=2.26 sdk=2.28"
    done = call(f"uname() {{ echo {kernel}; }}\n{facts}\ncheck_kernel", "install/neuron.sh")
    assert done.returncode == code
    assert said in done.stdout
    assert said or not done.stdout


def test_the_table_of_instance_types_is_the_one_in_python() -> None:
    each = 'look_up_instance_type "$type"; echo "$type" "$devices" "$cores" "$efa_devices"'
    done = call(f'for type in "${{!INSTANCE_TYPES[@]}}"; do {each}; done', "lib/instance_types.sh")
    assert {line.split()[0]: [int(word) for word in line.split()[1:]] for line in done.stdout.splitlines()} == {
        name: [kind.chips, kind.listed_cores, kind.efa_devices] for name, kind in TRAINIUM_TYPES.items()
    }


def test_what_is_made_for_a_type_is_made_for_those_whose_chips_are_verified() -> None:
    """Floors of the acceptance test, and workers of jobs, which stand apart from the table."""
    text = (SCRIPTS / "health/acceptance.sh").read_text(encoding="utf-8")
    [floors] = re.findall(r"^declare -Ar FLOORS=\((.*)\)$", text, re.MULTILINE)
    with_efa = {name for name, kind in TRAINIUM_TYPES.items() if kind.efa and kind.chip.verified_sdks}
    assert {*re.findall(r"\[(.*?)\]=", floors)} == with_efa
    assert {TRAINIUM_TYPES[name].listed_cores for name in with_efa} == {NODE_CORES}


def test_what_settings_say_of_other_types_stands_beside_the_table() -> None:
    """A type of the table has what the table says; of others it is not known whether they have local disks."""
    facts = TypeFactsSpec(vcpus=1, memory_gib=1, network_cards=9, efa_devices=8, neuron_devices=4, neuron_cores=16)
    types = {"trn9.48xlarge": "4 16 8 0", "trn9.4xlarge": "0 0 0 0", "trn1.2xlarge": "1 2 0 1", "9.48xlarge": "0 0 0 0"}
    told = ",".join(facts.for_nodes(each) for each in ("inf2.48xlarge", "trn9.48xlarge", "trn1.2xlarge"))
    each = f'look_up_instance_type "$type" {told}; echo "$devices $cores $efa_devices $disks"'
    done = call(f"for type in {' '.join(types)}; do {each}; done", "lib/instance_types.sh")
    assert done.stdout.splitlines() == [*types.values()]


def test_nodes_take_the_arguments_that_they_are_given() -> None:
    text = (SCRIPTS / "compute_node.sh").read_text(encoding="utf-8")
    [neuron] = re.findall(r'^readonly NEURON="(.*)"$', text, re.MULTILINE)
    [(required, optional)] = re.findall(r'^parse_arguments "(.*)" "(.*)" "\$@"$', text, re.MULTILINE)
    facts = TypeFactsSpec(vcpus=1, memory_gib=1, neuron_devices=1, neuron_cores=1)
    nodes = changed(NODES, instance_type="trn9.3xlarge", type_facts=facts)
    without_efa = changed(NODES, name="other", efa=False)
    spec = changed(with_queue(nodes, without_efa), neuron_sdk="2.27.1")
    given = node_arguments.compute_node(spec, spec.queues[0], "/fsx", metrics=True)
    assert {*required.split(), *optional.replace("$NEURON", neuron).split()} == given.keys()


def hashed_requirements(path: Path) -> dict[str, str]:
    """Return the exact versions of packages of known content."""
    text = path.read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    pattern = r"""([a-z0-9-]+)==([\w.]+)(; python_version < "3.11" )?( +--hash=sha256:[0-9a-f]{64})+"""
    found = [re.fullmatch(pattern, line) for line in lines]
    assert all(found), lines
    return {match[1]: match[2] for match in found if match}


def test_each_pytorch_of_a_release_has_requirements_of_known_content() -> None:
    wanted = {each.torch: each.torch_xla for release in RELEASES.values() for each in release.pytorch.values()}
    training = hashed_requirements(SCRIPTS / "requirements-training.txt")
    found = {}
    for path in SCRIPTS.glob("requirements-pytorch-*.txt"):
        versions = hashed_requirements(path)
        assert path.name == f"requirements-pytorch-{versions['torch']}.txt"
        assert not versions.keys() & training.keys()
        found[versions["torch"]] = versions["torch-xla"]
    assert found == wanted


def test_the_requirements_of_the_training_are_exact_and_of_known_content() -> None:
    names = hashed_requirements(SCRIPTS / "requirements-training.txt").keys()
    assert {"transformers", "h5py", "tensorboard", "numpy"} <= names
    assert not {name for name in names if name.startswith(("torch", "nvidia", "neuron", "libneuron"))}


def test_the_launcher_has_not_changed() -> None:
    """So nothing else is tested of it."""
    found = hashlib.sha256(LAUNCHER.read_bytes()).hexdigest()
    assert found == LAUNCHER_SHA256, (
        "A change of node_launcher.sh changes OnNodeConfigured of all head and login nodes, which ParallelCluster "
        "refuses: every user would need a new cluster. Change what it runs instead."
    )


@pytest.mark.parametrize("script", [LAUNCHER, *sorted(SCRIPTS.glob("*.sh"))], ids=lambda path: path.stem)
def test_scripts_stop_at_the_first_failure_and_log_both_streams(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/bash\n")
    assert "\nset -euo pipefail\nexec 2>&1\n" in text


AWS = """
    request_metadata() { metadata=i-1; }
    aws() {
        case "$*" in
            *describe-volumes*instance-id,Values=i-1*node-type,Values=HeadNode*) echo vol-1 ;;
            *create-tags*) [[ -z ${refused:-} ]] && echo "$@" ;;
        esac
    }
    limited() { "$@"; }
    region=us-west-2 deployment=trn1-16
"""


def test_the_head_node_marks_its_root_volume_for_snapshots_and_starts_without_them() -> None:
    marked = call(f"{AWS}\nmark_root_volume", "install/head_node.sh")
    refused = call(f"{AWS}\nrefused=1\nmark_root_volume\necho continues", "install/head_node.sh")

    wanted = f"ec2 create-tags --region us-west-2 --resources vol-1 --tags Key={SNAPSHOT_TAG},Value=trn1-16"
    assert wanted in marked.stdout
    assert (marked.returncode, refused.returncode) == (0, 0)
    assert "no snapshots are taken" in refused.stdout
    assert refused.stdout.endswith("continues\n")
