"""What a deployment would do to what is running; nothing is changed."""
