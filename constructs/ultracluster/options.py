"""What a cluster is made of, as arguments of `ParallelCluster`. The domain has fields, defaults and their meaning."""

from typing import TYPE_CHECKING, Any

from aws_cdk import aws_ec2 as ec2
from pydantic import ConfigDict, SkipValidation, ValidationError

from ultracluster.domain import budget, cluster, directory, team
from ultracluster.domain.cluster import (
    ComputeResourceSpec,
    HeadNodeSpec,
    LoginPoolSpec,
    MonitoringSpec,
    QueueSpec,
    SlurmSpec,
)
from ultracluster.domain.spec import Spec
from ultracluster.domain.violations import InvalidArguments, shape_violations


class Options(Spec):
    """Values that `ParallelCluster` checks: with all others at once, so that one exception names every invalid one."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    if not TYPE_CHECKING:  # type checkers see the fields

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError:
                object.__setattr__(self, "__dict__", {"subnet": None, **values})
                object.__setattr__(self, "__pydantic_fields_set__", set(values))
                object.__setattr__(self, "__pydantic_extra__", None)
                object.__setattr__(self, "__pydantic_private__", None)


class Values(Spec):
    """Values that are checked when they are made."""

    if not TYPE_CHECKING:  # type checkers see the fields

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise InvalidArguments(type(self).__name__, shape_violations(error)) from None


class ComputeResource(Options, ComputeResourceSpec):
    """Nodes of one instance type within a queue."""


class Queue(Options, QueueSpec):
    """A Slurm queue (partition)."""

    subnet: SkipValidation[ec2.ISubnet] | None = None
    """Where its nodes are. Default: the cluster's private subnet."""


class HeadNode(Options, HeadNodeSpec):
    """The head node: scheduler, shared home, where people log in."""

    subnet: SkipValidation[ec2.ISubnet] | None = None
    """Where it is. Default: the cluster's public subnet, or with ``public=False`` the private one."""


class LoginPool(Options, LoginPoolSpec):
    """A pool of login nodes."""

    subnet: SkipValidation[ec2.ISubnet] | None = None
    """Where they are. Default: the cluster's private subnet, or with ``public=True`` the public one."""


class Slurm(Options, SlurmSpec):
    """The scheduler's behaviour."""


class MonitoringOptions(Options, MonitoringSpec):
    """Logs, dashboard and alarms that ParallelCluster makes with the cluster."""


class AcceptedWarning(Values, cluster.AcceptedWarning):
    """A warning of ParallelCluster's validators that does not stop the deployment."""


class AccountSpec(Values, team.AccountSpec):
    """An account of Slurm: a project or a group of people whose use is counted together."""


class BudgetSpec(Values, budget.BudgetSpec):
    """A monthly limit, told by AWS Budgets, and guards on what runs now, because billing data is a day late."""


class DirectorySpec(Values, directory.DirectorySpec):
    """Users of Active Directory or another LDAP server, whom all nodes ask by SSSD. It turns on passwords in SSH."""


class QosSpec(Values, team.QosSpec):
    """A quality of service that jobs ask for by `sbatch --qos`."""


class TeamSpec(Values, team.TeamSpec):
    """Everything about people that nodes are told."""


class UserSpec(Values, team.UserSpec):
    """A person with a login."""


def as_given(value: Any) -> Any:
    """Return what options were made of, to be validated with everything else; any other value as it is."""
    if isinstance(value, list | tuple):
        return [as_given(each) for each in value]
    if isinstance(value, Options):
        given = value.model_fields_set - {"subnet"}
        return {name: as_given(each) for name, each in value.__dict__.items() if name in given}
    return value
