"""Who used nodes for how long, and what it cost."""
