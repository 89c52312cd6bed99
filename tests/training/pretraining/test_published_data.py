"""`pretraining.prepare fetch`: whole, interrupted, damaged; once with the real AWS command line and an emulated S3."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from training.pretraining import files, published_data
from training.pretraining.prepare import main

ROOT = Path(__file__).parents[3]
AWS = ROOT / ".venv-pcluster/bin/aws"
MOTO_SERVER = ROOT / ".venv/bin/moto_server"
NAME = "bert_pretrain_wikicorpus_tokenized_hdf5_seqlen128"
ROWS, SHARDS = 2500, 4
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


AWS_FAKE = """\
#!/bin/bash
# aws s3api head-object|s3 cp: the public bucket, of which `archive` is the only object.
echo "$1" >>calls
if [[ $1 == s3api ]]; then stat --format=%s archive; exit; fi
[[ ! -e no-network ]] || { : >"$4.1234abcd"; echo "the network is gone" >&2; exit 1; }
cp archive "$4"
"""


class S3:
    """The public bucket, and the AWS command line that reads it."""

    def __init__(self, directory: Path, archive: Path) -> None:
        self._directory = directory
        shutil.copy(archive, directory / "archive")
        (directory / "aws").write_text(AWS_FAKE.replace("#!/bin/bash", f"#!/bin/bash\ncd {directory}"))
        (directory / "aws").chmod(0o755)

    def fail(self, failing: bool) -> None:
        """Let downloads fail from now on, or no longer."""
        (self._directory / "no-network").touch() if failing else (self._directory / "no-network").unlink()

    @property
    def downloads(self) -> int:
        """How often the archive was asked for."""
        return (self._directory / "calls").read_text().splitlines().count("s3")


@pytest.fixture
def s3(archive: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> S3:
    (tmp_path / "s3").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "s3"), prepend=os.pathsep)
    return S3(tmp_path / "s3", archive)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "fsx").mkdir()
    return tmp_path / "fsx"


def fetch(output: Path, *options: str) -> int:
    return main(["fetch", "--output", str(output), *options])


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
    printed = capsys.readouterr().out
    assert f"{output / NAME}: {SHARDS} shards, {SHARDS * ROWS:,} sequences" in printed
    assert "1 shards of the archive are not to train on, and were left out" in printed
    assert contents(output / NAME) == contents(shards)
    (output / f".{NAME}.fetching").mkdir()
    assert fetch(output) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert [path.name for path in output.iterdir()] == [NAME]
    assert s3.downloads == 1


def test_a_fetch_that_failed_is_repeated(s3: S3, output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    s3.fail(True)
    assert fetch(output) == 1
    assert "the network is gone\nNot finished." in capsys.readouterr().err
    s3.fail(False)
    assert fetch(output) == 0
    assert [path.name for path in output.iterdir()] == [NAME]


def test_an_archive_that_is_whole_is_not_fetched_again(
    s3: S3, output: Path, archive: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = output / f".{NAME}.fetching"
    work.mkdir()
    damaged = work / "archive.tar"
    damaged.write_bytes(b"x" * archive.stat().st_size)
    assert fetch(output) == 1
    assert "came damaged" in capsys.readouterr().err
    assert (damaged.exists(), (output / NAME).exists()) == (False, False)
    shutil.copy(archive, damaged)
    usage = shutil.disk_usage(output)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=archive.stat().st_size))
    assert fetch(output) == 0
    assert s3.downloads == 0


def test_without_room_nothing_is_fetched(
    s3: S3, output: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = shutil.disk_usage(output)._replace(free=15_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert fetch(output) == 2
    assert re.search(r"^--output: got \S+, with 0\.0 GB free; allowed: 0\.0 GB or more", capsys.readouterr().err)
    assert s3.downloads == 0


@pytest.mark.usefixtures("s3")
def test_one_fetch_at_a_time(output: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(files, "_LOCK_TIMEOUT", 0)
    work = output / f".{NAME}.fetching"
    work.mkdir()
    with (work / files.LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert fetch(output) == 2
    assert "where another fetch is at work" in capsys.readouterr().err
