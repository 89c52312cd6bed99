"""What nodes get and run (docs/explanation/nodes.md).

Nothing here may need a Python newer than 3.9, that of Amazon Linux 2023.
"""
