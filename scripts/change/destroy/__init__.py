"""The end of a deployment."""
