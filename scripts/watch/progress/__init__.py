"""The progress of what is being done to a deployment."""
