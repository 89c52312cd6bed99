"""Settings files to be: from a template, or from a configuration of ParallelCluster."""
