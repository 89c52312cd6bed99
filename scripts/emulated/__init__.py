"""Emulated accounts for a deployment: the one package that imports the emulator, and what others may use of it."""

from emulator import scenarios
from emulator.aws import EmulatedAws
from emulator.cdk import CommandLine
from emulator.faults import FAULTS
from emulator.inventory import inventory
from emulator.templates import Resolver, publish_files

__all__ = ["FAULTS", "CommandLine", "EmulatedAws", "Resolver", "inventory", "publish_files", "scenarios"]
