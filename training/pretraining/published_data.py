"""The tokenized Wikipedia that AWS publishes for BERT, from S3 to a directory of shards.

The archive comes in pieces by the ``aws`` command line, which every ParallelCluster node has. A piece that is there is
not fetched again; what is unpacked gets its name when all of it has been looked at. Source:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/tutorials/training/bert.html
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import files
from .corpus import SUFFIX, Shard, inspect, is_for_training
from .options import BadInputError

BUCKET = "neuron-s3"
PREFIX = "training_datasets/bert_pretrain_wikicorpus_tokenized_hdf5"
PIECE_BYTES = 256 * 1024**2
VOCABULARY = 30_522  # of bert-large-uncased, whose tokenizer made the data
_PIECES_AT_ONCE = 8
_CLUSTER_FACTS = Path("/etc/parallelcluster/cfnconfig")
_NAT_DOLLARS_PER_GB = 0.045
"""US dollars that a NAT gateway takes for a GB in most Regions of the USA (https://aws.amazon.com/vpc/pricing/)."""


class FetchError(RuntimeError):
    """The data did not come, or not whole; the message says what to do."""


@dataclass(frozen=True)
class Archive:
    """The published object.

    Attributes:
        key: Its key in the bucket.
        size: Its bytes.
        etag: Its ETag, without quotes: the MD5 of all of it, or of the MD5s of its parts, and their number.
        part_bytes: Bytes of each part but the last; its size if it was not sent in parts.
    """

    key: str
    size: int
    etag: str
    part_bytes: int

    @property
    def comparable(self) -> bool:
        """Whether all parts but the last have one size, so that the ETag can be worked out."""
        return int(self.etag.partition("-")[2] or 1) == -(-self.size // self.part_bytes)

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """First and last byte of each piece in which it is fetched."""
        return [(first, min(first + PIECE_BYTES, self.size) - 1) for first in range(0, self.size, PIECE_BYTES)]


def fetch(output: Path, *, sequence_length: int, max_predictions: int) -> tuple[Path, list[Shard]]:
    """Bring the published shards below a directory, unless they are there, and return where, and what they are.

    Raises:
        BadInputError: It cannot work: no ``aws``, no room, other files in the place.
        FetchError: It did not work, or something came damaged; what is worth keeping is kept for the next call.
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
    with _alone(work):
        region = _region_of_bucket()
        archive = _describe(f"{PREFIX}/{name}.tar", region)
        _tell_way(archive, region)
        _forget_other_archive(work, archive)
        _check_room(output, work, archive)
        _download(work, archive, region)
        _unpack(work, archive)
        shards, problems = inspect(work / "shards", **layout)
        if problems:
            raise FetchError("\n".join(["the archive is whole, but is not what this program reads:", *problems]))
        (work / "shards").rename(target)
        files.synchronize(output)
        shutil.rmtree(work)
    return target, shards


@contextmanager
def _alone(work: Path) -> Iterator[None]:
    """Keep other fetches of the same data out."""
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BadInputError([f"--output: got {work.parent}, where another fetch is at work"]) from error
        yield


def _aws(*arguments: str, region: str | None) -> dict[str, Any]:
    """Run a command of ``aws s3api`` on the public bucket and return its answer.

    Raises:
        FetchError: It failed.
    """
    options = ("--no-sign-request", "--output", "json", *(("--region", region) if region else ()))
    done = subprocess.run(
        ["aws", "s3api", *arguments, "--bucket", BUCKET, *options],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise FetchError(f"aws s3api {arguments[0]}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _region_of_bucket() -> str | None:
    """Return the bucket's Region, if S3 tells it to the public."""
    try:
        return _aws("head-bucket", region=None).get("BucketRegion")
    except FetchError:
        return None


def _describe(key: str, region: str | None) -> Archive:
    whole = _aws("head-object", "--key", key, region=region)
    part = _aws("head-object", "--key", key, "--part-number", "1", region=region)
    archive = Archive(key, whole["ContentLength"], whole["ETag"].strip('"'), part["ContentLength"])
    if not archive.comparable:
        print(f"The parts of {archive.etag} have no common size: this checksum cannot be compared", flush=True)
    return archive


def _tell_way(archive: Archive, region: str | None) -> None:
    """Say how much comes, from where, and what the way costs."""
    here = os.environ.get("AWS_REGION")
    if not here and _CLUSTER_FACTS.exists():
        facts = dict(line.split("=", 1) for line in _CLUSTER_FACTS.read_text().splitlines() if "=" in line)
        here = facts.get("cfn_region", "").strip("'\"")
    gigabytes = archive.size / 1e9
    print(
        f"s3://{BUCKET}/{archive.key}: {gigabytes:.1f} GB in {region or 'a Region that S3 does not tell'}", flush=True
    )
    if region and region == here:
        print("This is your Region: it comes through the S3 gateway endpoint of the VPC, which is free", flush=True)
    else:
        dollars = f"about ${gigabytes * _NAT_DOLLARS_PER_GB:.2f}"
        print(f"You are in {here or 'an unknown Region'}: from another, it comes through the NAT gateway, {dollars}")


def _forget_other_archive(work: Path, archive: Archive) -> None:
    """Remove the pieces of another object: it was published again, or pieces have another size."""
    notes, wanted = work / "archive.json", {**asdict(archive), "piece_bytes": PIECE_BYTES}
    try:
        known = json.loads(notes.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = None
    if known != wanted:
        if known:
            print("The published archive is another one now: what had come is fetched again", flush=True)
        shutil.rmtree(work / "pieces", ignore_errors=True)
        files.replace(notes, json.dumps(wanted).encode())
    (work / "pieces").mkdir(exist_ok=True)
    for unfinished in (work / "pieces").glob("*.part"):
        unfinished.unlink()
    shutil.rmtree(work / "shards", ignore_errors=True)


def _check_room(output: Path, work: Path, archive: Archive) -> None:
    """Look whether archive and shards find room beside each other."""
    there = sum(path.stat().st_size for path in (work / "pieces").iterdir())
    needed, free = 2 * archive.size - there, shutil.disk_usage(output).free
    if free < needed:
        raise BadInputError(
            [f"--output: got {output}, with {free / 1e9:.1f} GB free; allowed: {needed / 1e9:.1f} GB or more, for the "
             "archive and what is in it"]
        )  # fmt: skip


def _download(work: Path, archive: Archive, region: str | None) -> None:
    """Fetch the pieces that are not there."""
    missing = {
        work / f"pieces/{number:05}": (first, last)
        for number, (first, last) in enumerate(archive.pieces)
        if not (work / f"pieces/{number:05}").exists()
    }
    total = len(archive.pieces)
    if len(missing) < total:
        print(f"{total - len(missing)} of {total} pieces had come before", flush=True)
    with ThreadPoolExecutor(_PIECES_AT_ONCE) as pool:
        fetches = [pool.submit(_fetch_piece, path, *ends, archive, region) for path, ends in missing.items()]
        try:
            for number, done in enumerate(as_completed(fetches), total - len(missing) + 1):
                done.result()
                print(f"piece {number} of {total}", flush=True)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _fetch_piece(path: Path, first: int, last: int, archive: Archive, region: str | None) -> None:
    unfinished = path.with_suffix(".part")
    ends = ("--range", f"bytes={first}-{last}", "--if-match", archive.etag)
    _aws("get-object", "--key", archive.key, *ends, str(unfinished), region=region)
    size = unfinished.stat().st_size
    if size != last - first + 1:
        raise FetchError(f"piece {path.name}: got {size} bytes; expected {last - first + 1}")
    unfinished.rename(path)


def _unpack(work: Path, archive: Archive) -> None:
    """Unpack the pieces into ``shards``, but those to test with, and compare what they are with the ETag."""
    (work / "shards").mkdir()
    reader = _PiecesReader(sorted((work / "pieces").iterdir()), archive.part_bytes)
    damage, left_out = None, 0
    try:
        with tarfile.open(fileobj=io.BufferedReader(reader, 1024**2), mode="r|") as tar:
            for member in tar:
                name = Path(member.name).name
                content = tar.extractfile(member) if member.isfile() and is_for_training(name) else None
                left_out += member.isfile() and name.endswith(SUFFIX) and not content
                if content:
                    with (work / "shards" / name).open("xb") as file:
                        shutil.copyfileobj(content, file, 1024**2)
                        file.flush()
                        os.fsync(file.fileno())
        reader.drain()
    except tarfile.TarError as error:
        damage = str(error)
    if damage is None and archive.comparable and reader.etag(in_parts="-" in archive.etag) != archive.etag:
        damage = f"its checksum is not its ETag, {archive.etag}"
    if damage:
        shutil.rmtree(work / "pieces")
        raise FetchError(f"the archive came damaged ({damage}), and was removed; fetch it again")
    if left_out:
        print(f"{left_out} shards of the archive are not to train on, and were left out", flush=True)


class _PiecesReader(io.RawIOBase):
    """The pieces as one file, read once from its beginning, whose ETag is known at the end."""

    def __init__(self, paths: list[Path], part_bytes: int) -> None:
        self._paths = iter(paths)
        self._file: Any = io.BytesIO()
        self._part_bytes = part_bytes
        self._parts = [hashlib.md5(usedforsecurity=False)]
        self._room = part_bytes  # bytes that the last part still takes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        while count == 0 and (path := next(self._paths, None)):
            self._file.close()
            self._file = path.open("rb")
            count = self._file.readinto(buffer)
        self._digest(memoryview(buffer)[:count])
        return int(count)

    def _digest(self, data: memoryview) -> None:
        while data:
            if not self._room:
                self._parts.append(hashlib.md5(usedforsecurity=False))
                self._room = self._part_bytes
            self._parts[-1].update(data[: self._room])
            data, self._room = data[self._room :], self._room - min(len(data), self._room)

    def drain(self) -> None:
        """Read what follows the last member."""
        while self.read(1024**2):
            pass

    def etag(self, *, in_parts: bool) -> str:
        """Return the ETag that S3 gives an object of these parts, or one that was sent at once.

        https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html
        """
        if not in_parts:
            return self._parts[0].hexdigest()
        parts = b"".join(part.digest() for part in self._parts)
        return f"{hashlib.md5(parts, usedforsecurity=False).hexdigest()}-{len(self._parts)}"
