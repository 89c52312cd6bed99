"""Facts of resource types: each type has one row, all types of the templates have one, and there is no other table."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
from botocore import xform_name

from scripts.account import resource_kinds
from scripts.account.resource_kinds import LEFT, OTHERS, Call, Paid, kind_of
from scripts.change.destroy import stacks as destroy_stacks
from scripts.core.options import ROOT
from scripts.watch.inventory import costs, removal

SESSION = botocore.session.get_session()
KINDS = {each.type: each for each in (*LEFT, *OTHERS)}
TYPE = re.compile(r"(AWS|Custom)::\w+(::\w+)?")
CALLS = [call for each in KINDS.values() for call in (each.found, each.deleted) if call]
TABLES = {
    "change/destroy/stacks.py": "functions",
    "check/plan/permissions.py": "beginnings of types",
    "watch/inventory/costs.py": "functions, products",
    "watch/inventory/removal.py": "functions",
}
"""Files of scripts/ that list three types or more: what a row cannot have."""


def types_of(value: Any) -> Iterator[str]:
    """Yield the types of the resources in a template, or in changes of templates."""
    if isinstance(value, dict):
        if TYPE.fullmatch(str(value.get("Type"))):
            yield value["Type"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from types_of(each)


def test_every_type_of_the_templates_has_a_row() -> None:
    files = sorted((ROOT / "tests" / "snapshots").rglob("*.json"))
    used = {each for path in files for each in types_of(json.loads(path.read_text(encoding="utf-8")))}
    assert {"AWS::EC2::VPC", "AWS::EFS::FileSystem", "AWS::CodePipeline::Pipeline"} < used
    assert used - KINDS.keys() == set()


def test_each_type_has_one_row() -> None:
    assert len(KINDS) == len(LEFT) + len(OTHERS)
    assert kind_of("AWS::EC2::VPC") is KINDS["AWS::EC2::VPC"]
    assert kind_of("AWS::New::Thing") == resource_kinds.ResourceKind("AWS::New::Thing")


def test_functions_are_there_for_what_rows_do_not_tell() -> None:
    by_payment = {paid: {each.type for each in KINDS.values() if each.paid is paid} for paid in Paid}
    assert costs._RATES.keys() == by_payment[Paid.RATE]
    assert costs._SIZES.keys() == by_payment[Paid.SIZE]
    assert not removal._FOUND.keys() & {each.type for each in LEFT if each.found}
    assert not removal._DELETED.keys() & {each.type for each in LEFT if each.deleted}
    never_swept = {each.type for each in LEFT if not each.deleted} - removal._DELETED.keys()
    assert never_swept == {"AWS::Backup::RecoveryPoint", "AWS::EC2::Snapshot", "AWS::RDS::DBSnapshot"}  # last backups
    assert all(KINDS[each].holds_data for each in never_swept)
    assert {*removal._FOUND, *removal._DELETED, *destroy_stacks._EMPTIED} <= {each.type for each in LEFT}


def test_what_holds_data_is_not_replaced_without_consent() -> None:
    """But for volumes of instances and copies, which no template of ours has."""
    unguarded = {each.type for each in KINDS.values() if each.holds_data and not each.is_guarded}
    copies = {"AWS::Backup::RecoveryPoint", "AWS::EC2::Snapshot", "AWS::FSx::Backup", "AWS::RDS::DBSnapshot"}
    assert unguarded == copies | {"AWS::EC2::Volume"}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.operation)
def test_a_call_is_one_of_its_service(call: Call) -> None:
    model = SESSION.get_service_model(call.service)
    [operation] = [each for each in model.operation_names if xform_name(each) == call.operation]
    shape = model.operation_model(operation).input_shape.members[call.parameter]
    assert shape.type_name == ("list" if call.many else "string")


def test_no_other_file_has_a_table_of_types() -> None:
    """Facts of types are in rows, so that somebody who adds a type finds all that is to be said of it."""
    scripts = ROOT / "scripts"
    found = set()
    for path in scripts.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "::" in text else ():
            listed: list[Any] = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
            values = [str(each.value) for each in listed if isinstance(each, ast.Constant)]
            if sum(each.startswith(("AWS::", "Custom::")) for each in values) > 2:
                found.add(path.relative_to(scripts).as_posix())
    assert found == {*TABLES, "account/resource_kinds.py"}
