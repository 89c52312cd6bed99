"""The table of mutations fits the code and the tests; `make mutation` tries them out."""

from pathlib import Path

import pytest

from tests.mutation.table import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_fits_the_code_and_its_tests(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.old) == 1
    assert mutation.new != mutation.old
    assert mutation.tests
    for test in mutation.tests:
        file, _, case = test.partition("::")
        assert f"\ndef {case.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")


def test_each_mutation_has_a_name_of_its_own() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
