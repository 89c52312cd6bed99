"""CDK constructs for AWS ParallelCluster fleets of AWS Trainium instances."""
