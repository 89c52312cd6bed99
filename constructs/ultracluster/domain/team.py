"""The people of a cluster, and what their jobs may use: what nodes are told, as one JSON document."""

import json
from typing import Annotated

from pydantic import Field

from ultracluster.domain.spec import Change, Setting, Spec
from ultracluster.domain.types import FEW, FROM_HOURS, MANY, NODES, Entries, Items, Most, OptionalTime, default, text

USERS = "https://docs.aws.amazon.com/parallelcluster/latest/ug/multi-user-v3.html"
_LIMITS = "https://slurm.schedmd.com/resource_limits.html"
_QOS = "https://slurm.schedmd.com/qos.html"
_PREEMPTION = "https://slurm.schedmd.com/preempt.html"
_ASSOCIATIONS = "https://slurm.schedmd.com/sacctmgr.html"

UserName = Annotated[str, text(r"^[a-z_][a-z0-9_-]{0,30}$", "1 to 31 of a-z, 0-9, _ and -, a letter or _ first")]
AccountName = Annotated[str, text(r"^[a-z][a-z0-9_-]{0,39}$", "1 to 40 of a-z, 0-9, _ and -, a letter first")]
PEOPLE = Most(10_000)
"""Bound of lists of people and groups."""
SshKey = Annotated[str, Field(max_length=20_000)]
Id = Annotated[int, Field(ge=2000, le=60000)]
"""Below are those of the system, of ParallelCluster (400 and up) and the default user (1000)."""


class UserSpec(Spec):
    """A person with a login."""

    name: Annotated[UserName, Setting(Change.AT_ONCE, page=USERS)]
    """Login name, also in Slurm."""
    uid: Annotated[Id, Setting(Change.AT_ONCE, page=USERS)]
    """User id, the same on all nodes and for ever: files on shared storage belong to it."""
    gid: Annotated[Id | None, Setting(Change.AT_ONCE, page=USERS)] = None
    """Id of the person's own group, of the name of the person; None: that of the user."""
    groups: Annotated[Items[UserName], FEW, Setting(Change.AT_ONCE, page=USERS)] = []
    """Further groups, each with its id in the groups of the team."""
    ssh_keys: Annotated[Items[SshKey], FEW, Setting(Change.AT_ONCE, page=USERS)] = []
    """Public keys, as in authorized_keys. Session Manager needs none."""
    account: Annotated[AccountName | None, Setting(Change.AT_ONCE, page=_ASSOCIATIONS)] = None
    """Account that jobs are charged to by default; needs accounting."""
    admin: Annotated[bool, Setting(Change.AT_ONCE, page=USERS)] = False
    """Whether sudo is allowed, and Slurm's accounting may be changed."""


class Limits(Spec):
    """Limits of an account or a QoS."""

    max_nodes: Annotated[int | None, Field(ge=1), NODES, Setting(Change.AT_ONCE, page=_LIMITS)] = None
    """Nodes of all running jobs together (GrpTRES); None: no limit."""
    node_hours_per_month: Annotated[int | None, Field(ge=1, le=100_000_000), Setting(Change.AT_ONCE, page=_LIMITS)] = (
        None
    )
    """Node hours of a calendar month (GrpTRESMins); None: no limit."""
    max_hours: Annotated[OptionalTime, Field(ge=1, le=1_000_000), FROM_HOURS, Setting(Change.AT_ONCE, page=_LIMITS)] = (
        default(None)
    )
    """Hours that a job may run (MaxWall); None: no limit."""


class AccountSpec(Limits):
    """An account of Slurm: a project or a group of people whose use is counted together."""

    name: Annotated[AccountName, Setting(Change.AT_ONCE, page=_ASSOCIATIONS)]
    """Name."""
    parent: Annotated[AccountName | None, Setting(Change.AT_ONCE, page=_ASSOCIATIONS)] = None
    """Account that it is part of; None: the cluster's root."""
    share: Annotated[int | None, Field(ge=1, le=1_000_000), Setting(Change.AT_ONCE, page=_ASSOCIATIONS)] = None
    """Shares of the cluster beside those of the account's siblings, for fair share; None: 1."""


class QosSpec(Limits):
    """A quality of service that jobs ask for by ``sbatch --qos``."""

    name: Annotated[AccountName, Setting(Change.AT_ONCE, page=_QOS)]
    """Name."""
    priority: Annotated[int, Field(ge=0, le=10**9), Setting(Change.AT_ONCE, page=_QOS)] = 0
    """Priority that it adds to a job."""
    preempts: Annotated[Items[AccountName], FEW, Setting(Change.AT_ONCE, page=_PREEMPTION)] = []
    """QoS whose jobs are requeued to make room; ``normal`` is that of jobs that ask for none."""
    accounts: Annotated[Items[AccountName], MANY, Setting(Change.AT_ONCE, page=_QOS)] = []
    """Accounts, with those below them, whose jobs may ask for it; []: all."""


class TeamSpec(Spec):
    """Everything about people that nodes are told."""

    groups: Annotated[Entries[UserName, Id], PEOPLE, Setting(Change.AT_ONCE)] = {}
    """Groups of people, with their ids: the same on all nodes."""
    users: Annotated[Items[UserSpec], PEOPLE, Setting(Change.AT_ONCE)] = []
    """People with logins."""
    accounts: Annotated[Items[AccountSpec], MANY, Setting(Change.AT_ONCE)] = []
    """Accounts that jobs are charged to."""
    qos: Annotated[Items[QosSpec], FEW, Setting(Change.AT_ONCE)] = []
    """Qualities of service."""
    accounting: Annotated[bool, Setting(Change.AT_ONCE)] = False
    """Whether Slurm has accounting; accounts, QoS and users with an account imply it. With True alone nodes remove the
    accounts and QoS that they have made."""

    def document(self) -> str:
        """Return the document that nodes get; the same people make the same text."""
        accounting = self.accounting or bool(self.accounts or self.qos or any(user.account for user in self.users))
        return json.dumps({**self.model_dump(mode="json"), "accounting": accounting}, indent=1, sort_keys=True) + "\n"
