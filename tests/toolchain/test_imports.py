"""What `init --from` makes of a configuration is one that ParallelCluster takes."""

from __future__ import annotations

import pytest

from scripts.change.init.imported import imported
from scripts.change.init.source import Source
from tests.constructs.domain.sample_overrides import LEAVES
from tests.scripts.change.init.test_import import ANSWERS, PLAIN, REFUSED, in_sequences, take, with_key
from tests.toolchain.test_parallelcluster_schema import answers_to


@pytest.mark.slow
def test_parallelcluster_takes_what_a_configuration_with_each_key_becomes() -> None:
    paths = [path for path in LEAVES if path not in REFUSED]
    results = [
        imported(Source("ours.yaml", in_sequences(with_key(path)), {}), "mine", ANSWERS, new_network=False)
        for path in paths
    ]
    named = {path: result.configuration for path, result in zip(paths, results, strict=True) if not result.questions}
    named["PLAIN"] = take(PLAIN).configuration
    answers = answers_to(list(named.values()))
    assert [(path, answer) for path, answer in zip(named, answers, strict=True) if answer != []] == []
    assert len(named) >= len(paths)
