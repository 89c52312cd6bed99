"""Whole deployments, synthesized as app.py does it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from config import files
from config.settings import Settings, load
from stacks.composition import compose
from tests.stacks.small_app import Template, new_app, read_template

CONFIG = Path(__file__).parents[2] / "config"
CONFIGURATIONS = files.deployments(CONFIG)
"""With those that a team has added."""
PARTS = ("network", "storage", "cluster", "monitoring")

Raw = dict[str, Any]


@dataclass(frozen=True)
class Deployment:
    """What came out of a settings file."""

    settings: Settings
    directory: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        return dict(json.loads((self.directory / "manifest.json").read_text(encoding="utf-8")))

    @property
    def artifacts(self) -> dict[str, Any]:
        return dict(self.manifest["artifacts"])

    @cached_property
    def templates(self) -> dict[str, Template]:
        """The templates by name of the stack."""
        stacks = (name for name, item in self.artifacts.items() if item["type"] == "aws:cloudformation:stack")
        return {name: read_template(self.directory, name) for name in stacks}

    @property
    def network(self) -> Template:
        return self.templates[self.stack_name("network")]

    @property
    def storage(self) -> Template:
        return self.templates[self.stack_name("storage")]

    @property
    def cluster(self) -> Template:
        return self.templates[self.stack_name("cluster")]

    @property
    def monitoring(self) -> Template:
        return self.templates[self.stack_name("monitoring")]

    @property
    def request(self) -> dict[str, Any]:
        """What ParallelCluster's provider is asked for."""
        return self.cluster.properties("Custom::PclusterCluster")

    @property
    def configuration(self) -> dict[str, Any]:
        """The ParallelCluster configuration."""
        return dict(self.request["ClusterConfiguration"])

    @property
    def queues(self) -> list[dict[str, Any]]:
        return list(self.configuration["Scheduling"]["SlurmQueues"])

    def stack_name(self, part: str) -> str:
        return self.settings.stack_name(part)

    def stack_properties(self, part: str) -> dict[str, Any]:
        return dict(self.artifacts[self.stack_name(part)]["properties"])


def raw_settings(environment: str) -> Raw:
    """Return all settings of a file, with those that it leaves to their defaults."""
    return load(CONFIG / f"{environment}.yaml").model_dump()


def edited(environment: str, edit: Callable[[Raw], object]) -> Settings:
    """Return the settings of a file after an edit."""
    raw = raw_settings(environment)
    edit(raw)
    return Settings.model_validate(raw)


def deploy(settings: Settings, outdir: Path) -> Deployment:
    app = new_app(outdir)
    compose(app, settings)
    app.synth()
    return Deployment(settings, outdir)
