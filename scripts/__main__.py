"""Run the command line: `./ultracluster`, which is `python -m scripts` in the environment of this checkout."""

import sys

from scripts.main import run

if __name__ == "__main__":
    sys.exit(run())
