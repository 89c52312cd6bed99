"""A deployment whose settings file breaks rules, by what is deployed and by what is right in the file."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from config.messages import SettingsError
from config.stack_identity import StackIdentity
from config.usable import Deployed, DeployedCluster, UsableFile, queue
from scripts.account import generations
from scripts.account.deployment import Deployment, tags_of
from scripts.account.stack_state import StackState
from scripts.account.stacks import CLUSTER
from scripts.core import options
from scripts.core.aws_errors import if_found, is_denied
from scripts.core.errors import UnusableError
from scripts.core.text import echo
from ultracluster.domain.names import DEPLOYMENT_TAG


def deployment(name: str, region: str | None, broken: SettingsError) -> Deployment:
    """Return a deployment whose settings file cannot be used as it is, and print what is wrong with it, in a line.

    Asks CloudFormation for all stacks of the Region, and for the template of the cluster's. Without permission for that
    it is by the file alone.

    Args:
        name: Name of the settings file.
        region: What --region gives; None: nothing.
        broken: What is wrong with it.

    Raises:
        UnusableError: Neither file nor --region has a Region, or nothing of its deployment is there.
        botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError: AWS does not answer.
    """
    path = options.settings_file(name)
    file = UsableFile(path)
    where = file.region or region
    if where is None:
        raise UnusableError(f"{broken}\nIts Region cannot be read, either", "give it: --region REGION")
    settings = file.settings(where, Deployed())
    if settings is None:
        raise broken
    first, *others = str(broken).splitlines()
    more = f" (and {len(others):,} more: ./ultracluster estimate {name})" if others else ""
    echo(f"warning: {first}{more}. What is right in the file, and what is deployed, is used.", err=True)
    made = Deployment(name, settings)
    try:
        known = _deployed(made, file.generation)
    except ClientError as error:
        if not is_denied(error):
            raise
        return made
    if not known.parts and not file.is_named:
        raise UnusableError(
            f"{options.shown(path)} has no `name`, and there are no stacks of a deployment {settings.name} in {where}",
            f"correct the file: ./ultracluster estimate {name} lists what is wrong",
        )
    made.settings = file.settings(where, known) or settings
    return made


def _deployed(made: Deployment, generation: int | None) -> Deployed:
    """Return what is deployed, with the cluster of a generation, or the newest."""
    listed = [stack for stack in made.stacks() if not StackState.of(stack).is_gone]
    own = {
        each.part: stack for stack in listed if (each := StackIdentity.of(stack)) and each.name == made.settings.name
    }
    tags = {key: value for stack in own.values() for key, value in tags_of(stack).items() if key != DEPLOYMENT_TAG}
    known = generations.among(made.settings, listed)
    if generation is None:
        generation = max(known, default=1)
    template = if_found(lambda: made.template(made.of_generation(generation).stack_name("cluster")))
    resources = (template or {}).get("Resources", {}).values()
    cluster = next((each["Properties"] for each in resources if each["Type"] == CLUSTER), None)
    return Deployed(tuple(own), tags, None if cluster is None else _cluster(generation, cluster))


def _cluster(generation: int, properties: Any) -> DeployedCluster:
    """Return what a cluster's template says of it, as the library writes it."""
    configuration = properties["ClusterConfiguration"]
    queues = tuple(
        queue(
            each["Name"],
            [
                (nodes["Name"], _type(nodes), nodes.get("MinCount", 0), nodes.get("MaxCount", 1))
                for nodes in each["ComputeResources"]
            ],
        )
        for each in configuration["Scheduling"]["SlurmQueues"]
    )
    image, head_node = configuration["Image"]["Os"], configuration["HeadNode"]["InstanceType"]
    return DeployedCluster(generation, properties["ClusterName"], image, head_node, queues)


def _type(nodes: Any) -> str:
    return str(nodes["Instances"][0]["InstanceType"] if "Instances" in nodes else nodes["InstanceType"])
