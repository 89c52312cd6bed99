"""Our limits, compared with ParallelCluster's own."""

import ast
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest

from emulator import prerequisites
from emulator.aws import EmulatedAws
from scripts.check.preflight import images
from toolchain import jsii_start
from toolchain.parallelcluster import ParallelCluster, UnreadableClusterError
from ultracluster.domain import cluster_rules, names, neuron, slurm
from ultracluster.domain.cluster import MAX_QUEUES, OperatingSystem
from ultracluster.domain.validators import VALIDATORS

pytestmark = pytest.mark.validation
PROJECT = Path(__file__).parents[2]
REGION = "us-west-2"


def constants(module: str) -> dict[str, Any]:
    """Read the plain constants of a module of ParallelCluster, which cannot be imported beside our CDK."""
    (path,) = PROJECT.glob(f".venv-pcluster/lib/python*/site-packages/pcluster/{module}")
    values: dict[str, Any] = {}
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign):
            with suppress(ValueError):
                value = ast.literal_eval(statement.value)
                values.update({target.id: value for target in statement.targets if isinstance(target, ast.Name)})
    return values


def test_limits_are_parallelclusters() -> None:
    limits = constants("constants.py")
    assert limits["MAX_NUMBER_OF_QUEUES"] == MAX_QUEUES
    assert limits["MAX_NUMBER_OF_COMPUTE_RESOURCES_PER_CLUSTER"] == cluster_rules.MAX_COMPUTE_RESOURCES
    assert limits["MAX_NUMBER_OF_LOGIN_NODE_POOLS"] == cluster_rules.MAX_LOGIN_POOLS
    assert limits["MAX_TAGS_COUNT"] - 1 == cluster_rules.MAX_TAGS
    assert limits["PCLUSTER_NAME_MAX_LENGTH"] == names.CLUSTER_NAME_MAX
    assert limits["PCLUSTER_NAME_MAX_LENGTH_SLURM_ACCOUNTING"] == names.CLUSTER_NAME_MAX_WITH_ACCOUNTING
    assert limits["PCLUSTER_NAME_REGEX"] == "^([a-zA-Z][a-zA-Z0-9-]{0,%d})$"
    assert f"[a-zA-Z][a-zA-Z0-9-]{{1,{names.CLUSTER_NAME_MAX - 1}}}" == names.CLUSTER_NAME_PATTERN
    of_groups = constants("validators/cluster_validators.py")
    assert of_groups["NAME_MAX_LENGTH"] == 25
    assert of_groups["NAME_REGEX"] == r"^[a-z][a-z0-9\-]*$"


def test_reserved_settings_are_those_that_parallelcluster_denies() -> None:
    denied = constants("validators/slurm_settings_validator.py")["SLURM_SETTINGS_DENY_LIST"]
    assert sorted(slurm.RESERVED_CLUSTER_SETTINGS) == sorted(denied["SlurmConf"]["Global"])
    assert sorted(slurm.RESERVED_ACCOUNTING_SETTINGS) == sorted(denied["SlurmConf"]["Accounting"])
    assert sorted(slurm.RESERVED_QUEUE_SETTINGS) == sorted(denied["Queue"]["Global"])
    assert sorted(slurm.RESERVED_COMPUTE_RESOURCE_SETTINGS) == sorted(denied["ComputeResource"]["Global"])


def test_users_and_official_images_have_parallelclusters_names() -> None:
    systems, parts = (constants("constants.py")[name] for name in ("OS_MAPPING", "OS_TO_IMAGE_NAME_PART_MAP"))
    assert {os: system.user for os, system in neuron.SYSTEMS.items()} == {
        os: systems[os]["user"] for os in neuron.SYSTEMS
    }
    assert set(images.NAME_PARTS) == neuron.SYSTEMS.keys()
    assert sorted(constants("constants.py")["SUPPORTED_OSES"]) == sorted(get_args(OperatingSystem))
    for ours in (images.NAME_PARTS, prerequisites.OFFICIAL_IMAGES):
        assert ours == {system: parts[system] for system in ours}


def test_every_validator_that_warns_is_known() -> None:
    classes: dict[str, ast.ClassDef] = {}
    for path in PROJECT.glob(".venv-pcluster/lib/python*/site-packages/pcluster/validators/*.py"):
        statements = ast.parse(path.read_text(encoding="utf-8")).body
        classes.update({each.name: each for each in statements if isinstance(each, ast.ClassDef)})
    warning = {
        name
        for name, node in classes.items()
        for part in (node, *(classes.get(ast.unparse(base)) for base in node.bases))
        if part is not None and not name.startswith("_") and warns(part)
    }
    # get_async_timed_validator_type_for makes it of UrlValidator.
    assert warning | {"AsyncTimedUrlValidator"} == VALIDATORS.keys()


def warns(node: ast.ClassDef) -> bool:
    """Return whether the code of a validator has warnings, those of secrets among them."""
    text = ast.unparse(node)
    return "FailureLevel.WARNING" in text or "handle_arn_aws_client_error(" in text


def test_the_cdk_of_parallelcluster_starts_without_checks_of_its_packages() -> None:
    """Where the call is no longer as it is replaced, each start takes twice the time, which nothing else would tell."""
    (program,) = PROJECT.glob(".venv-pcluster/lib/python*/site-packages/jsii/_embedded/jsii/lib__program.js")
    text = program.read_text(encoding="utf-8")
    assert text.count(jsii_start.CHECKED) == 1
    assert "function loadAssemblyFromPath(directory, validate = true)" in text


def test_a_process_serves_one_account_after_the_other(aws: EmulatedAws) -> None:
    """It is kept for the next object: nothing of the last one's environment may be left, such as cached credentials."""
    with ParallelCluster(aws.environment) as first:
        process = first._process
        with pytest.raises(UnreadableClusterError, match="does not exist"):
            first.describe_cluster(REGION, "missing")
    first.stop()  # once more does not give the process to two
    nobody = {name: value for name, value in aws.environment.items() if not name.startswith("AWS_")}
    with ParallelCluster({**nobody, "AWS_EC2_METADATA_DISABLED": "true"}) as second:
        assert second._process is process
        with pytest.raises(UnreadableClusterError, match="credentials"):
            second.describe_cluster(REGION, "missing")
        with ParallelCluster(aws.environment) as third:
            assert third._process is not process
