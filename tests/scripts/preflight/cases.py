"""What a check must say of an account that is good, or spoilt in one way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from config.settings import Settings, load
from scripts.commands.validate import CONFIG
from scripts.preflight.check import Check, Status
from tests.scripts.preflight.conftest import GoodAccount

Edit = Callable[[dict[str, Any]], object]


def nothing(_: object) -> None:
    """Leave everything as it is."""


@dataclass(frozen=True)
class Case:
    """An account, and what a check must find in it.

    Attributes:
        check: The check.
        status: The worst that it finds.
        says: Parts of what it says then: sentence, hint or command.
        spoil: What is done to the good account first.
        environment: The configuration.
        edit: What is changed in it, as the dictionary that the YAML file is.
        name: What is special about the account, in a word or two.
        patch: What is changed of this machine, for as long as the test lasts.
        marks: Marks of the test.
    """

    check: Check
    status: Status
    says: tuple[str, ...] = ()
    spoil: Callable[[GoodAccount], object] = nothing
    environment: str = "trn1-16"
    edit: Edit = nothing
    name: str = "good"
    environment_variables: Mapping[str, str] = field(default_factory=dict)
    patch: Callable[[pytest.MonkeyPatch], object] = nothing
    marks: tuple[pytest.MarkDecorator, ...] = ()

    @property
    def id(self) -> str:
        """Name of the case in the test report."""
        return f"{self.check.id}-{self.name}-{self.status}"

    def settings(self) -> Settings:
        """Return the settings that it is about."""
        raw = load(CONFIG / f"{self.environment}.yaml").model_dump(mode="json")
        self.edit(raw)
        return Settings.model_validate(raw)
