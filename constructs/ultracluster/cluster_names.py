"""Names of clusters: an account and Region have one cluster, and one stack, of a name."""

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from aws_cdk import Annotations, Stack, Stage, Token
from constructs import Construct, IConstruct

from ultracluster.domain.violations import Violation

_CLUSTERS: WeakKeyDictionary[IConstruct, list[tuple[Construct, str]]] = WeakKeyDictionary()
"""The clusters of each app with their names, by its root: to search the tree takes longer than to make one."""


def register(cluster: Construct, name: str) -> None:
    """Take note of a cluster that is made, and warn of another one of its name that may be in the same place."""
    for other in of_name(cluster, name):
        if _may_meet(*(_outermost(Stack.of(each)) for each in (cluster, other))):
            Annotations.of(cluster).add_warning_v2(
                "ultracluster:clusterName",
                f"cluster_name: {other.node.path} has the name {name}, too. An account and Region have "
                "one cluster of a name, and the stages do not say in which they are: give their stacks an env.",
            )
    _CLUSTERS.setdefault(cluster.node.root, []).append((cluster, name))


def violations(scope: Construct, name: object) -> Iterator[Violation]:
    """Yield why a cluster's stack, which has its name, would be another one's."""
    yield from stack_violations(scope, name)
    stack = _outermost(Stack.of(scope))
    for other_cluster in of_name(scope, name):
        if _meet(stack, _outermost(Stack.of(other_cluster))):
            reason = "an account and Region have one cluster of a name"
            allowed = f"another name than that of {other_cluster.node.path}"
            yield Violation(("cluster_name",), name, allowed, reason)


def stack_violations(scope: Construct, name: object) -> Iterator[Violation]:
    """Yield which stack of the app has the name of a cluster, where ParallelCluster would make one."""
    stack = _outermost(Stack.of(scope))
    for other in _stacks(scope.node.root):
        if other.stack_name == name and _meet(stack, other):
            allowed = "another name than that of " + ("the stack" if other is stack else f"the stack {other.node.path}")
            reason = (
                "ParallelCluster makes a stack of the cluster's name in the account and Region, and this one has it"
            )
            yield Violation(("cluster_name",), name, allowed, reason)


def of_name(scope: Construct, name: object) -> list[Construct]:
    """Return the clusters of a name that are in the tree of a construct."""
    return [each for each, called in _CLUSTERS.get(scope.node.root, []) if called == name and _is_in_tree(each)]


def _is_in_tree(cluster: Construct) -> bool:
    """Return whether neither a cluster nor what it is in was removed from the tree."""
    root, *path = cluster.node.scopes
    found: IConstruct | None = root
    for each in path:
        found = None if found is None else found.node.try_find_child(each.node.id)
    return found is cluster


def _stacks(construct: IConstruct) -> Iterator[Stack]:
    """Yield the stacks below a construct that have names of their own; in a stack they are among its children alone."""
    for each in construct.node.children:
        if isinstance(each, Stack):
            if each.nested_stack_parent is None:
                yield each
            yield from _stacks(each)
        elif not isinstance(construct, Stack):
            yield from _stacks(each)


def _outermost(stack: Stack) -> Stack:
    return stack if stack.nested_stack_parent is None else _outermost(stack.nested_stack_parent)


def _meet(one: Stack, other: Stack) -> bool:
    """Return whether two stacks are in one account and Region.

    Of what the app does not say CloudFormation is asked to deploy into one environment, as the CDK takes it, too, when
    a stack refers to another; stages, which each may have an environment of their own, are told apart.
    """
    if one is other:
        return True
    env = (one.account, one.region)
    known = not any(map(Token.is_unresolved, env))
    return env == (other.account, other.region) and (known or Stage.of(one) is Stage.of(other))


def _may_meet(one: Stack, other: Stack) -> bool:
    """Return whether it is not known where two stacks of different stages are, and they may be in one place."""
    unknown = Token.is_unresolved(one.account) or Token.is_unresolved(one.region)
    return unknown and (one.account, one.region) == (other.account, other.region)
