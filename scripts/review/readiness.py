"""Whether the account is ready: the document that `make preflight ARGS=--json` prints, in short."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts.plan.markdown import Block, findings_block
from scripts.preflight.check import Finding, Status

NOT_ASKED = "**Preflight**: not asked, because no credentials were at hand."
_TOLD = (Status.FAIL, Status.UNKNOWN, Status.WARN)


class DocumentError(ValueError):
    """A file is not what preflight prints; the message says what was got."""


def read(path: Path) -> Mapping[str, Any] | None:
    """Return what preflight printed, None where it printed nothing: there is no such file, or it is empty.

    Raises:
        DocumentError: It is something else.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if not text.strip():
        return None
    try:
        document = json.loads(text)
        if {"results", "counts", "ok", "account"} <= document.keys():
            return dict(document)
    except (ValueError, AttributeError):
        pass
    raise DocumentError(f"got {path}; allowed: what `python -m scripts preflight ENV --json` prints")


def readiness_block(document: Mapping[str, Any] | None) -> Block:
    """Return the verdict of preflight and what was found; the number of the account does not show."""
    if document is None:
        return Block([NOT_ASKED])
    counts = ", ".join(f"{count} {status}" for status, count in document["counts"].items() if count)
    verdict = "ready to deploy" if document["ok"] else "not ready to deploy"
    account = document["account"]
    found = [_finding(result, account) for result in document["results"] if result["status"] in _TOLD]
    if not found:
        return Block([f"**Preflight**: {verdict}: {counts}."])
    summary = f"<details><summary>Preflight: {verdict}: {counts}</summary>"
    return Block([summary, "", *findings_block(found).lines], ("", "</details>"))


def _finding(result: Mapping[str, Any], account: str | None) -> Finding:
    texts = (result[key] for key in ("sentence", "hint", "command", "id"))
    sentence, hint, command, subject = (text.replace(account, "ACCOUNT") if account else text for text in texts)
    return Finding(Status(result["status"]), sentence, hint, command, subject)
