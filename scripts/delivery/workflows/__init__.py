"""GitHub's workflows, run on this machine as far as shell and make go."""
