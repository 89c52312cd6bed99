"""A Trn1 cluster in twelve lines: 16 trn1.32xlarge that start with jobs, a file system, and Neuron's PyTorch on it."""

import aws_cdk as cdk

import ultracluster as uc

app = cdk.App()
stack = cdk.Stack(app, "Training", env=cdk.Environment(region="us-west-2"))
network = uc.UltraClusterNetwork(stack, "Network", zone_id="usw2-az4")
data = uc.LustreFileSystem(stack, "Data", vpc=network.vpc)
uc.ParallelCluster(
    stack, "Cluster", vpc=network.vpc, software=uc.NeuronSoftware(), shared_storage=[uc.SharedStorage.lustre(data)],
    queues=[uc.Queue(name="trn1", compute_resources=[uc.ComputeResource(name="trn1-32xl", max_count=16)])],
)  # fmt: skip
app.synth()
