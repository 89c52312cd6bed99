"""What of a deployment differs from its settings."""
