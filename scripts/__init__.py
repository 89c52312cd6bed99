"""Programs run by people and CI: `python -m scripts.NAME`."""
