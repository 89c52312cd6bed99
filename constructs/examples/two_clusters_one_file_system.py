"""Two clusters on one file system: CPU nodes prepare data that Trn1 nodes train on. Alarms watch the second."""

import aws_cdk as cdk

from ultracluster import (
    ClusterMonitoring,
    ComputeResource,
    LustreFileSystem,
    NeuronSoftware,
    ParallelCluster,
    Queue,
    SharedStorage,
    UltraClusterNetwork,
)

app = cdk.App()
env = cdk.Environment(region="us-west-2")

# Data outlives clusters: it is in a stack of its own.
shared = cdk.Stack(app, "Shared", env=env, termination_protection=True)
network = UltraClusterNetwork(shared, "Network", zone_id="usw2-az4")
file_system = LustreFileSystem(
    shared, "Data", vpc=network.vpc, capacity_gib=cdk.Size.gibibytes(9600), backup_retention_days=0
)
file_system.add_data_repository("/corpus")
data = SharedStorage.lustre(file_system, mount_dir="/data")

preparation = ParallelCluster(
    cdk.Stack(app, "Preparation", env=env),
    "Cluster",
    vpc=network.vpc,
    queues=[
        Queue(
            name="cpu",
            compute_resources=[ComputeResource(name="c7i", instance_type="c7i.16xlarge", max_count=10)],
        )
    ],
    shared_storage=[data],
)

training = cdk.Stack(app, "Training", env=env)
cluster = ParallelCluster(
    training,
    "Cluster",
    vpc=network.vpc,
    queues=[
        Queue(
            name="trn1",
            compute_resources=[ComputeResource(name="trn1-32xl", instance_type="trn1.32xlarge", max_count=64)],
        )
    ],
    shared_storage=[data],
    software=NeuronSoftware(),
)
ClusterMonitoring(training, "Monitoring", cluster=cluster, file_system=file_system, emails=["ops@example.com"])
app.synth()
