"""Run the command line: `./ultracluster`, which is `python -m scripts` in the environment of this checkout."""

import gc
import sys

gc.set_threshold(50_000)  # a start makes thousands of classes and no garbage


def main() -> int:
    """Run it, and return the exit code; another Python's lacks packages."""
    try:
        from scripts.main import run

        return run()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"config", "emulator", "scripts", "toolchain"}:
            raise
        from scripts.core.text import echo

        builds = "hint: `./ultracluster version` builds the environment, and ./ultracluster runs in it"
        echo(f"error: {sys.executable} has no package {error.name}\n\n{builds}", err=True)
        return 2


if __name__ == "__main__":
    sys.exit(main())
