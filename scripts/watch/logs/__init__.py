"""Logs of nodes and jobs."""
