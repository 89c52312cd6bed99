"""What `python -m scripts estimate` is made of: sizes, prices, quotas, workloads, and how they are shown."""
