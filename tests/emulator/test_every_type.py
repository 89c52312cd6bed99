"""What holds for resources of every type, on a stack that has one of each."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from emulator.aws import EmulatedAws
from emulator.resources import MODELS
from tests.emulator import specimens
from tests.emulator.account import tags
from tests.emulator.stacks import Stacks

CAPABILITIES = ["CAPABILITY_NAMED_IAM"]


@pytest.fixture(scope="module")
def specimen(rehearsal_server: EmulatedAws) -> dict[str, Any]:
    """The resources of the stack `every`, which exists."""
    rehearsal_server.reset()
    resources = specimens.resources(specimens.prepare(rehearsal_server))
    stacks = Stacks(rehearsal_server, specimens.REGION)
    stacks.create("every", resources, Capabilities=CAPABILITIES, Tags=tags(Team="one", Gone="x"))
    assert stacks.status("every") == "CREATE_COMPLETE", stacks.reasons("every", "CREATE_FAILED")
    return resources


@pytest.fixture
def every(rehearsal_server: EmulatedAws, specimen: dict[str, Any]) -> Iterator[EmulatedAws]:
    """An account with the stack `every`, for one test."""
    with rehearsal_server.clone() as clone:
        yield clone


def test_there_is_one_of_each(specimen: dict[str, Any]) -> None:
    assert {each["Type"] for each in specimen.values()} == set(MODELS)


def test_tags_change_on_resources_of_every_type(every: EmulatedAws, specimen: dict[str, Any]) -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-resource-tags.html."""
    stacks, resources = Stacks(every, specimens.REGION), deepcopy(specimen)
    for logical_id, own in (("EFSFileSystem", "FileSystemTags"), ("HostedZone", "HostedZoneTags")):
        resources[logical_id]["Properties"][own] = tags(Team="two", New="y")
    stacks.update("every", resources, Capabilities=CAPABILITIES, Tags=tags(Team="two", New="y"))
    assert stacks.status("every") == "UPDATE_COMPLETE", stacks.reasons("every", "UPDATE_FAILED")
    names = stacks.resources("every")
    [repository] = every.client("ecr", specimens.REGION).describe_repositories()["repositories"]
    for service, action, request, where in (
        ("autoscaling", "describe_tags", {}, ("Tags",)),
        ("ecr", "list_tags_for_resource", {"resourceArn": repository["repositoryArn"]}, ("tags",)),
        ("efs", "list_tags_for_resource", {"ResourceId": names["EFSFileSystem"]}, ("Tags",)),
        *(
            ("elbv2", "describe_tags", {"ResourceArns": [names[each]]}, ("TagDescriptions", 0, "Tags"))
            for each in ("Listener", "LoadBalancer", "TargetGroup")
        ),
        ("iam", "list_open_id_connect_provider_tags", {"OpenIDConnectProviderArn": names["OIDCProvider"]}, ("Tags",)),
        (
            "route53",
            "list_tags_for_resource",
            {"ResourceType": "hostedzone", "ResourceId": names["HostedZone"]},
            ("ResourceTagSet", "Tags"),
        ),
    ):
        found = getattr(every.client(service, specimens.REGION), action)(**request)
        for member in where:
            found = found[member]
        assert {each["Key"]: each["Value"] for each in found} == {"Team": "two", "New": "y"}, (service, request)
