"""What a status of a stack, or of a resource of one, means: every decision on a status is here.

A status that is not here, of a newer AWS, stays as text that is printed. Whether it is in progress, or has failed, its
name tells; anything else it is not, so that such a stack is neither updated nor taken for complete, empty or deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self


class _State(StrEnum):
    @classmethod
    def _missing_(cls, value: object) -> Self:
        unknown = str.__new__(cls, value)
        unknown._name_ = unknown._value_ = str(value)
        return unknown

    @property
    def is_in_progress(self) -> bool:
        """Whether work on it is in progress."""
        return self.endswith("_IN_PROGRESS")

    @property
    def operation(self) -> str:
        """What the operation is that it belongs to, such as ``CREATE``, or ``ROLLBACK`` of a creation."""
        return self.split("_", 1)[0]


class StackState(_State):
    """The status of a stack.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html,
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_Stack.html
    """

    REVIEW_IN_PROGRESS = "REVIEW_IN_PROGRESS"
    CREATE_IN_PROGRESS = "CREATE_IN_PROGRESS"
    CREATE_COMPLETE = "CREATE_COMPLETE"
    CREATE_FAILED = "CREATE_FAILED"
    ROLLBACK_IN_PROGRESS = "ROLLBACK_IN_PROGRESS"
    ROLLBACK_COMPLETE = "ROLLBACK_COMPLETE"
    ROLLBACK_FAILED = "ROLLBACK_FAILED"
    UPDATE_IN_PROGRESS = "UPDATE_IN_PROGRESS"
    UPDATE_COMPLETE_CLEANUP_IN_PROGRESS = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
    UPDATE_COMPLETE = "UPDATE_COMPLETE"
    UPDATE_FAILED = "UPDATE_FAILED"
    UPDATE_ROLLBACK_IN_PROGRESS = "UPDATE_ROLLBACK_IN_PROGRESS"
    UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    UPDATE_ROLLBACK_COMPLETE = "UPDATE_ROLLBACK_COMPLETE"
    UPDATE_ROLLBACK_FAILED = "UPDATE_ROLLBACK_FAILED"
    IMPORT_IN_PROGRESS = "IMPORT_IN_PROGRESS"
    IMPORT_COMPLETE = "IMPORT_COMPLETE"
    IMPORT_ROLLBACK_IN_PROGRESS = "IMPORT_ROLLBACK_IN_PROGRESS"
    IMPORT_ROLLBACK_COMPLETE = "IMPORT_ROLLBACK_COMPLETE"
    IMPORT_ROLLBACK_FAILED = "IMPORT_ROLLBACK_FAILED"
    DELETE_IN_PROGRESS = "DELETE_IN_PROGRESS"
    DELETE_COMPLETE = "DELETE_COMPLETE"
    DELETE_FAILED = "DELETE_FAILED"

    @classmethod
    def of(cls, stack: Mapping[str, Any]) -> StackState:
        """Return the status of a stack as CloudFormation describes it."""
        return cls(stack["StackStatus"])

    @property
    def is_in_progress(self) -> bool:
        """Whether an operation is in progress: CloudFormation accepts no other until it has ended."""
        return super().is_in_progress and not self.is_in_review

    @property
    def is_in_review(self) -> bool:
        """Whether it waits for a change set to be executed that creates it: it has no resources, and nothing happens.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateChangeSet.html
        """
        return self is StackState.REVIEW_IN_PROGRESS

    @property
    def has_nothing(self) -> bool:
        """Whether it has no resources: it is in review, or its creation was rolled back.

        CloudFormation updates none of these. The CDK deletes one that was rolled back, and creates it again:
        https://github.com/aws/aws-cdk-cli/blob/main/packages/@aws-cdk/toolkit-lib/lib/api/deployments/deploy-stack.ts
        """
        return self.is_in_review or self in (StackState.ROLLBACK_COMPLETE, StackState.ROLLBACK_FAILED)

    @property
    def is_ready(self) -> bool:
        """Whether it can be updated: it is in a stable state.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_RollbackStack.html
        """
        return self in (
            StackState.CREATE_COMPLETE,
            StackState.UPDATE_COMPLETE,
            StackState.UPDATE_ROLLBACK_COMPLETE,
            StackState.IMPORT_COMPLETE,
            StackState.IMPORT_ROLLBACK_COMPLETE,
        )

    @property
    def has_succeeded(self) -> bool:
        """Whether its last operation ended as intended."""
        return self in (
            StackState.CREATE_COMPLETE,
            StackState.UPDATE_COMPLETE,
            StackState.IMPORT_COMPLETE,
            StackState.DELETE_COMPLETE,
        )

    @property
    def has_failed(self) -> bool:
        """Whether its last operation failed, or is being or was rolled back."""
        return self.endswith("_FAILED") or "ROLLBACK" in self

    @property
    def is_as_before(self) -> bool:
        """Whether its last operation failed, and everything is again what it was before."""
        return self in (StackState.UPDATE_ROLLBACK_COMPLETE, StackState.IMPORT_ROLLBACK_COMPLETE)

    @property
    def is_stuck(self) -> bool:
        """Whether its last update failed, and so did its roll-back: it is updated only after that was continued.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ContinueUpdateRollback.html
        """
        return self is StackState.UPDATE_ROLLBACK_FAILED

    @property
    def is_rolling_back(self) -> bool:
        """Whether its last operation is being rolled back."""
        return self.has_failed and self.is_in_progress

    @property
    def was_never_complete(self) -> bool:
        """Whether its creation has not succeeded (yet); the status of one that is leaving does not tell."""
        return self.has_nothing or self in (
            StackState.CREATE_IN_PROGRESS,
            StackState.CREATE_FAILED,
            StackState.ROLLBACK_IN_PROGRESS,
        )

    @property
    def is_leaving(self) -> bool:
        """Whether its deletion has started: from then on it cannot be kept, only deleted.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DeleteStack.html
        """
        return self.is_being_deleted or self.is_gone or self is StackState.DELETE_FAILED

    @property
    def is_being_deleted(self) -> bool:
        """Whether its deletion is in progress."""
        return self is StackState.DELETE_IN_PROGRESS

    @property
    def is_gone(self) -> bool:
        """Whether it is deleted; CloudFormation describes it by its id for 90 days."""
        return self is StackState.DELETE_COMPLETE

    @property
    def starts(self) -> bool:
        """Whether an operation starts with it; a roll-back belongs to the operation that it undoes."""
        return self in (
            StackState.CREATE_IN_PROGRESS,
            StackState.UPDATE_IN_PROGRESS,
            StackState.DELETE_IN_PROGRESS,
            StackState.IMPORT_IN_PROGRESS,
        )

    @property
    def can_detect_drift(self) -> bool:
        """Whether CloudFormation detects drift of it.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-drift.html
        """
        return self in (
            StackState.CREATE_COMPLETE,
            StackState.UPDATE_COMPLETE,
            StackState.UPDATE_ROLLBACK_COMPLETE,
            StackState.UPDATE_ROLLBACK_FAILED,
        )


class ResourceState(_State):
    """The status of a resource of a stack; events of a stack itself have some of these, too.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_StackResource.html
    """

    CREATE_IN_PROGRESS = "CREATE_IN_PROGRESS"
    CREATE_FAILED = "CREATE_FAILED"
    CREATE_COMPLETE = "CREATE_COMPLETE"
    DELETE_IN_PROGRESS = "DELETE_IN_PROGRESS"
    DELETE_FAILED = "DELETE_FAILED"
    DELETE_COMPLETE = "DELETE_COMPLETE"
    DELETE_SKIPPED = "DELETE_SKIPPED"
    UPDATE_IN_PROGRESS = "UPDATE_IN_PROGRESS"
    UPDATE_FAILED = "UPDATE_FAILED"
    UPDATE_COMPLETE = "UPDATE_COMPLETE"
    IMPORT_FAILED = "IMPORT_FAILED"
    IMPORT_COMPLETE = "IMPORT_COMPLETE"
    IMPORT_IN_PROGRESS = "IMPORT_IN_PROGRESS"
    IMPORT_ROLLBACK_IN_PROGRESS = "IMPORT_ROLLBACK_IN_PROGRESS"
    IMPORT_ROLLBACK_FAILED = "IMPORT_ROLLBACK_FAILED"
    IMPORT_ROLLBACK_COMPLETE = "IMPORT_ROLLBACK_COMPLETE"
    EXPORT_FAILED = "EXPORT_FAILED"
    EXPORT_COMPLETE = "EXPORT_COMPLETE"
    EXPORT_IN_PROGRESS = "EXPORT_IN_PROGRESS"
    EXPORT_ROLLBACK_IN_PROGRESS = "EXPORT_ROLLBACK_IN_PROGRESS"
    EXPORT_ROLLBACK_FAILED = "EXPORT_ROLLBACK_FAILED"
    EXPORT_ROLLBACK_COMPLETE = "EXPORT_ROLLBACK_COMPLETE"
    UPDATE_ROLLBACK_IN_PROGRESS = "UPDATE_ROLLBACK_IN_PROGRESS"
    UPDATE_ROLLBACK_COMPLETE = "UPDATE_ROLLBACK_COMPLETE"
    UPDATE_ROLLBACK_FAILED = "UPDATE_ROLLBACK_FAILED"
    ROLLBACK_IN_PROGRESS = "ROLLBACK_IN_PROGRESS"
    ROLLBACK_COMPLETE = "ROLLBACK_COMPLETE"
    ROLLBACK_FAILED = "ROLLBACK_FAILED"

    @property
    def has_failed(self) -> bool:
        """Whether what was done to it failed."""
        return self.endswith("_FAILED")

    @property
    def is_gone(self) -> bool:
        """Whether it is deleted."""
        return self is ResourceState.DELETE_COMPLETE

    @property
    def is_released(self) -> bool:
        """Whether its stack no longer has it: it is deleted, or kept for its deletion policy."""
        return self.is_gone or self is ResourceState.DELETE_SKIPPED

    @property
    def is_undeletable(self) -> bool:
        """Whether its deletion failed."""
        return self is ResourceState.DELETE_FAILED
