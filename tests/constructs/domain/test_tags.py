"""Tags against the alphabets of the services that carry them, by their own models."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
import regex  # type: ignore[import-untyped]

from tests.constructs.domain.specs import cluster
from tests.stacks.deployments import CONFIG
from toolchain.golden import read_golden
from ultracluster.domain.cluster_rules import violations
from ultracluster.domain.snapshots import tag_violations

SNAPSHOTS = CONFIG.parent / "tests/snapshots"
SHAPES = {"TagKey": True, "tagKeyType": True, "TagValue": False, "tagValueType": False}
"""What models call keys and values of tags, and whether it is a key."""
OF_PARALLELCLUSTER = {"elbv2", "iam", "lambda"}
"""Services whose resources ParallelCluster tags beside those of our templates."""


def services() -> set[str]:
    """Return the services of the resources in all golden templates."""
    types = {
        resource["Type"].split("::")[1].lower()
        for path in SNAPSHOTS.iterdir()
        for template in (read_golden(path).values() if path.is_dir() else ())
        for resource in template.get("Resources", {}).values()
        if resource["Type"].startswith("AWS::")
    }
    return types | OF_PARALLELCLUSTER


def patterns() -> dict[tuple[str, str], Any]:
    """Return the patterns of keys and values of tags that services declare, by service and shape."""
    session = botocore.session.get_session()
    loader, known = session.get_component("data_loader"), session.get_available_services()
    found = {}
    for name in sorted(services()):
        shapes = loader.load_service_model(name, "service-2")["shapes"] if name in known else {}
        for shape in SHAPES.keys() & shapes.keys():
            if "pattern" in shapes[shape]:
                found[name, shape] = regex.compile(shapes[shape]["pattern"].replace(r"\p{all}", r"\s\S"))
    return found


PATTERNS = patterns()
CHARACTERS = [chr(code) for code in range(0x2100) if code != 0] + ["\u3042", "\U0001f600", "\u2028"]


def test_the_services_that_are_pickiest_are_among_them() -> None:
    assert {"fsx", "efs", "iam", "ssm", "elbv2", "logs"} <= {service for service, _ in PATTERNS}


@pytest.mark.parametrize("is_key", [True, False])
def test_what_the_settings_accept_every_service_accepts(is_key: bool) -> None:
    judged = [pattern for (_, shape), pattern in PATTERNS.items() if SHAPES[shape] is is_key]
    assert judged
    accepted = [each for each in CHARACTERS if not violations(cluster(tags={each: "v"} if is_key else {"k": each}))]
    assert {*"aZ0 _.:/=+-@"} <= {*accepted}
    if is_key:  # with snapshots, keys are those that Data Lifecycle Manager takes
        accepted = [each for each in accepted if not [*tag_violations([each])]]
        assert {*"aZ0_.:/=+-"} <= {*accepted}
    assert [each for each in accepted if not all(pattern.fullmatch(each) for pattern in judged)] == []


def test_tokens_pass() -> None:
    assert not violations(cluster(tags={"k": "${Token[AWS.StackName.7]}"}))
