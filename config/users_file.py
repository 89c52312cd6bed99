"""The file of people beside a settings file, which takes its place where ``users`` is a name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.files import USERS
from config.messages import SettingsError
from config.yaml_source import YamlSource
from ultracluster.domain.violations import Path as KeyPath
from ultracluster.domain.violations import shown

_KEYS = ("groups", "users")


@dataclass(frozen=True)
class Sources:
    """A settings file, and its file of people if it has one.

    Attributes:
        value: What both say together.
        faults: What is wrong with the files themselves, a line each.
        unread: Keys whose values are in a file that cannot be used.
    """

    settings: YamlSource
    people: YamlSource | None
    value: Any
    faults: tuple[str, ...] = ()
    unread: frozenset[str] = frozenset()

    @classmethod
    def read(cls, path: Path) -> Sources:
        """Read both.

        Raises:
            SettingsError: One cannot be read, or is no YAML.
        """
        settings = YamlSource.read(path)
        value = settings.value
        if not isinstance(value, dict) or not isinstance(value.get("users"), str):
            return cls(settings, None, value)
        name = value["users"]
        fault = None
        if Path(name).name != name or not name.endswith(USERS):
            fault = f"allowed: a list, or the name of a file beside this one that ends in {USERS}"
        elif not _is_file(path.parent / name):
            fault = f"there is no {path.parent / name}; allowed: a file with the keys {' and '.join(_KEYS)}, or a list"
        if fault is not None:
            report = settings.report([(("users",), f"got {shown(name)}; {fault}")])
            return cls(settings, None, {**value, "users": []}, (report,), frozenset(_KEYS))
        people = YamlSource.read(path.parent / name)
        given = people.value if people.value is not None else {}
        if not isinstance(given, dict):
            text = f"got {shown(given)}; should be a mapping with the keys groups and users"
            raise SettingsError(people.report([((), text)]))
        unknown = f"unknown key; allowed: {', '.join(_KEYS)}"
        faults = [people.report([((key,), unknown)]) for key in given if key not in _KEYS]
        if "groups" in value:
            faults.append(settings.report([(("groups",), f"given, though {name} has the people; allowed: there")]))
        unread = frozenset(key for key in _KEYS if key not in given and faults)
        given = {key: given[key] for key in _KEYS if key in given}
        return cls(settings, people, {**value, "users": [], **given}, tuple(faults), unread)

    def report(self, texts: Iterable[tuple[KeyPath, str]]) -> str:
        """Return what is wrong with the files, and with values, each at its line of the file that has it."""
        keys = frozenset() if self.people is None else frozenset((key,) for key in self.people.value or ())
        of_people = [each for each in texts if each[0][:1] in keys]
        others = [each for each in texts if each[0][:1] not in keys]
        reports = [*self.faults, *([self.settings.report(others)] if others else [])]
        if self.people is not None and of_people:
            reports.append(self.people.report(of_people))
        return "\n".join(reports)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False


def describe(schema: dict[str, Any]) -> None:
    """Let the JSON schema of the list of people take a text, too."""
    schema["type"] = [schema["type"], "string"]
