"""What can be said before money is spent: estimate, validation, templates, review, preflight, plan."""
