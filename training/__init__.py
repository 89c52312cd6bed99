"""Training jobs, as the head node puts them on the shared file system."""
