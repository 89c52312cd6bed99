"""Configurations of config/ as they are deployed, changed, and used with the tools of AWS and ParallelCluster.

The lives deploy them by the CDK's command line.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from emulator.aws import EmulatedAws
from emulator.inventory import inventory
from tests.deployed import DeployedAccount, planned, update_stack
from tests.end_to_end.checks import Deployed, check_configuration, check_deployment, check_monitoring
from tests.stacks.deployments import PARTS, Raw, deploy, edited
from toolchain.parallelcluster import PYTHON

pytestmark = [pytest.mark.slow, pytest.mark.validation]

Accounts = Callable[[str], DeployedAccount]
USUAL = "trn1-16"


def test_it_deploys(deployed: Accounts) -> None:
    account = deployed(USUAL)
    check_deployment(Deployed(account.aws, account.synthesized.settings))


def test_a_larger_file_system_replaces_nothing(deployed: Accounts, tmp_path: Path) -> None:
    """Nor may it: https://github.com/aws/aws-cdk/issues/38829."""

    def grow_and_tag(raw: Raw) -> None:
        raw["storage"]["file_system"]["capacity_gib"] += 2400
        raw["tags"]["project"] = "another"

    grown = deploy(edited(USUAL, grow_and_tag), tmp_path)
    with deployed(USUAL).clone() as aws:
        changes = {part: planned(aws, grown, part) for part in PARTS}
    for of_part in changes.values():
        assert {(each["Action"], each["Replacement"]) for each in of_part} == {("Modify", "False")}
    [system] = [each for each in changes["storage"] if each["ResourceType"] == "AWS::FSx::FileSystem"]
    assert {each["Target"].get("Name") for each in system["Details"]} == {"StorageCapacity", None}


def test_another_tag_changes_everything_in_place(deployed: Accounts, tmp_path: Path) -> None:
    changed = deploy(edited(USUAL, lambda raw: raw["tags"].update(project="another")), tmp_path)
    region, parts = changed.settings.region, ("network", "storage", "monitoring")
    with deployed(USUAL).clone() as aws:
        ec2, pages = aws.client("ec2", region), aws.client("cloudformation", region).get_paginator
        own = {
            resource["PhysicalResourceId"]
            for part in parts
            for page in pages("list_stack_resources").paginate(StackName=changed.stack_name(part))
            for resource in page["StackResourceSummaries"]
        }

        def tagged(project: str) -> set[str]:
            tags = ec2.describe_tags(Filters=[{"Name": "tag:project", "Values": [project]}])["Tags"]
            return {each["ResourceId"] for each in tags} & own

        before, resources = tagged("trn1-ultracluster"), inventory(aws, region)
        for part in parts:
            update_stack(aws, changed, part)
        assert inventory(aws, region) == resources
        assert tagged("another") == before != set()
        [system] = aws.client("fsx", region).describe_file_systems()["FileSystems"]
        assert {"Key": "project", "Value": "another"} in system["Tags"]


def test_what_other_stacks_refer_to_can_be_removed_and_replaced(deployed: Accounts, tmp_path: Path) -> None:
    """In one deployment each, in the order of the CDK's command line (docs/adr/0003)."""

    def link(raw: Raw) -> None:
        raw["storage"]["retain"] = False
        raw["monitoring"]["emails"] = ["me@example.com"]
        raw["storage"]["file_system"]["backup_retention_days"] = 0
        raw["storage"]["data_repositories"] = [{"path": "/data"}]

    def unlink(raw: Raw) -> None:
        link(raw)
        raw["storage"]["data_repositories"] = []

    def replace(raw: Raw) -> None:
        unlink(raw)
        raw["storage"]["file_system"] |= {"deployment_type": "SCRATCH_2", "throughput_mbps_per_tib": None}

    with deployed(USUAL).clone() as aws:
        linked = update(aws, tmp_path / "linked", link)
        bucket, first = linked.outputs("storage")["BucketName"], linked.outputs("storage")["FileSystemId"]
        unlinked = update(aws, tmp_path / "unlinked", unlink)
        assert ("AWS::S3::Bucket", bucket) not in inventory(aws, unlinked.settings.region)
        assert "BucketName" not in unlinked.outputs("storage")
        replaced = update(aws, tmp_path / "replaced", replace)
        [system] = replaced.client("fsx").describe_file_systems()["FileSystems"]
        second = system["FileSystemId"]
        assert second != first
        assert replaced.outputs("storage")["FileSystemId"] == second
        assert replaced.stored()["SharedStorage"][0]["FsxLustreSettings"]["FileSystemId"] == second
        check_configuration(replaced)
        check_monitoring(replaced, ["me@example.com"])


def update(aws: EmulatedAws, directory: Path, edit: Callable[[Raw], None]) -> Deployed:
    """Update all stacks to edited settings."""
    synthesized = deploy(edited(USUAL, edit), directory)
    for part in PARTS:
        update_stack(aws, synthesized, part)
    return Deployed(aws, synthesized.settings)


def test_the_command_lines_of_aws_and_parallelcluster(
    deployed: Accounts, tmp_path: Path, wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    account = deployed(USUAL)
    with account.clone() as aws:
        cluster = Deployed(aws, account.synthesized.settings)
        cloudformation = cluster.client("cloudformation")

        def run(tool: str, *arguments: str) -> Any:
            command = [str(PYTHON.parent / tool), *arguments, "--region", cluster.settings.region]
            done = subprocess.run(command, env=aws.environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            return json.loads(done.stdout)

        query = ("--query", "PlacementGroups[].GroupName")
        [queue] = cluster.stored()["Scheduling"]["SlurmQueues"]
        assert run("aws", "ec2", "describe-placement-groups", *query) == [queue["Networking"]["PlacementGroup"]["Name"]]
        described = run("pcluster", "describe-cluster", "--cluster-name", USUAL)
        assert (described["clusterStatus"], described["computeFleetStatus"]) == ("CREATE_COMPLETE", "RUNNING")
        assert described["headNode"]["instanceId"] == cluster.outputs("cluster")["HeadNodeInstanceId"]

        configuration, path = cluster.stored(), tmp_path / "cluster.yaml"
        configuration["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]["MaxCount"] = 20
        path.write_text(yaml.safe_dump(configuration), encoding="utf-8")
        arguments = ["--cluster-name", USUAL, "--cluster-configuration", str(path)]
        suppressed = ["--suppress-validators", "type:KeyPairValidator"]
        [change] = run("pcluster", "update-cluster", *arguments, *suppressed)["changeSet"]
        assert (change["parameter"].rpartition(".")[2], change["requestedValue"]) == ("MaxCount", "20")
        wait_for(lambda: cluster.stacks()[USUAL]["StackStatus"] == "UPDATE_COMPLETE")

        # The cluster goes behind CloudFormation's back; its stack is deleted all the same.
        run("pcluster", "delete-cluster", "--cluster-name", USUAL)
        wait_for(lambda: USUAL not in cluster.stacks())
        stack = cluster.settings.stack_name("cluster")
        cloudformation.delete_stack(StackName=stack)
        wait_for(lambda: stack not in cluster.stacks())
