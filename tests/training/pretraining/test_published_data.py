"""`pretraining.prepare fetch`: whole, interrupted, damaged; once with the real AWS command line and an emulated S3."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from training.pretraining import published_data
from training.pretraining.prepare import main
from training.pretraining.published_data import FetchError

ROOT = Path(__file__).parents[3]
AWS = ROOT / ".venv-pcluster/bin/aws"
MOTO_SERVER = ROOT / ".venv/bin/moto_server"
NAME = "bert_pretrain_wikicorpus_tokenized_hdf5_seqlen128"
ROWS, SHARDS = 2500, 4
PART_BYTES = 8 * 1024**2
"""Of the AWS command line's own uploads."""
PIECE_BYTES = 4 * 1024**2
PIECES = 3
ACCOUNT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-2"}


def write_shard(path: Path, seed: int) -> None:
    words = np.random.default_rng(seed).integers(0, 30_522, (ROWS, 128), dtype=np.int32)
    with h5py.File(path, "w") as file:
        file["input_ids"] = words
        file["input_mask"] = np.ones((ROWS, 128), np.int8)
        file["segment_ids"] = np.zeros((ROWS, 128), np.int8)
        file["masked_lm_positions"] = words[:, :20] % 128
        file["masked_lm_ids"] = words[:, :20]
        file["next_sentence_labels"] = np.zeros(ROWS, np.int8)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("published") / NAME
    directory.mkdir()
    for number in range(SHARDS):
        write_shard(directory / f"wikicorpus_training_{number}.hdf5", number)
    return directory


@pytest.fixture(scope="module")
def archive(shards: Path) -> Path:
    path = shards.with_suffix(".tar")
    with tarfile.open(path, "w") as tar:
        tar.add(shards, shards.name)
        tar.add(shards / "wikicorpus_training_0.hdf5", f"{shards.name}/wikicorpus_test_0.hdf5")
    return path


class S3:
    """The public bucket, with the archive sent in parts under any name.

    Attributes:
        gets: How often a piece was asked for.
        fail_at: From which request for a piece on the network is gone.
    """

    def __init__(self, archive: Path) -> None:
        self._content = archive.read_bytes()
        parts = [self._content[at : at + PART_BYTES] for at in range(0, len(self._content), PART_BYTES)]
        digests = b"".join(hashlib.md5(part, usedforsecurity=False).digest() for part in parts)
        self._etag = f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"
        self.gets = 0
        self.fail_at = 10**6

    def aws(self, *arguments: str, region: str | None) -> dict[str, Any]:
        """What ``published_data._aws`` answers."""
        operation, options = arguments[0], dict(zip(arguments[1::2], arguments[2::2], strict=False))
        if operation == "head-bucket":
            return {"BucketRegion": "us-west-2"}
        if operation == "head-object":
            size = PART_BYTES if "--part-number" in options else len(self._content)
            return {"ContentLength": size, "ETag": f'"{self._etag}"'}
        self.gets += 1
        if self.gets >= self.fail_at:
            raise FetchError("the network is gone")
        assert (operation, options["--if-match"]) == ("get-object", self._etag)
        first, last = map(int, options["--range"].removeprefix("bytes=").split("-"))
        Path(arguments[-1]).write_bytes(self._content[first : last + 1])
        return {}


@pytest.fixture
def s3(archive: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> S3:
    s3 = S3(archive)
    monkeypatch.setattr(published_data, "_aws", s3.aws)
    monkeypatch.setattr(published_data, "PIECE_BYTES", PIECE_BYTES)
    monkeypatch.setattr(published_data, "_PIECES_AT_ONCE", 1)
    (tmp_path / "aws").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("AWS_REGION", raising=False)
    return s3


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "fsx").mkdir()
    return tmp_path / "fsx"


def fetch(output: Path, *options: str) -> int:
    return main(["fetch", "--output", str(output), *options])


def pieces(output: Path) -> list[Path]:
    return sorted((output / f".{NAME}.fetching/pieces").glob("?????"))


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.hdf5")}


