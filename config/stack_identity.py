"""Which deployment and which part of it a stack is: what its description has, written and read here alone.

CloudFormation returns the description with the stack in every status but REVIEW_IN_PROGRESS, and for 90 days after its
deletion. Tags do not serve: those of a stack are passed on to its resources, and a new one replaces placement groups
(https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-placementgroup.html).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from config.settings import PARTS, Part
from ultracluster.domain.names import DEPLOYMENT_NAME_PATTERN

_DESCRIPTION = re.compile(rf"Trn1 UltraCluster ({DEPLOYMENT_NAME_PATTERN}): ({'|'.join(PARTS)})", re.ASCII)


class StackIdentity(NamedTuple):
    """Whose a stack is.

    Attributes:
        name: `name` in the settings of the deployment.
        part: The part of the deployment.
    """

    name: str
    part: Part

    @property
    def description(self) -> str:
        """The description of the stack. Another one would make strangers of all stacks that are deployed."""
        return f"Trn1 UltraCluster {self.name}: {self.part}"

    @classmethod
    def of(cls, stack: Mapping[str, Any]) -> StackIdentity | None:
        """Return it of a stack as CloudFormation describes or lists it; None: it is not of this project, or in review.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_Stack.html,
        https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_StackSummary.html
        """
        text = stack.get("Description") or stack.get("TemplateDescription") or ""
        match = _DESCRIPTION.fullmatch(text)
        return cls(match[1], cast(Part, match[2])) if match else None
