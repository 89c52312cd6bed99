"""What differs between versions of ParallelCluster stands in one table, and what is made of it follows the row."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from scripts.check.estimate.costs import costs
from scripts.check.estimate.prices import Prices
from tests.parallelcluster_versions import FACTS, OTHER, another_version
from tests.stacks.deployments import Raw, raw_settings
from ultracluster.domain import parallelcluster_versions
from ultracluster.domain.parallelcluster_versions import PINNED, VERSIONS, ParallelClusterVersion, needs_of_move
from ultracluster.domain.validator_warnings import accepted, judge

ROOT = Path(__file__).parents[3]
FOLDERS = ("config", "constructs/ultracluster", "emulator", "nodes", "scripts", "stacks", "toolchain", "training")
SUFFIXES = {".py", ".sh", ".yaml", ".yml", ".toml"}


@pytest.fixture
def other() -> Iterator[ParallelClusterVersion]:
    with another_version() as row:
        yield row


def raw(version: str | None, root_volume_gib: int | None = None) -> Raw:
    settings = raw_settings("trn1-16")
    if version is not None:
        settings["cluster"]["parallelcluster_version"] = version
    for node in (settings["cluster"]["head_node"], *settings["cluster"]["queues"]):
        node["root_volume_gib"] = root_volume_gib
    return settings


def test_new_clusters_get_the_version_whose_package_is_pinned() -> None:
    pins = "".join((ROOT / f"requirements-{name}.txt").read_text(encoding="utf-8") for name in ("pcluster", "machines"))
    assert re.findall(r"^aws-parallelcluster(?:-node)?==(\S+)$", pins, re.MULTILINE) == [PINNED, PINNED]
    assert Settings.model_validate(raw(None)).cluster.parallelcluster_version == PINNED
    assert VERSIONS[PINNED].tried


@pytest.mark.parametrize("row", VERSIONS.values(), ids=VERSIONS)
def test_each_fact_of_a_version_has_its_source(row: ParallelClusterVersion) -> None:
    assert VERSIONS[row.version] is row
    assert sorted(row.sources) == sorted(FACTS)
    assert all(source.startswith("https://github.com/aws/") for source in row.sources.values())


def test_the_documentation_has_the_same_facts() -> None:
    text = (ROOT / "docs/guides/upgrade.md").read_text(encoding="utf-8")
    table = text.partition("| version |")[2].partition("\n\n")[0].splitlines()[2:]
    assert table == [
        f"| {row.version}{', the default' * (row.version == PINNED)} | {row.root_volume_gib} GiB | {row.aws_cli} | "
        f"{row.lambda_runtime} | {row.efa_installer} | {'yes' if row.tried else 'no'} |"
        for row in VERSIONS.values()
    ]


def test_settings_take_each_version_and_no_other(other: ParallelClusterVersion) -> None:
    for row in VERSIONS.values():
        Settings.model_validate(raw(row.version, row.root_volume_gib))
        with pytest.raises(ValueError, match="root_volume_gib") as error:
            Settings.model_validate(raw(row.version, row.root_volume_gib - 1))
        said = str(error.value).replace("\n", " ")
        for place in ("cluster.head_node.root_volume_gib", "cluster.queues.0.root_volume_gib"):
            assert re.search(rf"{place} .{{0,80}}\b{row.root_volume_gib}\b", said), said
    with pytest.raises(ValueError, match=rf"got '3\.15\.0'; allowed: {' or '.join(VERSIONS)}"):
        Settings.model_validate(raw("3.15.0"))
    assert other.version in VERSIONS


def test_a_version_that_nobody_tried_is_a_warning_of_the_settings(other: ParallelClusterVersion) -> None:
    for row in VERSIONS.values():
        said = [
            each for each in Settings.model_validate(raw(row.version)).warnings if "parallelcluster_version" in each
        ]
        assert bool(said) is not row.tried
    assert f"cluster.parallelcluster_version: got '{other.version}'; allowed: {PINNED}" in said[0]


def test_what_differs_is_said_of_a_move(other: ParallelClusterVersion) -> None:
    """Each fact by a sentence of its own with both values, there and back; and whether anybody has tried it."""
    pinned = VERSIONS[PINNED]
    for before, after in ((pinned, other), (other, pinned)):
        needs = list(needs_of_move(before.version, after.version))
        assert len(needs) == len(FACTS) + (not after.tried)
        assert (f"{after.version} was never run by this project's tests" in "".join(needs)) is not after.tried
        for fact in FACTS:
            values = f"{getattr(before, fact)}(?: GiB at least)? -> {getattr(after, fact)}"
            assert sum(bool(re.search(values, need)) for need in needs) == 1, fact
    assert list(needs_of_move(PINNED, PINNED)) == []
    assert list(needs_of_move("3.15.0", PINNED)) == [
        "3.15.0 has no row in this release of the project: what else differs is not known"
    ]


def test_the_image_decides_the_size_of_volumes_and_their_costs(other: ParallelClusterVersion) -> None:
    def parts(version: str) -> set[str]:
        return {part.name for part in costs(Settings.model_validate(raw(version)), Prices("us-west-2")).parts}

    old, new = VERSIONS[PINNED].root_volume_gib, other.root_volume_gib
    assert {name.replace(f"{old} GiB", f"{new} GiB") for name in parts(PINNED)} == parts(OTHER) != parts(PINNED)


def test_a_warning_that_only_another_version_has_can_be_accepted(other: ParallelClusterVersion) -> None:
    """Its validators are not known here; unexplained it stops a deployment."""

    def with_accepted(version: str, validator: str) -> Settings:
        settings = raw(version)
        settings["cluster"]["accepted_warnings"] = [{"validator": validator, "reason": "looked up"}]
        return Settings.model_validate(settings)

    accepting = accepted(with_accepted(other.version, "NewValidator").cluster_spec)
    assert not judge("NewValidator", accepting).stops
    assert judge("NewValidator", {}).stops
    for version, validator in ((PINNED, "NewValidator"), (other.version, "DuplicateMountDirValidator")):
        with pytest.raises(ValueError, match=f"got '{validator}'; allowed"):
            with_accepted(version, validator)


def test_no_fact_of_a_version_stands_elsewhere() -> None:
    """Comments and docstrings name versions, too; what the program does may not depend on them."""
    facts = {*VERSIONS, *(str(getattr(row, fact)) for row in VERSIONS.values() for fact in FACTS)}
    pattern = re.compile("|".join(rf"(?<![\d.]){re.escape(each)}(?![\d.])" for each in sorted(facts) if "." in each))
    elsewhere = [
        f"{path.relative_to(ROOT)}: {text}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in SUFFIXES and path.resolve() != Path(parallelcluster_versions.__file__).resolve()
        for text in _texts(path, pattern)
        if pattern.search(text)
    ]
    assert elsewhere == []


def _texts(path: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield what a file says to a machine: the strings of Python, the lines of others without comments.

    A file without the pattern is not parsed, which takes a second for each 200.
    """
    text = path.read_text(encoding="utf-8")
    if not pattern.search(text):
        return
    if path.suffix != ".py":
        yield from (line.split("# ")[0] for line in text.splitlines() if not line.lstrip().startswith("#"))
        return
    tree = ast.parse(text)
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.value


