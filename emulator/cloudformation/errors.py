"""What the API of CloudFormation answers when it refuses a request.

Codes: https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/CommonErrors.html and the actions' own pages.
"""

from __future__ import annotations

from moto.core.exceptions import ServiceException


class ValidationError(ServiceException):
    """The request is wrong, or the stack's state forbids it."""

    code = "ValidationError"


class AlreadyExistsError(ServiceException):
    """There is a stack, or a change set, of this name."""

    code = "AlreadyExistsException"


class InsufficientCapabilitiesError(ServiceException):
    """The template makes things that the caller did not acknowledge."""

    code = "InsufficientCapabilitiesException"


class ChangeSetNotFoundError(ServiceException):
    """There is no such change set."""

    code = "ChangeSetNotFoundException"


class InvalidChangeSetStatusError(ServiceException):
    """The change set cannot be executed, or deleted, in the status that it has."""

    code = "InvalidChangeSetStatusException"


class InvalidActionError(ServiceException):
    """The action is unknown here."""

    code = "InvalidAction"


class ThrottlingError(ServiceException):
    """There were too many requests."""

    code = "Throttling"
