"""ParallelCluster's own code, asked by another process. Runs in .venv-pcluster, whose packages clash with the CDK's.

Reads one JSON job per line on standard input and writes one JSON answer per line on standard output, {"result": ...} or
{"error": text}. A job is {"operation": NAME, "region": REGION, "version": VERSION, "environment": {...}, "arguments":
{...}}. The operations are the functions in `OPERATIONS`; a version that is not null stands for the package's own. Where
AWS is, is said by the job's environment variables (AWS_ENDPOINT_URL and credentials), which replace the process's.
"""

# ruff: noqa: E402 - its validators are decorated when they are imported

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import boto3
import pcluster.utils

# One cache for all objects of its validators, whatever the account.
pcluster.utils.AsyncUtils.async_timeout_cache = staticmethod(lambda timeout=10: lambda function: function)

import pcluster.lib
import yaml
from pcluster.api.encoder import JSONEncoder
from pcluster.api.errors import DryrunOperationException, ParallelClusterApiException
from pcluster.aws.aws_api import AWSApi
from pcluster.aws.common import AWSClientError, Cache
from pcluster.cli.exceptions import APIOperationException, ParameterException
from pcluster.config.config_patch import ConfigPatch
from pcluster.config.update_policy import UpdatePolicy
from pcluster.models.cluster import Cluster, ClusterActionError
from pcluster.models.s3_bucket import S3Bucket
from pcluster.schemas.cluster_schema import ClusterSchema
from pcluster.schemas.imagebuilder_schema import ImageBuilderSchema
from pcluster.templates.cdk_builder import CDKTemplateBuilder

from toolchain.jsii_start import trust_packages
from toolchain.pcluster_schema import schema
from toolchain.provider_request import arguments


def create_cluster(properties: dict[str, Any], stack_tags: dict[str, str]) -> dict[str, Any]:
    """Dry-run the creation of a cluster as the provider's Lambda function asks for it."""
    return _dry_run(pcluster.lib.create_cluster, arguments(properties, stack_tags))


def build_image(image_id: str, configuration: dict[str, Any]) -> dict[str, Any]:
    """Dry-run the build of an image as `pcluster build-image` asks for it."""
    return _dry_run(pcluster.lib.build_image, {"image_id": image_id, "image_configuration": configuration})


