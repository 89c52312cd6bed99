"""One module per command: arguments, a call, output."""
