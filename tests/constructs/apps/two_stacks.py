"""Two stacks with a cluster each, on one file system of a third."""

from collections.abc import Sequence

import aws_cdk as cdk

import ultracluster as uc

app = cdk.App()
env = cdk.Environment(region="us-west-2")
shared = cdk.Stack(app, "Shared", env=env)
network = uc.UltraClusterNetwork(shared, "Network", zone_id="usw2-az4")
data = uc.SharedStorage.lustre(uc.LustreFileSystem(shared, "Data", vpc=network.vpc), "/data")


def cluster(name: str, nodes: Sequence[uc.ComputeResource], software: uc.NeuronSoftware | None) -> uc.ParallelCluster:
    """Return a cluster in a stack of its own."""
    queue = uc.Queue(name=name.lower(), compute_resources=nodes)
    stack = cdk.Stack(app, name, env=env)
    return uc.ParallelCluster(
        stack, "Cluster", vpc=network.vpc, queues=[queue], shared_storage=[data], software=software
    )


cluster("Prepare", [uc.ComputeResource(name="c7i", instance_type="c7i.16xlarge", max_count=10)], None)
trained = cluster("Train", [uc.ComputeResource(name="trn1", max_count=16)], uc.NeuronSoftware(metrics=True))
uc.ClusterMonitoring(trained, "Monitoring", cluster=trained, network=network, emails=["ops@example.com"])
app.synth()
