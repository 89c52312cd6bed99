"""What a cluster is made of, as arguments of `ParallelCluster`. The domain has fields, defaults and their meaning."""

from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, SkipValidation, ValidationError

from ultracluster.arguments import until_looked_up
from ultracluster.domain import budget, cluster, custom_actions, directory, roles, storage, team, type_facts
from ultracluster.domain.cluster import (
    ComputeResourceSpec,
    HeadNodeSpec,
    LoginPoolSpec,
    MonitoringSpec,
    QueueSpec,
    SlurmSpec,
)
from ultracluster.domain.spec import Spec
from ultracluster.domain.violations import InvalidArguments
from ultracluster.placement import Subnet
from ultracluster.signatures import OfModel

if TYPE_CHECKING:
    _Names = type
else:

    class _Names(type(Spec)):
        """Lists what a class has of its own: ``help()`` shows what ``dir()`` lists, and models have much in common."""

        def __dir__(cls):
            return [each for each in super().__dir__() if not each.startswith("_") and each not in _OF_ALL]


_OF_ALL = frozenset(dir(Spec))


class _Shown(Spec, metaclass=_Names):
    """A model whose fields users read and write."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.__signature__ = OfModel(vars(cls)["__signature__"])  # type: ignore[assignment]


class Options(_Shown):
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


class Values(_Shown):
    """Values that are checked when they are made."""

    if not TYPE_CHECKING:  # type checkers see the fields

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**{name: until_looked_up(each) for name, each in values.items()})
            except ValidationError as error:
                raise InvalidArguments(type(self).__name__, self.shapes(error)) from None


class ComputeResource(Options, ComputeResourceSpec):
    """Nodes of one instance type within a queue.

    Attributes:
        name: Lower case, at most 25 characters; part of node names. [1 to 25 of a-z, 0-9 and -, a letter first;
            required; change: stopped fleet]
        instance_type: EC2 instance type. [an EC2 instance type such as trn1.32xlarge; default 'trn1.32xlarge'; change:
            stopped fleet]
        alternative_types: Further types that a node may have, where EC2 has none of instance_type; with as many vCPUs
            and accelerators. Rules, prices and quotas go by instance_type. [default empty; change: stopped fleet]
        type_facts: What instance_type has, for one that this project does not know; None: it does, or nothing of it is
            counted. [default None; change: nodes drain]
        min_count: Nodes that always run and always cost. Above 0, creation of the cluster waits for them. Raised
            together with max_count it changes at once. [0 to 65,533; default 0; change: stopped fleet]
        max_count: Nodes at most. Fewer need a stopped fleet, or the queue update strategy TERMINATE. [1 to 65,533;
            required; change: at once]
        efa: Elastic Fabric Adapters; None: where the instance type has them. [default None; change: nodes drain]
        capacity_reservation_id: On-demand capacity reservation or Capacity Block to launch into. Without it nodes get a
            placement group again, which needs a stopped fleet. [the id of a capacity reservation such as
            cr-0123456789abcdef0; default None; change: nodes drain]
        capacity_reservation_group_arn: Resource group of reservations to launch into. Without it nodes get a placement
            group again, which needs a stopped fleet. [the ARN of a resource group:
            arn:aws:resource-groups:REGION:ACCOUNT:group/NAME; default None; change: nodes drain]
        simultaneous_multithreading: Both hardware threads of each core. [default True; change: stopped fleet]
    """


class Queue(Options, QueueSpec):
    """A Slurm queue (partition).

    Attributes:
        name: Lower case, at most 25 characters; part of node names. [1 to 25 of a-z, 0-9 and -, a letter first;
            required; change: stopped fleet]
        capacity_type: How the capacity is bought. [one of 'ONDEMAND', 'SPOT', 'CAPACITY_BLOCK'; default 'ONDEMAND';
            change: nodes drain]
        compute_resources: The kinds of node in the queue; at most 50 in the cluster. One is removed as a queue is.
            [required; change: at once]
        placement_group: Label of a cluster placement group; queues with one label share the group; none: no group.
            None: the shared group ``fleet`` for Trn nodes with EFA, one of the queue's name for others with EFA; none
            for reserved capacity. [1 to 25 of a-z, 0-9 and -, a letter first; default None; change: nodes drain]
        existing_placement_group: Name of a placement group that exists, such as the one a capacity reservation was made
            in. [default None; change: nodes drain]
        exclusive_jobs: Whether each job has its nodes to itself. Slurm does not see NeuronCores. [default True; change:
            at once]
        allocation_strategy: How EC2 chooses among alternative types and subnets; prioritized: in their order. None:
            lowest-price. [one of 'capacity-optimized', 'capacity-optimized-prioritized', 'lowest-price',
            'price-capacity-optimized', 'prioritized'; default None; change: nodes drain]
        further_subnet_ids: Further subnets of the VPC for its nodes, such as of other zones: without EFA and placement
            group. Taking one away drains nodes. [default empty; change: at once]
        security_group_ids: Security groups that its nodes carry beside ParallelCluster's own. [default empty; change:
            at once]
        s3_access: Buckets that its nodes may read, or write. [default empty; change: at once]
        instance_role_arn: Role of yours for its nodes, in place of ParallelCluster's; None: that one. It must allow
            what such nodes do: preflight says what it lacks. Grants, policies and buckets that are named elsewhere do
            not reach it. [the ARN of a role with the path /parallelcluster/; default None; change: at once]
        root_volume_gib: Root volume of each node; None: the image's size. [GiB; 45 to 16,384; default 200; change:
            nodes drain]
        scratch_dir: Where the node-local NVMe storage is mounted. [an absolute path such as /local; default '/scratch';
            change: nodes drain]
        custom_slurm_settings: Further slurm.conf parameters of the partition, such as MaxTime. [default empty; change:
            at once]
        custom_actions: Scripts of yours that its nodes run; None: none. [default None; change: nodes drain]
        subnet: Where its nodes are; of a selection the first one. Default: the cluster's private subnet. [change: nodes
            drain]
    """

    subnet: SkipValidation[Subnet] | None = None
    """Where its nodes are; of a selection the first one. Default: the cluster's private subnet. [change: nodes
    drain]"""


class HeadNode(Options, HeadNodeSpec):
    """The head node: scheduler, shared home, where people log in.

    Attributes:
        instance_type: Instance type, x86 with a Neuron SDK, with memory for the number of nodes. [an EC2 instance type
            such as trn1.32xlarge; default 'c6i.4xlarge'; change: new cluster]
        public: Whether it is in the public subnet, with a public address. Session Manager needs none. [default True;
            change: new cluster]
        root_volume_gib: Root volume, which holds /home unless shared_storage is efs; None: the image's size. [GiB; 45
            to 16,384; default 200; change: new cluster]
        shared_storage: Where /home and Slurm are, which all nodes mount: ebs: on the root volume, by NFS from the head
            node; efs: on an encrypted EFS file system, for large fleets, deleted with the cluster. [one of 'ebs',
            'efs'; default 'ebs'; change: new cluster]
        ssh_key_name: EC2 key pair (ed25519); None: Session Manager alone. [default None; change: new cluster]
        ssh_cidr: Address block or prefix list that may reach port 22; None: nobody. Never the world. [an IPv4 block
            such as 203.0.113.0/24, /8 or smaller, or a prefix list pl-...; default None; change: at once]
        security_group_ids: Security groups that it carries beside ParallelCluster's own. [default empty; change: at
            once]
        s3_access: Buckets that it may read, or write. [default empty; change: at once]
        instance_role_arn: Role of yours for it, in place of ParallelCluster's; None: that one. It must allow what such
            nodes do: preflight says what it lacks. Grants, policies and buckets that are named elsewhere do not reach
            it. [the ARN of a role with the path /parallelcluster/; default None; change: at once]
        custom_actions: Scripts of yours that it runs; None: none. [default None; change: at once]
        subnet: Where it is; of a selection the first one. Default: the cluster's public subnet, or with
            ``public=False`` the private one. [change: new cluster]
    """

    subnet: SkipValidation[Subnet] | None = None
    """Where it is; of a selection the first one. Default: the cluster's public subnet, or with ``public=False`` the
    private one. [change: new cluster]"""


class LoginPool(Options, LoginPoolSpec):
    """A pool of login nodes.

    Attributes:
        name: Lower case, at most 25 characters. [1 to 25 of a-z, 0-9 and -, a letter first; required; change: no login
            nodes]
        instance_type: EC2 instance type, of the head node's architecture. [an EC2 instance type such as trn1.32xlarge;
            default 'c6i.2xlarge'; change: no login nodes]
        count: Number of nodes. [0 to 1,000; default 1; change: at once]
        public: Whether they are in the public subnet. [default False; change: no login nodes]
        grace_minutes: Notice that users get before a node is terminated. Above 10, a smaller count may roll its own
            update back (https://github.com/aws/aws-parallelcluster/issues/7172). [minutes; 3 to 120; default 10;
            change: at once]
        security_group_ids: Security groups that they carry beside ParallelCluster's own. [default empty; change: no
            login nodes]
        instance_role_arn: Role of yours for them, in place of ParallelCluster's; None: that one. It must allow what
            such nodes do: preflight says what it lacks. Grants, policies and buckets that are named elsewhere do not
            reach it. [the ARN of a role with the path /parallelcluster/; default None; change: no login nodes]
        ssh_cidr: Address block or prefix list that may reach port 22; None: nobody, Session Manager alone. [an IPv4
            block such as 203.0.113.0/24, /8 or smaller, or a prefix list pl-...; default None; change: no login nodes]
        subnet: Where they are; of a selection the first one. Default: the cluster's private subnet, or with
            ``public=True`` the public one. [change: no login nodes]
    """

    subnet: SkipValidation[Subnet] | None = None
    """Where they are; of a selection the first one. Default: the cluster's private subnet, or with ``public=True`` the
    public one. [change: no login nodes]"""


class NodeAction(Values, custom_actions.NodeActionSpec):
    """A script that nodes run as root, and that ends with 0.

    Attributes:
        script: A file whose first line names its interpreter, which is deployed with the cluster: an edit is a change.
            Or an object that exists, s3://BUCKET/KEY, which nodes may read then, or https://...; what is changed there
            is no change here. [a file below the folder of this file, s3://BUCKET/KEY or https://...; required; change:
            as the key says]
        args: Its arguments. [default empty; change: as the key says]
    """


class InstanceTypeFacts(Values, type_facts.TypeFactsSpec):
    """What an instance type has that this project does not know: ``aws ec2 describe-instance-types`` tells most.

    Attributes:
        vcpus: Default number of vCPUs, the unit of EC2's quotas (DefaultVCpus). [1 to 10,000; required; change: at
            once]
        memory_gib: Memory of the host. [GiB; 1 to 1,000,000; required; change: at once]
        network_cards: Network cards (MaximumNetworkCards). [1 to 100; default 1; change: at once]
        efa_devices: EFA devices (MaximumEfaInterfaces); 0: it has no EFA. [0 to 100; default 0; change: nodes drain]
        neuron_devices: Chips of AWS Neuron (Count of NeuronDevices); 0: its nodes get no Neuron software. [0 to 1,000;
            default 0; change: nodes drain]
        neuron_cores: NeuronCores of all chips, as ``neuron-ls`` counts them: half of the physical ones on Trn2. [0 to
            100,000; default 0; change: nodes drain]
        first_neuron_sdk: First release of the Neuron SDK that knows the chip; None: nothing is compared. [a release of
            the Neuron SDK such as 2.28.1; default None; change: at once]
        usd_per_hour: Price on demand in US dollars, where AWS's Price List is not asked; None: it is in no sums without
            the list. [above 0 to 1,000,000; default None; change: at once]
    """


class S3Access(Values, cluster.S3AccessSpec):
    """What nodes may do with a bucket that exists.

    Attributes:
        bucket: Name of the bucket. [the name of a bucket, 3 to 63 of a-z, 0-9, . and -; required; change: at once]
        key: An object, or a prefix and *; None: all, and to list them. [a key, or a prefix and *, without / in front;
            default None; change: at once]
        write: Whether nodes may write and delete, too. [default False; change: at once]
    """


class EbsVolume(Values, storage.EbsVolumeSpec):
    """An EBS volume of the head node, which nodes mount by NFS from there: for tools, not for data of training.

    Attributes:
        volume_id: A volume that exists, in the zone of the head node; None: one is made. [the id of a volume such as
            vol-0123456789abcdef0; default None; change: new cluster]
        snapshot_id: Snapshot that one is made of; None: it is empty. [the id of a snapshot such as
            snap-0123456789abcdef0; default None; change: new cluster]
        size_gib: Size of one that is made, of a snapshot that of the snapshot or more; None: 40 GiB. [GiB; 1 to 65,536;
            default None; change: new cluster]
        type: Type of one that is made. [one of 'gp3', 'gp2', 'io1', 'io2', 'st1', 'sc1'; default 'gp3'; change: new
            cluster]
        iops: Operations a second of gp3, io1 and io2; None: 3,000 of gp3, 100 of io1 and io2. [100 to 256,000; default
            None; change: at once]
        throughput_mibps: MiB/s of gp3; None: 125. [125 to 2,000; default None; change: at once]
        kms_key_arn: Key that encrypts one that is made; None: the one that EBS manages. It is always encrypted. [the
            ARN of a KMS key: arn:aws:kms:REGION:ACCOUNT:key/ID; default None; change: new cluster]
        retention: What happens to one that was made, when the cluster ends. [one of 'delete', 'retain', 'snapshot';
            default 'retain'; change: at once]
    """


class QueueActions(Values, custom_actions.QueueActionsSpec):
    """Scripts of yours that the compute nodes of a queue run, one after the other; one that fails ends its node.

    Attributes:
        on_node_start: Before anything is set up on a node: no file system is mounted yet. [default empty; change: nodes
            drain]
        on_node_configured: When a node is set up, after the scripts of this project, before jobs. [default empty;
            change: nodes drain]
    """


class NodeActions(Values, custom_actions.NodeActionsSpec):
    """Scripts of yours that head or login nodes run, one after the other; one that fails fails the deployment.

    Attributes:
        on_node_start: Before anything is set up on a node: no file system is mounted yet. [default empty; change: new
            cluster]
        on_node_configured: When a node is set up, after the scripts of this project; those that are new or changed run
            again when the cluster is updated. [default empty; change: at once]
        on_node_updated: Each time the cluster is updated. [default empty; change: at once]
    """


class Slurm(Options, SlurmSpec):
    """The scheduler's behaviour.

    Attributes:
        idle_minutes: Minutes without a job after which a dynamic node is terminated; -1: never. [minutes; -1 to
            525,600; default 10; change: stopped fleet]
        queue_update_strategy: What happens to running nodes when a change concerns them: finish their jobs first, end
            at once, or refuse the change until the fleet is stopped. [one of 'DRAIN', 'TERMINATE',
            'COMPUTE_FLEET_STOP'; default 'DRAIN'; change: at once]
        scaling_strategy: Whether a job that does not get all of its nodes gets none. [one of 'all-or-nothing',
            'greedy-all-or-nothing', 'best-effort'; default 'all-or-nothing'; change: at once]
        custom_settings: Further slurm.conf parameters of the cluster, which its Slurm must know; what
            SchedulerParameters lists here wins over what is set anyway, one by one. [default empty; change: at once]
    """


class MonitoringOptions(Options, MonitoringSpec):
    """Logs, dashboard and alarms that ParallelCluster makes with the cluster.

    Attributes:
        log_retention_days: Days that CloudWatch keeps the cluster's logs. [days; one of 1, 3, 5, 7, 14, 30, 60, 90,
            120, 150, 180, 365, 400, 545, 731, 1827, 3653; default 180; change: at once]
        retain_logs: Whether the logs outlive the cluster. [default True; change: at once]
        dashboard: CloudWatch dashboard of the head node and the file systems. [default True; change: at once]
        alarms: CloudWatch alarms of the head node. [default True; change: at once]
        detailed_monitoring: EC2 metrics every minute instead of every five. [default False; change: stopped fleet]
    """


class AcceptedWarning(Values, cluster.AcceptedWarning):
    """A warning of ParallelCluster's validators that does not stop the deployment.

    Attributes:
        validator: Type of the validator, as ParallelCluster names it, such as UrlValidator. [required; change: at once]
        reason: Why; checks before a deployment show it with the warning. [required; change: at once]
    """


class AccountSpec(Values, team.AccountSpec):
    """An account of Slurm: a project or a group of people whose use is counted together.

    Attributes:
        max_nodes: Nodes of all running jobs together (GrpTRES); None: no limit. [1 to 65,533; default None; change: at
            once]
        node_hours_per_month: Node hours of a calendar month (GrpTRESMins); None: no limit. [1 to 100,000,000; default
            None; change: at once]
        max_hours: Hours that a job may run (MaxWall); None: no limit. [hours; 1 to 1,000,000; default None; change: at
            once]
        name: Name. [1 to 40 of a-z, 0-9, _ and -, a letter first; required; change: at once]
        parent: Account that it is part of; None: the cluster's root. [1 to 40 of a-z, 0-9, _ and -, a letter first;
            default None; change: at once]
        share: Shares of the cluster beside those of the account's siblings, for fair share; None: 1. [1 to 1,000,000;
            default None; change: at once]
    """


class BudgetSpec(Values, budget.BudgetSpec):
    """A monthly limit, told by AWS Budgets, and guards on what runs now, because billing data is a day late.

    Attributes:
        monthly_usd: US dollars a month for everything of the deployment, and the limit of what `action` does. [US
            dollars; above 0 to 1,000,000,000; required; change: at once]
        emails: Addresses that AWS Budgets writes to, at most 10; None: those who get alarms. [default None; change: at
            once]
        actual_percent: Percent of the limit at which AWS Budgets writes when so much has been billed. [percent; default
            50, 80, 100; change: at once]
        forecast_percent: Percent of the limit at which AWS Budgets writes when it expects so much by the end of the
            month. [percent; default 100; change: at once]
        max_usd_per_hour: An alarm is raised within minutes when running nodes cost so much or more per hour; None: no
            such alarm. [US dollars; above 0 to 1,000,000,000; default None; change: at once]
        max_idle_minutes: An alarm is raised when a node that is not static has been idle for so long after it should
            have been terminated (idle_minutes of Slurm); None: no such alarm. [minutes; 5 to 1,440; default 30; change:
            at once]
        usd_per_hour: What an hour of a node costs, by instance type, where that is not the list price: with a discount,
            as Spot, as a Capacity Block (0, for it is prepaid), or in another Region than us-east-1, us-east-2 and
            us-west-2. [default empty; change: at once]
        action: What the head node does when nodes have cost `monthly_usd` since the month began. drain: no job starts,
            those that run continue; stop: those that run are cancelled, too. [one of 'none', 'drain', 'stop'; default
            'none'; change: at once]
    """


class Roles(Options, roles.RolesSpec):
    """What all roles have.

    Attributes:
        permissions_boundary_arn: Managed policy beyond which no role may do anything, whatever its own policies say;
            None: none. It must allow what nodes and provider need. To take it off, deploy once with None here; then
            these options may go, too. [the ARN of a policy of yours without a path: arn:aws:iam::ACCOUNT:policy/NAME, a
            name of A-Z, a-z, 0-9, _ and -; default None; change: at once]
        path: Path of all roles, from which the provider's permissions follow; None: /parallelcluster/CLUSTER/ of the
            cluster's, / of others. [/parallelcluster/, or below it such as /parallelcluster/lab/; default None; change:
            new cluster]
        name_prefix: How the names of all roles begin; None: CloudFormation's names, which begin with that of the stack.
            [1 to 10 of A-Z, a-z, 0-9 and _.,+@=-, such as lab-; default None; change: new cluster]
    """


class DirectorySpec(Values, directory.DirectorySpec):
    """Users of Active Directory or another LDAP server, which all nodes ask by SSSD. It turns on passwords in SSH.

    Attributes:
        domain_name: The domain, from which the search base is made. [a domain such as corp.example.com, or
            DC=corp,DC=example,DC=com; required; change: stopped fleet, no login nodes]
        domain_addr: Addresses of the servers. Passwords cross the network in clear by ldap://. [ldaps://HOST, further
            ones after a comma; required; change: stopped fleet, no login nodes]
        password_secret_arn: Secret whose value is the password of the read-only user, as plain text. The deployment
            describes it to validate it, and the head node reads it. [the complete ARN of a secret:
            arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME-6CHARS; required; change: stopped fleet, no login nodes]
        domain_read_only_user: The user that asks. [a distinguished name such as
            cn=ReadOnly,ou=Users,dc=corp,dc=example,dc=com; required; change: stopped fleet, no login nodes]
        ldap_tls_ca_cert: File on the nodes with the certificates of those who sign the servers' certificates; None: the
            system's. [an absolute path; default None; change: stopped fleet, no login nodes]
        ldap_tls_req_cert: What becomes of a server's certificate that is not valid; all but demand and hard let anybody
            be the server. [one of 'never', 'allow', 'try', 'demand', 'hard'; default 'hard'; change: stopped fleet, no
            login nodes]
        ldap_access_filter: Filter of who may log in; None: everybody of the domain. [a filter such as (memberOf=...);
            default None; change: stopped fleet, no login nodes]
        generate_ssh_keys_for_users: Whether a user gets an SSH key at the first login. [default True; change: stopped
            fleet, no login nodes]
        additional_sssd_configs: Further settings of SSSD's domain. [default empty; change: stopped fleet, no login
            nodes]
    """


class QosSpec(Values, team.QosSpec):
    """A quality of service that jobs ask for by ``sbatch --qos``.

    Attributes:
        max_nodes: Nodes of all running jobs together (GrpTRES); None: no limit. [1 to 65,533; default None; change: at
            once]
        node_hours_per_month: Node hours of a calendar month (GrpTRESMins); None: no limit. [1 to 100,000,000; default
            None; change: at once]
        max_hours: Hours that a job may run (MaxWall); None: no limit. [hours; 1 to 1,000,000; default None; change: at
            once]
        name: Name. [1 to 40 of a-z, 0-9, _ and -, a letter first; required; change: at once]
        priority: Priority that it adds to a job. [0 to 1,000,000,000; default 0; change: at once]
        preempts: QoS whose jobs are requeued to make room; ``normal`` is that of jobs that ask for none. [default
            empty; change: at once]
        accounts: Accounts, with those below them, whose jobs may ask for it; []: all. [default empty; change: at once]
    """


class TeamSpec(Values, team.TeamSpec):
    """Everything about people that nodes are told.

    Attributes:
        groups: Groups of people, with their ids: the same on all nodes. [default empty; change: at once]
        users: People with logins. [default empty; change: at once]
        accounts: Accounts that jobs are charged to. [default empty; change: at once]
        qos: Qualities of service. [default empty; change: at once]
        accounting: Whether Slurm has accounting; accounts, QoS and users with an account imply it. With True alone
            nodes remove the accounts and QoS that they have made. [default False; change: at once]
    """


class UserSpec(Values, team.UserSpec):
    """A person with a login.

    Attributes:
        name: Login name, also in Slurm. [1 to 31 of a-z, 0-9, _ and -, a letter or _ first; required; change: at once]
        uid: User id, the same on all nodes and for ever: files on shared storage belong to it. [2,000 to 60,000;
            required; change: at once]
        gid: Id of the person's own group, of the name of the person; None: that of the user. [2,000 to 60,000; default
            None; change: at once]
        groups: Further groups, each with its id in the groups of the team. [default empty; change: at once]
        ssh_keys: Public keys, as in authorized_keys. Session Manager needs none. [default empty; change: at once]
        account: Account that jobs are charged to by default; needs accounting. [1 to 40 of a-z, 0-9, _ and -, a letter
            first; default None; change: at once]
        admin: Whether sudo is allowed, and Slurm's accounting may be changed. [default False; change: at once]
    """


def as_given(value: Any) -> Any:
    """Return what options were made of, to be validated with everything else; any other value as it is."""
    if isinstance(value, list | tuple):
        return [as_given(each) for each in value]
    if isinstance(value, Options):
        given = value.model_fields_set - {"subnet"}
        return {name: as_given(each) for name, each in value.__dict__.items() if name in given}
    return until_looked_up(value)
