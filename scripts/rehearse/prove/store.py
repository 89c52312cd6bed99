"""What a walk continues from, which only its owner can read: the report beside it is for everybody."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import Field

from config.settings import Settings
from scripts.core.document import Document
from scripts.core.errors import OperationError, UnusableError
from scripts.rehearse.prove.report import Proof

FILE: Final = "private.json"


class Kept(Document):
    """What a walk keeps for itself, beside its report."""

    salt: str = Field(description="Of the other names of resources.")
    subject: Mapping[str, str] = Field(description="What it is of.")
    proof: Proof = Field(description="What it continues from.")


def read(folder: Path) -> Kept | None:
    """Return what a walk has kept in a folder; None: there was none.

    Raises:
        UnusableError: This version cannot continue it.
    """
    path = folder / FILE
    try:
        return Kept.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise UnusableError(
            f"{path}: {str(error).splitlines()[0]}", "remove it, once nothing of that walk exists any more"
        ) from None


def subject_of(settings: Settings, account: str) -> dict[str, str]:
    """Return what a walk is of: with another of these it would act on what it has not made."""
    generation = str(settings.cluster.generation)
    return {
        "account": account, "name": settings.name, "region": settings.region, "zone_id": settings.zone_id,
        "cluster.generation": generation,
    }  # fmt: skip


def check_same(folder: Path, kept: Mapping[str, str], subject: Mapping[str, str], *, starts_again: bool) -> None:
    """Refuse to forget what an earlier walk has made, and to continue it where it made nothing."""
    if starts_again:
        raise OperationError(
            "what the earlier walk has made still exists", "the same command without --start-again continues that walk"
        )
    others = [f"{key}: got {got}; allowed: {kept.get(key)}" for key, got in subject.items() if kept.get(key) != got]
    if others:
        raise OperationError(
            "\n  ".join([f"{folder} is of a walk elsewhere, and what that has made still exists:", *others]),
            "the credentials and settings of that walk, or another file in config/",
        )


def replace(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a file as a whole, readable as a mode says, less what the umask forbids."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)
