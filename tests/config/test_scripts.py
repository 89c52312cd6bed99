"""Scripts of nodes that a settings file names, below its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.files import copy
from config.settings import load
from tests.config.settings_files import places, with_values


def site() -> list[dict[str, object]]:
    """Return the script, again each time: YAML would write an alias."""
    return [{"script": "site/boot.sh", "args": ["a"]}]


EVERYWHERE = {
    "cluster.head_node.custom_actions": {"on_node_start": site(), "on_node_updated": site()},
    "cluster.login_node_actions": {"on_node_configured": site()},
    "cluster.queues[0].custom_actions": {"on_node_configured": [*site(), {"script": "s3://my-bucket/b.sh"}]},
}
NAMED = [
    "cluster.head_node.custom_actions.on_node_start[0].script",
    "cluster.head_node.custom_actions.on_node_updated[0].script",
    "cluster.login_node_actions.on_node_configured[0].script",
    "cluster.queues[0].custom_actions.on_node_configured[0].script",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "boot.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    return tmp_path


def test_each_that_is_no_file_is_reported_with_all_else_that_is_wrong(folder: Path) -> None:
    path = folder / "trn1.yaml"
    path.write_text(with_values(EVERYWHERE), encoding="utf-8")
    settings = load(path)
    assert settings.folder == folder
    (folder / "site" / "boot.sh").unlink()
    assert sorted(places(path)) == NAMED
    path.write_text(with_values({**EVERYWHERE, "account": "1"}), encoding="utf-8")
    assert sorted(places(path)) == ["account", *NAMED]


def test_what_the_cdk_would_take_for_a_token_is_refused_wherever_it_is(folder: Path) -> None:
    path = folder / "trn1.yaml"
    values = {"cluster.head_node.ssh_cidr": "${Token[AWS.NoValue.7]}", "cluster.overrides": {"Tags": "x${Token[A.1]}"}}
    path.write_text(with_values(values), encoding="utf-8")
    assert sorted(places(path)) == ["cluster.head_node.ssh_cidr", "cluster.overrides.Tags"]


def test_a_copy_of_a_settings_file_takes_them_along_and_nothing_from_elsewhere(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere" / "of"
    outside.mkdir(parents=True)
    (folder / ".token").write_text("#!secret\n", encoding="utf-8")
    for script, comes in (("site/boot.sh", True), (".token", False)):
        path = folder / "trn1.yaml"
        path.write_text(with_values({"cluster.login_node_actions": {"on_node_start": [{"script": script}]}}), "utf-8")
        copy(path, outside / "trial.yaml")
        assert (outside / script).exists() == comes
        if comes:
            assert load(outside / "trial.yaml").cluster == load(path).cluster
