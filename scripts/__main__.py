"""Run the command line: `./ultracluster`, which is `python -m scripts` in the environment of this checkout."""

import gc
import sys

gc.set_threshold(50_000)  # a start makes thousands of classes and no garbage

from scripts.main import run  # noqa: E402

if __name__ == "__main__":
    sys.exit(run())
