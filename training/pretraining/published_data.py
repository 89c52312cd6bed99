"""The tokenized Wikipedia that AWS publishes for BERT, from S3 to a directory of shards.

The archive comes by the ``aws`` command line, which every ParallelCluster node has, and is unpacked as it comes. The
directory gets its name when all of it has been checked. Source:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/tutorials/training/bert.html
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import IO

from . import files
from .corpus import SUFFIX, Shard, inspect, is_for_training
from .options import BadInputError

BUCKET = "neuron-s3"
PREFIX = "training_datasets/bert_pretrain_wikicorpus_tokenized_hdf5"
VOCABULARY = 30_522  # of bert-large-uncased, whose tokenizer made the data


class FetchError(RuntimeError):
    """The data did not come, or not whole."""


def fetch(output: Path, *, sequence_length: int, max_predictions: int) -> tuple[Path, list[Shard]]:
    """Bring the published shards below a directory, unless they are there, and return where, and what they are.

    Raises:
        BadInputError: It cannot work: no ``aws``, other files in the place.
        FetchError: It did not work, or something came damaged.
        OSError: There is no room.
    """
    name = f"bert_pretrain_wikicorpus_tokenized_hdf5_seqlen{sequence_length}"
    target, work = output / name, output / f".{name}.fetching"
    layout = {"sequence_length": sequence_length, "max_predictions": max_predictions, "vocabulary": VOCABULARY}
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
        _unpack(f"s3://{BUCKET}/{PREFIX}/{name}.tar", work / "shards")
        shards, problems = inspect(work / "shards", **layout)
        if problems:
            raise FetchError("\n".join(["the archive is whole, but is not what this program reads:", *problems]))
        (work / "shards").rename(target)
        files.synchronize(output)
        shutil.rmtree(work)
    return target, shards


def _locked(work: Path) -> IO[bytes]:
    """Return what keeps other fetches of the same data out until it is closed."""
    try:
        return os.fdopen(files.lock(work), "rb")
    except files.HeldError as error:
        raise BadInputError([f"--output: got {work.parent}, where another fetch is at work ({error})"]) from None


def _unpack(address: str, directory: Path) -> None:
    """Fetch an archive without credentials, and unpack it into a directory, but those shards to test with."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    left_out, damage = 0, ""
    command = ["aws", "s3", "cp", "--no-sign-request", address, "-"]
    print(" ".join(command), flush=True)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as aws:
        try:
            with tarfile.open(fileobj=aws.stdout, mode="r|") as tar:
                for member in tar:
                    name = Path(member.name).name
                    content = tar.extractfile(member) if member.isfile() and is_for_training(name) else None
                    left_out += member.isfile() and name.endswith(SUFFIX) and not content
                    if content:
                        _write(directory / name, content)
            assert aws.stdout is not None  # noqa: S101 - stdout=PIPE
            aws.stdout.read()  # what fills up the archive behind its end
        except tarfile.TarError as error:
            damage = str(error)
    if aws.returncode or damage:
        raise FetchError(f"{address} did not come whole: aws: exit code {aws.returncode}, tar: {damage or 'no error'}")
    if left_out:
        print(f"{left_out} shards of the archive are not to train on, and were left out", flush=True)


def _write(path: Path, content: IO[bytes]) -> None:
    with path.open("xb") as file:
        shutil.copyfileobj(content, file, 1024**2)
        file.flush()
        os.fsync(file.fileno())
