"""The scripts that nodes run while they start: in S3, with the IAM policies of nodes."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from ultracluster.acknowledgements import acknowledge
from ultracluster.domain.custom_actions import NodeActionSpec, NodeActionsSpec, QueueActionsSpec, is_file, object_of
from ultracluster.node_policies import NodePolicies

_LAUNCHER = Path(__file__).with_name("node_launcher.sh")
_RUNNER = Path(__file__).with_name("run_bundle.sh")
_ACTIONS = Path(__file__).with_name("run_actions.sh")

_SESSIONS = (
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
)
"""What Session Manager needs of every node; AmazonSSMManagedInstanceCore also lets a node read every SSM parameter.

https://docs.aws.amazon.com/systems-manager/latest/userguide/getting-started-create-iam-instance-profile.html
"""
_COMMANDS = (
    "ec2messages:AcknowledgeMessage",
    "ec2messages:DeleteMessage",
    "ec2messages:FailMessage",
    "ec2messages:GetEndpoint",
    "ec2messages:GetMessages",
    "ec2messages:SendReply",
)
"""By these an agent takes Run Command's commands where it cannot by ssmmessages.

https://docs.aws.amazon.com/systems-manager/latest/userguide/systems-manager-setting-up-messageAPIs.html
"""


@dataclass(frozen=True)
class NodeScript:
    """A script that nodes run as root while they start, with bash.

    Attributes:
        directory: Holds the script and what it needs; it becomes one CDK asset, a zip file.
        entry: The script, relative to the directory.
        arguments: Its command line.
        bundles: Further directories, each a zip file of its own, by the name under which the script is told its
            address: ``name=s3://...``, after the arguments. Only nodes with this script may read them.
        documents: Texts, each a JSON file of its own, of which the script is told in the same way.
    """

    directory: Path
    entry: str
    arguments: Sequence[str] = ()
    bundles: Mapping[str, Path] = field(default_factory=dict)
    documents: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> tuple[Path | str, ...]:
        """All that nodes with this script may read: paths, and texts."""
        return (self.directory, *self.bundles.values(), *self.documents.values())


class _File:
    """A CDK asset. Its attributes are read once: each time is a call into the jsii kernel, and queues share files."""

    def __init__(self, asset: assets.Asset) -> None:
        self.bucket_name, self.key, self.url = asset.s3_bucket_name, asset.s3_object_key, asset.s3_object_url
        self.arn = asset.bucket.arn_for_objects(self.key)


class NodeScripts(Construct):
    """Define the scripts of one cluster, and what its nodes may do beside what ParallelCluster allows.

    All nodes may be reached by Session Manager, and read their own scripts if they have any. The head node may take
    commands, too. If a KMS key of the customer encrypts the bucket of assets, nodes may decrypt by it, through S3
    alone.

    Attributes:
        policies: The policies of each kind of node that there is: ``HeadNode``, ``ComputeNodes`` and ``LoginNodes``.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster_name: str, region: str, assets_key_arn: str | None
    ) -> None:
        super().__init__(scope, construct_id)
        self._cluster_name = cluster_name
        self._region = region
        self._assets_key_arn = assets_key_arn
        self._files: dict[Path | str, _File] = {}
        self.policies: dict[str, NodePolicies] = {}
        self._own_policies: dict[str, NodePolicies] = {}
        self._of_compute_nodes: list[str] = []
        self._attached: dict[str, list[dict[str, str]]] = {}
        self._attached_to_queues: dict[str, list[dict[str, str]]] = {}

    def of_queue(self, name: str, script: NodeScript | None, given: QueueActionsSpec | None = None) -> dict[str, Any]:
        """Return what the compute nodes of a queue do. Another script changes their OnNodeConfigured, in place.

        Scripts of all queues have the same directories, so that queues share a policy: the stack of 50 queues has
        little room left. All may read the scripts that are given for one.
        """
        given = given or QueueActionsSpec()
        if "ComputeNodes" not in self.policies:
            readable = [] if script is None else self._read_assets(script.files)
            policy = self._policy("ComputeNodePolicy0", [_allow(_SESSIONS), *readable])
            self.policies["ComputeNodes"] = NodePolicies(self, policy, self._attach_to_compute_nodes)
            self._of_compute_nodes.append(policy.managed_policy_arn)
        for statement in self._read_given([*given.on_node_start, *given.on_node_configured]):
            self.policies["ComputeNodes"].add(statement)
        attached = _attached(*self._of_compute_nodes)
        self._attached_to_queues[name] = attached["AdditionalIamPolicies"]
        events = self._events(
            OnNodeStart=self._sequence("start", None, start=given.on_node_start),
            OnNodeConfigured=self._sequence("created", script, created=given.on_node_configured),
        )
        if not events:
            return {"Iam": attached}
        return self._node(events, attached, _RUNNER if script is not None else _ACTIONS)

    def _attach_to_compute_nodes(self, policy: iam.ManagedPolicy) -> None:
        self._of_compute_nodes.append(policy.managed_policy_arn)
        for attached in self._attached_to_queues.values():
            attached.extend(_policies(policy.managed_policy_arn))

    @property
    def by_nodes(self) -> Mapping[str, NodePolicies]:
        """The policies by what messages call those who have them."""
        called = {"HeadNode": "the head node", "ComputeNodes": "compute nodes", "LoginNodes": "login nodes"}
        of_kinds = {called[node_kind]: each for node_kind, each in self.policies.items()}
        return {**of_kinds, **{f"nodes of queue {name}": each for name, each in self._own_policies.items()}}

    @property
    def counts(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """How many policies nodes have by their keys in ParallelCluster's configuration."""
        for node_kind, attached in self._attached.items():
            yield (node_kind,), len(attached)
        for queue, attached in self._attached_to_queues.items():
            yield ("SlurmQueues", queue), len(attached)

    def own_policy(self, queue: str) -> NodePolicies:
        """Return the policies that nodes of one queue have beside those of all; the first call makes one."""
        if queue not in self._own_policies:
            scope = self.node.try_find_child("Queues") or Construct(self, "Queues")
            policy = iam.ManagedPolicy(cast(Construct, scope), queue, path="/parallelcluster/")
            attached = self._attached_to_queues[queue]
            attached += _policies(policy.managed_policy_arn)
            self._own_policies[queue] = NodePolicies(self, policy, _to(attached))
        return self._own_policies[queue]

    def of_head_node(self, script: NodeScript | None, given: NodeActionsSpec | None = None) -> dict[str, Any]:
        """Return what the head node does, when it is created and at each update of the cluster."""
        return self._launched("HeadNode", script, given, (*_SESSIONS, *_COMMANDS))

    def of_login_nodes(self, script: NodeScript | None, given: NodeActionsSpec | None = None) -> dict[str, Any]:
        """Return what login nodes do: the script when they start, scripts that are given also at updates."""
        return self._launched("LoginNodes", script, given, _SESSIONS)

    def _launched(
        self, node_kind: str, script: NodeScript | None, given: NodeActionsSpec | None, actions: Iterable[str]
    ) -> dict[str, Any]:
        """Return what head or login nodes do. What they run when they start is named in SSM parameters.

        ParallelCluster refuses any change of these nodes' OnNodeStart and OnNodeConfigured itself. It refuses other
        policies, too, as long as there are login nodes: the name of their policy in the template stays.
        """
        given = given or NodeActionsSpec()
        configured, updated = given.on_node_configured, given.on_node_updated
        launched = {
            "OnNodeStart": self._sequence("start", None, start=given.on_node_start),
            "OnNodeConfigured": self._sequence("created", script, created=configured),
        }
        at_updates = script if node_kind == "HeadNode" else None
        update = self._sequence("updated", at_updates, created=configured, updated=updated)
        parameters: dict[str, str] = {}
        for event, run in launched.items():
            if run is not None:
                suffix = "Start" if event == "OnNodeStart" else ""
                parameters[event] = self._parameter(node_kind, suffix, run)
        statements = [_allow(actions)]
        if parameters:
            arns = [self._arn_of(name) for name in parameters.values()]
            files = () if script is None else (_RUNNER, *script.files)
            readable = self._read_assets((_LAUNCHER, *files))
            statements += [_allow(["ssm:GetParameter"], arns), *readable]
        statements += self._read_given([*given.on_node_start, *configured, *updated])
        attached = self._new_policy(node_kind, statements)
        launches = {event: self._action(_LAUNCHER, [name, self._region]) for event, name in parameters.items()}
        events = self._events(**launches, OnNodeUpdated=update)
        if not events:
            return {"Iam": attached}
        if node_kind == "LoginNodes":  # they have no S3Access
            return {"CustomActions": events, "Iam": attached}
        return self._node(events, attached, _LAUNCHER if launches else _ACTIONS)

    def _parameter(self, node_kind: str, suffix: str, run: Mapping[str, Any]) -> str:
        """Make the parameter that names what nodes run, and return its name."""
        scope = self.node.try_find_child(node_kind) or Construct(self, node_kind)
        name = f"/ultracluster/{self._cluster_name}/{node_kind}{suffix}"
        ssm.StringParameter(
            cast(Construct, scope),
            f"{suffix}Parameter",
            parameter_name=name,
            string_value=Stack.of(self).to_json_string({"script": run["Script"], "arguments": run["Args"]}),
            description=f"What {node_kind} of {self._cluster_name} runs when it {'starts' if suffix else 'is created'}",
        )
        return name

    def _arn_of(self, parameter_name: str) -> str:
        return Stack.of(self).format_arn(
            service="ssm", region=self._region, resource="parameter", resource_name=parameter_name.removeprefix("/")
        )

    @staticmethod
    def _events(**actions: dict[str, Any] | None) -> dict[str, Any]:
        return {event: action for event, action in actions.items() if action is not None}

    def _sequence(
        self, event: str, script: NodeScript | None, **given: Sequence[NodeActionSpec]
    ) -> dict[str, Any] | None:
        """Return what runs a script of nodes and then those that are given, by the events that they are for."""
        own = None if script is None else self._run(script)
        if not any(given.values()):
            return own
        actions = []
        if own is not None and script is not None:
            actions.append((script.entry, "created updated", own["Script"], own["Args"]))
        for on, each in ((on, each) for on, those in given.items() for each in those):
            actions.append((each.script, on, self._address(each), each.args))
        encoded = [
            json.dumps({"name": Path(name).name, "on": on, "script": address, "args": list(arguments)})
            for name, on, address, arguments in actions
        ]
        return self._action(_ACTIONS, [self._region, event, *encoded])

    def _address(self, action: NodeActionSpec) -> str:
        """Return where nodes fetch a script that is given."""
        return self._file(Path(action.script)).url if is_file(action.script) else action.script

    def _read_given(self, given: Sequence[NodeActionSpec]) -> list[iam.PolicyStatement]:
        """Return what lets nodes read scripts that are given: objects, too, but what only CloudFormation knows."""
        if not given:
            return []
        files = [Path(each.script) for each in given if is_file(each.script)]
        objects = dict.fromkeys(filter(None, (object_of(each.script) for each in given)))
        arns = [
            Stack.of(self).format_arn(
                service="s3",
                region="",
                account="",
                resource=bucket,
                resource_name=key,
                arn_format=ArnFormat.SLASH_RESOURCE_NAME,
            )
            for bucket, key in objects
        ]
        return [*self._read_assets((_ACTIONS, *files)), *([_allow(["s3:GetObject"], arns)] if arns else [])]

    def _node(self, actions: Mapping[str, Any], attached: dict[str, Any], first: Path) -> dict[str, Any]:
        """Return what a head or compute node runs, and its permissions beside what ParallelCluster allows.

        ``S3Access`` has one entry, for the file that is run first: of two with the same bucket, ParallelCluster's
        update check would see changes that are none.
        """
        file = self._file(first)
        s3_access = [{"BucketName": file.bucket_name, "KeyName": file.key}]
        return {"CustomActions": actions, "Iam": attached | {"S3Access": s3_access}}

    def _run(self, script: NodeScript) -> dict[str, Any]:
        bundle = self._file(script.directory)
        named: dict[str, Path | str] = {**script.bundles, **script.documents}
        further = [f"{name}={self._file(each).url}" for name, each in named.items()]
        return self._action(_RUNNER, [bundle.url, self._region, script.entry, *script.arguments, *further])

    def _action(self, path: Path, arguments: Sequence[str]) -> dict[str, Any]:
        return {"Script": self._file(path).url, "Args": list(arguments)}

    def _file(self, file: Path | str) -> _File:
        """Return the asset of a path, or of a text."""
        if file not in self._files:
            number = len(self._files)
            if isinstance(file, str):
                with TemporaryDirectory() as directory:  # the asset is copied at once
                    path = Path(directory) / "document.json"
                    path.write_text(file, encoding="utf-8")
                    self._files[file] = _File(assets.Asset(self, f"document{number}", path=str(path)))
            else:
                asset = assets.Asset(self, f"{file.stem}{number}", path=str(file), exclude=["__pycache__"])
                self._files[file] = _File(asset)
        return self._files[file]

    def _new_policy(self, node_kind: str, statements: Sequence[iam.PolicyStatement]) -> dict[str, Any]:
        """Make the policy of head or login nodes, and return what attaches it and those that follow."""
        policy = self._policy(f"{node_kind}Policy", statements)
        attached = _attached(policy.managed_policy_arn)
        self._attached[node_kind] = attached["AdditionalIamPolicies"]
        self.policies[node_kind] = NodePolicies(self, policy, _to(self._attached[node_kind]))
        return attached

    def _policy(self, name: str, statements: Sequence[iam.PolicyStatement]) -> iam.ManagedPolicy:
        """Return a policy of nodes: the provider attaches those of this path, and S3Access has room for one object.

        A fixed name would prevent a replacement.
        """
        policy = iam.ManagedPolicy(self, name, path="/parallelcluster/", statements=statements)
        reason = "Systems Manager's channels know no resources; ssm:UpdateInstanceInformation is for all in AWS's guide"
        acknowledge(policy, "IAM5[Resource::*]", reason)
        return policy

    def _read_assets(self, paths: Sequence[Path | str]) -> list[iam.PolicyStatement]:
        statements = [_allow(["s3:GetObject"], [self._file(path).arn for path in paths])]
        if self._assets_key_arn is not None:
            via_s3 = {"StringEquals": {"kms:ViaService": f"s3.{self._region}.amazonaws.com"}}
            statements.append(_allow(["kms:Decrypt"], [self._assets_key_arn], via_s3))
        return statements


def _attached(*policy_arns: str) -> dict[str, Any]:
    return {"AdditionalIamPolicies": _policies(*policy_arns)}


def _policies(*policy_arns: str) -> list[dict[str, str]]:
    return [{"Policy": each} for each in policy_arns]


def _to(attached: list[dict[str, str]]) -> Callable[[iam.ManagedPolicy], None]:
    """Return what adds a policy to a list."""
    return lambda policy: attached.extend(_policies(policy.managed_policy_arn))


def _allow(
    actions: Iterable[str], resources: Sequence[str] = ("*",), conditions: Mapping[str, object] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=conditions)
