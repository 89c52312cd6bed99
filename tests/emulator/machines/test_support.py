"""Where no machines can be made, a sentence says why and what to do."""

from __future__ import annotations

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
