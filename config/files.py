"""Which files of a directory are settings of a deployment."""

from pathlib import Path

USERS = "users.yaml"
"""How the name of a file of people ends, by which it is no settings file."""


def deployments(folder: Path) -> list[str]:
    """Return the names of the settings files in a directory, without .yaml."""
    return sorted(path.stem for path in folder.glob("*.yaml") if not path.name.endswith(USERS))
