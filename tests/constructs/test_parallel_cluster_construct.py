"""What users of the construct can do that no deployment of this project does."""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from tests.stacks.small_app import ZONE_ID, Template, flat, new_app, synthesize, template_of
from ultracluster.domain.cluster import ClusterSpec, ComputeResourceSpec, LoginPoolSpec, QueueSpec
from ultracluster.network import Network
from ultracluster.node_scripts import NodeScript
from ultracluster.parallel_cluster import ParallelCluster

CLUSTER = "Custom::PclusterCluster"
PROVIDER = "AWS::CloudFormation::Stack"
PLACEMENT_GROUP = "AWS::EC2::PlacementGroup"
POLICY = "AWS::IAM::ManagedPolicy"
PARAMETER = "AWS::SSM::Parameter"
LOGIN = LoginPoolSpec(name="login")


def queue(name: str, **choices: Any) -> QueueSpec:
    return QueueSpec(name=name, compute_resources=[ComputeResourceSpec(name="trn1", max_count=2)], **choices)


def spec(*queues: QueueSpec, **choices: Any) -> ClusterSpec:
    return ClusterSpec(name="fleet", region="us-west-2", queues=list(queues) or [queue("trn1")], **choices)


def cluster(scope: cdk.Stack, of: ClusterSpec, **options: Any) -> ParallelCluster:
    network = Network.existing(
        scope,
        vpc_id="vpc-0123456789abcdef0",
        cidr="10.0.0.0/16",
        public_subnet_id="subnet-0123456789abcdef0",
        private_subnet_id="subnet-0123456789abcdef1",
        zone_id=ZONE_ID,
    )
    return ParallelCluster(scope, "Cluster", spec=of, network=network, **options)


def template(outdir: Path, of: ClusterSpec, **options: Any) -> Template:
    return synthesize(lambda stack: cluster(stack, of, **options), outdir)


def configuration(of: Template) -> dict[str, Any]:
    return dict(of.properties(CLUSTER)["ClusterConfiguration"])


def queues(of: Template) -> list[dict[str, Any]]:
    return list(configuration(of)["Scheduling"]["SlurmQueues"])


def policies(node: dict[str, Any]) -> list[str]:
    """Return the logical names of a node's policies that this project makes."""
    return [entry["Policy"]["Ref"] for entry in node["Iam"]["AdditionalIamPolicies"]]


