"""Storage of people on live nodes: an EBS volume that is made, and an EFS file system that exists, by an update."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.settings import load
from scripts.emulated import accounts
from tests.end_to_end.lives.life import deployed
from tests.stacks.deployments import Raw

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

NAME, EFS = "trn1-16", "fs-0123456789abcdef0"
LOOK = "for each in /tools /projects; do findmnt --noheadings --output TARGET $each && cat $each/by-head; done"


def with_storage(raw: Raw) -> None:
    raw["cluster"]["shared_storage"] = [
        {"name": "tools", "mount_dir": "/tools", "ebs": {"size_gib": 20, "retention": "delete"}},
        {"name": "projects", "mount_dir": "/projects", "efs": {"file_system_id": EFS}},
    ]


def test_an_ebs_volume_and_an_existing_efs_are_mounted_by_an_update(tmp_path: Path) -> None:
    with deployed(tmp_path) as life:
        life.run("bootstrap", NAME)
        life.run("deploy", NAME, "--yes")
        region = load(life.file).region
        outputs = life.aws.client("cloudformation", region).describe_stacks(StackName=f"{NAME}-network")
        subnets = [
            each["OutputValue"] for each in outputs["Stacks"][0]["Outputs"] if each["OutputKey"] == "PrivateSubnetId"
        ]
        life.change(with_storage)
        accounts.create_in_subnet(life.aws, load(life.file), subnets[0])

        life.run("deploy", NAME, "--yes")

        life.on_head_node("for each in /tools /projects; do echo head >$each/by-head; done")
        on_node = life.run("exec", NAME, "--", "srun", "--nodes=1", "sh", "-c", LOOK)
        assert on_node.split()[-4:] == ["/tools", "head", "/projects", "head"]
        life.run("destroy", NAME, "--confirm", NAME)
        assert EFS in life.left("AWS::EFS::FileSystem"), "nothing deletes what existed"
        assert not life.left("AWS::EC2::Volume")
