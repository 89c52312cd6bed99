"""`ssh` where the settings have users: sessions and blocks are of a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.settings import Settings
from scripts.account.deployment import Deployment
from scripts.core.errors import UnusableError
from scripts.use import sessions, ssh_config
from tests.config.test_users import ALICE, BOB, ED25519
from tests.stacks.deployments import raw_settings


def deployment(*users: dict[str, object]) -> Deployment:
    return Deployment("trn1-16", Settings.model_validate({**raw_settings("trn1-16"), "users": list(users)}))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "id_ed25519"
    path.with_name("id_ed25519.pub").write_text(f"{ED25519.rpartition(' ')[0]} another@comment\n", encoding="utf-8")
    return path


def test_a_session_is_of_whom_the_tag_names_by_the_document_of_the_cluster() -> None:
    command = sessions.cli_command(deployment(ALICE), "i-1", sessions.shell(None, "trn1-16"))
    assert command[-2:] == ["--document-name", "ultracluster-trn1-16"]


def test_the_block_is_of_whose_key_it_is_or_of_who_is_named(key: Path) -> None:
    with_key = deployment(BOB, {**ALICE, "ssh_keys": [ED25519]})
    assert ssh_config.user_of(with_key, None, key) == "alice"
    assert ssh_config.user_of(with_key, "bob", key) == "bob"
    block = ssh_config.block(with_key, "alice", key)
    assert "  User alice\n" in block
    assert "--user alice --proxy %n %p" in block
    for users, given, message in (
        ([ALICE], None, "No user of the settings has the key .*id_ed25519.pub"),
        ([ALICE], "carol", "got --user carol; allowed: users of the settings, alice"),
        ([], "alice", "got --user alice; allowed: ubuntu, as the settings have no users"),
    ):
        with pytest.raises(UnusableError, match=message):
            ssh_config.user_of(deployment(*users), given, key)


def test_without_users_it_is_the_default_user(key: Path) -> None:
    assert ssh_config.user_of(deployment(), None, key) == "ubuntu"
    assert "--user" not in ssh_config.block(deployment(), "ubuntu", key)
