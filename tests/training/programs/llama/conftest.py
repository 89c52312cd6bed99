"""These tests have an environment of their own, with PyTorch (``make test-training``); in others they are left out."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]
