"""Metrics of nodes to CloudWatch, once a minute: a service (install/metrics.sh) of the standard library alone."""
