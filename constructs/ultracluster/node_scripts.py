"""The scripts that nodes run while they start: in S3, with what lets nodes read them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from ultracluster.domain.cluster_configuration import Action, NodeActions

_LAUNCHER = Path(__file__).with_name("node_launcher.sh")
_RUNNER = Path(__file__).with_name("run_bundle.sh")


@dataclass(frozen=True)
class NodeScript:
    """A script that nodes run as root while they start, with bash.

    Attributes:
        directory: Holds the script and what it needs; it becomes one CDK asset, a zip file.
        entry: The script, relative to the directory.
        arguments: Its command line.
        bundles: Further directories, each a zip file of its own, by the name under which the script is told its
            address: ``name=s3://...``, after the arguments. Only nodes with this script may read them.

    Raises:
        ValueError: The directory has no such script.
    """

    directory: Path
    entry: str
    arguments: Sequence[str] = ()
    bundles: Mapping[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.directory / self.entry).is_file():
            raise ValueError(f"node script: got {self.entry!r}; allowed: a file in {self.directory}")


class NodeScripts(Construct):
    """Define the scripts of one cluster."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster_name: str, region: str) -> None:
        """Define no script yet.

        Args:
            scope: Parent.
            construct_id: Name in the tree.
            cluster_name: Part of the names of SSM parameters.
            region: AWS Region of cluster and assets.
        """
        super().__init__(scope, construct_id)
        self._cluster_name = cluster_name
        self._region = region
        self._assets: dict[Path, assets.Asset] = {}
        self._policies: dict[tuple[Path, ...], iam.ManagedPolicy] = {}

    def of_queue(self, script: NodeScript) -> NodeActions:
        """Return what compute nodes do for a script. Another script changes their OnNodeConfigured, in place."""
        return NodeActions(on_configured=self._run(script), policy_arns=self._bundle_policy_arns(script))

    def launched(self, node_kind: str, script: NodeScript) -> NodeActions:
        """Return what head or login nodes do for a script, which is named in an SSM parameter.

        ParallelCluster refuses any change of these nodes' OnNodeConfigured itself.
        """
        run = self._run(script)
        scope = Construct(self, node_kind)
        parameter_name = f"/ultracluster/{self._cluster_name}/{node_kind}"
        ssm.StringParameter(
            scope,
            "Parameter",
            parameter_name=parameter_name,
            string_value=Stack.of(self).to_json_string({"script": run.uri, "arguments": list(run.arguments)}),
            description=f"What {node_kind} of {self._cluster_name} runs when it is created",
        )
        return NodeActions(
            on_configured=self._action(_LAUNCHER, [parameter_name, self._region]),
            on_updated=run if node_kind == "HeadNode" else None,
            policy_arns=[self._policy_arn("Launcher", _LAUNCHER, _RUNNER), *self._bundle_policy_arns(script)],
        )

    def _run(self, script: NodeScript) -> Action:
        bundle = self._asset(script.directory)
        further = [f"{name}={self._asset(path).s3_object_url}" for name, path in script.bundles.items()]
        return self._action(_RUNNER, [bundle.s3_object_url, self._region, script.entry, *script.arguments, *further])

    def _action(self, path: Path, arguments: Sequence[str]) -> Action:
        asset = self._asset(path)
        return Action(asset.s3_object_url, asset.s3_bucket_name, asset.s3_object_key, arguments)

    def _asset(self, path: Path) -> assets.Asset:
        if path not in self._assets:
            name = f"{path.stem}{len(self._assets)}"
            self._assets[path] = assets.Asset(self, name, path=str(path), exclude=["__pycache__"])
        return self._assets[path]

    def _bundle_policy_arns(self, script: NodeScript) -> list[str]:
        return [self._policy_arn("Bundle", path) for path in (script.directory, *script.bundles.values())]

    def _policy_arn(self, label: str, *paths: Path) -> str:
        """Return one policy for all nodes that read the same: S3Access has room for one object of a bucket only.

        The provider attaches policies of this path. A name of our own would stand in the way of a replacement.
        """
        if paths not in self._policies:
            keys = [self._asset(path).s3_object_key for path in paths]
            self._policies[paths] = iam.ManagedPolicy(
                self,
                f"{label}Policy{len(self._policies)}",
                path="/parallelcluster/",
                statements=[self._read_assets(*keys)],
            )
        return self._policies[paths].managed_policy_arn

    def _read_assets(self, *keys: str) -> iam.PolicyStatement:
        bucket = next(iter(self._assets.values())).bucket
        return iam.PolicyStatement(actions=["s3:GetObject"], resources=[bucket.arn_for_objects(key) for key in keys])
