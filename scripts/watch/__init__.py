"""The state of a deployment and of its nodes: status, progress, causes of failures, drift, inventory, logs."""
