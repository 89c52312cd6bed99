"""What people may switch in config/trn1-16.yaml passes ParallelCluster's own schema and validators, too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import load
from scripts.validation import examine
from tests.configurations import CONFIG
from toolchain.parallelcluster import ParallelCluster
from ultracluster.domain.validator_warnings import accepted

pytestmark = [pytest.mark.slow, pytest.mark.validation]

Settings = dict[str, Any]
Choice = Callable[[Settings], object]


def queue(settings: Settings) -> Settings:
    first: Settings = settings["cluster"]["queues"][0]
    return first


def resource(settings: Settings) -> Settings:
    first: Settings = queue(settings)["compute_resources"][0]
    return first


def add_plain_queue(settings: Settings) -> None:
    resources = [{"name": "c6i", "instance_type": "c6i.8xlarge", "max_count": 4, "efa": None}]
    plain = {"name": "plain", "placement_group": "none", "compute_resources": resources}
    settings["cluster"]["queues"].append(plain)


def add_login_nodes(**choices: object) -> Choice:
    return lambda s: s["cluster"].update(login_nodes=[{"name": "login", **choices}])


def amazon_linux(settings: Settings) -> None:
    settings["cluster"].update(os="alinux2023", pytorch="2.8")


def own_policies(settings: Settings) -> None:
    policy = {"Policy": "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"}
    settings["cluster"]["overrides"] = {"HeadNode": {"Iam": {"AdditionalIamPolicies": [policy]}}}


def own_bucket(settings: Settings) -> None:
    settings["storage"]["data_repositories"] = [{"path": "/data"}]
    settings["storage"]["file_system"]["backup_retention_days"] = 0


CHOICES: dict[str, Choice] = {
    "detailed monitoring": lambda s: s["cluster"]["monitoring"].update(detailed_monitoring=True),
    "no EFA": lambda s: resource(s).update(efa=False),
    "a queue without EFA and placement group": add_plain_queue,
    "private login nodes": add_login_nodes(public=False, ssh_cidr="10.0.0.0/16"),
    "public login nodes": add_login_nodes(public=True, ssh_cidr="203.0.113.0/24"),
    "login nodes that nobody reaches by SSH": add_login_nodes(),
    "a private head node": lambda s: s["cluster"]["head_node"].update(public=False),
    "a shared /home on EFS": lambda s: s["cluster"]["head_node"].update(shared_storage="efs"),
    "EFA interfaces of the older type": lambda s: s["cluster"].update(efa_interface_type="efa"),
    "Spot": lambda s: queue(s).update(capacity_type="SPOT"),
    "Amazon Linux": amazon_linux,
    "further policies of the head node": own_policies,
    "a bucket of the deployment": own_bucket,
    "another depth of the queue": lambda s: s["cluster"]["slurm"].update(
        custom_settings={"SchedulerParameters": "default_queue_depth=500,defer"}
    ),
}


ALONE = ("no EFA", "private login nodes", "login nodes that nobody reaches by SSH")
"""Those that exclude others."""


def together(settings: Settings) -> None:
    """Make all choices that do not exclude each other."""
    for name, choice in CHOICES.items():
        if name not in ALONE:
            choice(settings)


@pytest.mark.parametrize("choice", [together, *(CHOICES[name] for name in ALONE)], ids=["together", *ALONE])
def test_parallelcluster_accepts_it(
    choice: Choice, deployment: Callable[[str], Any], parallelcluster: ParallelCluster, tmp_path: Path
) -> None:
    settings = load(CONFIG / "trn1-16.yaml").model_dump(mode="json")
    settings["name"] = tmp_path.name.replace("_", "-")  # all share one account
    choice(settings)
    (tmp_path / "chosen.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    chosen = deployment(str(tmp_path / "chosen"))
    accepting = accepted(chosen.settings.cluster_spec)
    report = examine(parallelcluster, chosen.request, accepting)
    assert report.problems == ()
    assert accepting.keys() <= {message.validator for message in report.messages}, "no warning is accepted needlessly"
