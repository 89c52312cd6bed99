"""Each field that the domain declares is an argument of a construct, with the same default."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType

import aws_cdk as cdk
import pytest

import ultracluster
from ultracluster import ClusterMonitoring, HeadNodeSnapshots, InvalidArguments, LustreFileSystem, UltraClusterNetwork
from ultracluster.domain.cluster import ClusterSpec
from ultracluster.domain.lustre import DataRepository, LustreSpec
from ultracluster.domain.monitoring import ClusterMonitoringSpec
from ultracluster.domain.network import NetworkSpec
from ultracluster.domain.snapshots import SnapshotSpec
from ultracluster.domain.spec import Spec
from ultracluster.domain.violations import article
from ultracluster.retention import RETENTION

CDK_TYPES = {
    "kms_key_arn": "kms_key",
    "log_retention_days": "log_retention",
    "flow_log_retention_days": "flow_log_retention",
}
ELSEWHERE = {"mount_dir", "node_metrics", "path"}
"""An argument of `SharedStorage.lustre`: clusters may mount one file system in different places; what the nodes of
the cluster do by `NeuronSoftware`; and what has no default."""


@pytest.mark.parametrize(
    ("construct", "spec"),
    [
        (LustreFileSystem.__init__, LustreSpec()),
        (LustreFileSystem.add_data_repository, DataRepository(path="/")),
        (UltraClusterNetwork.__init__, NetworkSpec()),
        (ClusterMonitoring.__init__, ClusterMonitoringSpec()),
        (HeadNodeSnapshots.__init__, SnapshotSpec()),
    ],
    ids=lambda each: each.__qualname__ if callable(each) else "",
)
def test_fields_are_arguments(construct: Callable[..., object], spec: Spec) -> None:
    parameters = inspect.signature(construct).parameters
    for field, value in spec:
        if field not in ELSEWHERE:
            default = parameters[CDK_TYPES.get(field, field)].default
            expected = RETENTION[value] if field.endswith("log_retention_days") else value
            assert (list(default) if isinstance(default, tuple) else default) == expected, field


def test_snapshots_out_of_range_are_refused() -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "Training")
    with pytest.raises(InvalidArguments) as refused:
        HeadNodeSnapshots(stack, "Snapshots", deployment="research", interval_hours=5, retained=0)
    assert [each.path for each in refused.value.violations] == [("interval_hours",), ("retained",)]


def declared(definition: ast.ClassDef | ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the public fields of a class, or the arguments of a function, with their types."""
    if isinstance(definition, ast.FunctionDef):
        arguments = definition.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        yield from ((each.arg, each.annotation) for each in every if each.annotation is not None)
        return
    for each in definition.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id, each.annotation
        elif isinstance(each, ast.FunctionDef) and (each.name == "__init__" or not each.name.startswith("_")):
            yield from declared(each)


def test_what_the_library_only_reads_may_be_any_sequence_or_mapping() -> None:
    """A list of a class is no list of its base to type checkers: a list in a variable would be refused."""
    root = Path(ultracluster.__file__).parent
    narrow = [
        f"{path.relative_to(root)}: {definition.name}.{name}"
        for path in (*root.glob("*.py"), *root.glob("domain/*.py"))
        for definition in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(definition, ast.ClassDef) and not definition.name.startswith("_")
        for name, kind in declared(definition)
        if re.search(r"\b(list|dict)\[", ast.unparse(kind))
    ]
    assert narrow == []


def test_tuples_and_mappings_are_taken_where_types_say_so() -> None:
    user = ultracluster.UserSpec(name="ada", uid=2001, groups=("vision",))
    team = ultracluster.TeamSpec(groups=MappingProxyType({"vision": 3001}), users=(user,))
    assert (team.groups, team.users, user.groups) == ({"vision": 3001}, [user], ["vision"])
    with pytest.raises(InvalidArguments, match="of UserSpec:\n  groups: got 'vision'; allowed: a list"):
        ultracluster.UserSpec(name="ada", uid=2001, groups="vision")


def test_options_and_values_never_change() -> None:
    made = [
        each.model_construct()
        for name in ultracluster.__all__
        if inspect.isclass(each := getattr(ultracluster, name)) and issubclass(each, Spec)
    ]
    for spec in made:
        for field in type(spec).model_fields:
            with pytest.raises(
                AttributeError, match=rf"^{type(spec).__name__}\.{field} cannot be set: .* make another"
            ):
                setattr(spec, field, None)
            with pytest.raises(AttributeError, match="never changes"):
                delattr(spec, field)
    assert made


def test_articles_are_those_that_people_say() -> None:
    said = "an ec2.IVpc, an s3.IBucket, a kms.IKey, an sns.ITopic, an rds.IInstance, an fsx.IFileSystem"
    said += ", a secretsmanager.ISecret, a logs.RetentionDays, an IParallelCluster, an UltraClusterNetwork, a cdk.Size"
    assert ", ".join(f"{article(each.split()[1])} {each.split()[1]}" for each in said.split(", ")) == said


MODELS = [
    each.__bases__[1]
    for each in (getattr(ultracluster, name) for name in ultracluster.__all__)
    if inspect.isclass(each) and issubclass(each, Spec)
]
"""Of options."""


@pytest.mark.parametrize("model", MODELS, ids=lambda each: each.__name__)
def test_of_a_misspelt_name_a_message_says_which_is_meant(model: type[Spec]) -> None:
    for name in model.model_fields:
        _, violations = model.checked({f"{name}s": 5})
        [unknown] = [each for each in violations if each.path == (f"{name}s",)]
        assert unknown.allowed == f"no argument of this name; there is {name}"


def test_options_that_are_checked_at_once_say_so_too() -> None:
    with pytest.raises(
        InvalidArguments, match="monthly_us: got 1; allowed: no argument of this name; there is monthly_us"
    ):
        ultracluster.BudgetSpec(monthly_us=1)  # type: ignore[call-arg]


def test_a_misspelt_name_within_a_list_is_found_among_those_of_its_model() -> None:
    _, violations = ClusterSpec.checked({"queues": [{"compute_resources": [{"max_cont": 5, "other": 5}]}]})
    unknown = {each.path[-1]: each.allowed for each in violations if each.path[-1] in ("max_cont", "other")}
    assert unknown == {
        "max_cont": "no argument of this name; there is max_count",
        "other": "no argument of this name",
    }
