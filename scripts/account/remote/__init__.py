"""The cluster's nodes, reached by Session Manager."""
