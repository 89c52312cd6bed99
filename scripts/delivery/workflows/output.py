"""What is printed of steps, with secrets masked as GitHub masks them."""

from __future__ import annotations

from collections.abc import Callable

MASK = "***"
_ADD_MASK = "::add-mask::"


class Output:
    """Lines for people.

    Attributes:
        masked_lines: How many lines a secret was masked in.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#masking-a-value-in-a-log
    """

    def __init__(self, print_line: Callable[[str], object] = print) -> None:
        self._print = print_line
        self._secrets: set[str] = set()
        self.masked_lines = 0

    def hide(self, secret: str) -> None:
        """Mask a value from now on, and each of its lines."""
        self._secrets.update(line.strip() for line in secret.splitlines() if line.strip())

    def masked(self, text: str) -> str:
        """Return a text without secrets."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, MASK)
        return text

    def line(self, text: str = "") -> None:
        """Print a line."""
        shown = self.masked(text)
        self.masked_lines += shown != text
        self._print(shown)

    def of_step(self, text: str) -> None:
        """Print a line of a step; one that names a secret is not printed."""
        if text.startswith(_ADD_MASK):
            self.hide(text.removeprefix(_ADD_MASK))
        else:
            self.line(f"    {text}")
