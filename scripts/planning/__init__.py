"""What `python -m scripts.plan` is made of: sizes, prices, quotas, workloads, and how they are shown."""
