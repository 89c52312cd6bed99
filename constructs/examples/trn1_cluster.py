"""A Trn1 cluster in twelve lines: 16 trn1.32xlarge that start with jobs, a file system, and Neuron's PyTorch on it."""

import aws_cdk as cdk

from ultracluster import (
    ComputeResource,
    LustreFileSystem,
    NeuronSoftware,
    ParallelCluster,
    Queue,
    SharedStorage,
    UltraClusterNetwork,
)

app = cdk.App()
stack = cdk.Stack(app, "Training", env=cdk.Environment(region="us-west-2"))
network = UltraClusterNetwork(stack, "Network", zone_id="usw2-az4")
data = SharedStorage.lustre(LustreFileSystem(stack, "Data", vpc=network.vpc), mount_dir="/fsx")
queue = Queue(name="trn1", compute_resources=[ComputeResource(name="trn1-32xl", max_count=16)])
ParallelCluster(stack, "Cluster", vpc=network.vpc, queues=[queue], shared_storage=[data], software=NeuronSoftware())
app.synth()
