"""``load`` accepts a file or reports its violations, whatever is in it."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from config.settings import SettingsError, load
from tests.config.settings_files import put
from tests.properties import QUICK

TEXT = (Path(__file__).parents[2] / "config" / "reserved.yaml").read_text(encoding="utf-8")


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    children: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*place, key))


CONTENT = yaml.safe_load(TEXT)
PLACES = sorted((place for place in places(CONTENT) if place), key=str)
KEYS = ("name", "Name", "Scheduling", "SlurmQueues", "SlurmSettings", "ComputeResources", "HeadNode", "path")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates() | st.binary()
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | SCALARS, inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings") / "settings.yaml"


def is_accepted_or_reported(path: Path) -> None:
    try:
        loaded = load(path)
    except SettingsError as error:
        reported = str(error)
    else:
        reported = f"{path}: {loaded.warnings}"
    assert reported.startswith(str(path))


@pytest.mark.slow
@QUICK
@given(place=st.sampled_from(PLACES), value=ANYTHING)
@example(place=("cluster", "overrides"), value={"Scheduling": {"SlurmQueues": [{"Name": ["odcr"]}]}})
@example(place=("cluster", "overrides"), value={"HeadNode": {None: {1.5: 2}}})
@example(place=("cluster", "overrides"), value={"Scheduling": {"SlurmSettings": ["Database"]}})
@example(place=("tags",), value={None: "x", True: "y"})
def test_any_value_in_any_place(path: Path, place: tuple[str | int, ...], value: Any) -> None:
    content = deepcopy(CONTENT)
    put(content, place, value)
    path.write_text(yaml.dump(content, Dumper=yaml.CSafeDumper), encoding="utf-8")
    is_accepted_or_reported(path)


@QUICK
@given(start=st.integers(0, len(TEXT)), length=st.integers(0, 40), new=st.text(max_size=8))
def test_any_text_in_the_place_of_any_other(path: Path, start: int, length: int, new: str) -> None:
    path.write_text(TEXT[:start] + new + TEXT[start + length :], encoding="utf-8", errors="surrogatepass")
    is_accepted_or_reported(path)
