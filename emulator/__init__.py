"""An AWS of one's own on this machine, for the real tools to work against. See README.md."""
