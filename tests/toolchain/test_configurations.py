"""ParallelCluster's own schema and validators pass every configuration in config/, and what people may switch in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import load
from scripts.options import deployments
from scripts.validation import examine
from tests.configurations import CONFIG
from toolchain.parallelcluster import ParallelCluster
from ultracluster.domain.validator_warnings import accepted

pytestmark = [pytest.mark.slow, pytest.mark.validation]


@pytest.mark.parametrize("environment", deployments())
def test_parallelcluster_accepts_it(
    environment: str, deployment: Callable[[str], Any], parallelcluster: ParallelCluster
) -> None:
    assert_accepted(deployment(environment), parallelcluster)

    properties = deployment(environment).request.properties
    assert properties["ValidationFailureLevel"] == "WARNING"
    create_and_update_take = {"ClusterName", "ClusterConfiguration", "SuppressValidators", "ValidationFailureLevel"}
    assert properties.keys() <= create_and_update_take


def assert_accepted(prepared: Any, parallelcluster: ParallelCluster) -> None:
    accepting = accepted(prepared.settings.cluster_spec)
    validation = examine(parallelcluster, prepared.request, accepting)
    assert validation.problems == ()
    warned = {message.validator for message in validation.messages}
    assert accepting.keys() <= warned, "no warning is accepted that does not occur"


def choose_much(settings: dict[str, Any]) -> None:
    """Choose what no file of ours does and what goes together."""
    cluster, storage = settings["cluster"], settings["storage"]
    cluster.update(os="alinux2023", pytorch="2.8", efa_interface_type="efa")
    cluster["head_node"].update(public=False, shared_storage="efs")
    cluster["login_nodes"] = [
        {"name": "private", "ssh_cidr": "10.0.0.0/16"},
        {"name": "public", "public": True, "ssh_cidr": "203.0.113.0/24"},
        {"name": "closed"},
    ]
    cluster["monitoring"].update(detailed_monitoring=True)
    policy = {"Policy": "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"}
    cluster["overrides"] = {"HeadNode": {"Iam": {"AdditionalIamPolicies": [policy]}}}
    cluster["slurm"].update(custom_settings={"SchedulerParameters": "default_queue_depth=500,defer"})
    cluster["queues"][0].update(capacity_type="SPOT")
    plain = {"name": "c6i", "instance_type": "c6i.8xlarge", "max_count": 4}
    cluster["queues"].append({"name": "plain", "placement_group": "none", "compute_resources": [plain]})
    storage["data_repositories"] = [{"path": "/data"}]
    storage["file_system"]["backup_retention_days"] = 0


def switch_efa_off(settings: dict[str, Any]) -> None:
    settings["cluster"]["queues"][0]["compute_resources"][0].update(efa=False)


@pytest.mark.parametrize("choose", [choose_much, switch_efa_off])
def test_parallelcluster_accepts_what_people_may_choose(
    choose: Callable[[dict[str, Any]], None],
    deployment: Callable[[str], Any],
    parallelcluster: ParallelCluster,
    tmp_path: Path,
) -> None:
    settings = load(CONFIG / "trn1-16.yaml").model_dump(mode="json")
    settings["name"] = choose.__name__.replace("_", "-")  # all share one account
    choose(settings)
    (tmp_path / "chosen.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    assert_accepted(deployment(str(tmp_path / "chosen")), parallelcluster)
