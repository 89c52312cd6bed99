"""Checkouts of this repository before and after a change of a settings file, with the golden templates of both."""

from __future__ import annotations

from pathlib import Path

from config.settings import load
from tests.stacks.deployments import deploy
from tests.stacks.golden import golden_templates, write_golden

CONFIG = Path(__file__).parents[3] / "fork" / "config"


def checkout(directory: Path, environment: str = "trn1-16", *edits: tuple[str, str]) -> Path:
    """Make a checkout in which a settings file is edited, and return it.

    Args:
        directory: Where it goes.
        environment: The settings file, without .yaml.
        edits: What is replaced in it, once each, and by what.
    """
    text = (CONFIG / f"{environment}.yaml").read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = directory / "config" / f"{environment}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    templates = directory / "tests" / "snapshots" / environment
    deployment = deploy(load(path), directory / "cdk.out")
    write_golden(templates, golden_templates(deployment.directory, deployment.templates))
    return directory
