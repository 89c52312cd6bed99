"""The life of homes, which outlive head node and cluster: moved from a root volume, backed up, deleted as told."""

from __future__ import annotations

import io
import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from config.settings import load
from emulator.inventory import inventory
from emulator.machines import image
from scripts.emulated import accounts
from scripts.rehearse.stage import Stage
from tests.configurations import CONFIG

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

NOTES = "/home/ada/notes"
WRITE = f"mkdir --parents /home/ada; echo one >{NOTES}; ln -s notes /home/ada/link; chown -R 2001:2002 /home/ada"
LOOK = f"cat {NOTES}; stat -c %u:%g {NOTES}; readlink /home/ada/link; findmnt --noheadings --output FSROOT /home"
PROTECTED = "cat /proc/sys/fs/protected_regular"
"""What ParallelCluster sets to 0."""


class Deployed:
    """A deployment in an emulated AWS with nodes."""

    def __init__(self, directory: Path, account: accounts.Account) -> None:
        self.file, self.aws = directory / "trn1-16.yaml", account.aws
        region = load(self.file).region
        variables = {**self.aws.environment, **accounts.variables(region), "ULTRACLUSTER_CONFIG": str(directory)}
        self.stage = Stage(Console(markup=False, width=200), io.StringIO(), False, {**variables, "COLUMNS": "200"})

    def run(self, *words: str, code: int = 0) -> str:
        return self.stage.run(*words, codes=(code,)).text

    def on_head_node(self, script: str) -> str:
        return self.run("exec", "trn1-16", "--user", "root", "--", "sh", "-c", script)

    def set_homes(self, **homes: object) -> None:
        raw = yaml.safe_load(self.file.read_text(encoding="utf-8"))
        raw["homes"] = homes
        self.file.write_text(yaml.safe_dump(raw), encoding="utf-8")

    def statuses(self) -> dict[str, str]:
        cloudformation = self.aws.client("cloudformation", load(self.file).region)
        return {each["StackName"]: each["StackStatus"] for each in cloudformation.describe_stacks()["Stacks"]}

    def left(self, *types: str) -> list[str]:
        return [name for kind, name in inventory(self.aws, load(self.file).region) if kind in types]


@contextmanager
def deployed(directory: Path) -> Iterator[Deployed]:
    image.prepare()
    shutil.copy(CONFIG / "trn1-16.yaml", directory / "trn1-16.yaml")
    with accounts.account(print, speed="fast", nodes=True) as account:
        accounts.create_prerequisites(account.aws, load(directory / "trn1-16.yaml"))
        yield Deployed(directory, account)


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

        life.set_homes(type="fsx-openzfs")
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
