"""What goes on: status, progress, causes of failures, drift, inventory, logs."""
