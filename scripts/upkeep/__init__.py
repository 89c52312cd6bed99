"""What the project's developers run: measurements, generators of the reference."""
