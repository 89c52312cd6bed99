"""The programs of an AMI of ParallelCluster that are imitated here, and what else it brings."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from emulator.machines.guest.node import write

PACKAGES: Final = ("/usr/lib/emulator", "/opt/parallelcluster/python")
"""Where a machine's Python finds this package, and those of the node's daemons."""

_PROGRAMS: Final[Mapping[str, str]] = {
    "/usr/local/sbin/cinc-client": "recipes.cinc_client",
    "/usr/local/sbin/cfn-init": "cfn.cfn_init",
    "/usr/local/sbin/cfn-signal": "cfn.cfn_signal",
    "/usr/local/sbin/cfn-hup": "cfn.cfn_hup",
    "/usr/local/sbin/clustermgtd": "fleet.clustermgtd",
    "/usr/local/sbin/clusterstatusmgtd": "fleet.clusterstatusmgtd",
    "/usr/local/sbin/supervisorctl": "supervisor.supervisorctl",
    "/usr/local/bin/get-compute-fleet-status.sh": "fleet.get_compute_fleet_status",
    "/usr/local/bin/update-compute-fleet-status.sh": "fleet.update_compute_fleet_status",
    "/opt/parallelcluster/scripts/fetch_and_run": "custom_actions.fetch_and_run",
}
_POWER: Final = {"shutdown": "TERM", "poweroff": "TERM", "halt": "TERM", "reboot": "INT"}


def install() -> None:
    """Write what an AMI of ParallelCluster has: programs, and the version it was made for."""
    for path, function in _PROGRAMS.items():
        module, _, name = function.rpartition(".")
        write(
            path,
            f"#!/usr/bin/python3 -EsB\nimport sys\nsys.path[1:1] = {PACKAGES!r}\n"
            f"from emulator.machines.guest.{module} import {name}\nsys.exit({name}(sys.argv[1:]))\n",
            0o755,
        )
    for name, signal in _POWER.items():
        Path(f"/usr/sbin/{name}").unlink(missing_ok=True)
        write(f"/usr/sbin/{name}", f"#!/bin/sh\n# Process 1 ends the machine.\nkill -s {signal} 1\n", 0o755)
    write(
        "/etc/parallelcluster/pcluster_cookbook_environment.sh",
        "export CFN_BOOTSTRAP_VIRTUALENV_PATH=/usr/local/sbin\n",
    )
    version = importlib.metadata.version("aws-parallelcluster-node")
    write("/opt/parallelcluster/.bootstrapped", f"aws-parallelcluster-cookbook-{version}\n")
    for directory in ("/opt/parallelcluster/tmp", "/etc/chef", "/var/log/parallelcluster", "/var/spool/slurmd"):
        Path(directory).mkdir(parents=True, exist_ok=True)
