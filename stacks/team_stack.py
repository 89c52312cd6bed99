"""The stack of what people have beside jobs: home directories, and the database of accounting. It outlives clusters."""

from constructs import Construct

from config.settings import Settings
from stacks.deployment_stack import DeploymentStack
from stacks.network_stack import Network


class TeamStack(DeploymentStack):
    """Homes and database of the settings."""

    def __init__(self, scope: Construct, settings: Settings, network: Network) -> None:
        super().__init__(scope, settings, "team", tags=settings.all_tags)
