"""The number of words that a tokenizer knows, without loading it."""

from __future__ import annotations

import json
from pathlib import Path


def size(directory: Path) -> int:
    """Return the size of the vocabulary in a directory with tokenizer.json or vocab.txt.

    Raises:
        OSError: Neither file can be read.
        ValueError: The file is damaged.
    """
    fast = directory / "tokenizer.json"
    if not fast.exists():
        return len((directory / "vocab.txt").read_text(encoding="utf-8").splitlines())
    try:
        content = json.loads(fast.read_bytes())
        added = [token["id"] for token in content.get("added_tokens", [])]
        return int(max([*content["model"]["vocab"].values(), *added])) + 1
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(f"{fast} is damaged") from None
