"""What a change of this repository does to a configuration, by two checkouts, for its reviewers."""
