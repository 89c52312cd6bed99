"""What `python -m scripts bench` is made of: the machine, tables, and the Slurm controller."""
