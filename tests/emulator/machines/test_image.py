"""The root directory that machines start from: when it is made, and when it is deleted."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from emulator.machines import image


def _complete(directory: Path) -> None:
    (directory / "etc").mkdir()
    (directory / "etc/os-release").write_text("complete", encoding="utf-8")


def test_it_is_made_once(tmp_path: Path) -> None:
    made = []

    def make(directory: Path) -> None:
        made.append(directory)
        _complete(directory)

    for _ in range(2):
        directory = image.cached(tmp_path, "0" * 16, make)
        assert (directory / "etc/os-release").exists()
    assert len(made) == 1


def test_an_interrupted_set_up_starts_again_and_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(directory: Path) -> None:
        (directory / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        image.cached(tmp_path, "0" * 16, interrupted)
    directory = image.cached(tmp_path, "0" * 16, _complete)
    assert [path.name for path in directory.iterdir()] == ["etc"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0" * 16, "lock"]


def test_what_an_interrupted_set_up_leaves_goes_with_the_next_use_which_says_so(tmp_path: Path) -> None:
    image.cached(tmp_path, "0" * 16, _complete)
    (tmp_path / "new-1").mkdir()
    said: list[str] = []
    image.cached(tmp_path, "0" * 16, _complete, said.append)
    assert said == [f"{tmp_path}/new-1, which an interrupted set-up has left, is deleted."]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0" * 16, "lock"]


def test_older_ones_go_unless_a_process_uses_them_and_nothing_else_does(tmp_path: Path) -> None:
    for name in ("a" * 16, "b" * 16, "site"):
        (tmp_path / name).mkdir()
    used = os.open(tmp_path / ("b" * 16), os.O_RDONLY)
    try:
        fcntl.flock(used, fcntl.LOCK_SH)
        image.cached(tmp_path, "0" * 16, _complete)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["0" * 16, "b" * 16, "lock", "site"]
    finally:
        os.close(used)
    image.cached(tmp_path, "0" * 16, _complete)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0" * 16, "lock", "site"]


def test_the_key_is_another_one_with_anything_that_it_depends_on(tmp_path: Path) -> None:
    file, link = tmp_path / "fake", tmp_path / "link"
    file.write_text("text", encoding="utf-8")
    link.symlink_to("fake")
    keys = [image.key_of(iter([file, link]), "trixie"), image.key_of(iter([file, link]), "sid")]
    file.chmod(0o755)
    keys.append(image.key_of(iter([file, link]), "trixie"))
    file.write_text("other", encoding="utf-8")
    keys.append(image.key_of(iter([file, link]), "trixie"))
    link.unlink()
    link.symlink_to("elsewhere")
    keys.append(image.key_of(iter([file, link]), "trixie"))
    assert len(set(keys)) == len(keys)
    assert keys[-1] == image.key_of(iter([file, link]), "trixie")


@pytest.mark.slow
@pytest.mark.system
def test_the_real_one_has_slurm_and_the_node_daemons_of_parallelcluster() -> None:
    root = image.prepare()
    commands = """
        set -e
        export PATH=/opt/slurm/bin:/opt/slurm/sbin:/opt/parallelcluster/bin:$PATH
        slurmctld -V; slurmd -V; munged --version; aws --version
        python3 -c 'import boto3, slurm_plugin.clustermgtd, sys; print(sys.version_info[:2])'
        type systemctl slurm_resume slurm_suspend computemgtd sudo
        id --name --user 1000
    """
    done = subprocess.run(
        ["chroot", str(root), "bash", "-c", commands], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("slurm-wlm 24.11")
    assert done.stdout.endswith("ubuntu\n")
