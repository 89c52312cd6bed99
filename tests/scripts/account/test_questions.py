"""What two packages of the command line ask of AWS is asked in one place, and so once in a run."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping

from scripts.core.options import ROOT

_METHODS = {"ask", "find", "list"}
"""Methods of an account that ask: service, operation, parameters."""
DIFFERENT: Mapping[str, str] = {
    "cloudformation get_template": "account: as deployed; change: as the pipeline gave it",
    "cloudformation list_change_sets": "change: those that wait; watch: the one that failed",
    "ec2 describe_nat_gateways": "check: that of a route, and all, for the quota; rehearse: the addresses of one",
    "ec2 describe_network_interfaces": "check: all, for the quota; watch: detached ones in groups of a cluster",
    "ec2 describe_security_groups": "check: the one of the settings; watch: those of a cluster",
    "ec2 describe_volumes": "change: the head node's; check: all of gp3, for the quota; watch: all, for their prices",
    "ec2 describe_vpc_endpoints": "change, watch: all; check: those of the VPC",
    "fsx describe_file_systems": "account: as they are; rehearse: what was done to one",
    "logs describe_log_groups": "each of names that start with something else",
    "secretsmanager describe_secret": "check: those of the settings; watch: those that a stack left",
    "sts get_caller_identity": "has no parameters, so that it is one question wherever it is asked",
}
"""Operations that several packages ask about different things, and which."""


def questions() -> dict[str, set[str]]:
    """Return the packages of scripts/ that ask for an operation, by service and operation."""
    asking = defaultdict(set)
    for path in (ROOT / "scripts").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _METHODS:
                match node.args:
                    case [ast.Constant(str(service)), ast.Constant(str(operation)), *_]:
                        asking[f"{service} {operation}"].add(path.relative_to(ROOT / "scripts").parts[0])
    return asking


def test_each_question_is_asked_by_one_package() -> None:
    several = {each for each, packages in questions().items() if len(packages) > 1}
    assert several == DIFFERENT.keys()
