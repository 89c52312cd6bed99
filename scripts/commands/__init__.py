"""One module per command: arguments, a call, output. `python -m scripts NAME` runs it."""
