"""A deployment that is created, changed and destroyed in an emulated AWS."""
