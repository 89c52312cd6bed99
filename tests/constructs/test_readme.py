"""The library's README, synthesized from this checkout; `test_wheel.py` has the examples, from the built wheel."""

from __future__ import annotations

import re
from pathlib import Path

import aws_cdk as cdk
import pytest
from constructs import Construct

import ultracluster
from tests.stacks.small_app import new_app
from ultracluster import InvalidArguments
from ultracluster.domain.cluster import ClusterOptions, HeadNodeSpec, MonitoringSpec, QueueSpec, SlurmSpec
from ultracluster.domain.lustre import LustreSpec

CONSTRUCTS = Path(__file__).parents[2] / "constructs"
FIRST, START, *USAGES = re.findall(
    r"^```python\n(.*?)^```", (CONSTRUCTS / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


@pytest.fixture(autouse=True)
def synthesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let apps be made as the CDK's command line makes them, and return where they write."""
    app = new_app(tmp_path)
    monkeypatch.setattr(cdk, "App", lambda: app)
    return tmp_path


def clusters(directory: Path) -> int:
    templates = (path.read_text(encoding="utf-8") for path in directory.glob("*.template.json"))
    return sum(template.count("Custom::PclusterCluster") for template in templates)


def test_the_first_example_of_the_readme_is_the_file() -> None:
    assert (CONSTRUCTS / "examples/trn1_cluster.py").read_text(encoding="utf-8").endswith(f'"""\n\n{FIRST}')


@pytest.mark.parametrize("usage", USAGES, ids=lambda text: next(re.finditer(r"[A-Z]\w+[(.]", text))[0])
def test_a_usage_of_the_readme_synthesizes(usage: str, synthesis: Path) -> None:
    exec(f"{START}\n{usage}\napp.synth()", {})  # noqa: S102 the README is ours
    assert clusters(synthesis) or "from_cluster_attributes" in usage


def test_the_readme_shows_the_message_that_wrong_arguments_get() -> None:
    wrong = 'LustreFileSystem(stack, "Data", vpc=vpc, capacity_gib=1300, throughput_mbps_per_tib=300)'
    with pytest.raises(InvalidArguments) as refused:
        exec(f"{START}\n{wrong}", {})  # noqa: S102 the README is ours
    readme = re.sub(r"\n  ", "\n", (CONSTRUCTS / "README.md").read_text(encoding="utf-8"))
    assert f"InvalidArguments: {refused.value}" in readme


def test_the_readme_has_the_defaults_of_the_models() -> None:
    head, slurm, logs, disk = HeadNodeSpec(), SlurmSpec(), MonitoringSpec(), LustreSpec()
    told = (
        f"| {head.instance_type}, {head.root_volume_gib} GiB with `/home`",
        f"{QueueSpec.model_fields['root_volume_gib'].default} GiB, local NVMe on",
        f"terminated after {slurm.idle_minutes} minutes",
        f"{disk.deployment_type}, {disk.capacity_gib:,} GiB, {disk.throughput_mbps_per_tib} MB/s per TiB",
        f"{disk.backup_retention_days} days of backups",
        f"in CloudWatch for {logs.log_retention_days} days",
        f"**Versions of ParallelCluster**: {ClusterOptions.model_fields['parallelcluster_version'].default} by default",
    )
    readme = (CONSTRUCTS / "README.md").read_text(encoding="utf-8")
    assert [text for text in told if text not in readme] == []


def test_the_readme_lists_what_the_library_has() -> None:
    readme = (CONSTRUCTS / "README.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| (?:construct|argument) \|.*\n(?:\|.*\n)+", readme, re.MULTILINE)
    rows = [re.findall(r"`(\w+)`", row.split("|")[1]) for table in tables for row in table.splitlines()]
    named = [name for row in rows for name in row]
    classes = {name: getattr(ultracluster, name) for name in ultracluster.__all__}
    made = {name for name, each in classes.items() if issubclass(each, Construct) and not name[:2].isupper()} - {
        "ConfiguredCluster"
    }
    assert set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in tables[0].splitlines()))) == made
    assert sorted(named) == sorted({*named} & {*classes})
    assert [name for name in classes if name not in named and f"`{name}`" not in readme] == []
