"""What keeps the run of the unit tests short."""

import sys

import pytest


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave out the summary of Hypothesis' plugin where no test uses Hypothesis: it would import all of it first."""
    plugins = session.config.pluginmanager
    if "hypothesis" not in sys.modules and plugins.has_plugin("hypothesispytest"):
        plugins.unregister(name="hypothesispytest")
