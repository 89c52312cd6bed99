"""Take over a configuration of ParallelCluster: ask for what it leaves open, and tell how the settings differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from config.settings import SettingsError, load
from scripts.change.init.changes import Change
from scripts.change.init.imported import REGION, ZONE, Imported, imported
from scripts.change.init.source import Question, Source, SourceError, asked
from scripts.core.errors import UnusableError
from scripts.core.temporary import temporary_directory
from ultracluster.domain.overrides import without_indices
from ultracluster.domain.violations import dotted, shown

Read = Callable[[Mapping[str, str]], Source]
"""Returns a configuration, with answers to what it leaves open."""
_OPTIONS = {REGION: "--region REGION", ZONE: "--zone ZONE-ID"}


class _Answers(dict[str, str]):
    """Answers that know which of them were of use."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.used = set[str]()

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        """Return an answer."""
        self.used.add(key)
        return super().get(key, default)


def take(
    read: Read, name: str, given: Mapping[str, str], ask: Callable[[Question], str] | None, *, new_network: bool
) -> Imported:
    """Return the settings of a deployment that has what a configuration has.

    Args:
        read: Returns the configuration.
        name: Name of the deployment.
        given: Answers, by the keys of questions.
        ask: Asks somebody; None: nobody can be asked.
        new_network: Whether the deployment makes a network, instead of using the one that the configuration names.

    Raises:
        UnusableError: The configuration cannot be taken, or there are questions and nobody to ask.
    """
    answers, typed = _Answers(given), list[str]()
    try:
        while (result := imported(source := read(answers), name, answers, new_network=new_network)).questions:
            own = [each.key for each in result.questions if each.where == "Region" and each.key not in answers]
            if own and REGION in answers:  # what the file calls the Region
                answers.update(dict.fromkeys(own, answers[REGION]))
                continue
            if ask is None:
                raise _missing(result.questions, source)
            for question in result.questions:
                answers[question.key] = ask(question)
                typed.append(question.key)
    except SourceError as error:
        again = " ".join(f"--value '{key}={answers[key]}'" for key in typed)
        hint = "--value 'KEY=VALUE', with a key that is named, gives another value than the file"
        raise UnusableError(str(error), f"{hint}; the same answers again: {again}" if again else hint) from None
    if unused := sorted(key for key in given.keys() - answers.used - {*_OPTIONS} if not key.startswith("AWS::")):
        places = {dotted(path) for path in source.lines}
        known = ", ".join(sorted(key for key in answers.used - places if key not in _OPTIONS))
        allowed = f"a key of {source.name}, or what it leaves open: {known}"
        raise UnusableError(f"--value: got {unused[0]}; allowed: {allowed}")
    with temporary_directory() as directory:
        path = directory / f"{name}.yaml"
        path.write_text(result.text, encoding="utf-8")
        try:
            load(path)
        except SettingsError as error:
            raise UnusableError(str(error).replace(str(path), f"{name}.yaml")) from None
    return result


def _missing(questions: Sequence[Question], source: Source) -> UnusableError:
    """Return the error that names all that has to be given."""
    lines = []
    for each in questions:
        option = _OPTIONS.get(each.key, f"--value '{each.key}=...'")
        told = [f"{source.name}:{each.line} {each.where}" if each.line else "", each.reason]
        lines.append(f"  {option}: {': '.join(filter(None, told))}")
    count = f"{len(questions)} values are" if len(questions) > 1 else "a value is"
    return UnusableError("\n".join([f"{count} missing, and standard input is not a terminal:", *lines]))


def report(result: Imported, source: str) -> Iterator[str]:
    """Yield the lines that tell how settings differ from the configuration that they are from."""
    if result.changes:
        yield f"Changed, against {source}:"
        yield from _lines(result.changes)
    if result.additions:
        yield "Added:"
        yield from _lines(result.additions)
    yield "Beside the cluster:"
    yield from (f"  {each}" for each in result.further)
    yield f"All else that {source} has is the same."


def _lines(changes: Sequence[Change]) -> Iterator[str]:
    """Yield a line for each change; the same ones of several queues are one."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for each in changes:
        was = "what the file leaves open" if asked("").removesuffix("]}") in repr(each.was) else shown(each.was)
        groups.setdefault((without_indices(each.path), was, shown(each.now), each.reason), []).append(each)
    for (_, was, now, reason), same in groups.items():
        change = now if same[0].was is None else f"{was} is left out" if same[0].now is None else f"{was} becomes {now}"
        more = f" ({len(same)} times)" if len(same) > 1 else ""
        yield f"  {dotted(same[0].path)}: {change}{more}: {reason}"
