"""Models, rules and renderings of a cluster and its file system: the standard library and pydantic, no CDK."""
