"""What a deployment would do to what is running, found out without changing it."""
