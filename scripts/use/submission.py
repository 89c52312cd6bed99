"""A program on its way to a cluster, and the call of submit.py there."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.streamed_command import MOST_INPUT, login_command, print_output, start
from scripts.core.errors import UnusableError
from scripts.core.text import echo
from ultracluster.domain import budget
from ultracluster.domain.budget import BudgetSpec
from ultracluster.domain.instance_types import TRAINIUM_TYPES

SECONDS_TO_SUBMIT: Final = 3600
"""How long submit.py may take, which reads the data before anything is submitted."""
_MOST_BYTES: Final = 1024 * 1024
"""Of a program that travels: more never fits into a command, however it is compressed."""
_BRING: Final = "bring it to the file system, by git or scp, and name its path there"
_LEFT_OUT: Final = {".git", ".venv", "__pycache__", "node_modules"}
"""As `training/submit.py` leaves them out."""


def submit(deployment: Deployment, program: str, options: Sequence[str], words: Sequence[str]) -> int:
    """Call the cluster's submit.py, here if Slurm is, else on the head node; return its exit code.

    Ctrl-C cancels it there, too.

    Args:
        deployment: Whose cluster it is.
        program: What to run: a name, a path here or, if there is none, on the cluster.
        options: Those of submit.py.
        words: The program's.

    Raises:
        UnusableError: A program that is here cannot travel, or the cluster has no Neuron SDK, and so no submit.py.
        HeadNodeError: The head node cannot be reached.
    """
    jobs = jobs_directory(deployment)
    further = [*options, *_of_nodes(deployment, options), *(["--", *words] if words else [])]
    if shutil.which("sbatch"):
        here = ["python3", f"{jobs}/submit.py", f"--program={program}", *further]
        return subprocess.run(here, check=False).returncode
    travels = program != "bert" and Path(program).exists()
    given = packed(Path(program)) if travels else b""
    there = ["python3", f"{jobs}/submit.py", f"--program={'-' if travels else program}", *further]
    login = login_command(deployment.system_user, there)
    sent = start(deployment, HeadNode(deployment), login, seconds=SECONDS_TO_SUBMIT, given=given)
    return sent.follow_or_cancel(print_output)


def _entries(path: Path) -> Iterator[Path]:
    """Yield a folder or file and all below it that travels, in an order that follows from the names."""
    yield path
    if path.is_dir() and not path.is_symlink():
        for each in sorted(path.iterdir()):
            if each.name not in _LEFT_OUT:
                yield from _entries(each)


def jobs_directory(deployment: Deployment) -> str:
    """Return where a cluster has the programs of training jobs.

    Raises:
        UnusableError: It has none, for it has no Neuron SDK.
    """
    if deployment.settings.cluster.neuron_sdk is None:
        raise UnusableError(
            f"{deployment.name} has no programs of training jobs: `cluster.neuron_sdk` is null in {deployment.file}",
            f"any job starts by sbatch: ./ultracluster exec {deployment.name} -- sbatch --help",
        )
    return f"{deployment.settings.storage.file_system.mount_dir}/ultracluster/jobs/current"


def packed(path: Path) -> bytes:
    """Return a folder or file as a compressed tar archive; the same content gives the same bytes.

    Raises:
        UnusableError: It has links or special files, cannot be read, or is too large to travel with a command.
    """
    path = path.resolve()
    buffer = io.BytesIO()
    try:
        entries = list(_entries(path))
        size = sum(each.stat().st_size for each in entries if each.is_file())
        if size > _MOST_BYTES:
            raise UnusableError(
                f"--program: got {path} with {size:,} bytes; allowed: {_MOST_BYTES:,} to travel", _BRING
            )
        with tarfile.open(fileobj=buffer, mode="w:xz", format=tarfile.PAX_FORMAT) as archive:
            for each in entries:
                name = Path(path.name) / each.relative_to(path)
                if each.is_symlink() or not (each.is_file() or each.is_dir()):
                    raise UnusableError(f"--program: got {each}, a link or special file; allowed: files and folders")
                member = archive.gettarinfo(each, str(name))
                member.uid = member.gid = member.mtime = 0
                member.uname = member.gname = ""
                if each.is_dir():
                    archive.addfile(member)
                else:
                    with each.open("rb") as file:
                        archive.addfile(member, file)
    except OSError as error:
        raise UnusableError(f"--program: got {path}, which cannot be read: {error}") from None
    if buffer.tell() > MOST_INPUT:
        raise UnusableError(
            f"--program: got {path} with {buffer.tell():,} bytes, compressed; allowed: up to {MOST_INPUT:,}, as they "
            "travel with the command",
            _BRING,
        )
    echo(f"{path.name} travels to the cluster: {buffer.tell():,} bytes", err=True)
    return buffer.getvalue()


def _of_nodes(deployment: Deployment, options: Sequence[str]) -> list[str]:
    """Return what submit.py is told of nodes of the queue that is meant: what is known, and the same of all.

    The price is that of the most expensive type, on demand or as the settings say.
    """
    named = next((each.partition("=")[2] for each in options if each.startswith("--queue=")), None)
    cluster, said = deployment.settings.cluster, list[str]()
    queue = next((each for each in cluster.queues if named in (None, each.name)), None)
    if queue is None:
        return []
    types = {each.instance_type for each in queue.compute_resources}
    spec = deployment.settings.budget or BudgetSpec(monthly_usd=1)
    known = budget.known_prices(spec, deployment.settings.region, sorted(types), cluster.stated_prices)
    if queue.capacity_type != "ONDEMAND":  # whose price the table does not have
        known = {each: price for each, price in known.items() if each in spec.usd_per_hour}
    if known.keys() == types:
        said.append(f"--node-dollars={max(known.values()).normalize():f}")
    kinds = [TRAINIUM_TYPES.get(each) for each in types]
    chips = {kind and (kind.chips * kind.chip.bf16_tflops, kind.listed_cores) for kind in kinds}
    if len(chips) == 1 and (both := next(iter(chips))):
        said += [f"--node-tflops={both[0]}", f"--node-cores={both[1]}"]
    return said
