"""Amazon ECR: repositories."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from emulator.resources.common import lowered, removed_tags, undone_on_failure, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties


class Repository(Model):
    """AWS::ECR::Repository."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the repository with its policies."""
        ecr = context.client("ecr")
        name = properties.pop("RepositoryName", context.name.lower())
        repository = ecr.create_repository(
            repositoryName=name,
            imageTagMutability=properties.pop("ImageTagMutability", "MUTABLE"),
            imageScanningConfiguration=_scanning(properties.pop("ImageScanningConfiguration", {})),
            tags=properties.pop("Tags", []),
        )["repository"]
        with undone_on_failure(lambda: ecr.delete_repository(repositoryName=name)):
            if "LifecyclePolicy" in properties:
                policy = properties.pop("LifecyclePolicy")["LifecyclePolicyText"]
                ecr.put_lifecycle_policy(repositoryName=name, lifecyclePolicyText=policy)
            if "RepositoryPolicyText" in properties:
                policy = json.dumps(properties.pop("RepositoryPolicyText"))
                ecr.set_repository_policy(repositoryName=name, policyText=policy)
        properties.pop("EmptyOnDelete", None)  # it says how the repository is deleted
        return Physical(name, {"Arn": repository["repositoryArn"], "RepositoryUri": repository["repositoryUri"]})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change mutability, scanning, policies and tags."""
        ecr = context.client("ecr")
        name = physical.ref
        if "ImageTagMutability" in changed:
            mutability = properties.get("ImageTagMutability", "MUTABLE")
            ecr.put_image_tag_mutability(repositoryName=name, imageTagMutability=mutability)
        if "ImageScanningConfiguration" in changed:
            scanning = _scanning(properties.get("ImageScanningConfiguration", {}))
            ecr.put_image_scanning_configuration(repositoryName=name, imageScanningConfiguration=scanning)
        if "LifecyclePolicy" in changed:
            if "LifecyclePolicy" in properties:
                policy = properties["LifecyclePolicy"]["LifecyclePolicyText"]
                ecr.put_lifecycle_policy(repositoryName=name, lifecyclePolicyText=policy)
            else:
                ecr.delete_lifecycle_policy(repositoryName=name)
        if "RepositoryPolicyText" in changed:
            if "RepositoryPolicyText" in properties:
                policy = json.dumps(properties["RepositoryPolicyText"])
                ecr.set_repository_policy(repositoryName=name, policyText=policy)
            else:
                ecr.delete_repository_policy(repositoryName=name)
        if "Tags" in changed:
            arn = physical.attributes["Arn"]
            ecr.untag_resource(resourceArn=arn, tagKeys=removed_tags(context, properties))
            ecr.tag_resource(resourceArn=arn, tags=properties.get("Tags", []))
        changed -= {
            "EmptyOnDelete",
            "ImageScanningConfiguration",
            "ImageTagMutability",
            "LifecyclePolicy",
            "RepositoryPolicyText",
            "Tags",
        }
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the repository; one with images only if the template says so."""
        with unless_gone("RepositoryNotFoundException"):
            context.client("ecr").delete_repository(
                repositoryName=physical.ref, force=properties.get("EmptyOnDelete", False)
            )


def _scanning(configuration: Properties) -> Any:
    return lowered(configuration, ("ScanOnPush",))


MODELS: Mapping[str, Model] = {"AWS::ECR::Repository": Repository()}
