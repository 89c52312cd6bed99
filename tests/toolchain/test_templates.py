"""What fails in an assembly does so by name; real assemblies are resolved for all tests here."""

import json
from pathlib import Path
from typing import Any

import pytest

from emulator.aws import EmulatedAws
from emulator.templates import Resolver
from toolchain.assembly import Assembly
from toolchain.cluster import as_strings, cluster_request
from toolchain.values import UnsupportedError

pytestmark = [pytest.mark.slow, pytest.mark.validation]


def assembly(directory: Path, resources: dict[str, Any], region: str = "us-west-2") -> Assembly:
    """Write a cloud assembly of one stack."""
    (directory / "one.json").write_text(json.dumps({"Resources": resources}))
    properties = {"templateFile": "one.json"}
    environment = f"aws://unknown-account/{region}"
    artifact = {"type": "aws:cloudformation:stack", "environment": environment, "properties": properties}
    (directory / "manifest.json").write_text(json.dumps({"artifacts": {"one": artifact}}))
    return Assembly(directory)


def test_what_cannot_be_deployed_fails_by_name(aws: EmulatedAws, tmp_path: Path) -> None:
    written = assembly(tmp_path, {"X": {"Type": "AWS::SES::ConfigurationSet"}})
    with pytest.raises(UnsupportedError, match="one: X: Not emulated: resource type AWS::SES::ConfigurationSet"):
        Resolver(written, aws).resolve(written.stacks["one"], {"Ref": "X"})
    with pytest.raises(LookupError, match="0 resources of type Custom::PclusterCluster"):
        cluster_request(written, Resolver(written, aws).resolve)
    with pytest.raises(UnsupportedError, match="one: a stack without a region"):
        assembly(tmp_path, {}, region="unknown-region")


def test_scalars_become_cloudformations_strings() -> None:
    value = {"a": True, "b": [16, None, 0.5, "x"], "c": None, "d": {"e": False}}
    assert as_strings(value) == {"a": "true", "b": ["16", "0.5", "x"], "d": {"e": "false"}}
