"""Replacement of a cluster by a second one."""
