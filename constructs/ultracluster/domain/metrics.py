"""The metrics that nodes send to CloudWatch once a minute: their names and dimensions.

To CloudWatch each combination of dimensions is a metric of its own
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html#dimension-combinations). So
compute nodes send each value twice: with the dimensions Cluster, Queue and Node, and with Cluster and Queue, where the
values of all nodes of a queue come together; HELD_IDLE is the exception. The head node sends its own with Cluster, and
those of queues with Cluster and Queue, too.
"""

from collections.abc import Mapping

NAMESPACE = "UltraCluster"

CORE_UTILIZATION = "NeuronCoreUtilization"
"""Percent, mean over the NeuronCores of a node."""
DEVICE_MEMORY = "NeuronDeviceMemoryUsed"
"""Bytes of all Neuron devices of a node."""
UNCORRECTABLE_ERRORS = "UncorrectableErrors"
"""Uncorrectable errors in SRAM and memory of the devices since the last minute."""
EXECUTION_ERRORS = "ExecutionErrors"
"""Executions that failed on the devices since the last minute."""
EFA_RECEIVED = "EfaReceivedBytes"
"""Bytes since the last minute."""
EFA_SENT = "EfaSentBytes"
"""Bytes since the last minute."""
EFA_RETRANSMITTED = "EfaRetransmittedBytes"
"""Bytes since the last minute."""
NODES_REPORTING = "NodesReporting"
"""1 from each node."""
OF_COMPUTE_NODES = (
    CORE_UTILIZATION,
    DEVICE_MEMORY,
    UNCORRECTABLE_ERRORS,
    EXECUTION_ERRORS,
    EFA_RECEIVED,
    EFA_SENT,
    EFA_RETRANSMITTED,
    NODES_REPORTING,
)

HELD_IDLE = "HeldIdleSeconds"
"""Seconds in a row for which steps of Slurm have held a node and used none of its NeuronCores.

Compute nodes with Neuron devices send it with Cluster alone, and while it is not 0 with Cluster, Queue and Node, too.
"""

NODES_DRAINED = "NodesDrained"
"""Nodes that are drained, by anybody and for any reason, but for an update of the cluster."""
NODES_DRAINED_BY_HEALTH = "NodesDrainedByHealth"
"""Those of them that are drained because a health check found a fault."""
QUEUES_PROTECTED = "QueuesProtected"
"""Queues that ParallelCluster closed because nodes kept failing to start."""
NODES_RUNNING = "NodesRunning"
"""Nodes that have an instance by Slurm: neither powered down nor powering down."""
NODES_IDLE = "NodesIdle"
"""Those of them that are up, and have no job."""
OF_HEAD_NODE = (NODES_DRAINED, NODES_DRAINED_BY_HEALTH, QUEUES_PROTECTED, NODES_RUNNING, NODES_IDLE)

NODE_IDLE = "NodeIdleSeconds"
"""For how long the dynamic node has been idle that has been so for longest; the head node sends it with Cluster."""
USD_PER_HOUR = "NodeUsdPerHour"
"""What the running nodes cost per hour; the head node sends it with Cluster, if there is a budget."""
USD_THIS_MONTH = "NodeUsdThisMonth"
"""What nodes have cost since the month began, in UTC; the head node sends it with Cluster, if there is a budget."""
OF_BUDGET = (USD_PER_HOUR, USD_THIS_MONTH)
ALL = (*OF_COMPUTE_NODES, HELD_IDLE, *OF_HEAD_NODE, NODE_IDLE, *OF_BUDGET)

PARALLELCLUSTER = "ParallelCluster"
"""Namespace of what ParallelCluster makes of its logs, with the dimension ClusterName, where it makes a dashboard.

aws-parallelcluster 3.16.1, templates/cw_dashboard_builder.py. Failed launches come when nodes are launched, the rest
with the rounds of its daemon, once a minute; most only when there is something to count.
"""
LAUNCH_FAILURES = (
    "IamPolicyErrors",
    "VcpuLimitErrors",
    "VolumeLimitErrors",
    "InsufficientCapacityErrors",
    "OtherInstanceLaunchFailures",
)
"""Nodes that EC2 did not launch, by why."""
GPU_FAILURES = "GpuHealthCheckFailures"
"""Nodes that failed the health check of GPUs, where a queue has it: ``HealthChecks/Gpu/Enabled``."""
NODE_FAILURES = (
    "InstanceBootstrapTimeoutErrors",
    "EC2HealthCheckErrors",
    "ScheduledEventHealthCheckErrors",
    "NoCorrespondingInstanceErrors",
    "SlurmNodeNotRespondingErrors",
)
"""Nodes that were launched and failed, by why."""
SCRIPT_FAILURES = (
    "OnNodeStartDownloadErrors",
    "OnNodeStartRunErrors",
    "OnNodeConfiguredDownloadErrors",
    "OnNodeConfiguredRunErrors",
)
"""Scripts that failed on compute nodes, where queues have any: those of `NeuronSoftware` and of users."""
LONGEST_IDLE = "MaxDynamicNodeIdleTime"
"""Seconds for which the dynamic node has been idle that has been so for longest."""
OF_PARALLELCLUSTER = (*LAUNCH_FAILURES, GPU_FAILURES, *NODE_FAILURES, *SCRIPT_FAILURES, LONGEST_IDLE)

HEARTBEAT = "ClustermgtdHeartbeat"
"""1 from each round of its daemon, where ParallelCluster makes alarms of the head node (templates/cluster_stack.py)."""
_EC2, _AGENT = "AWS/EC2", "CWAgent"
OF_HEAD_NODE_INSTANCE: Mapping[str, tuple[str, Mapping[str, str]]] = {
    **dict.fromkeys(("CPUUtilization", "NetworkIn", "NetworkOut", "StatusCheckFailed"), (_EC2, {})),
    "mem_used_percent": (_AGENT, {}),
    "disk_used_percent": (_AGENT, {"path": "/"}),
    HEARTBEAT: (PARALLELCLUSTER, {}),
}
"""Metrics of the head node as an instance: namespaces, and dimensions beside InstanceId; the heartbeat has ClusterName.

EC2's are of every 5 minutes without detailed monitoring; those of CloudWatch's agent of every minute
(templates/cluster_stack.py, _add_head_node_alarms).
"""
