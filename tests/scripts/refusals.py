"""Errors with which AWS refuses a request."""

from botocore.exceptions import ClientError


def refusal(code: str, operation: str = "Asked", message: str = "no") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)
