"""The table of mutations fits the code and the tests; `make mutation` tries them out."""

from functools import cache
from pathlib import Path

from tests.mutation.table import MUTATIONS

ROOT = Path(__file__).parents[2]


@cache
def text_of(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def test_each_mutation_has_a_name_of_its_own() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


def test_each_mutation_changes_text_that_stands_in_the_code_once() -> None:
    times = {mutation.name: text_of(mutation.file).count(mutation.old) for mutation in MUTATIONS}

    assert {name: count for name, count in times.items() if count != 1} == {}
    assert [mutation.name for mutation in MUTATIONS if mutation.new == mutation.old] == []


def test_each_mutation_names_tests_that_are_there() -> None:
    assert [mutation.name for mutation in MUTATIONS if not mutation.tests] == []
    for test in (test for mutation in MUTATIONS for test in mutation.tests):
        file, _, case = test.partition("::")
        assert f"\ndef {case.partition('[')[0]}(" in text_of(file), test
