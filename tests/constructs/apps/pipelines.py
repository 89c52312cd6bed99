"""CDK Pipelines with two stages, each with a cluster in an account of its own."""

from typing import Any

import aws_cdk as cdk
from aws_cdk import pipelines
from constructs import Construct

import ultracluster as uc


class Hpc(cdk.Stage):
    """A network and a cluster."""

    def __init__(self, scope: Construct, construct_id: str, *, nodes: int, **rest: Any) -> None:
        super().__init__(scope, construct_id, **rest)
        stack = cdk.Stack(self, "Hpc")
        network = uc.UltraClusterNetwork(stack, "Network", zone_id="usw2-az4")
        resources = [uc.ComputeResource(name="c7i", instance_type="c7i.4xlarge", max_count=nodes)]
        queue = uc.Queue(name="cpu", compute_resources=resources)
        uc.ParallelCluster(stack, "Cluster", vpc=network.vpc, queues=[queue], cluster_name="research")


app = cdk.App()
pipe = cdk.Stack(app, "Pipe", env=cdk.Environment(account="111111111111", region="us-west-2"))
connection = "arn:aws:codeconnections:us-west-2:111111111111:connection/0"
source = pipelines.CodePipelineSource.connection("example/research", "main", connection_arn=connection)
steps = pipelines.ShellStep("Synth", input=source, commands=["cdk synth"])
pipeline = pipelines.CodePipeline(pipe, "Pipeline", synth=steps, cross_account_keys=True)
for stage, account, count in (("Dev", "222222222222", 2), ("Prod", "333333333333", 100)):
    env = cdk.Environment(account=account, region="us-west-2")
    pipeline.add_stage(Hpc(app, stage, nodes=count, env=env))
app.synth()
