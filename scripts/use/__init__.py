"""What people do on a cluster: jobs, training runs, sessions, costs."""
