"""The compute nodes as a whole: stopped, started, scaled."""
