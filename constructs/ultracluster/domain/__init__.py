"""Pure rules and renderings: standard library only, usable without CDK."""
