"""Settings of a deployment: one YAML file in this directory each."""
