"""`bert.fetch`: whole, interrupted, damaged; with the real AWS command line and an emulated S3."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bert.corpus import GeneratedCorpus, Rows
from bert.fetch import BUCKET, PREFIX, VOCABULARY, main
from tests.training.programs.bert.shard_files import write_shard
from ultracluster_job import files

ROOT = Path(__file__).parents[4]
AWS = ROOT / ".venv-pcluster/bin/aws"
MOTO_SERVER = ROOT / ".venv/bin/moto_server"
NAME = "bert_pretrain_wikicorpus_tokenized_hdf5_seqlen128"
ROWS, SHARDS = 100, 4
ACCOUNT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-2"}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("published") / NAME
    directory.mkdir()
    for number in range(SHARDS):
        content = GeneratedCorpus(number, VOCABULARY, 128, 20).read(Rows(0, 0, ROWS))
        write_shard(directory / f"wikicorpus_training_{number}.hdf5", content)
    return directory


@pytest.fixture(scope="module")
def archive(shards: Path) -> Path:
    path = shards.with_suffix(".tar")
    with tarfile.open(path, "w") as tar:
        tar.add(shards, shards.name)
        tar.add(shards / "wikicorpus_training_0.hdf5", f"{shards.name}/wikicorpus_test_0.hdf5")
    return path


@pytest.fixture(scope="module")
def endpoint(archive: Path) -> Iterator[str]:
    """An emulated S3 with the public bucket."""
    server = subprocess.Popen(
        [MOTO_SERVER, "-H", "127.0.0.1", "-p", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr
        url = next(match[0] for line in server.stderr if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
        environment = {**os.environ, **ACCOUNT, "AWS_ENDPOINT_URL": url}
        location = "LocationConstraint=us-west-2"
        for command in (
            ["s3api", "create-bucket", "--bucket", BUCKET, "--create-bucket-configuration", location],
            ["s3", "cp", str(archive), f"s3://{BUCKET}/{PREFIX}/{NAME}.tar", "--acl", "public-read"],
        ):
            subprocess.run([AWS, *command], check=True, env=environment, stdout=subprocess.DEVNULL)
        yield url
    finally:
        server.terminate()
        server.communicate()


@pytest.fixture
def output(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory on a node, which has the AWS command line, and no credentials."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("PATH", str(AWS.parent), prepend=os.pathsep)
    (tmp_path / "fsx").mkdir()
    return tmp_path / "fsx"


def fetch(output: Path, *options: str) -> int:
    return main(["--output", str(output), *options])


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.hdf5")}


def test_the_published_shards_come_whole_and_once(
    output: Path, shards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetch(output) == 0
    printed = capsys.readouterr().out
    assert f"{output / NAME}: {SHARDS} shards, {SHARDS * ROWS:,} sequences" in printed
    assert "1 shards of the archive are not to train on, and were left out" in printed
    assert contents(output / NAME) == contents(shards)
    (output / f".{NAME}.fetching").mkdir()
    assert fetch(output) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert [path.name for path in output.iterdir()] == [NAME]
    assert fetch(output, "--phase", "2") == 1
    assert "Not Found" in capsys.readouterr().err


def test_a_fetch_that_failed_is_repeated(
    output: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as nowhere:
        nowhere.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        assert fetch(output) == 1
    assert re.search(r"127\.0\.0\.1:9.*\nNot finished\.", capsys.readouterr().err)
    (output / f".{NAME}.fetching/archive.tar.1234abcd").touch()  # of a download that was killed
    assert fetch(output) == 0
    assert [path.name for path in output.iterdir()] == [NAME]


def test_an_archive_that_is_whole_is_not_fetched_again(
    output: Path, archive: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = shutil.disk_usage(output)._replace(free=archive.stat().st_size)  # not enough for the archive, too
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert fetch(output) == 2
    assert re.search(r"^--output: got \S+, with 0\.0 GB free; allowed: 0\.0 GB or more", capsys.readouterr().err)
    there = output / f".{NAME}.fetching/archive.tar"
    there.write_bytes(b"x" * archive.stat().st_size)
    assert fetch(output) == 1
    assert "came damaged" in capsys.readouterr().err
    assert (there.exists(), (output / NAME).exists()) == (False, False)
    shutil.copy(archive, there)
    assert fetch(output) == 0


def test_one_fetch_at_a_time(output: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(files, "_LOCK_TIMEOUT", 0)
    work = output / f".{NAME}.fetching"
    work.mkdir()
    with (work / files.LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert fetch(output) == 2
    assert "where another fetch is at work" in capsys.readouterr().err
