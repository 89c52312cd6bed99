"""What a deployment is, needs and costs, before it exists: sizes, prices, quotas, training time."""
