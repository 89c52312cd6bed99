"""The Lambda function behind cluster resources: asks ParallelCluster's library, and looks until the cluster is done.

The protocol of custom resources is left to the helper that ParallelCluster's package brings along. It answers half a
second before the function's time is over, cuts reasons to their last 240 characters, and has EventBridge call again
every two minutes as long as a `poll_` function returns nothing.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pcluster
import pcluster.lib
import pcluster.utils
from pcluster.api.encoder import JSONEncoder
from pcluster.api.errors import NotFoundException, exception_message
from pcluster.cli.exceptions import APIOperationException, ParameterException
from pcluster.config.cluster_config import SlurmClusterConfig
from pcluster.validators.common import FailureLevel, Validator, ValidatorContext

from toolchain.jsii_start import trust_packages
from toolchain.provider_request import arguments

sys.path.insert(0, str(Path(pcluster.__file__).parent / "resources/custom_resources/custom_resources_code"))
from crhelper import CfnResource  # type: ignore[import-not-found]

Event = dict[str, Any]

_BUCKET = os.environ["BUCKET"]
pcluster.utils.version = lambda _: os.environ["VERSION"]
"""That of the provider; the package that answers may be of another."""
_DROPPED = ("clusterConfiguration", "scheduler", "tags")
"""Parts of a cluster's description that are no attributes: a response has little room."""
_LONGEST_MESSAGES = 2048
_LEVELS = ("INFO", "WARNING", "ERROR")

helper = CfnResource()
trust_packages()


_register_validators = SlurmClusterConfig._register_validators


def _register_one_more(config: SlurmClusterConfig, context: ValidatorContext | None = None) -> None:
    """Let a validator of a type warn of every cluster, by the fault ``warning`` of the rehearsal."""
    _register_validators(config, context)
    if validator_type := os.environ.get("REHEARSAL_WARNING"):
        config._register_validator(type(validator_type, (Validator,), {"_validate": _warn}))


def _warn(validator: Validator) -> None:
    validator._add_failure("A warning of the rehearsal.", FailureLevel.WARNING)


SlurmClusterConfig._register_validators = _register_one_more


def handler(event: Event, context: Any) -> None:
    """Answer a request of CloudFormation, or look again."""
    print(json.dumps(event))
    _park(event)
    helper(event, context)


@helper.create  # type: ignore[untyped-decorator]
def create(event: Event, _: Any) -> str:
    """Start to create the cluster."""
    return _start(pcluster.lib.create_cluster, event)


@helper.update  # type: ignore[untyped-decorator]
def update(event: Event, _: Any) -> str:
    """Start to update the cluster. One that needs no change is a success."""
    return _start(pcluster.lib.update_cluster, event)


@helper.delete  # type: ignore[untyped-decorator]
def delete(event: Event, _: Any) -> None:
    """Start to delete the cluster, unless it is gone."""
    cluster_name: str = event["ResourceProperties"]["ClusterName"]
    boto3.resource("s3").Bucket(_BUCKET).objects.filter(Prefix=f"{cluster_name}/").delete()
    try:
        _tell(pcluster.lib.delete_cluster(cluster_name=cluster_name))
    except (ParameterException, NotFoundException):
        pass
    except Exception as error:
        raise ValueError(_encoded(exception_message(error))) from error


@helper.poll_create  # type: ignore[untyped-decorator]
@helper.poll_update  # type: ignore[untyped-decorator]
@helper.poll_delete  # type: ignore[untyped-decorator]
def poll(event: Event, _: Any) -> str | None:
    """Look at the cluster: its name means that it is done."""
    cluster_name: str = event["ResourceProperties"]["ClusterName"]
    log_group = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
    try:
        cluster = pcluster.lib.describe_cluster(cluster_name=cluster_name)
    except (ParameterException, NotFoundException):
        if event["RequestType"] == "Delete":
            return cluster_name
        kind = event["RequestType"].upper()
        raise ValueError(f"{cluster_name} failed {kind}. See LogGroup: {log_group}") from None
    match cluster["clusterStatus"]:
        case "CREATE_COMPLETE" | "UPDATE_COMPLETE":
            _tell(cluster)
            return cluster_name
        case "CREATE_FAILED" | "UPDATE_FAILED" | "DELETE_FAILED":
            reasons = ",".join(failure["failureCode"] for failure in cluster.get("failures", []))
            raise ValueError(f"{cluster_name}: {reasons} (LogGroup: {log_group})")
    return None


def _park(event: Event) -> None:
    """Put an event with a configuration into the bucket: it is too large for EventBridge to carry around."""
    properties, old = event["ResourceProperties"], event.get("OldResourceProperties", {})
    if "ClusterConfiguration" in properties or "ClusterConfiguration" in old:
        body = json.dumps(event)
        boto3.client("s3").put_object(Bucket=_BUCKET, Key=f"{properties.get('ClusterName')}/event.json", Body=body)
        properties.pop("ClusterConfiguration", None)
        old.pop("ClusterConfiguration", None)


def _start(operation: Any, event: Event) -> str:
    """Call an operation of ParallelCluster's library as the properties say, and return the cluster's name."""
    cluster_name: str = event["ResourceProperties"]["ClusterName"]
    parked = boto3.client("s3").get_object(Bucket=_BUCKET, Key=f"{cluster_name}/event.json")["Body"].read()
    properties = json.loads(parked)["ResourceProperties"]
    helper.Data["validationMessages"] = "[]"
    is_slow = bool(os.environ.get("REHEARSAL_PROVIDER"))
    if is_slow and event["RequestType"] == "Create":
        threading.Event().wait()  # until Lambda ends this process
    try:
        _tell(operation(**arguments(properties, _stack_tags(event["StackId"]))))
    except (APIOperationException, ParameterException, TypeError) as error:
        raise ValueError(str(error)) from error
    except Exception as error:
        message = _encoded(exception_message(error))
        print(message)
        if "No changes found" not in message:
            raise ValueError(message) from error
    else:
        if is_slow:
            raise ValueError("Execution timed out")  # the helper's words when half a second is left
    return cluster_name


def _stack_tags(stack_id: str) -> dict[str, str]:
    stack = boto3.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"][0]
    return {tag["Key"]: tag["Value"] for tag in stack.get("Tags", [])}


def _tell(answer: Mapping[str, Any]) -> None:
    """Make attributes of what the library says of a cluster."""
    cluster = answer.get("cluster", answer)
    helper.Data.update(_leaves({key: value for key, value in cluster.items() if key not in _DROPPED}))
    if "cluster" in answer:
        messages = json.dumps(answer.get("validationMessages", []))
        longest = _LONGEST_MESSAGES
        helper.Data["validationMessages"] = messages if len(messages) <= longest else f"TRUNCATED:{messages[:longest]}"


def _leaves(value: Mapping[str, Any] | list[Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a value with their paths, with dots."""
    members = dict(enumerate(value)) if isinstance(value, list) else value
    for key, member in members.items():
        if isinstance(member, dict | list):
            yield from _leaves(member, f"{path}{key}.")
        else:
            yield f"{path}{key}", member


def _encoded(message: Any) -> str:
    """Return a refusal as JSON: no change set, and the gravest findings last, because reasons lose their start."""
    content = message if isinstance(message, dict) else message.to_dict()
    content.pop("change_set", None)
    if findings := content.get("configuration_validation_errors"):
        findings.sort(key=lambda finding: _LEVELS.index(finding["level"]))
    return str(JSONEncoder().encode(content))
