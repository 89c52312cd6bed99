"""`pretraining.prepare fetch`: the real AWS command line against an emulated S3, whole, interrupted, damaged."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import pytest

from training.pretraining import published_data
from training.pretraining.prepare import main

ROOT = Path(__file__).parents[3]
AWS = ROOT / ".venv-pcluster/bin/aws"
MOTO_SERVER = ROOT / ".venv/bin/moto_server"
NAME = "bert_pretrain_wikicorpus_tokenized_hdf5_seqlen128"
NAME_512 = NAME.replace("128", "512")
ROWS, SHARDS = 2500, 4
PIECE_BYTES = 4 * 1024**2
PIECES = 3
ACCOUNT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-2"}

FAILING_AWS = f"""\
#!/bin/bash
echo "$2" >>"$CALLS"
if [[ $2 == get-object && -n ${{FAIL_AT:-}} && $(grep -c get-object "$CALLS") -ge $FAIL_AT ]]; then
    [[ -z ${{KILL:-}} ]] || kill -KILL "$PPID"
    echo 'the network is gone' >&2
    exit 255
fi
exec {AWS} "$@"
"""
"""Notes the operation; fails from get-object number FAIL_AT on, or kills who called it."""


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
def endpoint(shards: Path) -> Iterator[str]:
    """An emulated S3 with the published archive, sent in parts; under the name of phase 2 lies the same."""
    archive = shards.with_suffix(".tar")
    with tarfile.open(archive, "w") as tar:
        tar.add(shards, shards.name)
        tar.add(shards / "wikicorpus_training_0.hdf5", f"{shards.name}/wikicorpus_test_0.hdf5")
    server = subprocess.Popen(
        [MOTO_SERVER, "-H", "127.0.0.1", "-p", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr
        url = next(match[0] for line in server.stderr if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
        environment = {**os.environ, **ACCOUNT, "AWS_ENDPOINT_URL": url}

        def aws(*arguments: str) -> None:
            subprocess.run([AWS, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL)

        location = "LocationConstraint=us-west-2"
        aws("s3api", "create-bucket", "--bucket", "neuron-s3", "--create-bucket-configuration", location)
        for name in (NAME, NAME_512):
            aws("s3", "cp", str(archive), f"s3://{published_data.BUCKET}/{published_data.PREFIX}/{name}.tar")
        yield url
    finally:
        server.terminate()
        server.communicate()


class Site(NamedTuple):
    """Where data is fetched to.

    Attributes:
        output: What is given as --output.
        environment: Variables of what fetches.
        calls: File of the operations that S3 was asked for.
    """

    output: Path
    environment: dict[str, str]
    calls: Path

    @property
    def target(self) -> Path:
        return self.output / NAME

    @property
    def pieces(self) -> list[Path]:
        return sorted((self.output / f".{NAME}.fetching/pieces").glob("?????"))

    def gets(self) -> int:
        operations = self.calls.read_text().split() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return operations.count("get-object")


@pytest.fixture
def site(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    stub = tmp_path / "bin/aws"
    stub.parent.mkdir()
    stub.write_text(FAILING_AWS)
    stub.chmod(0o755)
    output = tmp_path / "fsx"
    output.mkdir()
    path = f"{stub.parent}:{os.environ['PATH']}"
    environment = {"AWS_ENDPOINT_URL": endpoint, "PATH": path, "CALLS": str(tmp_path / "calls")}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "FAIL_AT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(published_data, "PIECE_BYTES", PIECE_BYTES)
    return Site(output, {**os.environ, **environment}, tmp_path / "calls")


def fetch(site: Site, *options: str) -> int:
    return main(["fetch", "--output", str(site.output), *options])


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.hdf5")}


def test_the_published_shards_come_whole_and_once(site: Site, shards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fetch(site) == 0
    told = capsys.readouterr().out
    assert f"{site.target}: {SHARDS} shards, {SHARDS * ROWS:,} sequences" in told
    assert "1 shards of the archive are not to train on, and were left out" in told
    assert contents(site.target) == contents(shards)
    assert [path.name for path in site.output.iterdir()] == [NAME]
    assert site.gets() == PIECES
    (site.output / f".{NAME}.fetching").mkdir()
    assert fetch(site) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert [path.name for path in site.output.iterdir()] == [NAME]
    assert not site.calls.exists()


def test_a_fetch_that_failed_goes_on(
    site: Site, shards: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(published_data, "_PIECES_AT_ONCE", 1)
    monkeypatch.setenv("FAIL_AT", "3")
    assert fetch(site) == 1
    assert "the network is gone\nNot finished. What is done is kept" in capsys.readouterr().err
    assert (len(site.pieces), site.target.exists()) == (2, False)
    monkeypatch.delenv("FAIL_AT")
    site.gets()
    assert fetch(site) == 0
    assert site.gets() == PIECES - 2
    assert contents(site.target) == contents(shards)


def test_a_fetch_that_was_killed_goes_on(site: Site, shards: Path) -> None:
    program = (
        "from training.pretraining import prepare, published_data as p; "
        f"p.PIECE_BYTES, p._PIECES_AT_ONCE = {PIECE_BYTES}, 1; "
        f"prepare.main(['fetch', '--output', {str(site.output)!r}])"
    )
    killing = {**site.environment, "FAIL_AT": "2", "KILL": "1"}
    killed = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=killing, check=False)
    assert (killed.returncode, len(site.pieces), site.target.exists()) == (-signal.SIGKILL, 1, False)
    site.gets()
    assert fetch(site) == 0
    assert site.gets() == PIECES - 1
    assert contents(site.target) == contents(shards)


def test_what_came_damaged_is_told_and_fetched_again(
    site: Site, shards: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(published_data, "_PIECES_AT_ONCE", 1)
    monkeypatch.setenv("FAIL_AT", "3")
    assert fetch(site) == 1
    monkeypatch.delenv("FAIL_AT")
    damaged = bytearray(site.pieces[1].read_bytes())
    damaged[PIECE_BYTES // 2] ^= 1
    site.pieces[1].write_bytes(damaged)
    assert fetch(site) == 1
    assert "came damaged (its checksum is not its ETag" in capsys.readouterr().err
    assert (site.pieces, site.target.exists()) == ([], False)
    assert fetch(site) == 0
    assert contents(site.target) == contents(shards)


def test_pieces_of_an_earlier_archive_are_not_mixed_in(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAIL_AT", "3")
    assert fetch(site) == 1
    monkeypatch.delenv("FAIL_AT")
    notes = site.output / f".{NAME}.fetching/archive.json"
    notes.write_text(json.dumps({**json.loads(notes.read_text()), "etag": "0123-2"}))
    site.gets()
    assert fetch(site) == 0
    assert "is another one now" in capsys.readouterr().out
    assert site.gets() == PIECES


def test_an_archive_of_other_things_is_not_taken(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert fetch(site, "--phase", "2") == 1
    assert "dataset input_ids has the shape (2500, 128); allowed: (2500, 512)" in capsys.readouterr().err
    assert not (site.output / NAME_512).exists()


def test_without_room_nothing_is_fetched(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = shutil.disk_usage(site.output)._replace(free=15_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert fetch(site) == 2
    assert re.search(r"^--output: got \S+, with 0\.0 GB free; allowed: 0\.0 GB or more", capsys.readouterr().err)
    assert site.gets() == 0


def test_a_piece_of_another_size_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = published_data.Archive("key", 10, "a", 10)
    monkeypatch.setattr(published_data, "_aws", lambda *arguments, region: Path(arguments[-1]).write_bytes(b"x"))
    with pytest.raises(published_data.FetchError, match="piece 00000: got 1 bytes; expected 10"):
        published_data._fetch_piece(tmp_path / "00000", 0, 9, archive, None)
    assert not (tmp_path / "00000").exists()


def test_one_fetch_at_a_time(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    work = site.output / f".{NAME}.fetching"
    work.mkdir()
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert fetch(site) == 2
    assert "where another fetch is at work" in capsys.readouterr().err


def test_other_things_in_the_place_are_left_alone(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.target.mkdir()
    (site.target / "0.hdf5").write_bytes(b"no HDF5")
    assert fetch(site) == 2
    assert f"--data: shard {site.target}/0.hdf5" in capsys.readouterr().err
    assert (site.target / "0.hdf5").read_bytes() == b"no HDF5"


def test_without_the_aws_command_line(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert fetch(site) == 2
    assert "got no program aws" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("here", "words"),
    [
        ("us-west-2", "This is your Region: it comes through the S3 gateway endpoint of the VPC, which is free"),
        ("us-east-1", "You are in us-east-1: from another, it comes through the NAT gateway, about $0.90"),
    ],
)
def test_the_way_and_its_cost_are_told(
    here: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The Region is that of the environment, or of the cluster."""
    facts = tmp_path / "cfnconfig"
    facts.write_text(f"stack_name=trn1\ncfn_region={here}\n")
    monkeypatch.setattr(published_data, "_CLUSTER_FACTS", facts)
    monkeypatch.delenv("AWS_REGION", raising=False)
    published_data._tell_way(published_data.Archive("key", 20_000_000_000, "a", 1), "us-west-2")
    told = capsys.readouterr().out
    assert "20.0 GB in us-west-2\n" in told
    assert words in told
    monkeypatch.setenv("AWS_REGION", here)
    facts.unlink()
    published_data._tell_way(published_data.Archive("key", 20_000_000_000, "a", 1), "us-west-2")
    assert capsys.readouterr().out == told


@pytest.mark.parametrize(
    ("etag", "part_bytes", "comparable"), [("a", 10, True), ("a-1", 10, True), ("a-2", 5, True), ("a-2", 4, False)]
)
def test_an_etag_can_be_compared_if_parts_have_one_size(etag: str, part_bytes: int, comparable: bool) -> None:
    assert published_data.Archive("key", 10, etag, part_bytes).comparable is comparable
