"""Programs that run on the head node, which gets them as text: of the standard library, Python 3.9."""
