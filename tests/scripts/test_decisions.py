"""What commands decide, they decide on fields: another wording of a sentence changes nothing but what people read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"
SENTENCES = {
    *("Description", "Message", "ResourceStatusReason", "StatusReason", "TemplateDescription"),
    *("hint", "message", "reason", "sentence"),
}
"""Attributes and keys of AWS's answers with text for people."""
SEARCHES = {
    *("endswith", "find", "findall", "fullmatch", "match", "partition", "removeprefix", "rpartition", "search"),
    *("split", "startswith"),
}
ALLOWED = {
    ("account/deployment.py", "interface['Description'].split()"),  # AWS has no field for whose an interface is
    ("core/aws_errors.py", "'does not exist' in str(error)"),  # CloudFormation has no code for it
    ("account/job_reasons.py", "each.reason.fullmatch(reason)"),  # Slurm's words for why a job waits, which are values
    ("account/job_reasons.py", "each.reason.fullmatch(spoken)"),  # the same, as slurmctld writes some
    ("account/jobs.py", "self.reason not in ('', 'None')"),  # a value of squeue
    (
        "account/troubles.py",
        "problem.reason in TRANSIENT",
    ),  # ParallelCluster has no other field for why a node is down
    ("account/troubles.py", "problem.reason == 'none'"),  # a value of sinfo
    ("use/jobs.py", "job.reason == 'None'"),  # a value of squeue
    ("use/jobs.py", "each.reason != 'None'"),  # a value of squeue
    ("watch/inventory/model.py", "str(error) not in denied"),  # each is shown once
}


def is_sentence(node: ast.expr) -> bool:
    """Tell whether an expression is text for people: by the name of its attribute or key, or as that of an error."""
    match node:
        case ast.Attribute(attr=key):
            return key in SENTENCES
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return key in SENTENCES
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(key)), *_]):
            return key in SENTENCES
        case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id="error")]):
            return True
    return False


def searched(tree: ast.AST) -> Iterator[str]:
    """Yield the expressions that compare, search or split text for people."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others) if any(map(is_sentence, (left, *others))):
                yield ast.unparse(node)
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=values) if name in SEARCHES and any(
                map(is_sentence, (value, *values))
            ):
                yield ast.unparse(node)


def test_no_command_decides_by_a_sentence() -> None:
    trees = {path: ast.parse(path.read_text("utf-8")) for path in SCRIPTS.rglob("*.py")}
    found = {(str(path.relative_to(SCRIPTS)), text) for path, tree in trees.items() for text in searched(tree)}
    assert found == ALLOWED, "give it a field; what AWS says in a message alone, scripts/core/aws_errors.py reads"
