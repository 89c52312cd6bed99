from pathlib import Path
from textwrap import dedent

import pytest

from config.yaml_source import YamlSource


@pytest.fixture
def source(tmp_path: Path) -> YamlSource:
    path = tmp_path / "a.yaml"
    path.write_text(
        dedent("""\
            # a comment
            name: x

            network: {cidr: a,
              nat: 1}
            queues:
              - name: q
                resources:
                  - name: r
              - name: p
            base: &base
              kind: b
            merged:
              <<: *base
              kind: c
            """),
        encoding="utf-8",
    )
    return YamlSource.read(path)


def test_the_line_of_a_place_or_of_what_is_around_it(source: YamlSource) -> None:
    lines: dict[tuple[str | int, ...], int] = {
        ("name",): 2,
        ("network",): 4,
        ("network", "nat"): 5,
        ("queues", 0): 7,
        ("queues", 0, "resources", 0, "name"): 9,
        ("queues", 1, "name"): 10,
        ("queues", 1, "missing", "below"): 10,
        ("queues", 2): 6,
        ("merged", "kind"): 15,
        ("missing",): 1,
        (): 1,
    }
    assert {place: source.line(place) for place in lines} == lines
