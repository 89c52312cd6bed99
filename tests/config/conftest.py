"""What the tests of settings files share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    path = tmp_path_factory.mktemp("settings") / "settings.yaml"

    def writer(text: str) -> Path:
        path.write_text(text, encoding="utf-8")
        return path

    return writer
