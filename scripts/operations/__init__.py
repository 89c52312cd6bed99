"""What is done with a deployment that exists: looking at it, working with it, changing its fleet, taking it down."""
