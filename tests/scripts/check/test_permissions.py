"""The policies of the pipeline's roles are enough: each command runs with these permissions alone.

But for drift detection: the emulated CloudFormation reads resources by itself, and is denied meanwhile. Its permissions
are compared with what AWS's resource schemas say that reading takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

from scripts.change.deploy import settle
from scripts.check import permissions
from scripts.check.plan.model import Source
from scripts.check.plan.plan import plan_of_account
from scripts.core import terminal
from tests.command_line import ultracluster
from tests.scripts.operated import Operated
from tests.scripts.watch.status.test_status import as_json
from tests.stacks.choices import CHOICES
from tests.stacks.deployments import CONFIGURATIONS, Raw, deploy, edited
from tests.stacks.golden import SNAPSHOTS
from toolchain.golden import read_golden

SLURM = {"slurm": "these credentials lack ssm:SendCommand"}


@contextmanager
def only(policy: dict[str, Any], operated: Operated, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with operated.aws.restricted(policy) as environment, monkeypatch.context() as patch:
        operated.act_as(environment, patch)
        yield


@pytest.mark.slow
def test_status_shows_all_but_what_the_head_node_is_asked_for(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    with only(permissions.reviewing(), operated, monkeypatch):
        _, document = as_json(operated.deployment())

    assert document["unavailable"] == SLURM


def faster_file_system(settings: Raw) -> None:
    settings["storage"]["file_system"]["throughput_mbps_per_tib"] = 500


@pytest.mark.slow
def test_a_plan_sees_what_is_deployed_and_refuses_what_replaces_it(
    operated: Operated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = edited("trn1-16", faster_file_system)
    deployment = deploy(settings, tmp_path)
    with only(permissions.reviewing(), operated, monkeypatch):
        plan = plan_of_account("trn1-16", settings, tmp_path, accepted=False)

    assert {stack.name for stack in plan.stacks} == deployment.templates.keys()
    assert {stack.source for stack in plan.stacks} <= {Source.SAME, Source.STORED_TEMPLATE}
    assert not plan.ok


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (permissions.checking, ["diagnose", "trn1-16"]),
        (permissions.deploying, ["inventory", "trn1-16"]),
        (permissions.deploying, ["destroy", "trn1-16", "--all", "--unprotect", "--force", "--dry-run"]),
    ],
)
def test_a_command_prints_the_same_as_with_all_permissions(
    policy: Callable[[], dict[str, Any]],
    words: list[str],
    operated: Operated,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def said() -> tuple[int, Any]:
        code = ultracluster(*words, "--output", "json")
        out, err = capsys.readouterr()
        assert "AccessDenied" not in out + err
        out = re.sub(r'"what Slurm answers now: [^"]*"', '""', out)  # only who has the cluster may ask, see `_STATUS`
        return code, json.loads(re.sub(r'"\d{4}-\d\d-\d\dT[^"]*"', '""', out))  # a head node is silent as of now

    expected = said()
    with only(policy(), operated, monkeypatch):
        assert said() == expected


@pytest.mark.slow
def test_a_deployment_may_see_whether_another_one_is_in_progress(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    with only(permissions.deploying(), operated, monkeypatch):
        settle(operated.deployment(), terminal.console())


NOT_READ = {
    "vpc-lattice:DescribeServiceNetworkVpcEndpointAssociation",
    "kms:Decrypt",
    "secretsmanager:GetSecretValue",
}
"""For endpoints of service networks, and for functions whose variables have a key: these stacks have neither. And for
the password of accounting, which roles that only look must not have; its value is no property that is compared."""


def test_drift_detection_may_read_each_type_that_is_deployed() -> None:
    templates = [
        template for name in (*CONFIGURATIONS, *CHOICES) for template in read_golden(SNAPSHOTS / name).values()
    ]
    types = {each["Type"] for template in templates for each in template["Resources"].values()}
    schemas = {
        name: PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-west-2", name).schema
        for name in types
        if name.startswith("AWS::")
    }
    needed = {
        (name, action)
        for name, schema in schemas.items()
        for action in schema.get("handlers", {}).get("read", {}).get("permissions", [])
    }
    allowed = {action for each in permissions.reviewing()["Statement"] for action in each["Action"]}

    assert ("AWS::KMS::Key", "kms:GetKeyPolicy") in needed
    assert ("AWS::FSx::Volume", "fsx:DescribeVolumes") in needed
    missing = {each for each in needed if not any(fnmatchcase(each[1], pattern) for pattern in allowed | NOT_READ)}
    assert missing == set()


@pytest.mark.slow
def test_a_deployment_reads_the_clusters_logs_and_a_pull_request_does_not(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = operated.log_group

    def read() -> None:
        operated.deployment().account.client("logs").filter_log_events(logGroupName=group)

    with only(permissions.deploying(), operated, monkeypatch):
        read()
    with only(permissions.reviewing(), operated, monkeypatch), pytest.raises(ClientError, match="FilterLogEvents"):
        read()
