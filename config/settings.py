"""The typed settings of a deployment, read from one YAML file.

``load`` reports every violation of a file at once. Types, ranges and unknown keys are checked by the models
(``config.sections``, ``ultracluster.domain``), combinations by ``config.rules``.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails

from config import files, rules, schemas, users_file
from config.messages import RULE, CopyError, SettingsError, broken_rule, dotted, error_path, text_of
from config.sections import BootstrapSettings, ClusterSettings, NetworkSettings, StorageSettings
from config.yaml_source import YamlSource
from ultracluster.domain import accounting_rules, budget, cluster_rules, directory, names, network, override_rules
from ultracluster.domain.accounting import DEFAULT_ACCOUNT, AccountingSpec
from ultracluster.domain.budget import BudgetSpec
from ultracluster.domain.cluster import ClusterOptions, ClusterSpec
from ultracluster.domain.homes import Homes
from ultracluster.domain.monitoring import ClusterMonitoringSpec
from ultracluster.domain.roles import PAGE as ROLES_PAGE
from ultracluster.domain.roles import RolesSpec
from ultracluster.domain.spec import WRONG, Change, Setting, Spec
from ultracluster.domain.team import PEOPLE, Id, TeamSpec, UserName, UserSpec
from ultracluster.domain.team import USERS as USERS_PAGE
from ultracluster.domain.types import FEW, Account, Region, ZoneId, text
from ultracluster.domain.violations import MAX_REPORTED, Violation, below, divided, is_token

__all__ = ["PARTS", "SCHEMA_PATH", "CopyError", "Settings", "SettingsError", "json_schema", "load"]

SCHEMA_PATH = Path(__file__).with_name("schema.json")

Part = Literal["network", "storage", "team", "cluster", "monitoring"]
PARTS: tuple[Part, ...] = get_args(Part)
"""The stacks that a deployment may have, in the order of creation."""
TagValue = Annotated[str, Field(max_length=256)]


class Settings(Spec):
    """A deployment: network, storage, cluster and monitoring."""

    name: Annotated[
        str,
        text(rf"^{names.DEPLOYMENT_NAME_PATTERN}$", "2 to 40 of a-z, 0-9 and -, a letter first"),
        Setting(Change.NEW_DEPLOYMENT),
    ]
    """Name of the deployment; its stacks are NAME-network, NAME-storage, NAME-cluster and NAME-monitoring, and
    NAME-team with homes or accounting. That of the cluster ends in -N in generation N, from 2 on."""
    account: Annotated[
        Account | None,
        Setting(
            Change.NEW_DEPLOYMENT,
            page="https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-identifiers.html",
        ),
    ] = None
    """AWS account, in quotes; null: the one of the credentials in use."""
    region: Annotated[
        Region,
        Setting(
            Change.NEW_DEPLOYMENT, page="https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html"
        ),
    ]
    """AWS Region."""
    zone_id: Annotated[ZoneId, Setting(Change.NEW_DEPLOYMENT, "AWS::EC2::Subnet.AvailabilityZoneId")]
    """Availability zone id, the same place in every account (a zone name such as us-west-2a is not)."""
    tags: Annotated[
        dict[str, TagValue],
        FEW,
        Setting(Change.AT_ONCE, page="https://docs.aws.amazon.com/tag-editor/latest/userguide/reference.html"),
    ] = {}
    """Tags of everything that is made, at most 39; keys and values of letters, digits, spaces and `_.:/=+-@`,
    values not empty. With `cluster.head_node.snapshots` keys have neither spaces nor @, and letters a to z alone."""
    termination_protection: Annotated[
        list[Part],
        FEW,
        Setting(
            Change.AT_ONCE,
            page="https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-protect-stacks.html",
        ),
    ] = ["network", "storage", "team"]
    """Stacks that cannot be deleted until they are taken off this list and deployed once more."""
    bootstrap: BootstrapSettings = BootstrapSettings()
    roles: Annotated[RolesSpec | None, Setting(Change.AT_ONCE, page=ROLES_PAGE)] = None
    """What all roles have in common, and the CDK's by `./ultracluster bootstrap`; null: nothing."""
    network: NetworkSettings = NetworkSettings()
    storage: StorageSettings = StorageSettings()
    cluster: ClusterSettings
    monitoring: ClusterMonitoringSpec = ClusterMonitoringSpec()
    groups: Annotated[dict[UserName, Id], PEOPLE, Setting(Change.AT_ONCE, page=USERS_PAGE)] = {}
    """Groups of people, with their ids: the same on all nodes."""
    users: Annotated[
        list[UserSpec], PEOPLE, Field(json_schema_extra=users_file.describe), Setting(Change.AT_ONCE, page=USERS_PAGE)
    ] = []
    """People with logins, the same on all nodes; or the name of a file beside this one that has keys `groups` and
    `users`, and a name that ends in users.yaml. None: everybody is the image's default user, who may do everything."""
    accounting: Annotated[AccountingSpec | None, Setting(Change.NEW_CLUSTER)] = None
    """Who used what, and limits; null: Slurm forgets jobs when they have ended."""
    homes: Annotated[Homes, Setting(Change.NEW_CLUSTER)] = None
    """/home on storage that outlives clusters: a type alone, or with more; null: where cluster.head_node.shared_storage
    says."""
    budget: Annotated[BudgetSpec | None, Setting(Change.AT_ONCE)] = None
    """A monthly limit; null: nobody is told what is spent."""
    _file: str | None = None
    """Name of the file without .yaml, by which commands know the deployment."""
    _folder: Path | None = None
    """Where the file is, from which scripts of nodes are named."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if violations := rules.violations(self):
            errors = [InitErrorDetails(type=broken_rule(each), loc=each.path, input=each.got) for each in violations]
            raise ValidationError.from_exception_data("Settings", errors)
        return self

    @property
    def cluster_spec(self) -> ClusterSpec:
        """The cluster, with its names and its place; it is named for its generation."""
        return ClusterSpec.assembled(
            {
                **{field: partial(getattr, self.cluster, field) for field in ClusterOptions.model_fields},
                "name": lambda: names.of_generation(self.cluster.name or self.name, self.cluster.generation),
                "region": lambda: self.region,
                "tags": lambda: self.all_tags,
                "roles": lambda: self.roles,
            }
        )

    @property
    def all_tags(self) -> dict[str, str]:
        """Tags of everything that is made; with a budget also the one by which AWS Budgets finds its costs."""
        return self.tags if self.budget is None else {**self.tags, names.DEPLOYMENT_TAG: self.name}

    @property
    def permissions_boundary_arn(self) -> str | None:
        """What bounds all roles; None: nothing."""
        return None if self.roles is None else self.roles.permissions_boundary_arn

    @property
    def emails_of_budget(self) -> Sequence[str]:
        """Whom AWS Budgets writes to."""
        own = None if self.budget is None else self.budget.emails
        return self.monitoring.emails if own is None else own

    @property
    def team(self) -> TeamSpec | None:
        """What nodes are told of people; None: there is nothing to tell."""
        accounting = self.accounting
        if not (self.groups or self.users or accounting):
            return None
        if accounting is None:
            return TeamSpec(groups=self.groups, users=self.users)
        # Who has none would not be let submit jobs.
        users = [user.model_copy(update={"account": user.account or DEFAULT_ACCOUNT}) for user in self.users]
        return TeamSpec(
            groups=self.groups, users=users, accounts=accounting.accounts, qos=accounting.qos, accounting=True
        )

    @property
    def folder(self) -> Path:
        """Where the scripts of nodes are that are files: beside the settings file, or in the current directory."""
        return Path() if self._folder is None else self._folder

    @property
    def parts(self) -> tuple[Part, ...]:
        """The stacks that there are, in the order of creation."""
        has_homes = self.homes is not None and self.homes.is_made
        has_database = self.accounting is not None and self.accounting.existing is None
        return tuple(part for part in PARTS if part != "team" or has_homes or has_database)

    @property
    def endpoint_services(self) -> list[str]:
        """Short names of the interface endpoints."""
        login_nodes = bool(self.cluster.login_nodes)
        return network.endpoint_services(self.network.interface_endpoints, login_nodes=login_nodes)

    def stack_name(self, part: str) -> str:
        """Return the name of the stack of a part, one of `PARTS`."""
        name = f"{self.name}-{part}"
        return names.of_generation(name, self.cluster.generation) if part == "cluster" else name

    def of_generation(self, generation: int) -> Self:
        """Return the same settings for another cluster of this deployment, with the names of that cluster."""
        cluster = self.cluster.model_copy(update={"generation": generation})
        return self.model_copy(update={"cluster": cluster})

    @property
    def warnings(self) -> list[str]:
        """What is allowed but worth a second look, one sentence each."""
        spec = self.cluster_spec
        of_cluster = [*cluster_rules.zone_warnings(spec, self.zone_id), *cluster_rules.image_warnings(spec)]
        of_cluster += [*cluster_rules.untested_warnings(spec), *cluster_rules.accelerator_warnings(spec)]
        of_cluster += [*cluster_rules.type_warnings(spec), *cluster_rules.chip_warnings(spec)]
        of_cluster += below(("overrides",), override_rules.warnings(spec))
        if spec.directory is not None:
            of_cluster += below(("directory",), directory.warnings(spec.directory))
        head_node = self.cluster.head_node
        if head_node.shared_storage == "efs" and head_node.snapshots is not None:
            got = head_node.snapshots.model_dump()
            reason = "snapshots cost and hold no /home, which is on EFS: docs/explanation/lasting-choices.md"
            of_cluster.append(Violation(("head_node", "snapshots"), got, "null", reason))
        warnings = below(("cluster",), of_cluster)
        if self.accounting is not None:
            warnings += below(("cluster", "overrides"), override_rules.accounting_warnings(spec))
            warnings += below(("accounting",), accounting_rules.warnings(self.accounting, spec.max_nodes))
        if self.budget is not None:
            nodes, alarms = spec.max_nodes_by_type, self.monitoring
            never = budget.warnings(
                self.budget,
                self.region,
                nodes,
                alarms.emails,
                node_metrics=alarms.node_metrics,
                stated=spec.stated_prices,
            )
            warnings += below(("budget",), never)
        if self._file not in (None, self.name):
            reason = f"commands take {self._file}, the file, and the stacks are {self.name}-network and so on"
            warnings.insert(0, self.violation("name", f"{self._file}, before the first deployment", reason))
        return [f"{dotted(each.path)}: {each}" for each in warnings]


def _namesakes(path: Path, value: Any) -> Iterator[Violation]:
    """Yield which files beside a copy have its name, in what may be one account and Region: the same stacks.

    The file that is called as the deployment is no copy.
    """
    name = value.get("name") if isinstance(value, dict) else None
    others = files.deployments(path.parent) if isinstance(name, str) and name != path.stem else []
    for other in (each for each in others if each != path.stem):
        with suppress(SettingsError):  # it is reported where that file is used
            theirs = YamlSource.read(path.with_name(f"{other}.yaml")).value
            keys = ("name", "region", "account")
            if isinstance(theirs, dict) and all(_may_be_one(value.get(key), theirs.get(key)) for key in keys):
                allowed = f"another name, such as {path.stem}, or another Region or account"
                yield Violation(("name",), name, allowed, f"{other}.yaml has the stacks of that name")


def _tokens(path: tuple[str | int, ...], value: Any) -> Iterator[Violation]:
    """Yield which texts the CDK would take for what only CloudFormation knows, such as that there is no value."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _tokens((*path, key), each)
    elif isinstance(value, str | float) and is_token(value):
        yield Violation(path, "a token of the CDK", "a value", "a settings file has none: they stand for others")


