"""A second cluster in the place of the first."""
