"""The resources of a deployment, and what is left of it."""
