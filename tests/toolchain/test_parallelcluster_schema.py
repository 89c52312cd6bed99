"""What we know of ParallelCluster's schema is what its package declares, and is read as the package reads it."""

import json
import subprocess
from typing import Any

import pytest

from toolchain.cluster import as_strings
from toolchain.parallelcluster import PYTHON, ParallelCluster
from ultracluster.domain.parallelcluster_schema import FILE, fields, violations

VALUES = ["x", "", 1, 0, -1, 10**6, 1.5, True, "true", "7", "sg-12345678", [], ["x"], [{}], {}, "x" * 300]
BY_CODE = ("AllowedIps", "ExtraChefAttributes", "OnNodeStart", "OnNodeConfigured", "OnNodeUpdated")
"""Keys whose values a function of the package checks, which the schema does not say."""
LOAD = """
import json, sys
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
        print(json.dumps(sorted(set(refused(error.messages)))))
    except Exception:
        print("null")
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


def test_each_value_of_each_key_is_refused_if_parallelcluster_refuses_it() -> None:
    tried = [(path, value) for path in fields() if not path.endswith(BY_CODE) for value in VALUES]
    tried += [(f"{path}x", "x") for path in fields()]
    configurations = [at(path, value) for path, value in tried]
    text = "".join(f"{json.dumps(each)}\n" for each in as_strings(configurations))
    done = subprocess.run([PYTHON, "-c", LOAD], input=text, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    differing = []
    for (path, value), configuration, answer in zip(tried, configurations, answers, strict=True):
        found = {
            ".".join(str(part) for part in each.path if isinstance(part, str)) for each in violations(configuration)
        }
        if answer is not None and (path in found) != (path in answer):
            differing.append((path, value, answer, sorted(found)))
    assert differing == []


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
    done = subprocess.run([PYTHON, "-c", program], input=text, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for (path, value), configuration, answer in zip(tried, configurations, answers, strict=True):
        refused = any(each.startswith(path) for each in answer)
        assert bool([*violations(configuration)]) == refused, (path, value)
    assert [*violations(at(tried[0][0], {"Sequence": [SCRIPT], "Args": ["x"]}))]
    told = {each.path[-1]: each.allowed for each in violations(at(tried[0][0], {"Sequences": [SCRIPT]}))}
    assert told["Sequences"] == "Sequence"
