"""What the stacks of a deployment have to do with each other; the golden templates have what is in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsii._kernel.providers.process import _NodeProcess

from stacks.network_stack import NetworkStack
from tests.stacks.deployments import PARTS, Deployment, deploy, edited
from tests.stacks.small_app import new_app, read_template

Synth = Callable[[str], Deployment]


def test_all_stacks_but_the_clusters_are_tagged_because_its_tags_would_reach_its_placement_group(synth: Synth) -> None:
    deployment = synth("trn1-16")
    tags = {"project": "trn1-ultracluster"}

    assert [deployment.stack_properties(part).get("tags") for part in PARTS] == [tags, tags, None, tags]
    assert "Tags" not in deployment.cluster.properties("AWS::EC2::PlacementGroup")


def test_the_settings_say_which_account_stacks_go_to_and_which_are_protected(tmp_path: Path) -> None:
    values = {"account": "210987654321", "termination_protection": ["storage", "cluster"]}
    deployment = deploy(edited("dev", lambda raw: raw.update(values)), tmp_path)

    environments = {deployment.artifacts[deployment.stack_name(part)]["environment"] for part in PARTS}
    protected = [part for part in PARTS if deployment.stack_properties(part).get("terminationProtection")]

    assert environments == {"aws://210987654321/us-west-2"}
    assert protected == ["storage", "cluster"]
    access = deployment.configuration["HeadNode"]["Iam"]["S3Access"]
    assert {entry["BucketName"] for entry in access} == {"cdk-hnb659fds-assets-210987654321-us-west-2"}


def test_stacks_come_after_what_they_need_and_the_alarms_do_without_a_cluster(deployment: Deployment) -> None:
    stacks = {deployment.stack_name(part): part for part in PARTS}
    assert "missing" not in deployment.manifest, "synth asks the account nothing"

    dependencies = {
        part: {stacks[name] for name in deployment.artifacts[stack]["dependencies"] if name in stacks}
        for stack, part in stacks.items()
    }

    assert dependencies == {
        "network": set(),
        "storage": {"network"},
        "cluster": {"network", "storage"},
        "monitoring": {"network", "storage"},
    }


def test_what_is_exported_does_not_hang_on_who_imports_it(synth: Synth, tmp_path: Path) -> None:
    app = new_app(tmp_path)
    NetworkStack(app, synth("trn1-16").settings)
    app.synth()

    outputs = read_template(tmp_path, "trn1-16-network").body["Outputs"].values()

    exported = [each for each in outputs if "Export" in each]

    assert len(exported) == len(["VPC", "public subnet", "private subnet", "NAT gateway"])


def test_clusters_of_two_generations_share_network_and_file_system_and_no_name(synth: Synth, tmp_path: Path) -> None:
    first = synth("two-queues")
    second = deploy(edited("two-queues", lambda raw: raw["cluster"].update(generation=2)), tmp_path)

    assert (second.network.body, second.storage.body) == (first.network.body, first.storage.body)
    assert second.configuration["SharedStorage"] == first.configuration["SharedStorage"]
    assert second.request["ClusterName"] == "two-queues-2"
    assert second.cluster.properties("AWS::SSM::Parameter")["Name"] == "/ultracluster/two-queues-2/HeadNode"
    assert second.cluster.body["Outputs"]["LogGroupPrefix"]["Value"] == "/aws/parallelcluster/two-queues-2-"


def test_a_queue_takes_at_most_8_calls_into_the_jsii_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    send = _NodeProcess.send

    def counted(process: _NodeProcess, request: Any, response_type: Any) -> Any:
        nonlocal calls
        calls += 1
        return send(process, request, response_type)

    def calls_of(number: int) -> int:
        nonlocal calls

        def copy_queue(raw: dict[str, Any]) -> None:
            [queue] = raw["cluster"]["queues"]
            raw["cluster"]["queues"] = [
                {**queue, "name": f"queue{each}", "placement_group": f"group{each}"} for each in range(number)
            ]

        settings, calls = edited("trn1-16", copy_queue), 0
        deploy(settings, tmp_path / str(number))
        return calls

    monkeypatch.setattr(_NodeProcess, "send", counted)
    calls_of(1)  # reads what is read once in a process

    assert calls_of(5) - calls_of(1) <= 4 * 8
