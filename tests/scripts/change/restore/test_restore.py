"""`restore`: /home of a snapshot is copied to another head node; existing files are not changed."""

from __future__ import annotations

import fcntl
import json
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scripts.account.remote import head_node, program
from scripts.change import restoration
from scripts.change.restoration import RESTORE_TAG, Snapshot, choose
from scripts.core.errors import ExitCode, OperationError
from tests.command_line import ultracluster
from tests.deployed import create_stack
from tests.scripts.head_node_shell import HeadNodeShell, run
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
    monkeypatch.setattr(restoration, "restore", lambda *_: restoration.RestoredSnapshot(**dict(SNAPSHOTS[1])))
    assert ultracluster("restore", "trn1-16", "--list", "--output", "json") == ExitCode.DONE
    assert [each["id"] for each in json.loads(capsys.readouterr().out)["snapshots"]] == ["snap-1", "snap-2", "snap-3"]
    assert ultracluster("restore", "trn1-16", "--output", "json") == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["id"] == "snap-2"


def test_a_home_on_efs_is_not_restored_from_a_snapshot(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ultracluster("restore", "ultracluster") == ExitCode.FAILED
    assert "cluster.head_node.shared_storage: got 'efs'; allowed: ebs (" in capsys.readouterr().err


LSBLK = """
case "$*" in
*SERIAL*) printf '/dev/nvme0n1 vol0\\n'; sed 's|-||; s|^|/dev/nvme1n1 |' "$WORLD/attached" ;;
*) cat "$WORLD/systems" ;;
esac
"""
SYSTEMS = "/dev/nvme1n1  9\n/dev/nvme1n1p16 ext4 2\n/dev/nvme1n1p1 {} 8\n/dev/nvme1n1p15 vfat 9\n"
MOUNT = """
PATH=$REAL
echo "$2 $4 $5" >>"$WORLD/mounts"
mount --bind "$WORLD/snapshot" "$6"
[ "${4%%,*}" != ro ] || mount --options remount,bind,ro "$6"
"""
RSYNC = """
PATH=$REAL
case "$*" in *--ignore-existing*) ;; *) exit 90 ;; esac
[ ! -e "$WORLD/broken" ] || { echo "rsync: no space left" >&2; exit 11; }
while [ $# -gt 2 ]; do shift; done
cp --recursive --no-clobber "$1." "$2"
printf 'Number of files: 9\\nNumber of regular files transferred: 1\\nTotal transferred file size: 3 bytes\\n'
"""
FILES = {
    "snapshot/home/a/kept": "old", "snapshot/home/a/lost": "old", "home/a/kept": "new",
    "snapshot/home/a/.bashrc": "old", "home/a/.bashrc": "made", "etc/skel/.bashrc": "made",
    "snapshot/home/a/.profile": "old", "home/a/.profile": "changed", "etc/skel/.profile": "made",
    "home/a/.bash_logout": "made", "etc/skel/.bash_logout": "made",
}  # fmt: skip
RESTORED = {"kept": "new", "lost": "old", ".bashrc": "old", ".profile": "changed", ".bash_logout": "made"}
VOLUME = "vol-0123456789abcdef0"


@pytest.fixture
def node(tmp_path: Path) -> HeadNodeShell:
    """A node to which a volume is attached."""
    for path, text in {**FILES, "attached": f"{VOLUME}\n", "systems": SYSTEMS.format("ext4")}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return HeadNodeShell(tmp_path, lsblk=LSBLK, mount=MOUNT, rsync=RSYNC, sleep='echo >>"$WORLD/looks"')


def home(node: HeadNodeShell) -> dict[str, str]:
    """Return the files of a home by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in (node.world / "home/a").iterdir()}


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize(("system", "options"), [("ext4", "ro"), ("xfs", "ro,nouuid")])
def test_the_program_copies_home_of_a_volume_that_it_mounts_read_only(
    node: HeadNodeShell, system: str, options: str
) -> None:
    (node.world / "systems").write_text(SYSTEMS.format(system))
    done = run(node.rooted, program.of_file(restoration.PROGRAM, VOLUME))
    report = "Number of regular files transferred: 1\nTotal transferred file size: 3 bytes\n"
    assert (done.returncode, done.stdout) == (0, report), done.stderr
    assert (node.world / "mounts").read_text(encoding="utf-8") == f"{system} {options} /dev/nvme1n1p1\n"
    assert home(node) == RESTORED


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize(
    ("path", "text", "code", "reason"),
    [
        ("attached", "vol-9\n", 1, f"{VOLUME} is no device of this node"),
        ("systems", "/dev/nvme1n1  9\n/dev/nvme1n1p15 vfat 9\n", 1, f"{VOLUME} has no root file system"),
        ("snapshot/home", None, 1, f"{VOLUME} has no /home"),
        ("broken", "", 11, "rsync: no space left"),
    ],
)
def test_the_program_fails_with_a_reason(
    node: HeadNodeShell, path: str, text: str | None, code: int, reason: str
) -> None:
    if text is None:
        (node.world / path).rename(node.world / "elsewhere")
    else:
        (node.world / path).write_text(text, encoding="utf-8")
    done = run(node.rooted, program.of_file(restoration.PROGRAM, VOLUME))
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"{reason}\n")
    assert (path == "attached") is ((node.world / "looks").exists())


@pytest.mark.slow
@pytest.mark.system
def test_a_second_copy_is_refused(node: HeadNodeShell) -> None:
    (node.world / "run/lock").mkdir(parents=True)
    with (node.world / "run/lock/ultracluster-restore").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run(node.rooted, program.of_file(restoration.PROGRAM, VOLUME))
    assert (done.returncode, done.stderr) == (1, "another copy is running on this node\n")
    assert home(node)["kept"] == "new"
    assert not (node.world / "mounts").exists()


def take_snapshot(operated: Operated) -> str:
    """Do as Data Lifecycle Manager once: by the deployed policy, of the volume that has its tag."""
    ec2, dlm = operated.client("ec2"), operated.client("dlm")
    [policy] = dlm.get_lifecycle_policies()["Policies"]
    [target] = dlm.get_lifecycle_policy(PolicyId=policy["PolicyId"])["Policy"]["PolicyDetails"]["TargetTags"]
    filters = [{"Name": f"tag:{target['Key']}", "Values": [target["Value"]]}]
    [volume] = ec2.describe_volumes(Filters=filters)["Volumes"]
    specification = [{"ResourceType": "snapshot", "Tags": volume["Tags"]}]
    return str(ec2.create_snapshot(VolumeId=volume["VolumeId"], TagSpecifications=specification)["SnapshotId"])


@pytest.mark.scenario
@pytest.mark.slow
@pytest.mark.system
def test_a_lost_head_node_its_cluster_made_again_and_home_as_the_policy_had_it(
    operated: Operated,
    node: HeadNodeShell,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A copy that fails leaves its volume and says so; the same command continues with it."""
    (node.world / "broken").touch()
    ec2 = operated.client("ec2")
    monkeypatch.setattr(head_node, "SECONDS_BETWEEN_POLLS", 0.05)

    def call(command: str, *arguments: str) -> int:
        return ultracluster(command, "trn1-16", *arguments)

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
    attached = f"grep --only-matching 'vol-[0-9a-f]*' <<<\"$script\" >{node.world}/attached"
    operated.shell(f'script=$(cat); {attached}; exec {shlex.join(node.rooted)} <<<"$script"')
    assert call("restore") == ExitCode.FAILED
    [left] = copies()
    assert left["Attachments"][0]["InstanceId"] == operated.head_node
    errors = capsys.readouterr().err
    assert "no space left" in errors
    assert f"delete-volume --volume-id {left['VolumeId']}" in errors
    (node.world / "broken").unlink()
    assert call("restore") == ExitCode.DONE

    assert copies() == []
    assert (node.world / "mounts").read_text(encoding="utf-8") == 2 * "ext4 ro /dev/nvme1n1p1\n"
    assert home(node) == RESTORED
    assert call("restore", "--list") == ExitCode.DONE
    assert taken in capsys.readouterr().out
