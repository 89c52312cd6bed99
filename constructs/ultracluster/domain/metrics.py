"""The metrics that nodes send to CloudWatch once a minute: their names and dimensions.

To CloudWatch each combination of dimensions is a metric of its own
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html#dimension-combinations). So
compute nodes send each value twice: with the dimensions Cluster, Queue and Node, and with Cluster and Queue, where the
values of all nodes of a queue come together; HELD_IDLE is the exception. The head node sends its own with Cluster, and
those of queues with Cluster and Queue, too.
"""

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
