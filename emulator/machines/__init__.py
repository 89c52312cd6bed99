"""EC2 instances of a cluster as machines: root directories and namespaces in which the real Slurm runs."""
