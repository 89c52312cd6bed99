"""The settings of the pipeline that deploys: pipeline.yaml. `load` reports every violation at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from config import settings
from config.messages import SettingsError, broken_rule, error_path, text_of
from config.settings import Settings
from config.yaml_source import YamlSource
from ultracluster.domain.spec import Spec
from ultracluster.domain.violations import Violation, below

PATH = Path(__file__).parents[1] / "pipeline.yaml"
SCHEMA_PATH = Path(__file__).with_name("pipeline.schema.json")
PLACEHOLDER = "your-org/your-fork"
READ_ROLE = "ultracluster-ci-read"
READ = "read"
"""Names the role of pull requests, where other roles have the name of their stage."""


def deploy_role(stage: str) -> str:
    """Return the name of the role in which GitHub deploys a stage."""
    return f"ultracluster-ci-deploy-{stage}"


class Stage(Spec):
    """One deployment of the pipeline."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
    """Name of the stage, and of its environment on GitHub."""
    environment: str
    """File name in config/ without .yaml."""
    approval: bool = False
    """Whether somebody has to agree: GitHub's environment must have required reviewers; inside AWS it asks."""

    def settings(self, folder: Path) -> Settings:
        """Return what it deploys.

        Args:
            folder: Where the settings files are.

        Raises:
            SettingsError: They cannot be used.
        """
        return settings.load(folder / f"{self.environment}.yaml")


class Pipeline(Spec):
    """What is deployed from which repository, and where to."""

    repository: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$")]
    """OWNER/NAME of the repository on GitHub, in its own upper and lower case, which IAM distinguishes."""
    account: Annotated[str, Field(pattern=r"^\d{12}$")] | None = None
    """AWS account of all stages, in quotes; null: nothing is deployed."""
    region: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")]
    """AWS Region of all stages."""
    branch: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._/-]*$")] = "main"
    """What is merged to it is deployed."""
    stages: Annotated[list[Stage], Field(min_length=1)]
    """Deployments, one after the other."""
    oidc_provider_arn: (
        Annotated[str, Field(pattern=r"^arn:aws:iam::\d{12}:oidc-provider/token\.actions\.githubusercontent\.com$")]
        | None
    ) = None
    """IAM's identity provider for GitHub, of which an account has one at most; null: make it."""
    connection_arn: (
        Annotated[str, Field(pattern=r"^arn:aws:code(connections|star-connections):[a-z0-9-]+:\d{12}:connection/.+$")]
        | None
    ) = None
    """Connection to GitHub for the pipeline inside AWS; null: no such pipeline."""

    @field_validator("stages")
    @classmethod
    def _check_stages(cls, stages: list[Stage]) -> list[Stage]:
        for key in ("name", "environment"):
            values = Counter(getattr(stage, key) for stage in stages)
            twice = [value for value, count in values.items() if count > 1]
            if twice:
                allowed, reason = f"another {key} for each stage", "one would overwrite the other"
                raise broken_rule(Violation((), twice[0], allowed, reason))
        if READ in {stage.name for stage in stages}:
            raise broken_rule(Violation((), READ, "any other name", "it is the name for the role of pull requests"))
        return stages

    @field_validator("oidc_provider_arn")
    @classmethod
    def _check_provider(cls, arn: str | None, info: ValidationInfo) -> str | None:
        account = info.data.get("account")
        if arn is not None and account is not None and f"::{account}:" not in arn:
            allowed, reason = f"a provider of account {account}", "a role trusts those of its own account alone"
            raise broken_rule(Violation((), arn, allowed, reason))
        return arn

    @property
    def missing(self) -> list[str]:
        """What has to be filled in before anything can be deployed, a sentence each."""
        missing = []
        if self.repository == PLACEHOLDER:
            missing.append(f"repository is still {PLACEHOLDER}: give your own")
        if self.account is None:
            missing.append("account is null: give the AWS account to deploy to, in quotes")
        return missing


def _violations_of_stages(pipeline: Pipeline, folder: Path) -> Iterator[Violation]:
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    first_of_name: dict[str, int] = {}
    for index, stage in enumerate(pipeline.stages):
        place = ("stages", index, "environment")
        if stage.environment not in known:
            yield Violation(place, stage.environment, ", ".join(known), "files in config/")
            continue
        deployed = stage.settings(folder)
        yield from below(("stages", index), _violations_of_stage(pipeline, stage, deployed))
        first = first_of_name.setdefault(deployed.name, index)
        if first != index:
            reason = f"config/{stage.environment}.yaml says so, as does that of stages[{first}]: the same stacks"
            yield Violation(place, deployed.name, "another deployment name for each stage", reason)


def _violations_of_stage(pipeline: Pipeline, stage: Stage, deployed: Settings) -> Iterator[Violation]:
    if deployed.region != pipeline.region:
        reason = f"config/{stage.environment}.yaml says so, and all stages are in one Region"
        yield Violation(("environment",), deployed.region, f"region {pipeline.region}", reason)
    if deployed.account not in (None, pipeline.account):
        reason = f"config/{stage.environment}.yaml says so, and all stages are in one account"
        yield Violation(("environment",), deployed.account, f"account null or {pipeline.account}", reason)


@cache
def _schema() -> dict[str, Any]:
    return Pipeline.model_json_schema()


def load(path: Path = PATH) -> Pipeline:
    """Read the settings of the pipeline, and check those that its stages deploy.

    Args:
        path: pipeline.yaml; the folder config/ is beside it.

    Raises:
        SettingsError: The file is missing, is not YAML, or breaks rules, all of which are named, a line each; or the
            settings of a stage cannot be used.
    """
    source = YamlSource.read(path)
    try:
        pipeline = Pipeline.model_validate(source.value)
    except ValidationError as error:
        texts = [(error_path(each), text_of(each, _schema())) for each in error.errors()]
        raise SettingsError(source.report(texts)) from None
    if violations := list(_violations_of_stages(pipeline, path.with_name("config"))):
        raise SettingsError(source.report((each.path, str(each)) for each in violations))
    return pipeline


def json_schema() -> str:
    """Return the JSON Schema by which editors check and complete the file."""
    return json.dumps(_schema(), indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA_PATH.write_text(json_schema(), encoding="utf-8")
