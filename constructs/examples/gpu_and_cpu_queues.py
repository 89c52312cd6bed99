"""GPU and CPU queues beside each other; the nodes of one queue may read a secret."""

import aws_cdk as cdk
from aws_cdk import aws_secretsmanager as secretsmanager

from ultracluster import ComputeResource, HeadNode, ParallelCluster, Queue, Slurm, UltraClusterNetwork

app = cdk.App()
stack = cdk.Stack(app, "Research", env=cdk.Environment(region="us-east-1"))
network = UltraClusterNetwork(stack, "Network", zone_id="use1-az1")
token = secretsmanager.Secret.from_secret_complete_arn(
    stack, "Token", "arn:aws:secretsmanager:us-east-1:123456789012:secret:model-registry-AbCdEf"
)
cluster = ParallelCluster(
    stack,
    "Cluster",
    vpc=network.vpc,
    head_node=HeadNode(root_volume_gib=cdk.Size.gibibytes(500)),
    queues=[
        Queue(
            name="gpu",
            compute_resources=[ComputeResource(name="p5", instance_type="p5.48xlarge", max_count=4)],
        ),
        Queue(
            name="cpu",
            exclusive_jobs=False,
            compute_resources=[ComputeResource(name="c7i", instance_type="c7i.8xlarge", max_count=20)],
        ),
    ],
    slurm=Slurm(idle_minutes=cdk.Duration.minutes(5)),
)
token.grant_read(cluster.queue("gpu"))
app.synth()
