"""Where no machines can be made, a sentence says why and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.machines import support

ABLE = {"platform": "linux", "is_root": False, "has_debian": True, "refusal": ""}


@pytest.mark.parametrize(
    ("differently", "said"),
    [
        ({"platform": "darwin", "has_debian": False}, "need Linux, and this is darwin"),
        ({"has_debian": False}, "apt-get install mmdebstrap"),
        ({"refusal": "unshare failed: Operation not permitted"}, "kernel.apparmor_restrict_unprivileged_userns"),
        ({"refusal": "unshare failed: Operation not permitted", "is_root": True}, "--privileged"),
    ],
)
def test_what_is_missing_is_said(differently: dict[str, object], said: str) -> None:
    assert said in support.explain(**{**ABLE, **differently})  # type: ignore[arg-type]
    assert support.explain(**ABLE) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize(("user", "refusal", "says"), [(0, "no overlay", True), (0, "", False), (1000, "no", False)])
def test_root_is_told_where_root_of_a_node_is_root_here(
    user: int, refusal: str, says: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr(support, "_refusal_of_own_users", lambda _: refusal)
    said = support.warning(Path("image"))
    assert ("Root of a node is root of this computer" in said and refusal in said) == says


def test_an_image_that_cannot_be_shown_with_its_owners_is_refused(tmp_path: Path) -> None:
    assert support._refusal_of_own_users(tmp_path / "nothing") != ""
