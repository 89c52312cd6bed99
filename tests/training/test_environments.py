"""Environments of users' programs, with the real uv and wheels of this test: no index is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import environments

PROJECT = Path(__file__).parents[2]
UV = PROJECT / ".uv/bin"
RELEASE = "2.28.1-pytorch2.9.0-ubuntu24.04"


def write_wheel(directory: Path, name: str, version: str, requires: str = "") -> None:
    directory.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", f"version = '{version}'\n")
        more = f"Requires-Dist: {requires}\n" if requires else ""
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


class Cluster:
    """A file system with a cluster's environment, which has one package of these tests in version 1, and wheels."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.wheels, self.envs, self._capsys = directory / "wheels", directory / "ultracluster/envs", capsys
        self._patch = patch
        self.envs.mkdir(parents=True)
        patch.setenv("UV_CACHE_DIR", str(directory / "cache"))
        base = directory / f"python/{RELEASE}.build-1"
        for version in ("1", "2"):
            write_wheel(self.wheels, "tool", version)
        write_wheel(self.wheels, "user", "1", "tool")
        uv = str(UV / "uv")
        subprocess.run([uv, "venv", "--python", sys.executable, str(base)], check=True, capture_output=True)
        install = [
            uv,
            "pip",
            "install",
            "--python",
            str(base),
            "--no-index",
            "--find-links",
            str(self.wheels),
            "tool==1",
        ]
        subprocess.run(install, check=True, capture_output=True)
        (base / "installed.txt").write_text("tool==1\n", encoding="utf-8")
        (base.parent / "current").symlink_to(base.name)
        patch.setenv("ULTRACLUSTER_PYTHON", str(base.parent / "current"))
        patch.setenv("PATH", f"{UV}:{os.environ['PATH']}")

    def call(self, *words: str, requirements: str = "") -> tuple[int, str, str]:
        (self.envs.parent / "requirements.txt").write_text(requirements, encoding="utf-8")
        file = [str(self.envs.parent / "requirements.txt")] if words[0] == "create" else []
        self._patch.setattr(sys, "argv", ["environments.py", f"--directory={self.envs}", *words, *file])
        try:
            code = environments.main()
        except SystemExit as end:
            code = int(end.code or 0)
        return (code, *self._capsys.readouterr())

    def create(self, *lines: str, alone: bool = False) -> Path:
        """Make an environment of wheels, and return the link to it."""
        text = "\n".join(["--no-index", f"--find-links {self.wheels}", *lines])
        code, printed, error = self.call("create", *(["--alone"] if alone else []), requirements=text)
        assert code == 0, error
        [name] = {word for word in printed.split() if environments.NAME.fullmatch(word)} or {printed.split()[0]}
        return self.envs / name


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cluster:
    return Cluster(tmp_path, monkeypatch, capsys)


def versions(environment: Path) -> list[str]:
    """Return the versions that a program in an environment sees, and whether the packages are the environment's own."""
    program = "import sys, tool; print(tool.version, tool.__file__.startswith(sys.prefix))"
    done = subprocess.run([environment / "bin/python", "-c", program], capture_output=True, text=True, check=False)
    return done.stdout.split() or [done.stderr.splitlines()[-1]]


def test_another_version_comes_before_the_clusters_and_what_fits_is_the_clusters(cluster: Cluster) -> None:
    other, same = cluster.create("tool==2  # newer"), cluster.create("user")
    assert versions(other) == ["2", "True"]
    assert versions(same) == ["1", "False"]
    assert (same / "requirements.lock").read_text() == "user==1\n"
    assert other.name.startswith(f"{RELEASE}.env-")
    assert versions(Path(os.environ["ULTRACLUSTER_PYTHON"])) == ["1", "True"]


def test_what_was_made_is_there_and_another_release_of_the_cluster_makes_another(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cluster.create("tool==2")
    made = first.resolve()
    assert cluster.create("tool==2", "# a remark", "") == first
    assert first.resolve() == made
    current = Path(os.environ["ULTRACLUSTER_PYTHON"])
    newer = current.parent / "2.29-pytorch2.9.0.build-2"
    newer.symlink_to(current.resolve().name)
    assert cluster.create("tool==1") != first


def test_one_alone_has_nothing_of_the_cluster(cluster: Cluster) -> None:
    alone = cluster.create("user", alone=True)
    assert alone.name.startswith("python.env-")
    assert versions(alone) == ["2", "True"]


def test_what_cannot_be_made_leaves_nothing_and_says_why(cluster: Cluster) -> None:
    code, _, error = cluster.call("create", requirements=f"--no-index\n--find-links {cluster.wheels}\nnothing==9\n")
    assert code == 1
    assert "nothing was not found" in error
    assert [path.name for path in cluster.envs.iterdir() if not path.name.endswith(".lock")] == []


def test_they_are_listed_and_removed(cluster: Cluster) -> None:
    one, two = cluster.create("tool==2"), cluster.create("user")
    (two / "environment.json").write_text("[", encoding="utf-8")
    (cluster.envs / f"{RELEASE}.env-abc").mkdir()  # somebody's folder
    code, printed, _ = cluster.call("list", "--format=json")
    rows = {each["name"]: each for each in json.loads(printed)["environments"]}
    assert (code, set(rows)) == (0, {one.name, two.name})
    assert rows[one.name]["requirements"][-1] == "tool==2"
    assert rows[two.name]["problem"].startswith("JSONDecodeError")
    place = one.resolve()
    assert cluster.call("remove", one.name)[0] == 0
    assert not place.exists()
    assert cluster.call("remove", one.name)[0] == 1


@pytest.mark.parametrize("name", ["../python", "/etc", f"{RELEASE}.env-abc", "a.env-0123456789ab/.."])
def test_nothing_else_is_removed(cluster: Cluster, name: str) -> None:
    assert cluster.call("remove", "--", name)[:1] == (1,)
    assert Path(os.environ["ULTRACLUSTER_PYTHON"]).exists()


def test_a_link_that_leads_elsewhere_is_removed_and_not_what_it_leads_to(cluster: Cluster, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    link = cluster.envs / f"{RELEASE}.env-0123456789ab"
    link.symlink_to(theirs)
    assert cluster.call("remove", link.name)[0] == 0
    assert theirs.exists()


@pytest.mark.parametrize("words", [("--python", "3.11"), ("--alone", "--python", "latest")])
def test_a_version_of_python_that_cannot_be_meant_is_refused(cluster: Cluster, words: tuple[str, ...]) -> None:
    assert cluster.call("create", *words, requirements="tool")[0] == 2


def test_no_requirements_are_refused(cluster: Cluster) -> None:
    assert cluster.call("create", requirements="\n")[0] == 2
    assert not list(cluster.envs.iterdir())
