"""What somebody types before a deployment is destroyed."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.commands import confirm

FORK = Path(__file__).parents[1] / "fork"


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration whose file has another name than its deployment."""
    text = (FORK / "config" / "dev.yaml").read_text(encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(text.replace("name: dev ", "name: real "), encoding="utf-8")
    monkeypatch.setattr(confirm, "CONFIG", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "code"), [("real", 0), ("mine", 2), ("", 2), ("Real", 2), ("real ", 2), ("$(touch x)", 2)]
)
def test_only_the_name_of_the_deployment_will_do(
    typed: Path, text: str, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["confirm", "mine", text])
    assert confirm.main() == code
    if code:
        assert capsys.readouterr().err == (
            f"got {text!r}; allowed: 'real', the name of the deployment; nothing was done\n"
        )
