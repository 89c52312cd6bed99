"""The settings files of the project, which tests know; a team's own are beside them in config/."""

from __future__ import annotations

from pathlib import Path

CONFIG = Path(__file__).parents[1] / "config"
SHIPPED = ("dev", "reserved", "trn1-16", "two-queues", "ultracluster")
"""By their names in config/. Checks that any settings have to pass are made with all files there."""
