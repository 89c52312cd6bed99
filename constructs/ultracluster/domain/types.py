"""Types of values that several models share."""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field

WORDS: dict[str, str] = {}
"""What each pattern allows, in words."""


def text(pattern: str, allowed: str, *, max_length: int | None = None) -> Any:
    """Declare a text: a pattern, and what it allows in words, best with an example, for messages and editors."""
    WORDS[pattern] = allowed
    return Field(pattern=pattern, max_length=max_length, json_schema_extra={"patternErrorMessage": allowed})


Account = Annotated[str, text(r"^\d{12}$", "the 12 digits of an AWS account, in quotes")]
Region = Annotated[str, text(r"^[a-z]{2}(-[a-z]+)+-\d$", "an AWS Region such as us-west-2")]
InstanceType = Annotated[str, text(r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$", "an EC2 instance type such as trn1.32xlarge")]
VpcId = Annotated[str, text(r"^vpc-[0-9a-f]{8,17}$", "the id of a VPC such as vpc-0123456789abcdef0")]
SubnetId = Annotated[str, text(r"^subnet-[0-9a-f]{8,17}$", "the id of a subnet such as subnet-0123456789abcdef0")]
KmsKeyArn = Annotated[
    str,
    text(
        r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+$",
        "the ARN of a KMS key: arn:aws:kms:REGION:ACCOUNT:key/ID",
    ),
]
"""The ARN of a key, not of an alias."""
LogRetentionDays = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]
"""The periods that CloudWatch Logs has (API reference, PutRetentionPolicy)."""

LOG_RETENTION_DAYS: tuple[int, ...] = get_args(LogRetentionDays)
