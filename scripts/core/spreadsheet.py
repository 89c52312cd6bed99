"""CSV for programs and spreadsheets."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from io import StringIO

from scripts.core.text import fit

_FORMULA = re.compile('((?:^|[,;|])[ "]*)(?=[=+@\uff0b\uff0d\uff1d\uff20-])')
"""Before what a spreadsheet takes for a formula at the start of a cell, also if it separates cells by semicolons, as in
countries that write 0,5 (https://owasp.org/www-community/attacks/CSV_Injection)."""


def as_csv(rows: Iterable[Sequence[str | int | Decimal | None]]) -> str:
    """Return rows, a line each; None is empty. A text is no formula: it has an apostrophe where one would start."""
    printed = StringIO()
    writer = csv.writer(printed, lineterminator="\n")
    writer.writerows([_text(each) if isinstance(each, str) else each for each in row] for row in rows)
    return printed.getvalue()


def _text(text: str) -> str:
    return _FORMULA.sub(r"\1'", fit(" ".join(text.split())))
