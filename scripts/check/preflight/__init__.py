"""Checks of an account before money is spent in it."""
