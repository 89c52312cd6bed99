"""Deploying by a pipeline: in rounds as long as credentials live, and what differs from the settings afterwards."""
