"""What CloudFormation's descriptions of change sets mean, beside what the templates tell.

https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ResourceChange.html
"""

from __future__ import annotations

from typing import Any

import pytest

from scripts.check.plan.change_sets import changes, delete
from scripts.check.plan.comparison import NOT_YET_IN, READ_LATE
from scripts.check.plan.findings import of_stack
from scripts.check.plan.model import Effect, PlanError, PropertyChange, ResourceChange, Source, StackPlan
from scripts.core.findings import CheckStatus
from tests.scripts.refusals import refusal

FILE_SYSTEM = "AWS::FSx::FileSystem"


def detail(name: str, recreation: str = "Never", evaluation: str = "Static", attribute: str = "Properties") -> Any:
    target = {"Attribute": attribute, "Name": name, "RequiresRecreation": recreation}
    return {"Target": target, "Evaluation": evaluation, "ChangeSource": "DirectModification"}


def modified(*details: Any, replacement: str = "False", **further: str) -> Any:
    return {
        "Action": "Modify",
        "LogicalResourceId": "Lustre",
        "PhysicalResourceId": "fs-1",
        "ResourceType": FILE_SYSTEM,
        "Replacement": replacement,
        "Details": list(details),
        **further,
    }


def compared(effect: Effect, *properties: PropertyChange, causes: tuple[str, ...] = ()) -> ResourceChange:
    return ResourceChange(
        "Lustre", FILE_SYSTEM, effect, "fs-1", causes or tuple(each.path for each in properties), properties
    )


@pytest.mark.parametrize(
    ("described", "effect", "causes", "old_stays"),
    [
        (
            modified(detail("StorageCapacity", "Conditionally"), detail("Tags"), replacement="Conditional"),
            Effect.MAY_BE_REPLACED,
            ("StorageCapacity",),
            False,
        ),
        (modified(detail("", attribute="Metadata")), Effect.CHANGED, ("Metadata",), False),
        (modified(detail("", attribute="Metadata"), detail("SubnetIds")), Effect.CHANGED, ("SubnetIds",), False),
        (
            modified(detail("SubnetIds", "Always"), replacement="True", PolicyAction="ReplaceAndRetain"),
            Effect.REPLACED,
            ("SubnetIds",),
            True,
        ),
        ({**modified(), "Action": "Add"}, Effect.ADDED, (), False),
        ({**modified(), "Action": "Remove", "PolicyAction": "Retain"}, Effect.REMOVED, (), True),
    ],
)
def test_effect_causes_and_retention(described: Any, effect: Effect, causes: tuple[str, ...], old_stays: bool) -> None:
    [change] = changes([described], ())
    assert (change.effect, change.causes, change.physical_id, change.old_stays) == (effect, causes, "fs-1", old_stays)


class Stubborn:
    """CloudFormation, of which one stack's change set cannot be asked for, and the others' can be deleted."""

    class meta:
        region_name = "us-west-2"

    def __init__(self) -> None:
        self.deleted: list[str] = []

    def describe_change_set(self, *, StackName: str, ChangeSetName: str) -> dict[str, str]:
        if StackName == "a":
            raise refusal("Throttling", "DescribeChangeSet", "Rate exceeded")
        if StackName in self.deleted:
            raise refusal("ChangeSetNotFound", "DescribeChangeSet")
        return {"Status": "CREATE_COMPLETE"}

    def delete_change_set(self, *, StackName: str, ChangeSetName: str) -> None:
        self.deleted.append(StackName)


def test_one_change_set_that_cannot_be_deleted_does_not_keep_the_others() -> None:
    cloudformation = Stubborn()
    with pytest.raises(PlanError, match=r"^change set changes-1 of a is left .*Rate exceeded.*--stack-name a ") as left:
        delete(cloudformation, "changes-1", ["a", "b"])
    assert cloudformation.deleted == ["b"]
    assert "of b" not in str(left.value)


