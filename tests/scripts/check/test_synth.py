"""`synth` shows what there is to review."""

import json
from pathlib import Path

import yaml

from scripts.check.synth import review
from tests.scripts.reports import shown


def test_resources_are_counted_and_the_configuration_is_written_out(tmp_path: Path) -> None:
    configuration = {"Region": "us-west-2", "HeadNode": {"Networking": {"SubnetId": {"Ref": "Subnet"}}}}
    cluster = {"ClusterName": "fleet", "ClusterConfiguration": configuration}
    resources = {
        "Cluster": {"Type": "Custom::PclusterCluster", "Properties": cluster},
        "One": {"Type": "AWS::EC2::PlacementGroup"},
        "Two": {"Type": "AWS::EC2::PlacementGroup"},
    }
    (tmp_path / "x-cluster.template.json").write_text(json.dumps({"Resources": resources}), encoding="utf-8")
    (tmp_path / "x-network.template.json").write_text(json.dumps({"Resources": {}}), encoding="utf-8")

    result = review(tmp_path)

    written = tmp_path / "fleet.parallelcluster.yaml"
    assert shown(result.blocks(), 200).splitlines() == [
        f"{tmp_path}/x-cluster.template.json: 3 resources",
        "    2 EC2::PlacementGroup",
        "    1 Custom::PclusterCluster",
        f"{tmp_path}/x-network.template.json: 0 resources",
        f"{written}: the ParallelCluster configuration that its template carries",
    ]
    assert json.loads(result.to_json())["templates"][0] == {
        "path": f"{tmp_path}/x-cluster.template.json",
        "resources": {"AWS::EC2::PlacementGroup": 2, "Custom::PclusterCluster": 1},
    }
    assert yaml.safe_load(written.read_text(encoding="utf-8")) == configuration
