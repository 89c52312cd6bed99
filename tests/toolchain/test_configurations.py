"""ParallelCluster's own schema and validators pass every configuration in config/, and what people may switch in it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.check.validation import examine
from scripts.core.options import CONFIG, deployments
from tests.scripts.emulated.test_references import everything
from tests.stacks.choices import ACCOUNT, chosen, use_arm
from tests.stacks.deployments import edited
from toolchain.parallelcluster import ParallelCluster
from ultracluster.domain import overrides
from ultracluster.domain.validator_warnings import accepted

DOCS = Path(__file__).parents[2] / "docs"
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
    assert "\n".join(validation.problems) == ""
    warned = {message.validator for message in validation.messages}
    assert accepting.keys() <= warned, "no warning is accepted that does not occur"


def test_parallelcluster_accepts_what_people_may_choose(
    deployment: Callable[[str], Any], parallelcluster: ParallelCluster, tmp_path: Path
) -> None:
    settings = chosen("much").model_dump(mode="json")
    settings["cluster"]["overrides"] = {}  # its database has no complete ARN of a secret
    (tmp_path / "much.yaml").write_text(json.dumps(settings), encoding="utf-8")
    assert_accepted(deployment(str(tmp_path / "much")), parallelcluster)


@pytest.mark.parametrize(("name", "own_image"), [("arm", None), ("arm-of-ours", "ami-0123456789abcdef0")])
def test_parallelcluster_accepts_nodes_of_arm(
    name: str,
    own_image: str | None,
    deployment: Callable[[str], Any],
    parallelcluster: ParallelCluster,
    tmp_path: Path,
) -> None:
    settings = edited("trn1-16", use_arm).model_dump(mode="json") | {"name": name}
    settings["cluster"]["custom_ami"] = own_image
    (tmp_path / f"{name}.yaml").write_text(json.dumps(settings), encoding="utf-8")
    assert_accepted(deployment(str(tmp_path / name)), parallelcluster)


def test_parallelcluster_accepts_the_overrides_of_the_guide(
    deployment: Callable[[str], Any], parallelcluster: ParallelCluster, tmp_path: Path
) -> None:
    examples = re.findall(
        r"```yaml\n(.*?)```", (DOCS / "guides" / "overrides.md").read_text(encoding="utf-8"), re.DOTALL
    )
    together: dict[str, Any] = {}
    for example in examples:
        cluster = yaml.safe_load(example)["cluster"]
        together |= cluster | {"overrides": overrides.merged(together.get("overrides", {}), cluster["overrides"])}
    settings = yaml.safe_load((CONFIG / "trn1-16.yaml").read_text(encoding="utf-8"))
    settings.update(name="overriding")
    settings["cluster"] |= together
    (tmp_path / "overriding.yaml").write_text(json.dumps(settings), encoding="utf-8")
    assert_accepted(deployment(str(tmp_path / "overriding")), parallelcluster)


def test_parallelcluster_accepts_what_people_bring(
    deployment: Callable[[str], Any], parallelcluster: ParallelCluster, tmp_path: Path
) -> None:
    """Storage of each kind, groups, buckets, several types and subnets, and scripts."""
    settings = edited("trn1-16", everything).model_dump(mode="json", exclude_unset=True)
    del settings["cluster"]["overrides"], settings["accounting"], settings["cluster"]["directory"]
    del settings["cluster"]["custom_ami"], settings["cluster"]["munge_key_secret_arn"]
    settings["name"] = settings["cluster"]["head_node"]["ssh_key_name"] = "bringing"
    cluster = settings["cluster"]
    *_, of_fleets = cluster["queues"]
    cluster["queues"] = [cluster["queues"][0], of_fleets]
    of_fleets |= {"allocation_strategy": "prioritized"}
    of_fleets["compute_resources"][0]["alternative_types"] = ["c6i.large"]
    script = [{"script": "https://example.com/a.sh", "args": ["x"]}]
    cluster["login_node_actions"] = {"on_node_start": script, "on_node_configured": script, "on_node_updated": script}
    (tmp_path / "bringing.yaml").write_text(json.dumps(settings), encoding="utf-8")
    assert_accepted(deployment(str(tmp_path / "bringing")), parallelcluster)


def existing(settings: dict[str, Any]) -> None:
    secret = f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:db-AbCdEf"
    vpc = {
        "vpc_id": "vpc-0123456789abcdef1",
        "public_subnet_id": "subnet-0123456789abcdef2",
        "private_subnet_id": "subnet-0123456789abcdef3",
    }
    settings["network"]["existing"] = vpc
    database = {"host": "db.example.com:3307", "user": "slurm", "security_group_id": "sg-0123456789abcdef0"}
    settings["accounting"].update(database={}, existing={**database, "password_secret_arn": secret})


def recording(settings: dict[str, Any]) -> None:
    """Without limits; people's own settings of Slurm win."""
    settings["network"]["existing"] = None
    settings.update(users=[], accounting={"enforce": False})
    own = {"clustername": "old", "PriorityWeightFairshare": "5"}
    settings["cluster"]["slurm"] = {"custom_settings": own}


@pytest.mark.parametrize("choose", [existing, recording])
def test_parallelcluster_accepts_accounting(
    deployment: Callable[[str], Any],
    parallelcluster: ParallelCluster,
    tmp_path: Path,
    choose: Callable[[dict[str, Any]], None],
) -> None:
    settings = chosen("little").model_dump(mode="json", exclude_unset=True)
    choose(settings)
    settings["name"] = choose.__name__
    (tmp_path / "accounting.yaml").write_text(json.dumps(settings), encoding="utf-8")
    assert_accepted(deployment(str(tmp_path / "accounting")), parallelcluster)
