"""A cluster with login nodes: they stand behind a load balancer, stay through an update, and go with the cluster."""

from pathlib import Path

import pytest
import yaml

from emulator.aws import EmulatedAws
from scripts.commands.validate import CONFIG
from tests.emulator.clusters import Clusters

pytestmark = [pytest.mark.validation, pytest.mark.slow]


def test_login_nodes(rehearsal_server: EmulatedAws, tmp_path: Path) -> None:
    settings = yaml.safe_load((CONFIG / "trn1-16.yaml").read_text(encoding="utf-8"))
    settings["name"] = "logins"
    settings["cluster"]["login_nodes"] = [{"name": "login", "count": 2}]
    path = tmp_path / "logins.yaml"
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    clusters = Clusters(rehearsal_server, tmp_path / "cdk.out", path)

    def login_nodes() -> set[str]:
        tagged = {"parallelcluster:node-type": "LoginNode"}
        return {
            instance["InstanceId"]
            for instance in clusters.instances()
            if tagged.items() <= {tag["Key"]: tag["Value"] for tag in instance["Tags"]}.items()
        }

    clusters.create()
    [pool] = clusters.pcluster("describe-cluster", "-n", "logins")["loginNodes"]
    assert (pool["status"], pool["healthyNodes"]) == ("active", 2)
    before = login_nodes()
    assert len(before) == 2
    clusters.update(clusters.with_max_count(20))
    assert clusters.stacks.status("parent") == "UPDATE_COMPLETE"
    assert login_nodes() == before
    clusters.delete()
    assert clusters.left_over() == set()
