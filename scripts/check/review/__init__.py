"""For reviewers: a page on a deployment, and what a change of this repository does to it, by two checkouts."""
