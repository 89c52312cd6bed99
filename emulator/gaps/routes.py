"""EC2's routes: those whose target is gone are black holes."""

from __future__ import annotations

from moto.ec2.models.internet_gateways import InternetGateway
from moto.ec2.models.route_tables import Route


def find_black_holes() -> None:
    """Let routes tell when their target is gone; moto calls all of them active.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Route.html, State;
    https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-working-with.html
    """
    Route.state = property(_state)  # type: ignore[assignment, method-assign]


def _state(route: Route) -> str:
    detached = isinstance(route.gateway, InternetGateway) and route.gateway.vpc is None
    deleted = route.nat_gateway is not None and route.nat_gateway.state == "deleted"
    return "blackhole" if detached or deleted else "active"