def readable(of: Template, policy: str) -> list[str]:
    """Return the S3 addresses that a policy lets nodes read."""
    found = of.of_type(POLICY)[policy]["Properties"]["PolicyDocument"]["Statement"]
    [resources] = [each["Resource"] for each in found if each["Action"] == "s3:GetObject"] or [[]]
    return [
        flat(arn).replace("arn:aws:s3:::", "s3://")
        for arn in (resources if isinstance(resources, list) else [resources])
    ]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A directory of scripts."""
    directory = tmp_path / "nodes"
    directory.mkdir()
    (directory / "set_up.sh").write_text("#!/bin/bash\n", encoding="utf-8")
    return directory


def test_a_cluster_without_scripts_has_nothing_that_reads_them(tmp_path: Path) -> None:
    bare = template(tmp_path, spec(login_nodes=[LOGIN]))
    text = json.dumps(bare.body)

    types = {item["Type"] for item in bare.body["Resources"].values()}

    assert types == {CLUSTER, PROVIDER, PLACEMENT_GROUP, POLICY}
    assert [readable(bare, policy) for policy in bare.of_type(POLICY)] == [[], [], []], "head, compute and login nodes"
    assert "Parameters" not in bare.properties(PROVIDER)
    assert "CustomActions" not in text
    assert "S3Access" not in text


def test_a_script_for_one_queue_is_for_no_other(tmp_path: Path, bundle: Path) -> None:
    script = NodeScript(bundle, "set_up.sh", ["a=b"])
    some = template(tmp_path / "out", spec(queue("first"), queue("second")), queue_scripts={"second": script})

    first, second = queues(some)

    assert "CustomActions" not in first
    assert "S3Access" not in first["Iam"]
    assert [readable(some, policy) for policy in policies(first)] == [[]]
    assert second["CustomActions"]["OnNodeConfigured"]["Args"][1:] == ["us-west-2", "set_up.sh", "a=b"]
    assert len(second["Iam"]["S3Access"]) == 1
    assert policies(second) != policies(first)
    assert "CustomActions" not in configuration(some)["HeadNode"]
    assert len(some.of_type(POLICY)) == 3, "of the head node and each queue"


def test_one_directory_for_several_kinds_of_node_is_one_asset_with_one_policy(tmp_path: Path, bundle: Path) -> None:
    shared = template(
        tmp_path / "out",
        spec(queue("first"), queue("second"), login_nodes=[LOGIN]),
        queue_scripts={name: NodeScript(bundle, "set_up.sh", [name]) for name in ("first", "second")},
        head_node_script=NodeScript(bundle, "set_up.sh", ["head"]),
        login_script=NodeScript(bundle, "set_up.sh", ["login"]),
    )

    actions = [item["CustomActions"]["OnNodeConfigured"] for item in queues(shared)]
    [pool] = configuration(shared)["LoginNodes"]["Pools"]

    [address] = {flat(action["Args"][0]) for action in actions}
    assert [action["Args"][1:] for action in actions] == [
        ["us-west-2", "set_up.sh", name] for name in ("first", "second")
    ]
    assert [path.name for path in (tmp_path / "out").glob("asset.*") if path.is_dir()] == [
        f"asset.{address.rpartition('/')[2].removesuffix('.zip')}"
    ]
    [policy] = {name for item in queues(shared) for name in policies(item)}
    assert readable(shared, policy) == [address]
    assert address in readable(shared, *policies(configuration(shared)["HeadNode"]))
    assert address in readable(shared, *policies(pool))


def test_policies_say_nothing_that_would_replace_them_or_stand_in_the_way_of_a_replacement(
    tmp_path: Path, bundle: Path
) -> None:
    made = template(
        tmp_path / "out",
        spec(login_nodes=[LOGIN]),
        head_node_script=NodeScript(bundle, "set_up.sh"),
        login_script=NodeScript(bundle, "set_up.sh"),
        queue_scripts={"trn1": NodeScript(bundle, "set_up.sh")},
    )

    found = {name: item["Properties"] for name, item in made.of_type(POLICY).items()}

    assert [each["Path"] for each in found.values()] == ["/parallelcluster/"] * 3
    for each in found.values():
        assert "ManagedPolicyName" not in each
        assert each.get("Description", "") == ""


def test_a_script_for_login_nodes_is_nothing_without_login_nodes(tmp_path: Path, bundle: Path) -> None:
    without = template(tmp_path / "out", spec(), login_script=NodeScript(bundle, "set_up.sh"))

    assert len(without.of_type(POLICY)) == 2, "of head and compute nodes"
    assert list((tmp_path / "out").glob("asset.*")) == []


def test_queues_of_one_label_share_a_group_and_others_have_their_own(tmp_path: Path) -> None:
    made = template(
        tmp_path,
        spec(
            queue("first", placement_group="left-wing"),
            queue("second", placement_group="right-wing"),
            queue("third", placement_group="left-wing"),
            queue("fourth", placement_group="leftwing"),
        ),
    )

    groups = [item["Networking"]["PlacementGroup"]["Name"]["Fn::GetAtt"][0] for item in queues(made)]

    assert groups[0] == groups[2]
    assert set(groups) == made.of_type(PLACEMENT_GROUP).keys()
    assert len(set(groups)) == 3, "labels may differ by a hyphen"


def test_another_version_has_another_provider(tmp_path: Path) -> None:
    older = spec().model_copy(update={"parallelcluster_version": "3.16.0"})
    made = [template(tmp_path / each.parallelcluster_version, each) for each in (spec(), older)]

    names = [each.one(PROVIDER)[0] for each in made]

    assert len(set(names)) == 2
    assert [each.properties(CLUSTER)["ServiceToken"]["Fn::GetAtt"][0] for each in made] == names


def test_tags_are_on_everything_but_placement_groups(tmp_path: Path, bundle: Path) -> None:
    made = template(tmp_path / "out", spec(tags={"team": "blue"}), head_node_script=NodeScript(bundle, "set_up.sh"))

    tagged = {kind for kind in (PROVIDER, PLACEMENT_GROUP) if "Tags" in made.properties(kind)}

    assert tagged == {PROVIDER}
    assert configuration(made)["Tags"] == [{"Key": "team", "Value": "blue"}]


def test_a_stack_of_no_particular_account_and_region_passes_the_same_rules(tmp_path: Path, bundle: Path) -> None:
    app = new_app(tmp_path / "out")
    cluster(cdk.Stack(app, "anywhere"), spec(), head_node_script=NodeScript(bundle, "set_up.sh"))

    made = template_of(app, "anywhere")

    assert flat(made.properties(PROVIDER)["TemplateURL"]).startswith(
        "https://AWS::Region-aws-parallelcluster.s3.AWS::Region."
    )


def test_what_cannot_be_built_is_refused(tmp_path: Path, bundle: Path) -> None:
    app, env = new_app(tmp_path / "out"), cdk.Environment(region="us-west-2")
    scripts = {"trn2": NodeScript(bundle, "set_up.sh")}

    with pytest.raises(ValueError, match=r"queue_scripts: got \['trn2'\]; allowed: \['trn1'\]"):
        cluster(cdk.Stack(app, "small", env=env), spec(), queue_scripts=scripts)
    with pytest.raises(ValueError, match="'fleet': ParallelCluster makes a stack of that name"):
        cluster(cdk.Stack(app, "fleet", env=env), spec())
    for entry in ("node.sh", "."):
        with pytest.raises(ValueError, match=rf"got '{entry}'; allowed: a file in {bundle}"):
            NodeScript(bundle, entry)
