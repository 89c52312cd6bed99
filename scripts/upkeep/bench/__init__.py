"""Measurements of `make bench`: synth, templates, Slurm controller, status, tests."""
