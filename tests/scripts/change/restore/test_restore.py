"""`restore`: /home of a snapshot is copied to another head node; existing files are not changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scripts.account.remote import head_node
from scripts.change import restoration
from scripts.change.restoration import RESTORE_TAG, Snapshot, choose
from scripts.core.errors import ExitCode, OperationError
from tests.command_line import ultracluster
from tests.deployed import create_stack
from tests.scripts.operated import Operated
from ultracluster.domain.names import SNAPSHOT_TAG

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def snapshot(number: int, volume: str) -> Snapshot:
    since = NOW - timedelta(days=number)
    return Snapshot(id=f"snap-{number}", volume=volume, cluster="trn1-16", since=since, gib=200)


SNAPSHOTS = [snapshot(1, "vol-new"), snapshot(2, "vol-old"), snapshot(3, "vol-old")]


def test_the_newest_snapshot_of_a_head_node_that_is_gone_is_chosen_unless_another_is_named() -> None:
    assert choose(SNAPSHOTS, {"vol-new"}, None).id == "snap-2"
    assert choose(SNAPSHOTS, {"vol-new"}, "snap-1").id == "snap-1"
    with pytest.raises(OperationError, match=r"no snapshot of an earlier head node; .*snap-1, snap-2, snap-3"):
        choose(SNAPSHOTS, {"vol-new", "vol-old"}, None)
    with pytest.raises(OperationError, match="--snapshot: got snap-9; allowed: one of: none"):
        choose([], {"vol-new"}, "snap-9")


def test_programs_get_the_list_and_the_snapshot_that_was_copied(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(restoration, "snapshots", lambda _: SNAPSHOTS)
    monkeypatch.setattr(restoration, "restore", lambda *_: SNAPSHOTS[1])
    assert ultracluster("restore", "trn1-16", "--list", "--output", "json") == ExitCode.DONE
    assert [each["id"] for each in json.loads(capsys.readouterr().out)["snapshots"]] == ["snap-1", "snap-2", "snap-3"]
    assert ultracluster("restore", "trn1-16", "--output", "json") == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["id"] == "snap-2"


def test_a_home_on_efs_is_not_restored_from_a_snapshot(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ultracluster("restore", "ultracluster") == ExitCode.FAILED
    assert "cluster.head_node.shared_storage: got 'efs'; allowed: ebs (" in capsys.readouterr().err


NODE = """
    script=$(cat)
    serial=$(grep --only-matching --max-count=1 'vol[0-9a-f]\\{8,\\}' <<<"$script")
    lsblk() {
        case "$*" in
            *SERIAL*) echo "/dev/nvme0n1 vol0"; echo "/dev/nvme1n1 $serial" ;;
            *) printf '/dev/nvme1n1%s\\n' "  9" "p16 ext4 2" "p1 ext4 8" "p15 vfat 9" ;;
        esac
    }
    flock() { :; }
    mount() {
        echo "$4 $5" >>"$WORLD/mounts"
        cp --recursive "$WORLD/snapshot/." "$6"
    }
    umount() { if [ -d "$1" ]; then rm --recursive --force "${1:?}"/*; fi; }
    rsync() {
        [ ! -e "$WORLD/broken" ] || { echo "rsync: no space left" >&2; return 11; }
        local from="${*: -2:1}"
        [ "${*: -1}" = /home/ ] && cp --recursive --no-clobber "$from." "$WORLD/home"
        echo "Number of regular files transferred: 1"
    }
    source /dev/stdin <<<"$script"
"""
"""A node whose disks, mounts and /home are directories of the test."""


def take_snapshot(operated: Operated) -> str:
    """Do as Data Lifecycle Manager once: by the deployed policy, of the volume that has its tag."""
    ec2, dlm = operated.client("ec2"), operated.client("dlm")
    [policy] = dlm.get_lifecycle_policies()["Policies"]
    [target] = dlm.get_lifecycle_policy(PolicyId=policy["PolicyId"])["Policy"]["PolicyDetails"]["TargetTags"]
    filters = [{"Name": f"tag:{target['Key']}", "Values": [target["Value"]]}]
    [volume] = ec2.describe_volumes(Filters=filters)["Volumes"]
    specification = [{"ResourceType": "snapshot", "Tags": volume["Tags"]}]
    return str(ec2.create_snapshot(VolumeId=volume["VolumeId"], TagSpecifications=specification)["SnapshotId"])


@pytest.mark.slow
def test_a_lost_head_node_its_cluster_made_again_and_home_as_the_policy_had_it(
    operated: Operated,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A copy that fails leaves its volume and says so; the same command continues with it."""
    node = tmp_path
    for path, text in {
        "snapshot/home/a/kept": "old", "snapshot/home/a/lost": "old", "home/a/kept": "new",
        "snapshot/home/a/.bashrc": "old", "home/a/.bashrc": "made", "skel/.bashrc": "made",
        "snapshot/home/a/.profile": "old", "home/a/.profile": "changed", "skel/.profile": "made",
        "home/a/.bash_logout": "made", "skel/.bash_logout": "made",
    }.items():  # fmt: skip
        (node / path).parent.mkdir(parents=True, exist_ok=True)
        (node / path).write_text(text, encoding="utf-8")
    (node / "broken").touch()
    ec2, script = operated.client("ec2"), restoration.script
    monkeypatch.setattr(head_node, "SECONDS_BETWEEN_POLLS", 0.05)

    def of_test(volume: str) -> str:
        text = script(volume).replace("/run/lock", str(node)).replace("/etc/skel", f"{node}/skel")
        return text.replace("cd /home", f"cd {node}/home")

    monkeypatch.setattr(restoration, "script", of_test)

    def call(program: str, *arguments: str) -> int:
        return ultracluster(program, "trn1-16", *arguments)

    def copies() -> list[dict[str, Any]]:
        return list(ec2.describe_volumes(Filters=[{"Name": "tag-key", "Values": [RESTORE_TAG]}])["Volumes"])

    head = [{"Name": "tag:parallelcluster:node-type", "Values": ["HeadNode"]}]
    [root] = ec2.describe_volumes(Filters=head)["Volumes"]
    ec2.create_tags(Resources=[root["VolumeId"]], Tags=[{"Key": SNAPSHOT_TAG, "Value": "trn1-16"}])  # as nodes do
    taken = take_snapshot(operated)
    assert call("restore") == ExitCode.FAILED  # the snapshot is of the running head node
    ec2.terminate_instances(InstanceIds=[operated.head_node])
    assert call("recover", "--dry-run") == ExitCode.DONE
    assert f"what {taken} has, which was taken 0 hours ago, at " in " ".join(capsys.readouterr().out.split())

    assert call("destroy", "--force", "--confirm", "trn1-16") == ExitCode.DONE
    assert f"delete-snapshot --snapshot-id {taken}" in capsys.readouterr().out
    assert call("destroy", "--sweep", "--confirm", "trn1-16") == ExitCode.DONE  # which leaves data alone
    logs = operated.client("logs")
    for group in logs.describe_log_groups(logGroupNamePrefix="/aws/parallelcluster/trn1-16-")["logGroups"]:
        # ParallelCluster names it by the minute: the retained one is in the way of a cluster made within the same.
        logs.delete_log_group(logGroupName=group["logGroupName"])
    create_stack(operated.aws, operated.synthesized, "cluster")
    operated.shell(f"WORLD={node}; {NODE}")
    assert call("restore") == ExitCode.FAILED
    [left] = copies()
    assert left["Attachments"][0]["InstanceId"] == operated.head_node
    errors = capsys.readouterr().err
    assert "no space left" in errors
    assert f"delete-volume --volume-id {left['VolumeId']}" in errors
    (node / "broken").unlink()
    assert call("restore") == ExitCode.DONE

    assert copies() == []
    assert (node / "mounts").read_text(encoding="utf-8") == 2 * "ro /dev/nvme1n1p1\n"
    assert (node / "home/a/kept").read_text(encoding="utf-8") == "new"
    assert (node / "home/a/lost").read_text(encoding="utf-8") == "old"
    files = {path.name: path.read_text(encoding="utf-8") for path in (node / "home/a").glob(".*")}
    assert files == {".bashrc": "old", ".profile": "changed", ".bash_logout": "made"}
    assert call("restore", "--list") == ExitCode.DONE
    assert taken in capsys.readouterr().out