@pytest.fixture
def emulated_s3(archive: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = subprocess.Popen(
        [MOTO_SERVER, "-H", "127.0.0.1", "-p", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr
        url = next(match[0] for line in server.stderr if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setenv("PATH", str(AWS.parent), prepend=os.pathsep)
        monkeypatch.setattr(published_data, "PIECE_BYTES", PIECE_BYTES)

        def aws(*arguments: str) -> None:
            environment = {**os.environ, **ACCOUNT}
            subprocess.run([AWS, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL)

        location = "LocationConstraint=us-west-2"
        aws("s3api", "create-bucket", "--bucket", "neuron-s3", "--create-bucket-configuration", location)
        aws("s3", "cp", str(archive), f"s3://{published_data.BUCKET}/{published_data.PREFIX}/{NAME}.tar")
        yield
    finally:
        server.terminate()
        server.communicate()


@pytest.mark.usefixtures("emulated_s3")
def test_the_published_shards_come_by_the_real_command_line(output: Path, shards: Path) -> None:
    assert fetch(output) == 0
    assert contents(output / NAME) == contents(shards)
    assert fetch(output.parent / "other", "--phase", "2") == 1, "no such object"


def test_the_published_shards_come_whole_and_once(
    s3: S3, output: Path, shards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetch(output) == 0
    told = capsys.readouterr().out
    assert f"{output / NAME}: {SHARDS} shards, {SHARDS * ROWS:,} sequences" in told
    assert "1 shards of the archive are not to train on, and were left out" in told
    assert contents(output / NAME) == contents(shards)
    assert [path.name for path in output.iterdir()] == [NAME]
    assert s3.gets == PIECES
    (output / f".{NAME}.fetching").mkdir()
    assert fetch(output) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert [path.name for path in output.iterdir()] == [NAME]
    assert s3.gets == PIECES


def test_a_fetch_that_failed_continues(s3: S3, output: Path, shards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    s3.fail_at = 3
    assert fetch(output) == 1
    assert "the network is gone\nNot finished. What is done is kept" in capsys.readouterr().err
    assert (len(pieces(output)), (output / NAME).exists()) == (2, False)
    pieces(output)[1].rename(pieces(output)[1].with_suffix(".part"))  # as one that was killed leaves it
    s3.gets, s3.fail_at = 0, 10
    assert fetch(output) == 0
    assert s3.gets == PIECES - 1
    assert contents(output / NAME) == contents(shards)


def test_what_came_damaged_is_reported_and_fetched_again(
    s3: S3, output: Path, shards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    s3.fail_at = 3
    assert fetch(output) == 1
    s3.fail_at = 100
    damaged = bytearray(pieces(output)[1].read_bytes())
    damaged[PIECE_BYTES // 2] ^= 1
    pieces(output)[1].write_bytes(damaged)
    assert fetch(output) == 1
    assert "came damaged (its checksum is not its ETag" in capsys.readouterr().err
    assert (pieces(output), (output / NAME).exists()) == ([], False)
    assert fetch(output) == 0
    assert contents(output / NAME) == contents(shards)


def test_pieces_of_an_earlier_archive_are_not_mixed_in(
    s3: S3, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    s3.fail_at = 3
    assert fetch(output) == 1
    notes = output / f".{NAME}.fetching/archive.json"
    notes.write_text(json.dumps({**json.loads(notes.read_text()), "etag": "0123-2"}))
    s3.gets, s3.fail_at = 0, 10
    assert fetch(output) == 0
    assert "is another one now" in capsys.readouterr().out
    assert s3.gets == PIECES


def test_without_room_nothing_is_fetched(
    s3: S3, output: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = shutil.disk_usage(output)._replace(free=15_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert fetch(output) == 2
    assert re.search(r"^--output: got \S+, with 0\.0 GB free; allowed: 0\.0 GB or more", capsys.readouterr().err)
    assert s3.gets == 0


@pytest.mark.usefixtures("s3")
def test_one_fetch_at_a_time(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = output / f".{NAME}.fetching"
    work.mkdir()
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert fetch(output) == 2
    assert "where another fetch is at work" in capsys.readouterr().err


def test_another_region_costs_what_comes_through_the_nat_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The Region is that of the environment, or of the cluster."""
    facts = tmp_path / "cfnconfig"
    facts.write_text("stack_name=trn1\ncfn_region=us-east-1\n")
    monkeypatch.setattr(published_data, "_CLUSTER_FACTS", facts)
    monkeypatch.delenv("AWS_REGION", raising=False)
    archive = published_data.Archive("key", 20_000_000_000, "a", 1)
    published_data._tell_way(archive, "us-west-2")
    assert (
        "You are in us-east-1: from another, it comes through the NAT gateway, about $0.90" in capsys.readouterr().out
    )
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    published_data._tell_way(archive, "us-west-2")
    assert "it comes through the S3 gateway endpoint of the VPC, which is free" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("etag", "part_bytes", "comparable"), [("a", 10, True), ("a-1", 10, True), ("a-2", 5, True), ("a-2", 4, False)]
)
def test_an_etag_can_be_compared_if_parts_have_one_size(etag: str, part_bytes: int, comparable: bool) -> None:
    assert published_data.Archive("key", 10, etag, part_bytes).comparable is comparable
