"""What the Neuron back end sets before it loads PyTorch/XLA, a fake here."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.training.programs.bert.runs import in_ranks
from tests.training.ultracluster_job.torch_xla_signatures import RECORDED, calls, signatures

ROUNDING = "NEURON_RT_STOCHASTIC_ROUNDING_EN"


def seen_by_torch_xla(directory: Path, given: str | None, stochastic: bool) -> int:
    """Load the back end, in a process of its own, and write what torch_xla saw when it was loaded."""
    for name in ("__init__", "runtime", "core/__init__", "core/xla_model", "distributed/__init__"):
        file = directory / "torch_xla" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    seen = f"import os, pathlib; pathlib.Path({str(directory / 'seen')!r}).write_text(os.environ.get({ROUNDING!r}, ''))"
    (directory / "torch_xla/__init__.py").write_text(seen)
    (directory / "torch_xla/distributed/xla_backend.py").touch()
    sys.path.insert(0, str(directory))
    os.environ.pop(ROUNDING, None)
    if given is not None:
        os.environ[ROUNDING] = given
    from ultracluster_job import connect, this_worker

    with suppress(AttributeError):  # there is no device
        connect("neuron", this_worker(), stochastic_rounding=stochastic)
    return 0


@pytest.mark.parametrize(
    ("given", "stochastic", "seen"), [(None, False, "0"), (None, True, "1"), ("1", False, "1"), ("0", True, "0")]
)
def test_rounding_is_to_the_nearest_unless_asked_for_or_the_environment_says_otherwise(
    tmp_path: Path, given: str | None, stochastic: bool, seen: str
) -> None:
    assert in_ranks(1, seen_by_torch_xla, tmp_path, given, stochastic) == [0]
    assert (tmp_path / "seen").read_text() == seen


def test_the_back_end_calls_pytorch_xla_as_its_source_has_it() -> None:
    """Of the pinned release, recorded by torch_xla_signatures.py; `make test-xla` compares that with the package."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    for name, call in calls():
        parameters = [each.removesuffix("=").lstrip("*") for each in recorded[name]]
        positional = [each for each in recorded[name] if not each.startswith("*")]
        given = {keyword.arg for keyword in call.keywords}
        assert len(call.args) <= len(positional), name
        assert given <= set(parameters[len(call.args) :]), name
        needed = {each.lstrip("*") for each in recorded[name][len(call.args) :] if not each.endswith("=")}
        assert needed <= given, name


@pytest.mark.xla
def test_the_recorded_signatures_are_those_of_the_package() -> None:
    import torch_xla

    assert signatures(Path(torch_xla.__file__).parent) == json.loads(RECORDED.read_text(encoding="utf-8"))
