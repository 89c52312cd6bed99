"""Rules of slurm.conf's parameters, as Slurm's own parser reads them: a line that it refuses ends the controller.

Sources: Slurm's src/common/parse_config.c and parse_value.c, for how a line is split and what a number is;
read_config.c, for values of text (https://github.com/SchedMD/slurm). What a plugin makes of its value is left to Slurm.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from ultracluster.domain import slurm
from ultracluster.domain import slurm_parameters as parameters
from ultracluster.domain.violations import Path, Violation, is_token

_SLURM = f"Slurm {parameters.VERSION.rpartition('.')[0]}, slurm.conf(5)"
_VALUE = re.compile(r'"[^"\n]*"|[^\s"#][^\s#]*(?<!\\)')
_PAIR = re.compile(rf"([A-Za-z0-9_.]+)=({_VALUE.pattern})")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|\d+")
_ENDLESS = ("unlimited", "infinite")
_NUMBERS = {"uint16": 2**16 - 1, "uint32": 2**32 - 1, "uint64": 2**64 - 1}
_YES, _NO = ("yes", "up", "true", "1"), ("no", "down", "false", "0")
_LEVELS = ["quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3", "debug4", "debug5"]
_PREEMPTION = ["off", "cluster", "cancel", "requeue", "on", "suspend", "gang", "within", "priority"]
_TIME = re.compile(r"-1|\d+(:\d\d?){0,2}|\d+-\d+(:\d\d?){0,2}|infinite|unlimited", re.IGNORECASE)
_CHOICES: Mapping[str, tuple[re.Pattern[str], str]] = {
    name: (pattern, allowed)
    for names, pattern, allowed in (
        (
            "DefaultTime MaxTime PriorityCalcPeriod PriorityDecayHalfLife PriorityMaxAge",
            _TIME,
            "minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes:seconds or UNLIMITED",
        ),
        (
            "SlurmctldDebug SlurmctldSyslogDebug SlurmdDebug SlurmdSyslogDebug",
            re.compile(rf"\d|{'|'.join(_LEVELS)}", re.IGNORECASE),
            " or ".join(_LEVELS),
        ),
        (
            "EnforcePartLimits",
            re.compile("|".join(("all", "any", *_YES, *_NO)), re.IGNORECASE),
            "ALL or ANY or NO",
        ),
        (
            "PreemptMode",
            re.compile(rf"({'|'.join(_PREEMPTION)})(,({'|'.join(_PREEMPTION)}))*", re.IGNORECASE),
            f"{' or '.join(_PREEMPTION)}, or several with commas",
        ),
        (
            "PriorityUsageResetPeriod",
            re.compile("none|now|daily|weekly|monthly|quarterly|yearly", re.IGNORECASE),
            "none or now or daily or weekly or monthly or quarterly or yearly",
        ),
    )
    for name in names.split()
}
"""Values of text that the parser itself judges, by parameter."""


@dataclass(frozen=True)
class Line:
    """A kind of line in slurm.conf.

    Attributes:
        what: What its parameters are of, in words.
        parameters: Their names, with the kind of their value.
        reserved: Those in lower case that ParallelCluster sets itself.
        place: Where the settings have them.
    """

    what: str
    parameters: Mapping[str, str]
    reserved: frozenset[str] = frozenset()
    place: str = ""


CLUSTER = Line("the cluster", parameters.CLUSTER, slurm.RESERVED_CLUSTER_SETTINGS, "slurm.custom_settings")
QUEUE = Line("a partition", parameters.PARTITION, slurm.RESERVED_QUEUE_SETTINGS, "a queue's custom_slurm_settings")
COMPUTE_RESOURCE = Line(
    "nodes",
    parameters.NODE,
    slurm.RESERVED_COMPUTE_RESOURCE_SETTINGS,
    "overrides of a compute resource, CustomSlurmSettings",
)
_NAMED = {
    "nodename": Line("nodes", parameters.NODE),
    "partitionname": Line("a partition", parameters.PARTITION),
    "nodeset": Line("a set of nodes", parameters.NODE_SET),
    "downnodes": Line("nodes that are down", parameters.DOWN_NODES),
}
"""Parameters of the cluster whose value is a name with parameters of its own behind it, on one line."""


def violations(settings: Mapping[str, object], line: Line) -> Iterator[Violation]:
    """Yield which settings ParallelCluster or Slurm refuses; paths start at their names. Slurm ignores case."""
    yield from reserved(settings, line.reserved)
    for name, value in settings.items():
        if name.lower() in line.reserved:
            continue
        if line is CLUSTER and name.lower() in _NAMED:
            yield from _named_violations(name, str(value))
        else:
            yield from _violations((name,), name, str(value), line)


def line_violations(settings: Mapping[str, object]) -> Iterator[Violation]:
    """Yield the same of settings of the cluster that ParallelCluster writes on one line.

    Those beside a name of nodes, a partition or a set of nodes are of that.
    """
    name = named(settings)
    if name is None or len(settings) == 1:
        yield from violations(settings, CLUSTER)
        return
    for key, value in settings.items():
        if key != name:
            yield from _violations((key,), key, str(value), _NAMED[name.lower()])


def named(settings: Iterable[str]) -> str | None:
    """Return which of the settings on a line is a name that the others are of; None: each is by itself."""
    return next((name for name in settings if name.lower() in _NAMED), None)


def reserved(settings: Iterable[str], names: frozenset[str]) -> Iterator[Violation]:
    """Yield which settings have one of the names, which are in lower case."""
    for name in settings:
        if name.lower() in names:
            yield Violation((name,), name, "any parameter that ParallelCluster does not set itself", "reserved")


def _named_violations(name: str, value: str) -> Iterator[Violation]:
    """Check a line such as ``NodeName=x CPUs=4``."""
    of, rest, line = value.partition(" ")[0], value.partition(" ")[2].strip(), _NAMED[name.lower()]
    pairs = list(_PAIR.finditer(rest))
    if not _VALUE.fullmatch(of) or _PAIR.sub("", rest).strip():
        yield Violation((name,), value, "a name, then PARAMETER=VALUE with spaces between", _SLURM)
    for pair in pairs:
        yield from _violations((name,), pair[1], pair[2], line)


def _violations(path: Path, name: str, value: str, line: Line) -> Iterator[Violation]:
    known = next((each for each in line.parameters if each.lower() == name.lower()), None)
    if known is None:
        yield Violation(path, name, f"a parameter of {line.what}", _reason(name, line))
    elif not is_token(value) and (allowed := _allowed(known, value, line.parameters[known])):
        yield Violation(path, value, allowed, f"{known}: {_SLURM}")


def _reason(name: str, line: Line) -> str:
    """Return why a parameter is unknown: it is of another kind of line, or looks like one that is known."""
    for other in (CLUSTER, QUEUE, COMPUTE_RESOURCE):
        if other is not line and name.lower() in map(str.lower, other.parameters):
            return f"{name} is one of {other.what}: {other.place}"
    settable = {each.lower(): each for each in line.parameters if each.lower() not in line.reserved}
    close = [settable[each] for each in get_close_matches(name.lower(), settable, n=1, cutoff=0.8)]
    return f"did you mean {close[0]}? {_SLURM}" if close else f"unknown to {_SLURM}"


def _allowed(name: str, value: str, kind: str) -> str:
    """Return what is allowed instead of a value; empty: it is allowed."""
    if name == "SchedulerParameters":  # the stack writes the list itself, without spaces
        value = re.sub(r"\s*,\s*", ",", value.strip())
    if not _VALUE.fullmatch(value):
        return 'text without spaces, # and line ends, and no \\ at its end; with spaces: in "..."'
    text = value.removeprefix('"').removesuffix('"').lower()
    if kind == "boolean":
        return "" if text in _YES + _NO else "YES or NO"
    if kind in _NUMBERS:
        digits = text if kind == "uint16" else text.removesuffix("k")
        is_number = _NUMBER.fullmatch(digits) and int(digits, 0 if digits.startswith("0x") else 10) <= _NUMBERS[kind]
        return "" if is_number or text in _ENDLESS else f"0 to {_NUMBERS[kind]} or UNLIMITED"
    pattern, words = _CHOICES.get(name, (None, ""))
    return "" if pattern is None or pattern.fullmatch(text) else words
