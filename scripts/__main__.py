"""Run a command of this project: `python -m scripts NAME`, with the exit code that the command's help names."""

import sys
from importlib import import_module
from pathlib import Path

COMMANDS = sorted(path.stem for path in (Path(__file__).parent / "commands").glob("[a-z]*.py"))


def main() -> int:
    """Run the command that the first argument names; without such a command, list all and return 2."""
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:  # noqa: PLR2004
        got = sys.argv[1] if len(sys.argv) > 1 else "nothing"
        print(f"command: got {got}; allowed: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    name = sys.argv.pop(1)
    code: int = import_module(f"scripts.commands.{name}").main()
    return code


if __name__ == "__main__":
    sys.exit(main())
