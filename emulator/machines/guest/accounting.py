"""Slurm's accounting on a head node, whose cluster has a `Database`.

Cookbook: config_slurm_accounting.rb, bootstrap_slurm_accounting.rb and clear_slurm_accounting.rb.
"""

from __future__ import annotations

import logging
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from emulator.machines.guest import node as nodes
from emulator.machines.guest import pace
from emulator.machines.guest.node import Node, StepError, write
from emulator.machines.guest.slurm_configuration import CONFIGURATION, DATABASE, INSTALLED, SCRIPTS

_SLURMDBD: Final = ("/usr/sbin/slurmdbd",)
_PID_FILE: Final = Path("/run/slurmdbd.pid")
_UNIT: Final = Path("/etc/systemd/system/slurmdbd.service")
_OWN: Final = Path(f"{CONFIGURATION}/slurmdbd.conf")
_LOG: Final = Path("/var/log/slurmdbd.log")
_UPDATE_PASSWORD: Final = Path(f"{SCRIPTS}/slurm/update_slurm_database_password.sh")
_CLUSTER_NAME: Final = Path("/var/spool/slurm.state/clustername")
_SACCTMGR: Final = f"{INSTALLED}/bin/sacctmgr"
_ACCOUNT: Final = "pcdefault"
_ATTEMPTS: Final = 31
"""The first one, and 30 retries."""
log = logging.getLogger("accounting")

_SLURMDBD_CONF = """AuthType=auth/munge
LogFile={log}
DbdPort=6819
SlurmUser={user}
StorageType=accounting_storage/mysql
PidFile={pid_file}
# The client library of AWS's images uses TLS where the server has it, this one where it is told to.
StorageParameters=SSL_CIPHER=HIGH
include {database}
"""
_SCRIPT = """#!/bin/bash
# Updates StoragePass in slurm_parallelcluster_slurmdbd.conf from the secret, and restarts slurmdbd if it runs.
set -e
file={file}
known=$(sed -n 's/^StoragePass=//p' "$file")
secret=$(aws secretsmanager get-secret-value --secret-id {secret} --region {region} --query SecretString --output text)
[[ $known != "$secret" ]] || exit 0
sed -i '/^StoragePass=/d' "$file"
echo "StoragePass=$secret" >>"$file"
if systemctl --quiet is-active slurmdbd.service; then
    systemctl restart slurmdbd
fi
"""


def database(configuration: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the database of a cluster's configuration; None: it has no accounting."""
    found: Mapping[str, Any] | None = configuration["Scheduling"]["SlurmSettings"].get("Database")
    return found


def configure(node: Node, user: str) -> None:
    """Start slurmdbd, and wait until it has its database.

    Args:
        node: The head node.
        user: Of Slurm's controller.

    Raises:
        StepError: The password cannot be read, or the database does not answer.
    """
    nodes.service("slurmdbd", str(_PID_FILE), _SLURMDBD)
    if not _OWN.exists():
        write(_OWN, _SLURMDBD_CONF.format(log=_LOG, user=user, pid_file=_PID_FILE, database=DATABASE), 0o600, user)
    write(_LOG, "", user=user)
    wanted = database(nodes.cluster_configuration())
    assert wanted is not None  # noqa: S101 - the caller looks
    secret, region = wanted["PasswordSecretArn"], node.cluster["region"]
    text = _SCRIPT.format(file=f"{CONFIGURATION}/{DATABASE}", secret=secret, region=region)
    write(_UPDATE_PASSWORD, text, 0o700)
    update_password()
    # One that was there before has the name of another database, or an id that this one does not know: Slurm 25.11 sees
    # to the latter itself.
    _CLUSTER_NAME.unlink(missing_ok=True)
    # MariaDB's client library fails once, with error 5027, where slurmdbd has made its database: it starts again.
    _until("wait for slurm database", lambda _: True, "show", "clusters", "-Pn", before=start)


def update_password() -> None:
    """Read the password again, after the configuration was written without it.

    Raises:
        StepError: It cannot be read.
    """
    nodes.run("update Slurm database password", str(_UPDATE_PASSWORD))


def start() -> None:
    """Start slurmdbd, if the cluster has accounting and it does not run; it need not have its database yet.

    Raises:
        StepError: It does not start.
    """
    is_running = subprocess.run(["pgrep", "-x", "slurmdbd"], capture_output=True, check=False).returncode == 0
    if _UNIT.exists() and not is_running:
        nodes.start_daemon(*_SLURMDBD, resource="slurmdbd")


def bootstrap(node: Node, user: str) -> None:
    """Make the account that everybody starts with, once slurmctld has registered its cluster.

    Raises:
        StepError: It does not register, or Slurm refuses the account.
    """
    shown = nodes.run("bootstrap slurm database", f"{INSTALLED}/bin/scontrol", "show", "config")
    match = re.search(r"^ClusterName\s*=\s*(\S+)$", shown, re.MULTILINE)
    cluster = match[1].lower() if match else ""
    _until("wait for cluster registration", bool, "show", "clusters", "-Pn", f"cluster={cluster}", "format=cluster")
    if not _associations(cluster):
        described = ("Description=ParallelCluster default account", "Organization=none")
        _sacctmgr("add", "account", _ACCOUNT, f"Cluster={cluster}", *described)
    for name in (user, str(node.cluster["cluster_user"])):
        if not _associations(cluster, f"user={name}"):
            _sacctmgr("add", "user", name, f"Account={_ACCOUNT}", "AdminLevel=Admin")


def clear() -> None:
    """Stop slurmdbd: the cluster has no accounting any more."""
    _UPDATE_PASSWORD.unlink(missing_ok=True)
    _UNIT.unlink(missing_ok=True)
    nodes.stop_daemon(_PID_FILE, seconds=5)
    _CLUSTER_NAME.unlink(missing_ok=True)


def _until(
    resource: str, is_enough: Callable[[str], bool], *arguments: str, before: Callable[[], object] = lambda: None
) -> None:
    """Ask sacctmgr until it gives an answer that is enough.

    Raises:
        StepError: It does not, 30 times.
    """
    said = ""
    for left in range(_ATTEMPTS - 1, -1, -1):
        before()
        done = subprocess.run([_SACCTMGR, *arguments], capture_output=True, text=True, check=False)
        said = (done.stdout + done.stderr).strip()
        if not done.returncode and is_enough(done.stdout.strip()):
            return
        log.info("Retrying execution of execute[%s], %d attempt(s) left", resource, left)
        time.sleep(pace.load().database_seconds if left else 0)
    last = _LOG.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
    raise StepError(resource, "\n".join([f"{_SACCTMGR} {' '.join(arguments)}: {said}", *last]))


def _associations(cluster: str, *which: str) -> str:
    asked = ("list", "associations", "-Pn", f"cluster={cluster}", f"account={_ACCOUNT}", *which, "format=account")
    return nodes.run("bootstrap slurm database", _SACCTMGR, *asked).strip()


def _sacctmgr(*arguments: str) -> None:
    nodes.run("bootstrap slurm database", _SACCTMGR, "-iQ", *arguments)
