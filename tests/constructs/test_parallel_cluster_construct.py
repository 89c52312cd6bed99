"""What users of the construct can do that no deployment of this project does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from tests.stacks.small_app import ZONE_ID, Template, flat, synthesize
from ultracluster.domain.cluster import ClusterSpec, ComputeResourceSpec, LoginPoolSpec, QueueSpec
from ultracluster.network import Network
from ultracluster.node_scripts import NodeScript
from ultracluster.parallel_cluster import ParallelCluster

CLUSTER = "Custom::PclusterCluster"
PROVIDER = "AWS::CloudFormation::Stack"
PLACEMENT_GROUP = "AWS::EC2::PlacementGroup"
POLICY = "AWS::IAM::ManagedPolicy"


def queue(name: str, **choices: Any) -> QueueSpec:
    return QueueSpec(name=name, compute_resources=[ComputeResourceSpec(name="trn1", max_count=2)], **choices)


def spec(*queues: QueueSpec, **choices: Any) -> ClusterSpec:
    return ClusterSpec(name="fleet", region="us-west-2", queues=list(queues) or [queue("trn1")], **choices)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A directory of scripts."""
    directory = tmp_path / "nodes"
    directory.mkdir()
    (directory / "set_up.sh").write_text("#!/bin/bash\n", encoding="utf-8")
    return directory


def template(outdir: Path, bundle: Path, of: ClusterSpec) -> Template:
    """Return the template of a cluster whose nodes all have a script of one directory."""

    def build(stack: cdk.Stack) -> None:
        network = Network.existing(
            stack,
            vpc_id="vpc-0123456789abcdef0",
            cidr="10.0.0.0/16",
            public_subnet_id="subnet-0123456789abcdef0",
            private_subnet_id="subnet-0123456789abcdef1",
            zone_id=ZONE_ID,
        )
        ParallelCluster(
            stack,
            "Cluster",
            spec=of,
            network=network,
            security_groups=[],
            shared_storage=[],
            head_node_script=NodeScript(bundle, "set_up.sh", ["head"]),
            queue_scripts={queue.name: NodeScript(bundle, "set_up.sh", [queue.name]) for queue in of.queues},
            login_script=NodeScript(bundle, "set_up.sh", ["login"]),
            assets_key_arn=None,
        )

    return synthesize(build, outdir)


def configuration(of: Template) -> dict[str, Any]:
    return dict(of.properties(CLUSTER)["ClusterConfiguration"])


def queues(of: Template) -> list[dict[str, Any]]:
    return list(configuration(of)["Scheduling"]["SlurmQueues"])


def readable(of: Template, node: dict[str, Any]) -> list[str]:
    """Return the S3 addresses that the policy of a node lets it read."""
    [policy] = [entry["Policy"]["Ref"] for entry in node["Iam"]["AdditionalIamPolicies"]]
    statements = of.of_type(POLICY)[policy]["Properties"]["PolicyDocument"]["Statement"]
    [resources] = [each["Resource"] for each in statements if each["Action"] == "s3:GetObject"]
    arns = resources if isinstance(resources, list) else [resources]
    return [flat(arn).replace("arn:aws:s3:::", "s3://") for arn in arns]


def test_one_directory_for_several_kinds_of_node_is_one_asset_with_one_policy(tmp_path: Path, bundle: Path) -> None:
    shared = template(
        tmp_path / "out", bundle, spec(queue("first"), queue("second"), login_nodes=[LoginPoolSpec(name="login")])
    )

    actions = [item["CustomActions"]["OnNodeConfigured"] for item in queues(shared)]
    [pool] = configuration(shared)["LoginNodes"]["Pools"]

    [address] = {flat(action["Args"][0]) for action in actions}
    assert [action["Args"][1:] for action in actions] == [
        ["us-west-2", "set_up.sh", name] for name in ("first", "second")
    ]
    assert [readable(shared, item) for item in queues(shared)] == [[address]] * 2
    assert address in readable(shared, configuration(shared)["HeadNode"])
    assert address in readable(shared, pool)
    assert len(shared.of_type(POLICY)) == 3, "of the head node, of login nodes, of both queues"


def test_queues_of_one_label_share_a_group_and_others_have_their_own(tmp_path: Path, bundle: Path) -> None:
    labels = {"first": "left-wing", "second": "right-wing", "third": "left-wing", "fourth": "leftwing"}
    of = spec(*(queue(name, placement_group=label) for name, label in labels.items()))
    made = template(tmp_path / "out", bundle, of)

    groups = [item["Networking"]["PlacementGroup"]["Name"]["Fn::GetAtt"][0] for item in queues(made)]

    assert groups[0] == groups[2]
    assert set(groups) == made.of_type(PLACEMENT_GROUP).keys()
    assert len(set(groups)) == 3, "labels may differ by a hyphen"


def test_another_version_has_another_provider(tmp_path: Path, bundle: Path) -> None:
    older = spec().model_copy(update={"parallelcluster_version": "3.16.0"})
    names = {template(tmp_path / str(n), bundle, each).one(PROVIDER)[0] for n, each in enumerate((spec(), older))}

    assert len(names) == 2
