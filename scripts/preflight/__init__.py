"""What can be found out about an account before money is spent in it."""
