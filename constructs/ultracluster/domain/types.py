"""Types of values that several models share."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Protocol, TypeVar, get_args, overload

from pydantic import Field, GetCoreSchemaHandler, WrapValidator
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_before_validator_function

from ultracluster.domain.violations import WORDS


def text(pattern: str, allowed: str, *, max_length: int | None = None) -> Any:
    """Declare a text: a pattern, and what it allows in words, best with an example, for messages and editors."""
    WORDS[pattern] = allowed
    return Field(pattern=pattern, max_length=max_length, json_schema_extra={"patternErrorMessage": allowed})


def allowing(words: str) -> Any:
    """Say what a rule beside the model allows, which no pattern can: ``x-allowed`` of the JSON schema."""
    return Field(json_schema_extra={"x-allowed": words})


NODES = Field(le=65_533)
"""MaxNodeCount at most (https://slurm.schedmd.com/slurm.conf.html)."""


@dataclass(frozen=True)
class Most:
    """Says how many members a list or mapping has at most; tuples and the like are lists, too. Other bounds precede it.

    Attributes:
        members: So many.
    """

    members: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of the field with the bound."""
        return no_info_before_validator_function(plain, _bounded(handler(source), self.members))


def _bounded(schema: Any, members: int) -> Any:
    if schema["type"] == "nullable":
        return {**schema, "schema": _bounded(schema["schema"], members)}
    return {**schema, "max_length": members}


FEW, MANY = Most(100), Most(1000)
"""Bounds of lists and mappings, far above what anybody has, so that checking a file takes no time that counts."""

TOKENS = WrapValidator(lambda value, check: value if isinstance(value, str) and "${Token[" in value else check(value))
"""Lets values pass that only CloudFormation will know: tokens of the CDK, as text."""


@dataclass(frozen=True)
class Existing:
    """Says of a type that its values name what exists before a deployment, by its type in CloudFormation.

    EC2's images have none there: `AWS::EC2::Image`.
    """

    resource_type: str


Account = Annotated[str, text(r"^\d{12}$", "the 12 digits of an AWS account, in quotes")]
ZONE_ID_PATTERN = r"^[a-z]+\d-az\d$"
ZoneId = Annotated[
    str, text(ZONE_ID_PATTERN, "an availability zone id such as usw2-az4, not a zone name such as us-west-2a")
]
Region = Annotated[str, text(r"^[a-z]{2}(-[a-z]+)+-\d$", "an AWS Region such as us-west-2")]
VpcId = Annotated[
    str,
    text(r"^vpc-[0-9a-f]{8,17}$", "the id of a VPC such as vpc-0123456789abcdef0"),
    Existing("AWS::EC2::VPC"),
]
SubnetId = Annotated[
    str,
    text(r"^subnet-[0-9a-f]{8,17}$", "the id of a subnet such as subnet-0123456789abcdef0"),
    Existing("AWS::EC2::Subnet"),
]
NatGatewayId = Annotated[str, text(r"^nat-[0-9a-f]{8,17}$", "the id of a NAT gateway such as nat-0123456789abcdef0")]
SecurityGroupId = Annotated[
    str,
    text(r"^sg-[0-9a-f]{8,17}$", "the id of a security group such as sg-0123456789abcdef0"),
    Existing("AWS::EC2::SecurityGroup"),
    TOKENS,
]
FileSystemId = Annotated[
    str, text(r"^fs-[0-9a-f]{8,40}$", "the id of a file system of FSx or EFS such as fs-0123456789abcdef0")
]
VolumeId = Annotated[
    str, text(r"^fsvol-[0-9a-f]{17,}$", "the id of a volume of FSx for OpenZFS such as fsvol-0123456789abcdef0")
]
KmsKeyArn = Annotated[
    str,
    text(
        r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+$",
        "the ARN of a KMS key: arn:aws:kms:REGION:ACCOUNT:key/ID",
    ),
    Existing("AWS::KMS::Key"),
]
"""The ARN of a key, not of an alias."""
SecretArn = Annotated[
    str,
    text(
        r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:.+-[A-Za-z0-9]{6}$",
        "the complete ARN of a secret: arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME-6CHARS",
    ),
    Existing("AWS::SecretsManager::Secret"),
    TOKENS,
]
"""With the six characters that Secrets Manager appends to a name: IAM knows a secret by no other ARN."""
Directory = Annotated[str, allowing("an absolute path such as /fsx")]
SubnetBlock = Annotated[str, allowing("an IPv4 block such as 10.0.0.0/16, /16 to /28")]
SshSource = Annotated[
    str,
    allowing("an IPv4 block such as 203.0.113.0/24, /8 or smaller, or a prefix list pl-..."),
    Existing("AWS::EC2::PrefixList"),
    TOKENS,
]
"""Its blocks name nothing that exists."""
LogRetentionDays = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]
"""The periods that CloudWatch Logs has (API reference, PutRetentionPolicy)."""

_RETENTION_DAYS = "aws-cdk-lib.aws_logs.RetentionDays"


def retention_periods(periods: type[Enum]) -> dict[int, Any]:
    """Return the members of ``logs.RetentionDays`` by days. It has their order, and INFINITE behind them."""
    return dict(zip(get_args(LogRetentionDays), periods, strict=False))


def listed(values: object) -> Any:
    """Return a sequence as the list that models take; a text, which is one, too, stays and is refused."""
    return list(values) if isinstance(values, Sequence) and not isinstance(values, str) else values


def plain(value: object) -> Any:
    """Return a mapping as the dictionary, and a sequence as the list, that models take."""
    return dict(value) if isinstance(value, Mapping) else listed(value)


if TYPE_CHECKING:  # to type checkers a list of a class is no list of its base
    Items = Sequence
    Entries = Mapping
else:
    Items, Entries = list, dict
"""Lists and mappings that models read alone."""

# Values of the CDK, which is not imported here: a field takes them, and holds what they stand for. Type checkers see a
# descriptor that takes the one and gives the other; such a field has its default by `default`.


def default(value: Any) -> Any:
    """Return a default that type checkers do not compare with a descriptor."""
    return value


@dataclass(frozen=True)
class FromCdk:
    """Says that a field takes values of the CDK as well, and holds what they stand for. It stands behind ranges.

    Attributes:
        takes: Their type, as users of the library write it.
        convert: Returns what such a value stands for, and any other one as it is.
    """

    takes: str
    convert: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of the field, with the conversion before it."""
        return no_info_before_validator_function(self.convert, handler(source))


_QUANTITIES = ("to_gibibytes", "to_days", "to_hours", "to_minutes")
"""What values of the CDK with a unit become numbers by."""


def _by(takes: str, attribute: str) -> FromCdk:
    """Return what replaces a value by that of its attribute, or of the method of that name."""
    whole = f"a whole number of {attribute.removeprefix('to_')}"

    def convert(value: Any) -> Any:
        if isinstance(value, type):
            return value
        if not hasattr(value, attribute):
            if attribute in _QUANTITIES and any(hasattr(value, each) for each in _QUANTITIES):
                raise PydanticCustomError("unit", "{allowed}", {"allowed": f"{whole}, or a {takes}"})
            return value
        own = getattr(value, attribute)
        try:
            return own() if callable(own) else own
        except RuntimeError as error:  # such as 90 seconds in minutes
            raise PydanticCustomError("unit", "{allowed}", {"allowed": whole}) from error

    return FromCdk(takes, convert)


def _days(value: Any) -> Any:
    """Return the number of days of a ``logs.RetentionDays``; any other value, and INFINITE, as it is."""
    if getattr(value, "__jsii_type__", None) != _RETENTION_DAYS:
        return value
    return next((days for days, each in retention_periods(type(value)).items() if each is value), value)


FROM_SIZE = _by("cdk.Size", "to_gibibytes")
FROM_DAYS = _by("cdk.Duration", "to_days")
FROM_HOURS = _by("cdk.Duration", "to_hours")
FROM_MINUTES = _by("cdk.Duration", "to_minutes")
UNITS = {"_gib": FROM_SIZE, "_days": FROM_DAYS, "_hours": FROM_HOURS, "_minutes": FROM_MINUTES}
"""By the end of a name. Each argument of the library that ends so takes the type, too."""


class _InstanceType(Protocol):
    def to_string(self) -> str: ...


class _Size(Protocol):
    def to_gibibytes(self) -> float: ...


class _Duration(Protocol):
    def to_days(self) -> float: ...
    def to_hours(self) -> float: ...
    def to_minutes(self) -> float: ...


class _KeyPair(Protocol):
    @property
    def key_pair_name(self) -> str: ...


class _PlacementGroup(Protocol):
    @property
    def placement_group_name(self) -> str: ...


class _Role(Protocol):
    @property
    def role_arn(self) -> str: ...


class _ManagedPolicy(Protocol):
    @property
    def managed_policy_arn(self) -> str: ...


BOUNDARY_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_BOUNDARY = rf"^arn:aws[a-z-]*:iam::\d{{12}}:policy/{BOUNDARY_NAME.pattern}$"
BOUNDARY_ALLOWED = (
    "the ARN of a policy of yours without a path: arn:aws:iam::ACCOUNT:policy/NAME, a name of A-Z, a-z, 0-9, _ and -"
)
"""What AWS's template of the policies of ParallelCluster's provider takes as a boundary (aws/aws-parallelcluster,
cloudformation/policies/parallelcluster-policies.yaml, PermissionsBoundaryPolicy)."""
PASSED_ROLES = r"arn:aws[a-z-]*:iam::\d{12}:role/parallelcluster/[\w+=,.@/-]+"
"""Roles that the provider may pass to nodes (the same file, PassRole)."""
InstanceTypeName = Annotated[
    str,
    text(
        r"^[a-z][a-z0-9-]*\.(nano|micro|small|medium|large|\d*xlarge|metal(-\d+xl)?)$",
        "an EC2 instance type such as trn1.32xlarge",
    ),
]
if TYPE_CHECKING:
    Held_co = TypeVar("Held_co", covariant=True)
    Taken_contra = TypeVar("Taken_contra", contravariant=True)

    class Converted(Generic[Held_co, Taken_contra]):
        """A field that takes one type and holds another."""

        @overload
        def __get__(self, instance: None, owner: Any) -> Any: ...
        @overload
        def __get__(self, instance: object, owner: Any) -> Held_co: ...
        def __get__(self, instance: Any, owner: Any) -> Any: ...
        def __set__(self, instance: object, value: Taken_contra) -> None: ...

    InstanceType = Converted[str, str | _InstanceType]
    Gib = Converted[int, int | _Size]
    OptionalGib = Converted[int | None, int | _Size | None]
    Time = Converted[int, int | _Duration]
    OptionalTime = Converted[int | None, int | _Duration | None]
    KeyPairName = Converted[str | None, str | _KeyPair | None]
    PlacementGroupName = Converted[str | None, str | _PlacementGroup | None]
    OptionalRoleArn = Converted[str | None, str | _Role | None]
    OptionalPolicyArn = Converted[str | None, str | _ManagedPolicy | None]
    ClusterLogDays = Converted[int, int | _Duration | Enum]
else:
    InstanceType = Annotated[InstanceTypeName, _by("ec2.InstanceType", "to_string")]
    """A name, or an ``ec2.InstanceType``."""
    Gib = int
    OptionalGib = int | None
    """A number, or a ``Size``; ranges stand between it and `FROM_SIZE`."""
    Time = int
    OptionalTime = int | None
    """A number, or a ``Duration``; ranges stand between it and `FROM_MINUTES` or the like."""
    KeyPairName = Annotated[str | None, _by("ec2.IKeyPair", "key_pair_name"), Existing("AWS::EC2::KeyPair")]
    """A name, or an ``ec2.IKeyPair``."""
    PlacementGroupName = Annotated[
        str | None, _by("ec2.IPlacementGroup", "placement_group_name"), Existing("AWS::EC2::PlacementGroup")
    ]
    """A name, or an ``ec2.IPlacementGroup``."""
    OptionalPolicyArn = Annotated[
        Annotated[str, text(_BOUNDARY, BOUNDARY_ALLOWED), TOKENS] | None,
        _by("iam.IManagedPolicy", "managed_policy_arn"),
        Existing("AWS::IAM::ManagedPolicy"),
    ]
    """An ARN, or an ``iam.IManagedPolicy``."""
    OptionalRoleArn = Annotated[
        Annotated[str, text(rf"^{PASSED_ROLES}$", "the ARN of a role with the path /parallelcluster/"), TOKENS] | None,
        _by("iam.IRole", "role_arn"),
        Existing("AWS::IAM::Role"),
    ]
    """An ARN, or an ``iam.IRole``."""
    ClusterLogDays = Annotated[
        Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827, 3653],
        FROM_DAYS,
        FromCdk("logs.RetentionDays", _days),
    ]
    """Days, or a ``logs.RetentionDays``, of those that ParallelCluster takes (schemas/cluster_schema.py)."""
