"""What we know of ParallelCluster's schema is what its package declares, and is read as the package reads it."""

import json
import subprocess
from typing import Any

import pytest

from tests.constructs.domain.sample_overrides import LEAVES, override_of
from tests.constructs.domain.specs import cluster
from tests.constructs.domain.test_overrides import BINDINGS
from toolchain.cluster import as_strings
from toolchain.parallelcluster import PYTHON, ParallelCluster
from ultracluster.domain.cluster import LoginPoolSpec
from ultracluster.domain.cluster_configuration import render
from ultracluster.domain.overrides import without_indices
from ultracluster.domain.parallelcluster_schema import FILE, fields, missing, violations

pytestmark = pytest.mark.slow

VALUES = ["x", "", 1, 0, -1, 10**6, 1.5, True, "true", "7", "sg-12345678", [], ["x"], [{}], {}, "x" * 300]
BY_CODE = ("AllowedIps", "ExtraChefAttributes", "OnNodeStart", "OnNodeConfigured", "OnNodeUpdated")
"""Keys whose values a function of the package checks, which the schema does not say."""
LOAD = """
import json, os, sys
os.environ["AWS_DEFAULT_REGION"] = "us-west-2"
from marshmallow import ValidationError
from pcluster.schemas.cluster_schema import ClusterSchema

def refused(messages, path=()):
    for key, value in messages.items():
        below = path if isinstance(key, int) or key == "_schema" else (*path, key)
        if isinstance(value, dict):
            yield from refused(value, below)
        elif key == "_schema" and value != ["Invalid input type."]:
            continue
        elif any(not each.startswith("Missing data") for each in value):
            yield ".".join(below)

schema = ClusterSchema("cluster")
for line in sys.stdin:
    try:
        schema.load(json.loads(line))
        print("[]")
    except ValidationError as error:
        print(json.dumps(sorted(set(refused(error.messages))) if "--broken" in sys.argv else error.messages))
    except Exception as error:
        print("null" if "--broken" in sys.argv else json.dumps(repr(error)))
"""


def at(path: str, value: object) -> dict[str, Any]:
    """Return a configuration with a value at a path, in the first item of each list; actions have a script."""
    *above, last = path.split(".")
    configuration: Any = {last: value}
    while above:
        section = ".".join(above)
        configuration = {"Script": "s3://b/k"} | configuration if fields()[section].or_sequence else configuration
        configuration = [configuration] if fields()[section].list else configuration
        configuration = {above.pop(): configuration}
    return configuration  # type: ignore[no-any-return]


def test_the_file_has_what_the_package_declares(parallelcluster: ParallelCluster, pytestconfig: pytest.Config) -> None:
    lines = [f"  {json.dumps(path)}: {json.dumps(facts)}" for path, facts in parallelcluster.schema().items()]
    declared = "{\n" + ",\n".join(lines) + "\n}\n"
    if pytestconfig.getoption("update_snapshots"):
        FILE.write_text(declared, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == declared, "If the version is another, run `make snapshots`."


def answers_to(configurations: list[dict[str, Any]], *arguments: str) -> list[Any]:
    """Return what ParallelCluster's schema says of each configuration; ``--broken``: which keys it refuses."""
    text = "".join(f"{json.dumps(each)}\n" for each in as_strings(configurations))
    done = subprocess.run([PYTHON, "-c", LOAD, *arguments], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_parallelcluster_takes_each_override_merged_into_a_configuration() -> None:
    """That of each key that the schema knows, those of lists and of exclusive keys among them."""
    pools = [LoginPoolSpec(name="login")]
    taken = [render(cluster(login_nodes=pools, overrides=override_of(path)), BINDINGS) for path in LEAVES]
    refused = [(path, answer) for path, answer in zip(LEAVES, answers_to(taken), strict=True) if answer != []]
    assert refused == []


def test_each_value_of_each_key_is_refused_if_parallelcluster_refuses_it() -> None:
    tried = [(path, value) for path in fields() if not path.endswith(BY_CODE) for value in VALUES]
    tried += [(f"{path}x", "x") for path in fields()]
    configurations = [at(path, value) for path, value in tried]
    differing = []
    answers = answers_to(configurations, "--broken")
    for (path, value), configuration, answer in zip(tried, configurations, answers, strict=True):
        found = {
            ".".join(str(part) for part in each.path if isinstance(part, str)) for each in violations(configuration)
        }
        if answer is not None and (path in found) != (path in answer):
            differing.append((path, value, answer, sorted(found)))
    assert differing == []


def test_of_a_mapping_in_place_of_a_list_nothing_else_is_told() -> None:
    lists = [path for path, field in fields().items() if field.kind == "section" and field.list]
    configurations = {path: at(path, {}) for path in lists}
    told = {
        path: [without_indices(each.path) for each in violations(configuration)]
        + [f"{without_indices(place)}.{key}" for place, key in missing(configuration) if without_indices(place) == path]
        for path, configuration in configurations.items()
    }
    assert told == {path: [path] for path in lists}


SCRIPT = {"Script": "s3://bucket/key"}
ACTIONS: list[dict[str, Any]] = [
    SCRIPT,
    {**SCRIPT, "Args": ["x"]},
    {"Sequence": [SCRIPT, SCRIPT]},
    {"Sequence": []},
    {},
    {"Args": ["x"]},
    {**SCRIPT, "Sequence": [SCRIPT]},
    {"Sequence": [{"Args": ["x"]}]},
    {"Sequence": SCRIPT},
    {"Sequences": [SCRIPT]},
]


def test_an_action_has_a_script_or_a_sequence_of_such() -> None:
    """Of keys beside a sequence the package says nothing, and ignores them."""
    tried = [(path, value) for path, field in fields().items() if field.or_sequence for value in ACTIONS]
    configurations = [at(path, value) for path, value in tried]
    program = LOAD.replace('elif any(not each.startswith("Missing data") for each in value):', "else:")
    assert program != LOAD
    text = "".join(f"{json.dumps(each)}\n" for each in configurations)
    done = subprocess.run([PYTHON, "-c", program, "--broken"], input=text, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for (path, value), configuration, answer in zip(tried, configurations, answers, strict=True):
        refused = any(each.startswith(path) for each in answer)
        lacking = [key for place, key in missing(configuration) if without_indices(place).startswith(path)]
        assert bool(lacking or [*violations(configuration)]) == refused, (path, value)
    assert [*violations(at(tried[0][0], {"Sequence": [SCRIPT], "Args": ["x"]}))]
    told = {each.path[-1]: each.allowed for each in violations(at(tried[0][0], {"Sequences": [SCRIPT]}))}
    assert told["Sequences"] == "Sequence"
