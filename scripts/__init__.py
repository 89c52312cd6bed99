"""The command line, `./ultracluster`: used by people and CI."""
