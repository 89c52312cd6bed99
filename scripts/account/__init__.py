"""What is in the account and on the cluster, asked once: stacks, nodes, Slurm, programs that run on the head node."""
