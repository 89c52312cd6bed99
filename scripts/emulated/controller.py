"""Slurm's own judgement of settings: its controller, started on them where this computer can run machines."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.machines import support
from emulator.machines.support import MachineError
from emulator.machines.trial import try_controller
from scripts.core.errors import OperationError
from scripts.core.terminal import Say
from scripts.emulated.accounts import machine_image
from toolchain.parallelcluster import HeadNodeFiles
from ultracluster.domain import slurm_parameters


@dataclass(frozen=True)
class Judgement:
    """What Slurm's controller makes of settings.

    Attributes:
        text: Whether it was started, which version, and on what.
        problem: Why it ended; empty: it did not.
    """

    text: str
    problem: str = ""


def judge(files: HeadNodeFiles, say: Say) -> Judgement:
    """Start the controller on what ParallelCluster leaves for the head node of a cluster."""
    if reason := support.reason():
        return _unstarted(reason)
    try:
        trial = try_controller(machine_image(say), files.configuration, files.instance_types)
    except (MachineError, OperationError) as error:
        return _unstarted(str(error))
    versions = f"slurmctld {trial.version}, not the cluster's {slurm_parameters.VERSION}"
    if trial.refusal:
        return Judgement(f"{versions}, ended", f"{versions}, does not start with these settings: {trial.refusal}")
    without = f", without {', '.join(trial.left_out)}, which it could not judge" if trial.left_out else ""
    return Judgement(f"{versions}, starts with these settings{without}")


def _unstarted(reason: str) -> Judgement:
    return Judgement(f"slurmctld was not started on these settings: {reason}")
