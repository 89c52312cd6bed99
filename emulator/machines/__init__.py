"""Instances that live: each a root directory and namespaces of its own, with the real Slurm in it."""
