"""People on nodes: their accounts, and what they may do; of the standard library alone."""
