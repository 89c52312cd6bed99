"""The expressions of GitHub's workflows, as far as those here have them: ``${{ ... }}`` and what stands after ``if:``.

Texts, truth values, members, ``== != && || !``, parentheses and functions; of GitHub's there are more.

https://docs.github.com/en/actions/reference/workflows-and-actions/expressions
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<string>'(?:[^']|'')*')|(?P<operator>&&|\|\||[=!]=|[!().,])|(?P<name>[A-Za-z_][\w-]*))"
)
_EMBEDDED: Final = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_STATUS: Final = re.compile(r"\b(?:success|failure|always|cancelled)\s*\(")
_CONSTANTS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
Functions = Mapping[str, Callable[..., Any]]


class ExpressionError(ValueError):
    """An expression that is none, or has a function that is unknown here."""


FUNCTIONS: Final[Functions] = {"hashfiles": lambda *_: ""}  # it makes keys of caches, which there are none of
"""Functions by name in lower case; those that tell the state of a job are given by the job."""


def evaluate(text: str, contexts: Mapping[str, Any], functions: Functions = FUNCTIONS) -> Any:
    """Return the value of an expression, given without ``${{ }}``.

    Args:
        text: The expression.
        contexts: Values by name, such as ``steps``; what is missing is null.
        functions: By name in lower case.

    Raises:
        ExpressionError: It cannot be read, or needs a function that is not there.
    """
    return _Parser(text, contexts, functions).value()


def interpolate(text: str, contexts: Mapping[str, Any], functions: Functions = FUNCTIONS) -> str:
    """Return a text with its expressions replaced by their values."""
    return _EMBEDDED.sub(lambda found: to_text(evaluate(found[1], contexts, functions)), text)


def resolve(value: Any, contexts: Mapping[str, Any], functions: Functions = FUNCTIONS) -> Any:
    """Return a value of a workflow's file, evaluated: a text that is one expression keeps the type of its value."""
    if not isinstance(value, str):
        return value
    whole = _EMBEDDED.fullmatch(value.strip())
    if whole and "${{" not in whole[1]:
        return evaluate(whole[1], contexts, functions)
    return interpolate(value, contexts, functions)


def holds(condition: Any, contexts: Mapping[str, Any], functions: Functions) -> bool:
    """Return whether what stands after ``if:`` is so: one that asks for no state begins with ``success() &&``."""
    text = to_text(condition).strip()
    text = whole[1] if (whole := _EMBEDDED.fullmatch(text)) else text
    if not _STATUS.search(text):
        text = f"success() && ({text})" if text else "success()"
    return truthy(evaluate(text, contexts, functions))


def truthy(value: Any) -> bool:
    """Return what a value is as a condition."""
    return value not in (None, False, 0, "")


def to_text(value: Any) -> str:
    """Return a value as it stands in a text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _equal(left: Any, right: Any) -> bool:
    return to_text(left).lower() == to_text(right).lower()


_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
}


class _Parser:
    """Reads an expression from left to right, and computes while it reads."""

    def __init__(self, text: str, contexts: Mapping[str, Any], functions: Functions) -> None:
        self._text = text
        self._contexts = contexts
        self._functions = functions
        self._tokens = self._split()
        self._place = 0

    def value(self) -> Any:
        found = self._either()
        if self._peek():
            raise self._error()
        return found

    def _split(self) -> list[str]:
        tokens, place, text = [], 0, self._text.rstrip()
        while place < len(text):
            found = _TOKEN.match(text, place)
            if not found:
                raise ExpressionError(f"got {self._text.strip()!r}, which cannot be read at {text[place:].strip()!r}")
            tokens.append(found[0].strip())
            place = found.end()
        return tokens

    def _either(self) -> Any:
        found = self._both()
        while self._takes("||"):
            other = self._both()
            found = found if truthy(found) else other
        return found

    def _both(self) -> Any:
        found = self._compared()
        while self._takes("&&"):
            other = self._compared()
            found = other if truthy(found) else found
        return found

    def _compared(self) -> Any:
        found = self._negated()
        while self._peek() in _COMPARISONS:
            compare = _COMPARISONS[self._next()]
            found = compare(found, self._negated())
        return found

    def _negated(self) -> Any:
        if self._takes("!"):
            return not truthy(self._negated())
        found = self._atom()
        while self._takes("."):
            found = _member(found, self._next())
        return found

    def _atom(self) -> Any:
        token = self._next()
        if token == "(":  # noqa: S105 - a parenthesis
            found = self._either()
            self._expect(")")
            return found
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if token in _CONSTANTS:
            return _CONSTANTS[token]
        if self._takes("("):
            return self._call(token)
        if not (token[0].isalpha() or token[0] == "_"):
            raise self._error()
        return self._contexts.get(token)

    def _call(self, name: str) -> Any:
        arguments = []
        while not self._takes(")"):
            arguments.append(self._either())
            if self._peek() != ")":
                self._expect(",")
        if name.lower() not in self._functions:
            raise ExpressionError(f"got function {name}; allowed: {', '.join(self._functions)}")
        return self._functions[name.lower()](*arguments)

    def _peek(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise self._error()
        self._place += 1
        return token

    def _takes(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._place += 1
        return True

    def _expect(self, token: str) -> None:
        if not self._takes(token):
            raise self._error()

    def _error(self) -> ExpressionError:
        return ExpressionError(f"got {self._text.strip()!r}, which cannot be read at {self._peek() or 'its end'!r}")


def _member(value: Any, key: str) -> Any:
    """Return a member; of nothing, and where there is none, null. Names of members know no case."""
    if not isinstance(value, Mapping):
        return None
    return next((found for name, found in value.items() if str(name).lower() == key.lower()), None)
