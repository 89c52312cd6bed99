"""What a change of this repository does to a configuration, told from two checkouts, for people who review it."""
