"""One stack per life cycle, and what puts them together."""
