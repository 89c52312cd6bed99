"""The life of homes, which outlive head node and cluster: moved from a root volume, backed up, deleted as told."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from config.settings import load
from tests.end_to_end.lives.life import Deployed, deployed

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

NOTES = "/home/ada/notes"
WRITE = f"mkdir --parents /home/ada; echo one >{NOTES}; ln -s notes /home/ada/link; chown -R 2001:2002 /home/ada"
LOOK = f"cat {NOTES}; stat -c %u:%g {NOTES}; readlink /home/ada/link; findmnt --noheadings --output FSROOT /home"
PROTECTED = "cat /proc/sys/fs/protected_regular"
"""What ParallelCluster sets to 0."""


def deploy_three_times(life: Deployed) -> None:
    """The second run continues the first, which is terminated, and the third has nothing to do."""
    words = ("deploy", "trn1-16", "--yes")
    with life.stage.start(*words, output=subprocess.DEVNULL) as first:
        while first.poll() is None and "trn1-16-cluster" not in life.statuses():
            time.sleep(0.1)
        first.send_signal(signal.SIGTERM)
    assert first.returncode == 128 + signal.SIGTERM
    life.run(*words)
    statuses = life.statuses()
    result = json.loads(life.stage.ask(*words, "--output", "json"))
    assert result["outcome"] == "deployed"
    assert [each["name"] for each in result["stacks"]] == [f"trn1-16-{part}" for part in load(life.file).parts]
    assert all(each["outputs"] and each["status"] == statuses[each["name"]] for each in result["stacks"])
    assert life.statuses() == statuses


def restore_a_snapshot(life: Deployed) -> None:
    """Of the root volume, as the daily policy takes it; what is there already stays."""
    ec2 = life.aws.client("ec2", load(life.file).region)
    wanted = {"Name": "tag:parallelcluster:node-type", "Values": ["HeadNode"]}
    [reservation] = ec2.describe_instances(Filters=[wanted])["Reservations"]
    [disk] = reservation["Instances"][0]["BlockDeviceMappings"]
    tags = [{"Key": "ultracluster:snapshots", "Value": life.name}]
    specification = [{"ResourceType": "snapshot", "Tags": tags}]
    made = ec2.create_snapshot(VolumeId=disk["Ebs"]["VolumeId"], TagSpecifications=specification)
    life.on_head_node(f"rm {NOTES}; echo kept >/home/ada/other")
    said = life.run("restore", life.name, "--snapshot", made["SnapshotId"])
    assert f"/home of {made['SnapshotId']} is on the head node" in said
    assert life.on_head_node(f"cat {NOTES} /home/ada/other; stat -c %u {NOTES}").split()[-3:] == ["one", "kept", "2001"]
    assert not life.on_head_node("ls /run/emulator/exports/.volumes")


def test_homes_outlive_clusters(tmp_path: Path) -> None:
    """On OpenZFS; those of the rehearsed team are on EFS, and outlive a head node that is lost."""
    with deployed(tmp_path) as life:
        life.run("bootstrap", "trn1-16")
        deploy_three_times(life)
        assert life.on_head_node(PROTECTED).split()[-1] == "2"
        life.on_head_node(WRITE)
        assert "AccessDenied" in life.on_head_node(
            "aws lambda list-functions 2>&1 || true"
        )  # they run on this computer

        restore_a_snapshot(life)

        life.change(lambda raw: raw.update(homes={"type": "fsx-openzfs"}))
        said = life.run("upgrade", "trn1-16", "--confirm", "trn1-16")
        assert "/home of this head node: " in said
        assert "with its head node, without /home" in said
        assert re.match(r"one\n2001:2002\nnotes\n.*/filesystems/fs-", life.on_head_node(LOOK))
        on_node = life.run("exec", "trn1-16", "--", "srun", "--nodes=1", "sh", "-c", f"cat {NOTES}; stat -c %u {NOTES}")
        assert on_node.split()[-2:] == ["one", "2001"]
        [homes] = re.findall(r"Homes +(fs-\w+)", life.run("status", "trn1-16"))
        assert homes in life.left("AWS::FSx::FileSystem")
        said = life.run("destroy", "trn1-16", "--team", "--unprotect", "--force", "--confirm", "trn1-16")
        assert f"Homes {homes} is deleted after a last backup" in said
        assert homes not in life.left("AWS::FSx::FileSystem")
        no_backup = "--no-final-backup"  # FSx backs up no scratch file system
        life.run("destroy", "trn1-16", "--all", "--unprotect", no_backup, "--sweep", "--confirm", "trn1-16")
        rest = life.run("inventory", "trn1-16")
        assert re.search(r"Backup \*", rest), rest
        assert "(left over)" not in rest
        assert not life.left("AWS::EC2::NetworkInterface", "AWS::FSx::Volume")
