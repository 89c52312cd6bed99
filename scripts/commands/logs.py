"""Show logs of a node, a file or a job of the cluster, those of terminated nodes included.

WHAT is head-node (the default), an instance id, an address or ip-10-0-1-2, Slurm's name of a node such as
trn1-dy-trn1-32xl-3, or a kind of --list: slurmctld, clustermgtd, slurm_resume, cfn-init, slurmd, cloud-init-output and
so on; "health" selects the lines of the health checks in slurmctld's log. --job shows the output file of a job and the
logs of its nodes. Lines of several files are sorted by time, which is UTC.

Exit code: 0, 1: there are no such logs, 2: arguments, settings or credentials cannot be used, 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import re
from datetime import timedelta

from scripts import command

EXAMPLES = """\
  python -m scripts logs trn1-16                                the head node's last 100 lines
  python -m scripts logs trn1-16 slurmctld --follow             one file, and new lines
  python -m scripts logs trn1-16 trn1-dy-trn1-32xl-3 --since 2h --lines 1000
  python -m scripts logs trn1-16 slurmd --grep 'ultracluster:'  all nodes' lines that contain it
  python -m scripts logs trn1-16 --job 12 --follow              a job's output and its nodes' slurmd
  python -m scripts logs trn1-16 --list                         the nodes and kinds of logs
"""
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    logs = command.parser("logs", __doc__, EXAMPLES)
    logs.add_argument("what", metavar="WHAT", nargs="?", help="a node or a kind (default: head-node)")
    logs.add_argument("--job", type=_job, metavar="JOB", help="output and nodes' slurmd of a job: 12, 12_3 or a name")
    logs.add_argument("--follow", action="store_true", help="print new lines until Ctrl-C")
    logs.add_argument(
        "--since",
        type=_age,
        metavar="30m",
        help="how far back, in s, m, h or d (default: the hour before the newest line, of a job 7d)",
    )
    logs.add_argument("--grep", default="", metavar="TEXT", help="only lines that contain it, as it is")
    logs.add_argument("--lines", type=_positive, default=100, metavar="N", help="the last N of them (default: 100)")
    logs.add_argument("--list", action="store_true", help="list the nodes and kinds of logs")
    return logs


def main() -> int:
    """Do what the command line asks for, and return the exit code."""
    given = parser()
    parsed = given.parse_args()
    if sum((parsed.what is not None, parsed.job is not None, parsed.list)) > 1:
        given.error("got more than one of WHAT, --job and --list; allowed: one")
    parsed.what = parsed.what or "head-node"
    from scripts.logs.show import program

    return command.run(parsed, program)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text}; allowed: a whole number above 0")
    return int(text)


def _job(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d*(_\d+)?|[A-Za-z][\w.+-]*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"got {text}; allowed: a job's number, 12_3 of an array, or a job's name")
    return text


def _age(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if not match:
        raise argparse.ArgumentTypeError(f"got {text}; allowed: a number and s, m, h or d, such as 30m")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
