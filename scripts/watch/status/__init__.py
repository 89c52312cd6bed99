"""The state of a deployment on one screen."""
