"""People, and what their jobs may use."""