def test_whoever_asks_the_package_about_a_deployment_names_its_version() -> None:
    """Else it looks for images of its own version, and refuses clusters of a newer one."""
    silent = [
        f"{path.relative_to(ROOT)}: {function.name}"
        for path in sorted((ROOT / "scripts").rglob("*.py"))
        if "ParallelCluster(" in (text := path.read_text(encoding="utf-8"))
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef)
        and any(
            isinstance(node, ast.Call) and ast.unparse(node.func) == "ParallelCluster" for node in ast.walk(function)
        )
        and not any(
            isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith(".version")
            for node in ast.walk(function)
        )
    ]
    assert silent == [
        "scripts/change/image/build.py: render",  # which refuses other versions
        "scripts/upkeep/bench/synth.py: cluster_templates",  # of settings that have the pinned one
    ]


def test_the_scripts_of_nodes_take_either_version_of_the_aws_cli() -> None:
    """AWS CLI 2 pages what it prints at a terminal, decodes blobs, and has its own output format by its configuration.

    https://docs.aws.amazon.com/cli/latest/userguide/cliv2-migration-changes.html. So a call names its Region, and its
    format where something reads what it prints; none loads an address or a file as a parameter, or has a blob.
    """
    calls = list(_calls())
    assert {" ".join(call.split()[:3]) for call in calls} == {
        "aws cloudwatch put-metric-data",
        "aws ec2 create-tags",
        "aws ec2 describe-volumes",
        "aws s3 cp",
        "aws ssm get-parameter",
    }, "look at the page above for the new one"
    for call in calls:
        assert "--region" in call, call
        assert ("--query" in call) <= ("--output text" in call), call
        assert not re.search(r"(file|fileb|https?)://", call), call


def _calls() -> Iterator[str]:
    """Yield the calls of the AWS CLI in scripts of nodes, each as one line."""
    words: Any
    for path in [*(ROOT / "nodes").rglob("*"), *(ROOT / "constructs/ultracluster").glob("*.sh")]:
        if path.suffix == ".sh":
            text = re.sub(r"\\\n\s*", "", path.read_text(encoding="utf-8"))
            lines = (line for line in text.splitlines() if not re.match(r"\s*(#|log .*To do:)", line))
            yield from (found[0] for line in lines if (found := re.search(r"(?<![\w/.(-])aws [a-z0-9]+ .*", line)))
        elif path.suffix == ".py":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                words = [each.value for each in getattr(node, "elts", []) if isinstance(each, ast.Constant)]
                if words[:1] == ["aws"]:
                    yield " ".join(map(str, words))