def _may_be_one(own: Any, other: Any) -> bool:
    """Return whether two files say the same, or one leaves it open."""
    return own is None or other is None or own == other


@cache
def _schema() -> dict[str, Any]:
    return Settings.model_json_schema(schema_generator=schemas.UntitledFields)


def load(path: Path) -> Settings:
    """Read the settings of a deployment.

    Args:
        path: A YAML file; one that it names beside it may have the people.

    Raises:
        SettingsError: The file is missing, is not YAML, or breaks rules; all of them are named, a line each.
    """
    source = users_file.Sources.read(path)
    errors: Sequence[ErrorDetails] = []
    namesakes, unusable = [*_namesakes(path, source.value)], [*_tokens((), source.value)]
    try:
        settings = Settings.model_validate(source.value)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    else:
        unusable += rules.script_violations(settings, path.parent)
        if not source.faults and not namesakes and not unusable:
            settings._file, settings._folder = path.stem, path.parent
            return settings
    shapes = [each for each in errors if each["type"] != RULE]
    texts = [(error_path(each), text_of(each, _schema())) for each in shapes[:MAX_REPORTED]]
    waiting = ""
    if source.value is None and not source.faults:
        texts = [((), f"got an empty file; should have settings: delete it, then ./ultracluster init {path.stem}")]
    if isinstance(source.value, dict):
        unread = dict.fromkeys(source.unread, WRONG)
        readable = Settings.readable({**source.value, **unread})
        broken, waiting = divided([*rules.violations(readable), *rules.script_violations(readable, path.parent)])
        told = {each.path for each in broken}
        texts += [(each.path, str(each)) for each in (*broken, *namesakes)]
        texts += [(each.path, str(each)) for each in unusable if each.path not in told]
    last = waiting and f"{source.settings.name}: {waiting}"
    error_type = CopyError if namesakes else SettingsError
    raise error_type(source.report(texts), more=len(shapes[MAX_REPORTED:]), last=last)


def json_schema() -> str:
    """Return the JSON Schema by which editors check and complete a settings file."""
    return schemas.text(_schema())


if __name__ == "__main__":
    SCHEMA_PATH.write_text(json_schema(), encoding="utf-8")
