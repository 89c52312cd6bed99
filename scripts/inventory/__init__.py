"""Everything that there is of a deployment, and what outlived it."""
