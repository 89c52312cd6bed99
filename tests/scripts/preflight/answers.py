"""Answers of AWS that nobody can bring about in the emulated account: those to one operation, altered on their way."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from scripts.deployment import Account

Patch = Callable[[pytest.MonkeyPatch], None]


def answering(operation: str, alter: Callable[[Any], object]) -> Patch:
    """Return what alters a copy of each answer to an operation, as checks get it."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        ask = Account.ask

        def altered(account: Account, service: str, asked: str, **parameters: Any) -> Any:
            answer = deepcopy(ask(account, service, asked, **parameters))
            if asked == operation:
                alter(answer)
            return answer

        monkeypatch.setattr(Account, "ask", altered)

    return patch
