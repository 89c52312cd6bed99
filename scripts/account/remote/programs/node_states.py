"""What a node is called by the state and the flags that Slurm gives it. No program of its own: it goes along."""

from __future__ import annotations

TAKES = {
    "idle": "IDLE",
    "planned": "PLANNED",
    "reserved": "RESERVED",
    "blocked": "BLOCKED",
    "completing": "COMPLETING",
    "allocated": "ALLOCATED",
    "mixed": "MIXED",
}
"""What a node is called that takes jobs or runs them, by the state or flag of Slurm's that says so."""
COMING = ("power saving", "reserved off", "powering up", "powering down")
"""What a node is called that is off and starts for a job, or is on its way on or off.

Every other name is that of a node that takes no jobs; `condition` gives them.
"""
_SAYS_NOTHING = {"CLOUD", "DYNAMIC_NORM", *TAKES.values()}
_OUT = {
    "INVALID_REG": "inval",
    "FUTURE": "future",
    "DYNAMIC_FUTURE": "future",
    "UNKNOWN": "unknown",
    "ERROR": "error",
    "EXTERNAL": "external",
}


def condition(written: str) -> str:
    """Return what a node is called by its state with all flags, such as ``idle+cloud+powered_down``.

    It takes jobs only if each flag is one with which it does. That of `node_state_string`, which ``%T`` of sinfo
    prints, is not enough: there ``~`` hides that a node does not respond, which one that is off then never does again.
    A job gets a node that is neither down, drained nor failing, that responds, and that is not to be powered down
    (avail_node_bitmap). A node that powers up does not respond yet (power_save.c), and takes the job it starts for.

    https://github.com/SchedMD/slurm/blob/slurm-25-11-7-1/src/common/slurm_protocol_defs.c (node_state_flags),
    src/slurmctld/node_mgr.c (make_node_avail, _sync_bitmaps), src/slurmctld/read_config.c, src/slurmctld/power_save.c
    """
    base, *listed = written.upper().split("+")
    flags = {*listed}
    words = {base, *flags}
    has_jobs = base in {"ALLOCATED", "MIXED"}
    is_busy, is_off = has_jobs or "COMPLETING" in flags, "POWERED_DOWN" in flags
    known = {*_SAYS_NOTHING, "POWERED_DOWN", "REBOOT_REQUESTED", "REBOOT_ISSUED", "MAINTENANCE"}
    rules = (  # the first that holds
        *((word in words, name) for word, name in _OUT.items()),
        # power_down_asap is both, and ends the drain (power_save.c)
        ("DRAIN" in flags and "POWER_DOWN" not in flags, "draining" if is_busy else "drained"),
        ("FAIL" in flags, "failing" if is_busy else "fail"),
        (base == "DOWN", "down"),
        (bool({"POWER_DOWN", "POWERING_DOWN"} & flags), "powering down"),
        (bool({"POWER_UP", "POWERING_UP"} & flags), "powering up"),
        ("NOT_RESPONDING" in flags, "stuck off" if is_off and not has_jobs else "not responding"),
        (bool({"REBOOT_REQUESTED", "REBOOT_ISSUED"} & flags) and not has_jobs, "reboot"),
        ("MAINTENANCE" in flags and not has_jobs, "maint"),
        (base not in {"IDLE", "ALLOCATED", "MIXED"} or not flags <= known, "unknown"),
        (is_off and "RESERVED" in flags and not has_jobs, "reserved off"),
        (is_off, "powering up" if has_jobs else "power saving"),
        *((word in words, name) for name, word in reversed(TAKES.items())),
    )
    return next(name for holds, name in rules if holds)


def takes_jobs(name: str) -> bool:
    """Tell whether a node that is called so takes jobs, now or once it has started or stopped."""
    return name in TAKES or name in COMING


def marked(called: str, written: str) -> str:
    """Return what a node is called that takes no jobs, with Slurm's mark of one that is off, or does not respond."""
    flags = written.upper().split("+")[1:]
    if called not in ("drained", "draining", "down", "fail", "failing"):
        return called
    return called + ("~" if "POWERED_DOWN" in flags else "*" if "NOT_RESPONDING" in flags else "")
