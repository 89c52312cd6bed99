"""Plain ssh and scp through the block of OpenSSH's configuration, with a real sshd behind a fake plugin."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.core.errors import UnusableError
from scripts.use import ssh_config
from tests.command_line import ultracluster
from tests.scripts.operated import Operated

PLUGIN = """\
#!/bin/bash
printf '%s\\n' "$@" >"$0.called"
exec /usr/sbin/sshd -i -f "$(dirname "$0")/sshd_config"
"""
SSHD = """\
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/id_ed25519.pub
PermitRootLogin prohibit-password
StrictModes no
PidFile none
Subsystem sftp internal-sftp
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a plugin on PATH that connects to an sshd on its standard streams, which takes the key of this test."""
    if not Path("/usr/sbin/sshd").exists():
        subprocess.run(["apt-get", "--quiet=2", "update"], check=True, capture_output=True)
        command = ["apt-get", "--quiet=2", "--yes", "--no-install-recommends", "install", "openssh-server"]
        subprocess.run(command, check=True, capture_output=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host_key", "id_ed25519"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    (tmp_path / "sshd_config").write_text(SSHD.format(directory=tmp_path), encoding="utf-8")
    path = tmp_path / "session-manager-plugin"
    path.write_text(PLUGIN, encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return path


@pytest.mark.system
def test_ssh_and_scp_reach_the_head_node(
    operated: Operated, plugin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    operated.shell("true")
    identity = str(tmp_path / "id_ed25519")
    assert ultracluster("ssh", "trn1-16", "--print-config", "--identity", identity) == 0
    config = tmp_path / "config"
    text = capsys.readouterr().out.replace("~/.ssh/", f"{tmp_path}/").replace("User ubuntu", "User root")
    config.write_text(text, encoding="utf-8")
    (tmp_path / "file").write_text("hello", encoding="utf-8")
    ssh, scp = (shutil.which(name) or name for name in ("ssh", "scp"))
    options = ["-F", str(config), "-o", "LogLevel=ERROR"]
    shown = subprocess.run([ssh, *options, "trn1-16", "echo $((6*7))"], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stdout) == (0, "42\n"), shown.stderr
    copied = subprocess.run([scp, *options, str(tmp_path / "file"), f"trn1-16:{tmp_path}/copy"], check=False)
    assert copied.returncode == 0
    assert (tmp_path / "copy").read_text(encoding="utf-8") == "hello"
    called = Path(f"{plugin}.called").read_text(encoding="utf-8")
    assert '"DocumentName": "ultracluster-trn1-16.ssh"' in called
    assert operated.head_node in called
    assert "ec2-instance-connect:SendSSHPublicKey" in operated.calls()


def test_the_block_is_written_once_and_the_line_to_add_is_named(
    operated: Operated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "100%")
    deployment = operated.deployment()
    for user in ("ubuntu", "ec2-user"):
        text = ssh_config.block(deployment, user, tmp_path / "a key")
        advice = ssh_config.write(deployment, text, tmp_path / "ssh")
    assert advice == f"Add this line at the top of {tmp_path}/ssh/config:\n\nInclude ultracluster.conf"
    written = (tmp_path / "ssh" / ssh_config.FILE).read_text(encoding="utf-8")
    assert written.count("Host trn1-16 *.trn1-16\n") == 1
    assert "User ec2-user" in written
    assert "--profile 100%% --proxy %n %p" in written
    (tmp_path / "ssh" / "config").write_text("Include ~/.ssh/ultracluster.conf\n", encoding="utf-8")
    assert ssh_config.write(deployment, text, tmp_path / "ssh") == ""


def test_a_key_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match=r"There is no public key .*/missing\.pub") as error:
        ssh_config.identity(tmp_path / "missing")
    assert error.value.hint == "ssh-keygen -t ed25519"


def test_hosts_of_the_block(operated: Operated) -> None:
    deployment = operated.deployment()
    assert ssh_config.node_name(deployment, "trn1-16") == "head-node"
    assert ssh_config.node_name(deployment, "trn1-dy-trn1-32xl-1.trn1-16") == "trn1-dy-trn1-32xl-1"
    with pytest.raises(UnusableError, match="got other; allowed: trn1-16 for the head node"):
        ssh_config.node_name(deployment, "other")
