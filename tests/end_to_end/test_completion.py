"""Completion in real shells: what the Tab key offers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.core import options

pytestmark = pytest.mark.system
_BASH = """
source <(./ultracluster completion bash)
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_ultracluster_completion ./ultracluster
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
_ZSH = """
autoload -U compinit && compinit -u -d {directory}/dump
source <(./ultracluster completion zsh)
compadd() {{ [[ "$*" == *"-a completions"* ]] && print -l -- $completions }}
_describe() {{ print -l -- ${{completions_with_descriptions%%:*}} }}
words=({words}); CURRENT=$#words
_ultracluster_completion
"""
_FISH = """
./ultracluster completion fish | source
complete --do-complete '{line}'
"""


@pytest.fixture(scope="session")
def shells() -> None:
    """Install what Debian has and this machine lacks."""
    missing = [name for name in ("bash", "zsh", "fish") if not shutil.which(name)]
    if missing:
        subprocess.run(["apt-get", "--quiet=2", "update"], check=True, capture_output=True)
        subprocess.run(["apt-get", "--quiet=2", "--yes", "install", *missing], check=True, capture_output=True)


def offered(shell: str, line: str, directory: Path) -> set[str]:
    """Return what a shell offers at the end of a line, in a directory that has a link to the command on its PATH."""
    words = " ".join(f"'{word}'" for word in line.split(" "))
    script = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}[shell].format(words=words, line=line, directory=directory)
    start = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    (directory / "ultracluster").symlink_to(options.ROOT / "ultracluster")
    done = subprocess.run(
        [shell, *start, "-c", script.replace("./ultracluster", line.split(maxsplit=1)[0])],
        cwd=directory,
        env={"PATH": f"{directory}:/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return {each.split("\t")[0] for each in done.stdout.splitlines() if each}


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("./ultracluster dep", {"deploy"}),
        ("ultracluster dep", {"deploy"}),
        ("./ultracluster status tr", {"trn1-16"}),
        ("./ultracluster destroy dev --no-", {"--no-final-backup"}),
        ("./ultracluster fleet scale two-queues --queue trn1-b", {"trn1-b", "trn1-b/trn1-32xl"}),
        ("./ultracluster plan dev --output ", {"text", "json", "markdown"}),
    ],
)
def test_the_tab_key(shells: None, tmp_path: Path, shell: str, line: str, expected: set[str]) -> None:
    assert offered(shell, line, tmp_path) == expected
