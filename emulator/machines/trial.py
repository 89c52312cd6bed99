"""Slurm's controller, started on the configuration of a cluster to see whether it takes that; nothing else runs."""

from __future__ import annotations

import io
import os
import re
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from emulator.machines.guest import slurm_configuration
from emulator.machines.guest.pace import REAL
from emulator.machines.site import Site
from emulator.machines.support import MachineError

_SECONDS: Final = 120
"""Until it is given up: the controller answers after one or ends."""
_LEAST: Final = 2
"""Lines that trial.sh prints: a version, and how it went."""
_NAMES: Final = ("stack_name", "region", "proxy", "slurm_ddb_table", "hosted_zone", "dns_domain")
_HARMLESS: Final = re.compile("specified more than once, latest value used|MailProg is invalid")
_INCLUDED: Final = "CustomSlurmSettingsIncludeFile"
_DATABASES: Final = ("Database", "ExternalSlurmdbd")


@dataclass(frozen=True)
class Trial:
    """How the controller started.

    Attributes:
        version: Its version.
        refusal: What it said before it ended; empty: it started.
        left_out: Custom settings that it was not given: those that only a newer version knows, those of a database
            (there is none), and an included file.
    """

    version: str
    refusal: str
    left_out: tuple[str, ...]


def try_controller(image: Path, configuration: Mapping[str, Any], instance_types: Mapping[str, Any]) -> Trial:
    """Start it on the configuration of a cluster, without a database.

    Args:
        image: The root directory of machines.
        configuration: The cluster's, with implied values.
        instance_types: What DescribeInstanceTypes answers, by type.

    Raises:
        MachineError: It could not be tried.
    """
    scheduling = configuration["Scheduling"]
    settings = scheduling["SlurmSettings"]
    custom, of_database = settings.get("CustomSlurmSettings") or [], []
    if any(settings.get(key) for key in _DATABASES):  # without one the cluster's own controller refuses these, too
        of_database = [each for each in custom if any(key.lower().startswith("accountingstor") for key in each)]
    alone = {key: each for key, each in settings.items() if key not in _DATABASES}
    alone["CustomSlurmSettings"] = [each for each in custom if each not in of_database]
    configuration = {**configuration, "Scheduling": {**scheduling, "SlurmSettings": alone}}
    cluster = {
        **dict.fromkeys(_NAMES, "tried"),
        "use_private_hostname": "false",
        "compute_node_bootstrap_timeout": 1800,
    }
    user = "slurm" if os.geteuid() == 0 else "ubuntu"
    node = slurm_configuration.HeadNode(cluster, "i-0", "ip-10-0-0-5.ec2.internal", "10.0.0.5", user)
    files = slurm_configuration.slurm_files(configuration, instance_types, node, REAL)
    site = Site(image, 0)
    try:
        done = subprocess.run(
            site.trial(user), input=_archive(files), capture_output=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise MachineError(f"slurmctld neither answered nor ended within {_SECONDS} s") from None
    finally:
        site.stop()
    said = done.stdout.decode(errors="replace").splitlines()
    if done.returncode or len(said) < _LEAST:
        raise MachineError(f"slurmctld could not be started: {done.stderr.decode(errors='replace')}")
    version, outcome, *lines = said
    number = version.rpartition(" ")[2].partition("-")[0]
    unjudged = [f"{name}={value}" for each in of_database for name, value in each.items()]
    unjudged += [str(settings[_INCLUDED])] if settings.get(_INCLUDED) else []
    telling = [line for line in dict.fromkeys(lines) if not _HARMLESS.search(line)]
    refusal = "" if outcome == "started" else "\n".join(telling) or "it said nothing"
    return Trial(number, refusal, (*slurm_configuration.left_out(configuration), *unjudged))


def _archive(files: Mapping[str, str]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as opened:
        for path, text in files.items():
            content = text.encode()
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), 0o644
            opened.addfile(member, io.BytesIO(content))
    return archive.getvalue()
