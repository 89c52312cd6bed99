"""The life of a resource of each type: how it is made, what is changed, and what boto3 sees of it."""

from tests.emulator.lives import access, network, security_groups, services, storage
from tests.emulator.lives.case import CASES

__all__ = ["CASES", "access", "network", "security_groups", "services", "storage"]
