"""What `make report` shows of training runs."""