def test_a_change_set_that_is_created_after_an_interruption_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = ["ChangeSetNotFound", "", "ChangeSetNotFound"]
    cloudformation, now = Stubborn(), iter(range(100))

    def describe(**_: str) -> dict[str, str]:
        if code := answers.pop(0):
            raise refusal(code, "DescribeChangeSet")
        return {"Status": "CREATE_COMPLETE"}

    monkeypatch.setattr(cloudformation, "describe_change_set", describe)
    monkeypatch.setattr("scripts.check.plan.change_sets.time.monotonic", lambda: next(now))
    monkeypatch.setattr("scripts.check.plan.change_sets.time.sleep", lambda _: None)
    delete(cloudformation, "changes-1", ["b"], settled=3.0)
    assert cloudformation.deleted == ["b"]


def test_cloudformation_knows_better_what_happens() -> None:
    known = PropertyChange("StorageCapacity", 2400, 1200)
    described = modified(detail("StorageCapacity", "Always"), replacement="True")
    [change] = changes([described], [compared(Effect.CHANGED, known)])
    assert (change.effect, change.causes, change.properties) == (Effect.REPLACED, ("StorageCapacity",), (known,))
    assert changes([], [compared(Effect.CHANGED, known)]) == ()


def test_a_dynamic_change_counts_only_if_the_templates_share_it() -> None:
    doubt = modified(detail("SecurityGroupIds", "Always", "Dynamic"), replacement="Conditional")
    assert changes([doubt], ()) == ()
    nested_stack = {"Target": {"Attribute": "Properties", "RequiresRecreation": "Never"}, "Evaluation": "Dynamic"}
    assert changes([modified({**nested_stack, "ChangeSource": "Automatic"})], ()) == ()
    shared = compared(Effect.MAY_BE_REPLACED, PropertyChange("SecurityGroupIds", ["sg-1"], ["(not yet)"]))
    assert changes([doubt], [shared]) == (shared,)


@pytest.mark.parametrize(
    ("replacement", "effect"), [("Conditional", Effect.MAY_BE_REPLACED), ("True", Effect.REPLACED)]
)
def test_a_replacement_planned_for_a_value_that_is_read_late_says_why(replacement: str, effect: Effect) -> None:
    # https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/2559
    described = modified(detail("StorageCapacity"), detail("SubnetIds", "Always", "Dynamic"), replacement=replacement)
    grown, subnet = PropertyChange("StorageCapacity", 2400, 4800), PropertyChange("SubnetIds", ["subnet-1"], READ_LATE)
    [change] = changes([described], [compared(Effect.CHANGED, grown)], {"Lustre": [subnet]})
    assert (change.effect, change.causes, change.properties) == (effect, ("SubnetIds",), (grown, subnet))
    [finding] = of_stack(StackPlan("storage", Source.CHANGE_SET, changes=(change,)), "mine", accepted=False)
    assert finding.status is CheckStatus.FAIL
    assert (
        "because of SubnetIds from [subnet-1] to (Fn::GetStackOutput: read during the deployment)" in finding.sentence
    )
    assert "make the reference strong" in finding.hint


@pytest.mark.parametrize(
    ("path", "link", "warns"),
    [
        ("Tags", Effect.CHANGED, True),
        ("Tags.project", Effect.CHANGED, True),
        ("Tags", Effect.REMOVED, True),
        ("Tags", Effect.ADDED, False),
        ("StorageCapacity", Effect.CHANGED, False),
    ],
)
def test_other_tags_of_a_file_system_with_links_are_a_warning(path: str, link: Effect, warns: bool) -> None:
    """The link gets the tags of its stack, too."""
    system = compared(Effect.CHANGED, PropertyChange(path, 1, 2))
    linked = ResourceChange("Link", "AWS::FSx::DataRepositoryAssociation", link)
    stack = StackPlan("storage", Source.FILES, changes=(system, linked))
    found = [each for each in of_stack(stack, "mine", accepted=True) if "Lustre" in each.subject]
    assert [(each.status, "deploy without storage.data_repositories" in each.hint) for each in found] == (
        [(CheckStatus.WARN, True)] * warns
    )


def test_what_follows_from_another_stack_is_added() -> None:
    follows = compared(Effect.MAY_BE_REPLACED, PropertyChange("SubnetIds", ["a"], [NOT_YET_IN.format("network")]))
    assert changes([], [follows]) == (follows,)
    assert changes([modified(detail("", attribute="Tags"))], [follows]) == (follows,)
