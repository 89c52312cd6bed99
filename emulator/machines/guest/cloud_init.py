"""cloud-init's part of a boot: what the user data says, and running it.

https://cloudinit.readthedocs.io/en/latest/explanation/format.html. Of the kinds of parts, those that ParallelCluster
uses; of cloud-config, write_files. (bootcmd turns processors off, and these are this computer's.)
"""

from __future__ import annotations

import email
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

from emulator.machines.guest.node import read_yaml

OUTPUT: Final = Path("/var/log/cloud-init-output.log")
_LOG: Final = Path("/var/log/cloud-init.log")
_INSTANCE: Final = Path("/var/lib/cloud/instance")


@dataclass(frozen=True)
class UserData:
    """What the user data of an instance says.

    Attributes:
        boothooks: Scripts that run first.
        files: Files to write: path, text and mode.
        scripts: Scripts that run last, once in the instance's life.
    """

    boothooks: list[str] = field(default_factory=list)
    files: list[tuple[str, str, int]] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)


def parse(text: str) -> UserData:
    """Return what the user data of an instance says; a text without parts is one script."""
    said = UserData()
    message = email.message_from_string(text)
    if not message.is_multipart():
        return UserData(scripts=[text] if text.startswith("#!") else [])
    for part in message.walk():
        content = part.get_payload()
        if part.is_multipart() or not isinstance(content, str):
            continue
        match part.get_content_type():
            case "text/cloud-boothook":
                said.boothooks.append(content)
            case "text/cloud-config":
                files = (read_yaml(content) or {}).get("write_files", [])
                said.files.extend((each["path"], each["content"], int(each["permissions"], 8)) for each in files)
            case "text/x-shellscript":
                said.scripts.append(content)
    return said


def is_first_boot() -> bool:
    """Tell whether the instance's scripts have not run."""
    return not (_INSTANCE / "boot-finished").exists()


def run(said: UserData, console: Callable[[str], object]) -> None:
    """Do what the user data says; what is printed goes to a file and to the console."""
    for number, script in enumerate(said.boothooks):
        _run(_INSTANCE / "boothooks" / f"part-{number:03}", script, console)
    for path, text, mode in said.files:
        _write(Path(path), text, mode)
    _INSTANCE.mkdir(parents=True, exist_ok=True)
    (_INSTANCE / "boot-finished").touch()
    for number, script in enumerate(said.scripts):
        program = _INSTANCE / "scripts" / f"part-{number:03}"
        if code := _run(program, script, console):
            _note("WARNING", f"Failed running {program} [{code}]")
    _note("DEBUG", "Ran user data")


def _run(path: Path, script: str, console: Callable[[str], object]) -> int:
    _note("DEBUG", f"Running command ['{path}']")
    _write(path, script.lstrip("\n"), 0o700)
    process = subprocess.Popen(
        [str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None  # noqa: S101 - stdout=PIPE
    reader = threading.Thread(target=_copy, args=(process.stdout, console), daemon=True)
    reader.start()
    code = process.wait()
    reader.join(1)  # what the script left running may hold it open
    return code


def _copy(lines: IO[str], console: Callable[[str], object]) -> None:
    with OUTPUT.open("a", encoding="utf-8", buffering=1) as file:
        for line in lines:
            file.write(line)
            console(line)


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def _note(level: str, text: str) -> None:
    now = datetime.now(UTC)
    with _LOG.open("a", encoding="utf-8") as file:
        file.write(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03} - subp.py[{level}]: {text}\n")
