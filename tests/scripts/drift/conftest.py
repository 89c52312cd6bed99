"""Deployments in emulated accounts, as the tests of what is done with one have them."""

from tests.scripts.conftest import deploy_operated, operated, operated_account

__all__ = ["deploy_operated", "operated", "operated_account"]
