"""The tokenized Wikipedia that AWS publishes for BERT, from S3 to a directory of shards: ``python -m bert.fetch``.

The archive comes by the ``aws`` command line, which every ParallelCluster node has; it names the file when all of it is
there. What is unpacked gets its name when all of it has been checked. Source:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/tutorials/training/bert.html

Exit code 0: the shards are there; 1: it failed, and the same command continues; 2: it cannot work as asked.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from ultracluster_job import BadInputError, HeldError, lock, synchronize

from .corpus import SUFFIX, Shard, inspect, is_for_training
from .phases import RECIPES

BUCKET = "neuron-s3"
PREFIX = "training_datasets/bert_pretrain_wikicorpus_tokenized_hdf5"
VOCABULARY = 30_522  # of bert-large-uncased, whose tokenizer made the data


class FetchError(RuntimeError):
    """The data did not come, or not whole; the message says what to do."""


def fetch(output: Path, *, sequence_length: int, max_predictions: int) -> tuple[Path, list[Shard]]:
    """Bring the published shards below a directory, unless they are there, and return where, and what they are.

    Raises:
        BadInputError: It cannot work: no ``aws``, no room, other files in the place.
        FetchError: It did not work, or something came damaged; a whole archive is kept for the next call.
    """
    name = f"bert_pretrain_wikicorpus_tokenized_hdf5_seqlen{sequence_length}"
    target, work = output / name, output / f".{name}.fetching"
    layout: dict[str, Any] = {
        "sequence_length": sequence_length,
        "max_predictions": max_predictions,
        "vocabulary": VOCABULARY,
    }
    if target.exists():
        shards, problems = inspect(target, **layout)
        if problems:
            raise BadInputError(
                [*problems, f"--output: got {output}, with {name} in it; allowed: sound shards or none"]
            )
        shutil.rmtree(work, ignore_errors=True)  # left by a call that was killed in its last moment
        print(f"{target} is there; nothing to do", flush=True)
        return target, shards
    if not shutil.which("aws"):
        raise BadInputError(["PATH: got no program aws; allowed: the AWS command line, on it"])
    work.mkdir(parents=True, exist_ok=True)
    with _locked(work):
        archive = _download(f"{PREFIX}/{name}.tar", work)
        _unpack(archive, work / "shards")
        shards, problems = inspect(work / "shards", **layout)
        if problems:
            raise FetchError("\n".join(["the archive is whole, but is not what this program reads:", *problems]))
        (work / "shards").rename(target)
        synchronize(output)
        shutil.rmtree(work)
    return target, shards


def _locked(work: Path) -> IO[bytes]:
    """Return what keeps other fetches of the same data out until it is closed."""
    try:
        return os.fdopen(lock(work), "rb")
    except HeldError as error:
        raise BadInputError([f"--output: got {work.parent}, where another fetch is at work ({error})"]) from None


def _aws(*arguments: str, stdout: int | None = None) -> str:
    """Run the AWS command line without credentials, and return what it prints if that is to be piped.

    Raises:
        FetchError: It failed.
    """
    command = ["aws", *arguments, "--no-sign-request"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise FetchError(f"{' '.join(command)}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


def _download(key: str, work: Path) -> Path:
    """Return the archive, fetched unless it is there whole."""
    archive = work / "archive.tar"
    question = ("s3api", "head-object", "--bucket", BUCKET, "--key", key, "--query", "ContentLength")
    size = int(_aws(*question, "--output", "text", stdout=subprocess.PIPE))
    for path in work.glob(f"{archive.name}.*"):  # of a download that was killed
        path.unlink()
    is_whole = archive.exists() and archive.stat().st_size == size
    needed, free = size if is_whole else 2 * size, shutil.disk_usage(work).free
    if free < needed:
        raise BadInputError(
            [f"--output: got {work.parent}, with {free / 1e9:.1f} GB free; allowed: {needed / 1e9:.1f} GB or more, for "
             "the archive and what is in it"]
        )  # fmt: skip
    if not is_whole:
        print(f"s3://{BUCKET}/{key}: {size / 1e9:.1f} GB", flush=True)
        _aws("s3", "cp", f"s3://{BUCKET}/{key}", str(archive))
        if archive.stat().st_size != size:
            raise FetchError(f"{archive.name}: got {archive.stat().st_size} bytes; expected {size}")
    return archive


def _unpack(archive: Path, directory: Path) -> None:
    """Unpack an archive into a directory, but those shards to test with."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    left_out = 0
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = Path(member.name).name
                content = tar.extractfile(member) if member.isfile() and is_for_training(name) else None
                left_out += member.isfile() and name.endswith(SUFFIX) and not content
                if content:
                    with (directory / name).open("xb") as file:
                        shutil.copyfileobj(content, file, 1024**2)
                        file.flush()
                        os.fsync(file.fileno())
    except tarfile.TarError as error:
        archive.unlink()
        raise FetchError(f"the archive came damaged ({error}), and was removed; fetch it again") from None
    if left_out:
        print(f"{left_out} shards of the archive are not to train on, and were left out", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bert.fetch", description=__doc__)
    parser.add_argument("--phase", type=int, choices=(1, 2), default=1, help="1: 128 tokens, 2: 512 (default: 1)")
    parser.add_argument("--output", type=Path, required=True, help="directory on storage that all nodes share")
    options = parser.parse_args(arguments)
    recipe = RECIPES[options.phase, "adamw"]
    try:
        target, shards = fetch(
            options.output, sequence_length=recipe.sequence_length, max_predictions=recipe.max_predictions
        )
        print(f"{target}: {len(shards):,} shards, {sum(shard.rows for shard in shards):,} sequences")
    except BadInputError as error:
        print(error, file=sys.stderr)
        return 2
    except (FetchError, OSError, ValueError) as error:
        print(f"{error}\nNot finished. What is whole is kept for the same command.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped. What is whole is kept for the same command.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
