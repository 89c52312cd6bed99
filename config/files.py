"""Which files of a directory are settings of a deployment, and their copies."""

import shutil
from pathlib import Path

USERS = "users.yaml"
"""How the name of a file of people ends, by which it is no settings file."""


def is_settings(name: str) -> bool:
    """Return whether a file of a name without .yaml would be one of settings."""
    return not f"{name}.yaml".endswith(USERS)


def deployments(folder: Path) -> list[str]:
    """Return the names of the settings files in a directory, without .yaml."""
    return sorted(path.stem for path in folder.glob("*.yaml") if is_settings(path.stem))


def copy(path: Path, target: Path) -> None:
    """Copy a settings file into another directory, with the files of people beside it, one of which it may name."""
    shutil.copy(path, target)
    for users in path.parent.glob(f"*{USERS}"):
        shutil.copy(users, target.parent)
