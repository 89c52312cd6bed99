"""The project's tools as objects: the CDK app, its templates and ParallelCluster's own code, in any AWS account."""
