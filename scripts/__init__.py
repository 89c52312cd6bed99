"""The command line, `python -m scripts NAME`: used by people and CI."""
