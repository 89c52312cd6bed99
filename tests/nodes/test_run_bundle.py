"""run_bundle.sh, run by bash as on a node: with fakes of the AWS command line and of the pauses."""

import os
import stat
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fake_commands import write_commands

RUNNER = Path(__file__).parents[2] / "constructs" / "ultracluster" / "run_bundle.sh"
ADDRESS = "s3://assets/0123456789abcdef.zip"
LIMITS = "--cli-connect-timeout 5 --cli-read-timeout 10"
ENTRY = """\
here=$(dirname "$0")
source "$here/lib/common.sh"
printf '<%s>' "$@"
echo "to stderr" >&2
exit "${code:-0}"
"""
FILES = {"node.sh": ENTRY, "lib/common.sh": "echo sourced\n", "lib/table.txt": "a b\n"}


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node whose S3 holds a bundle; `failures` is how often it cannot be fetched, `calls` and `sleeps` are told."""
    fakes = {
        "aws": """
            echo "$*" >>"$here/calls"
            left=$(cat "$here/failures" 2>/dev/null || echo 0)
            if ((left > 0)); then echo $((left - 1)) >"$here/failures"; echo "AccessDenied" >&2; exit 1; fi
            cp "$here/bundle.zip" "${@: -1}"
            """,
        "sleep": 'echo "$1" >>"$here/sleeps"',
    }
    write_commands(tmp_path, fakes)
    upload(tmp_path, FILES)
    return tmp_path


def upload(node: Path, files: Mapping[str, str]) -> None:
    with zipfile.ZipFile(node / "bundle.zip", "w") as bundle:
        for name, text in files.items():
            bundle.writestr(name, text)


def run(
    node: Path, *arguments: str, address: str = ADDRESS, script: str = "node.sh", code: int = 0
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(RUNNER), address, "us-west-2", script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        umask=0o077,
        env={
            "PATH": f"{node}:{os.environ['PATH']}",
            "here": str(node),
            "ULTRACLUSTER_HOME": str(home(node)),
            "code": str(code),
        },
    )


def home(node: Path) -> Path:
    return node / "opt" / "ultracluster"


def contents(node: Path) -> dict[str, object]:
    """Return the target of each link below the home, and the time of change of everything else."""
    return {
        str(path.relative_to(home(node))): path.readlink() if path.is_symlink() else path.stat().st_mtime_ns
        for path in home(node).rglob("*")
    }


def calls(node: Path) -> list[str]:
    return (node / "calls").read_text(encoding="utf-8").splitlines()


def test_a_script_runs_from_its_bundle_with_its_arguments_and_again_without_a_download(node: Path) -> None:
    done = run(node, "a=1", "b=two words", "c='\"$(x)")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "sourced\n<a=1><b=two words><c='\"$(x)>to stderr\n"
    bundle = home(node) / "bundles" / "0123456789abcdef"
    assert (home(node) / "current").readlink() == bundle
    assert [path.name for path in (home(node) / "bundles").iterdir()] == [bundle.name]
    modes = {str(path.relative_to(bundle)): stat.S_IMODE(path.stat().st_mode) for path in bundle.rglob("*")}
    assert modes == {"node.sh": 0o755, "lib": 0o755, "lib/common.sh": 0o755, "lib/table.txt": 0o644}
    before = contents(node)
    done = run(node, "again", code=7)
    assert (done.returncode, done.stdout.startswith("sourced\n<again>")) == (7, True)
    assert contents(node) == before
    [call] = calls(node)
    assert call.startswith(f"s3 cp --region us-west-2 {LIMITS} --only-show-errors {ADDRESS} {home(node)}/")
    assert not (node / "sleeps").exists()


def test_another_bundle_takes_the_place_of_the_current_one(node: Path) -> None:
    run(node)
    upload(node, {"node.sh": "echo new"})
    assert run(node, address="s3://assets/fedcba9876543210.zip").stdout == "new\n"
    assert (home(node) / "current").resolve().name == "fedcba9876543210"
    upload(node, {})
    assert run(node, "back").stdout.startswith("sourced\n<back>")
    assert (home(node) / "current").resolve().name == "0123456789abcdef"
    assert len(calls(node)) == 2


def test_it_gives_up_on_s3_after_five_attempts_and_leaves_no_bundle(node: Path) -> None:
    (node / "failures").write_text("5", encoding="utf-8")
    done = run(node)
    assert (done.returncode, done.stderr) == (10, "")
    assert (node / "sleeps").read_text(encoding="utf-8").split() == ["5", "10", "15", "20", "0"]
    assert done.stdout.splitlines()[-1].startswith(
        f"run_bundle.sh: failed (10): {ADDRESS} could not be fetched in five attempts. To do: see above "
    )
    assert len(calls(node)) == 5
    assert not (home(node) / "bundles" / "0123456789abcdef").exists()
    assert run(node).returncode == 0


def test_a_broken_bundle_is_reported_and_not_kept(node: Path) -> None:
    """The second file's checksum is wrong; the first one is unpacked by then."""
    whole = (node / "bundle.zip").read_bytes()
    (node / "bundle.zip").write_bytes(whole.replace(b"echo sourced", b"echo sOurced"))
    done = run(node)
    assert (done.returncode, done.stderr) == (24, "")
    assert done.stdout.splitlines()[-1].startswith(
        f"run_bundle.sh: failed (24): {ADDRESS} could not be unpacked. To do: see above: "
    )
    assert not (home(node) / "bundles" / "0123456789abcdef").exists()
    (home(node) / "bundles/new/files/old").touch()
    (node / "bundle.zip").write_bytes(whole)
    assert run(node).returncode == 0
    assert not (home(node) / "current/old").exists(), "nothing of a run that did not come to its end"


def test_a_script_that_the_bundle_does_not_have_is_reported_and_the_current_bundle_stays(node: Path) -> None:
    run(node)
    done = run(node, address="s3://assets/fedcba9876543210.zip", script="other.sh")
    assert (done.returncode, done.stderr) == (24, "")
    what = "there is no other.sh in s3://assets/fedcba9876543210.zip"
    assert done.stdout.startswith(f"run_bundle.sh: failed (24): {what}. To do: put it into the directory ")
    assert (home(node) / "current").resolve().name == "0123456789abcdef"
