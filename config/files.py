"""Where the settings files are, which of them are a deployment's, and their copies."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from config.messages import SettingsError
from config.yaml_source import YamlSource

USERS = "users.yaml"
"""How the name of a file of people ends, by which it is no settings file."""
VARIABLE = "ULTRACLUSTER_CONFIG"
CHECKOUT = Path(__file__).resolve().parent


def folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the settings files: the one that `VARIABLE` of an environment names, or this one."""
    return Path(environment.get(VARIABLE) or CHECKOUT).absolute()


def settings_file(name: str, folder: Path) -> Path:
    """Return the settings file of a deployment; a name that is an absolute path needs no folder."""
    return folder / f"{name}.yaml"


def is_settings(name: str) -> bool:
    """Return whether a file of a name without .yaml would be one of settings."""
    return not f"{name}.yaml".endswith(USERS)


def deployments(folder: Path) -> list[str]:
    """Return the names of the settings files in a directory, without .yaml."""
    return sorted(path.stem for path in folder.glob("*.yaml") if is_settings(path.stem))


def copy(path: Path, target: Path) -> None:
    """Copy a settings file into another directory, with what it may name: files of people, and scripts of nodes."""
    from ultracluster.domain import custom_actions  # noqa: PLC0415 -- the names of files alone need no pydantic

    shutil.copy(path, target)
    for script in custom_actions.files_of(_value(path)):
        of_copy = target.parent / script
        if not of_copy.exists() and custom_actions.refused_file(path.parent / script, path.parent) is None:
            of_copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path.parent / script, of_copy)
    for users in path.parent.glob(f"*{USERS}"):
        shutil.copy(users, target.parent)


def _value(path: Path) -> Any:
    with suppress(SettingsError):
        return YamlSource.read(path).value
    return None
