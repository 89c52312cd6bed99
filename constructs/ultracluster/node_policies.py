"""What nodes may do: managed policies, as many as IAM's limits ask for."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.domain.violations import Violation

MAX_POLICY = 6144
"""Characters of a managed policy, white space not counted. Of a role at most 10 are attached, or up to 25 by a raised
quota (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html)."""
POLICIES_OF_ROLE, MOST_POLICIES_OF_ROLE = 10, 25
POLICIES_CONTEXT = "ultracluster:policiesPerRole"
"""Key of the CDK's context with an account's quota, where it is raised."""
OF_PARALLELCLUSTER = "CloudWatchAgentServerPolicy"
"""Policy that ParallelCluster attaches to each role of nodes (aws-parallelcluster 3.16.1,
templates/cdk_builder_utils.py, _add_role)."""
_ARN_CONTEXT = "@aws-cdk/aws-iam.arnSizeEstimate"
_ARN = 150
"""What the CDK takes for the length of an ARN that only CloudFormation knows, unless its context says otherwise
(aws-cdk-lib, aws-iam/lib/policy-statement.ts)."""
_PSEUDO_PARAMETERS = {"AWS::Partition": 10, "AWS::Region": 14, "AWS::AccountId": 12, "AWS::URLSuffix": 17}
_FRAME = len('{"Version":"2012-10-17","Statement":[]}')


class NodePolicies:
    """The policies of nodes of one kind.

    Statements go into the first policy until IAM's limit; then there is a further one. What is there stays where it is.

    Attributes:
        first: The policy that there is in any case.
        too_large: Sizes of single statements that no policy holds.
    """

    def __init__(
        self, further: Construct, first: iam.ManagedPolicy, attach: Callable[[iam.ManagedPolicy], None]
    ) -> None:
        self.first = first
        self._further, self._attach = further, attach
        self._policies = [first]
        self.too_large: list[int] = []
        self._size = _FRAME + sum(self._size_of(each) for each in _statements(first))

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._policies)

    def add(self, statement: iam.PolicyStatement) -> iam.AddToPrincipalPolicyResult:
        """Add a statement."""
        size = self._size_of(Stack.of(self.first).resolve(statement.to_statement_json()))
        if self._size + size > MAX_POLICY and self._size > _FRAME:
            number = len(self._policies) + 1
            scope = self._further.node.try_find_child("Further") or Construct(self._further, "Further")
            policy = iam.ManagedPolicy(scope, f"{self.first.node.id}-{number}", path="/parallelcluster/")  # type: ignore[arg-type]
            self._attach(policy)
            self._policies.append(policy)
            self._size = _FRAME
        self._size += size
        if _FRAME + size > MAX_POLICY:
            self.too_large.append(_FRAME + size)
        policy = self._policies[-1]
        policy.add_statements(statement)
        return iam.AddToPrincipalPolicyResult(statement_added=True, policy_dependable=policy)

    def _size_of(self, statement: Any) -> int:
        arn = self.first.node.try_get_context(_ARN_CONTEXT)
        return _size(statement, int(arn) if str(arn).isdecimal() else _ARN) + len(",")


def _statements(policy: iam.ManagedPolicy) -> list[Any]:
    return list(Stack.of(policy).resolve(policy.document)["Statement"]) if not policy.document.is_empty else []


def _size(value: Any, arn: int) -> int:
    """Return how many characters a resolved value has as JSON, without white space."""
    if isinstance(value, dict):
        if (length := _length(value, arn)) is not None:
            return length + len('""')
        return sum(_size(key, arn) + _size(each, arn) + len(":,") for key, each in value.items()) + 1
    if isinstance(value, list):
        return sum(_size(each, arn) + 1 for each in value) + 1
    return len("".join(json.dumps(value).split()))


def _length(value: Any, arn: int) -> int | None:
    """Return how long a text is of which CloudFormation knows parts; None: it is no text."""
    if isinstance(value, str):
        return len(json.dumps(value)) - len('""')
    if not isinstance(value, dict) or len(value) != 1:
        return None
    [(function, argument)] = value.items()
    if function == "Fn::Join":
        lengths = [_length(each, arn) or 0 for each in argument[1]]
        return sum(lengths) + len(argument[0]) * max(0, len(lengths) - 1)
    if function == "Ref":
        return _PSEUDO_PARAMETERS.get(argument, arn)
    return arn if function.startswith("Fn::") else None


def too_large(policies: Mapping[str, NodePolicies]) -> Iterator[str]:
    """Yield which statements no policy holds, by whose policies they are of."""
    for nodes, of_nodes in policies.items():
        for size in of_nodes.too_large:
            yield (
                f"a statement for {nodes} makes a policy of {size:,} characters, and IAM takes {MAX_POLICY:,}. Divide "
                "its resources among several statements, or name them by a prefix."
            )


def too_many(cluster: Construct, attached: Sequence[tuple[str, int]]) -> Iterator[str]:
    """Yield which roles would have more policies than IAM attaches.

    Args:
        cluster: The cluster.
        attached: How many policies roles have, by what messages call them.
    """
    given = cluster.node.try_get_context(POLICIES_CONTEXT)
    allowed = range(POLICIES_OF_ROLE, MOST_POLICIES_OF_ROLE + 1)
    most = POLICIES_OF_ROLE
    if str(given).isdecimal() and int(given) in allowed:
        most = int(given)
    elif given is not None:
        wrong = Violation((), given, f"{allowed[0]} to {allowed[-1]}", "how many policies IAM attaches to a role")
        yield f'the context key "{POLICIES_CONTEXT}": {wrong}'
    for nodes, count in attached:
        if count > most:
            yield (
                f"{nodes} would have {count} policies, with {OF_PARALLELCLUSTER}, which ParallelCluster attaches, and "
                f"IAM attaches {most} to a role. Grant fewer resources, such as prefixes of one bucket in place of "
                f"many buckets, or grant to single queues; or raise IAM's quota L-0DA4ABF3 (up to "
                f'{MOST_POLICIES_OF_ROLE}), and say so by the context key "{POLICIES_CONTEXT}".'
            )
