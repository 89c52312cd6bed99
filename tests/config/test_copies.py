"""Two files of one name, and files of another name than the deployment's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from config import files
from config.settings import SettingsError, load
from tests.config.settings_files import GOOD

A, B = "111111111111", "222222222222"


def write(folder: Path, file: str, **values: Any) -> Path:
    path = folder / f"{file}.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(GOOD), **values}, sort_keys=False), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("first", "copy", "refused"),
    [
        ({}, {}, True),
        ({"account": A}, {"account": A}, True),
        ({"account": A}, {}, True),  # by the credentials in use it may be that account
        ({}, {"account": A}, True),
        ({"account": A}, {"account": B}, False),
        ({}, {"region": "us-east-1", "zone_id": "use1-az4"}, False),
        ({}, {"name": "copy"}, False),
        ({"storage": 5}, {}, True),
    ],
)
def test_a_copy_never_changes_the_deployment_of_the_first_file(
    tmp_path: Path, first: dict[str, Any], copy: dict[str, Any], refused: bool
) -> None:
    write(tmp_path, "trn1", **first)
    path = write(tmp_path, "copy", **copy)
    (tmp_path / "broken.yaml").write_text("name: [", encoding="utf-8")
    if refused:
        with pytest.raises(SettingsError) as error:
            load(path)
        expected = "name: got 'trn1'; allowed: another name, such as copy, or another Region or account (trn1.yaml has "
        assert str(error.value).startswith(f"{path}:1: {expected}")
    else:
        warned = [each.partition(": ")[0] for each in load(path).warnings]
        assert warned == ([] if "name" in copy else ["name"])


def test_the_first_file_is_no_copy_of_its_copies(tmp_path: Path) -> None:
    path = write(tmp_path, "trn1")
    write(tmp_path, "copy")
    assert load(path).warnings == []


def test_of_two_copies_without_the_first_neither_is_taken(tmp_path: Path) -> None:
    for path in [write(tmp_path, "a"), write(tmp_path, "b")]:
        with pytest.raises(SettingsError, match="has the stacks of that name"):
            load(path)


def test_a_file_of_another_name_than_its_deployment_is_a_warning(tmp_path: Path) -> None:
    assert load(write(tmp_path, "renamed")).warnings == [
        "name: got 'trn1'; allowed: renamed, before the first deployment (commands take renamed, the file, and the "
        "stacks are trn1-network and so on)"
    ]


def test_all_names_that_files_of_people_have_are_no_settings(tmp_path: Path) -> None:
    for name in ("users", "my-users", "users-x", "trn1"):
        write(tmp_path, name, name=name)
        assert files.is_settings(name) == (name in files.deployments(tmp_path))