def _dry_run(operation: Callable[..., Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """Dry-run the creation of a cluster or an image, and return the outcome."""
    try:
        operation(**parameters, dryrun=True)
    except ParallelClusterApiException as answer:
        content = json.loads(JSONEncoder().encode(answer.content))
        messages = content.get("validationMessages") or content.get("configurationValidationErrors") or []
        return {
            "accepted": isinstance(answer, DryrunOperationException),
            "reason": content["message"],
            "messages": [[each["level"], each["type"], each["message"]] for each in messages],
        }
    except (APIOperationException, ParameterException, TypeError) as rejection:
        return {"accepted": False, "reason": str(rejection), "messages": []}
    raise AssertionError("a dry run returned")


def build_templates(cluster_name: str, configuration: dict[str, Any]) -> dict[str, Any]:
    """Build the root template and its nested ones, as `pcluster create-cluster` would upload them (as JSON values)."""
    cluster = Cluster(cluster_name, yaml.dump(configuration))
    cluster._add_tags()
    bucket = _Bucket(cluster_name)
    trust_packages()
    root, _ = CDKTemplateBuilder().build_cluster_template(cluster.config, bucket, cluster_name)
    return {"root": root, "nested": bucket.assets}


def build_image_template(image_id: str, configuration: dict[str, Any]) -> Any:
    """Build the template that `pcluster build-image` would create (as JSON values)."""
    config = ImageBuilderSchema().load(configuration)
    trust_packages()
    return CDKTemplateBuilder().build_imagebuilder_template(config, image_id, _Bucket(image_id))


def head_node_files(cluster_name: str, configuration: dict[str, Any]) -> dict[str, Any]:
    """Return what ParallelCluster leaves in S3 for a head node: the configuration with implied values, and types."""
    cluster = Cluster(cluster_name, yaml.dump(configuration))
    return {
        "configuration": ClusterSchema(cluster_name=cluster_name).dump(deepcopy(cluster.config)),
        "instance_types": cluster.config.get_instance_types_data(),
    }


def check_update(
    old: dict[str, Any], new: dict[str, Any], fleet_running: bool, login_nodes_running: bool
) -> dict[str, Any]:
    """Ask ParallelCluster's update policies whether a cluster of the old configuration may take the new one."""
    allowed, (header, *rows) = ConfigPatch(_RunningCluster(fleet_running, login_nodes_running), old, new).check()
    changes = [dict(zip(header, row, strict=True)) for row in rows]
    return {
        "allowed": allowed,
        "changes": [
            {
                "path": ".".join([*change["param_path"], change["parameter"]]),
                "old": change["old value"],
                "new": change["new value"],
                "allowed": change["check"] == UpdatePolicy.CheckResult.SUCCEEDED,
                "reason": change["reason"],
                "action_needed": change["action_needed"] or "",
            }
            for change in changes
        ],
    }


def requested_configuration(properties: dict[str, Any], stack_tags: dict[str, str]) -> Any:
    """Return the configuration that the provider's Lambda function makes of the properties of a cluster."""
    return arguments(properties, stack_tags)["cluster_configuration"]


def describe_cluster(cluster_name: str) -> dict[str, Any]:
    """Return the configuration of a cluster, as its update check reads it, and whether its nodes are on."""
    cluster = Cluster(cluster_name)
    try:
        return {
            "configuration": yaml.safe_load(cluster.source_config_text),
            "fleet_status": str(cluster.compute_fleet_status_manager.get_status()),
            "login_nodes_running": cluster.has_running_login_nodes(),
        }
    except (AWSClientError, ClusterActionError) as error:
        return {"unreadable": str(error)}


def update_compute_fleet(cluster_name: str, status: str) -> dict[str, str] | None:
    """Request a status of a cluster's compute nodes; None: the request is left."""
    try:
        pcluster.lib.update_compute_fleet(
            cluster_name=cluster_name, region=os.environ["AWS_DEFAULT_REGION"], status=status
        )
    except ParallelClusterApiException as rejection:
        return {"rejected": str(rejection.content.message)}
    return None


class _Bucket(S3Bucket):  # type: ignore[misc]  # pcluster ships no types
    """A bucket that keeps the nested templates instead of uploading them."""

    def __init__(self, cluster_name: str) -> None:
        super().__init__(cluster_name, cluster_name, artifact_directory=f"parallelcluster/clusters/{cluster_name}")
        self.assets: dict[str, Any] = {}

    def upload_cfn_asset(self, asset_file_content: Any, asset_name: str, **_: Any) -> None:
        self.assets[asset_name] = asset_file_content


class _RunningCluster:
    """What the update policies ask of a cluster (pcluster/config/update_policy.py)."""

    name = stack_name = "cluster"

    def __init__(self, fleet_running: bool, login_nodes_running: bool) -> None:
        self._fleet_running = fleet_running
        self._login_nodes_running = login_nodes_running

    def has_running_capacity(self) -> bool:
        return self._fleet_running

    def has_running_login_nodes(self, pool_name: str | None = None) -> bool:
        del pool_name
        return self._login_nodes_running


_INSTALLED = pcluster.utils.get_installed_version()

OPERATIONS = {
    function.__name__: function
    for function in (
        create_cluster,
        build_image,
        build_templates,
        build_image_template,
        head_node_files,
        check_update,
        requested_configuration,
        describe_cluster,
        update_compute_fleet,
        schema,
    )
}


def main() -> None:
    """Answer jobs until standard input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write among the answers
    for line in sys.stdin:
        job = json.loads(line)
        environment = {**job["environment"], "AWS_DEFAULT_REGION": job["region"]}
        if environment != os.environ:
            os.environ.clear()
            os.environ.update(environment)
            boto3.DEFAULT_SESSION = None  # it keeps the credentials that it has found
        # All its modules ask get_installed_version, which asks this (pcluster/utils.py).
        pcluster.utils.version = lambda _, version=job["version"] or _INSTALLED: version
        answer: dict[str, Any]
        try:
            answer = {"result": OPERATIONS[job["operation"]](**job["arguments"])}
        except Exception:
            answer = {"error": traceback.format_exc()}
        # What was looked up for one job may not hold for the next.
        AWSApi.reset()
        Cache.clear_all()
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
