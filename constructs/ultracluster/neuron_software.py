"""What nodes of a cluster run for training with the AWS Neuron SDK: the scripts of ``nodes`` and their arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ultracluster.domain import neuron, node_arguments
from ultracluster.domain.budget import BudgetSpec
from ultracluster.domain.cluster import ClusterSpec, QueueSpec
from ultracluster.domain.monitoring import ClusterMonitoringSpec
from ultracluster.domain.team import TeamSpec
from ultracluster.node_scripts import NodeScript
from ultracluster.signatures import readable

SCRIPTS = (Path(__file__).parent / "nodes").resolve()
"""Shell and Python scripts. In a checkout they are a folder of its own."""


@readable
@dataclass(frozen=True, kw_only=True)
class NeuronSoftware:
    """A release of the AWS Neuron SDK on all nodes: driver, runtime, tools, health checks, and an environment for jobs.

    Nodes with Neuron devices get driver and runtime when they start; others get what is not about devices. The head
    node builds a Python environment with PyTorch in the background, on the first Lustre file system of the cluster.
    Slurm asks each node for its health around each job. With ``neuron_sdk=None`` there is all of it but for Neuron and
    that environment, on any cluster without Neuron devices, also of Arm.

    Attributes:
        neuron_sdk: Release of the SDK, one of `ultracluster.domain.neuron.RELEASES`; None: none. [one of '2.27.1',
            '2.28.1'; default '2.28.1'; change: nodes drain]
        neuron_driver: Version of the driver alone, newer than that of the release, with which nobody tests it. Default:
            that of the release. [a version of aws-neuronx-dkms such as 2.28.0.0; change: nodes drain]
        pytorch: Minor version of PyTorch, one that the release has for the operating system. [one of '2.7', '2.8',
            '2.9'; default '2.9'; change: at once]
        jobs: A folder of programs that jobs find at ``$ULTRACLUSTER_JOBS``, beside the environment. Default: none.
            [change: at once]
        metrics: Whether nodes send the counters of their devices to CloudWatch once a minute; it costs by the node.
            [default True; change: nodes drain]
        deployment: Value of the tag ``ultracluster:snapshots`` of the head node's root volume, by which
            `HeadNodeSnapshots` finds it. Default: the cluster's name. [change: at once]
        team: People, accounts and limits, the same on all nodes; a change reaches nodes that run. Default: everybody is
            the image's default user. [change: at once]
        budget: By which the head node counts what nodes cost, and closes queues. Needs ``metrics``. Default: it does
            not. [change: at once]
    """

    neuron_sdk: str | None = neuron.DEFAULT_SDK
    neuron_driver: str | None = None
    pytorch: str = neuron.DEFAULT_PYTORCH
    jobs: Path | str | None = None
    metrics: bool = ClusterMonitoringSpec().node_metrics
    deployment: str | None = None
    team: TeamSpec | None = None
    budget: BudgetSpec | None = None

    def head_node(self, spec: ClusterSpec, mount_dir: str) -> NodeScript:
        """Return what the head node runs when it is created and at each update of the cluster."""
        arguments = node_arguments.head_node(
            spec, mount_dir, deployment=self.deployment or spec.name, metrics=self.metrics, budget=self.budget
        )
        script = _script("head_node.sh", arguments, {} if self.jobs is None else {"jobs": Path(self.jobs)})
        return script if self.team is None else replace(script, documents={"team": self.team.document()})

    def compute_node(self, spec: ClusterSpec, queue: QueueSpec, mount_dir: str) -> NodeScript:
        """Return what the compute nodes of a queue run when they start."""
        arguments = node_arguments.compute_node(spec, queue, mount_dir, metrics=self.metrics)
        return _script("compute_node.sh", arguments)

    def login_node(self, spec: ClusterSpec, mount_dir: str) -> NodeScript:
        """Return what login nodes run when they start."""
        return _script("login_node.sh", node_arguments.login_node(spec, mount_dir))


def _script(entry: str, arguments: Mapping[str, str], bundles: Mapping[str, Path] | None = None) -> NodeScript:
    return NodeScript(SCRIPTS, entry, [f"{name}={value}" for name, value in arguments.items()], bundles or {})
