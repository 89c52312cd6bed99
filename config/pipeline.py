"""The settings of the pipeline that deploys: pipeline.yaml. `load` reports violations together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from config import files, schemas, settings
from config.messages import SettingsError, error_path, text_of
from config.settings import Settings
from config.yaml_source import YamlSource
from ultracluster.domain.spec import Spec
from ultracluster.domain.types import FEW, Account, OptionalPolicyArn, Region, default, text
from ultracluster.domain.violations import MAX_REPORTED, Violation

PATH = Path(__file__).parents[1] / "pipeline.yaml"
SCHEMA_PATH = Path(__file__).with_name("pipeline.schema.json")
PLACEHOLDER = "your-org/your-fork"
READ_ROLE = "ultracluster-ci-read"
READ = "read"
"""Names the role of pull requests, where other roles have the name of their stage."""

OidcProviderArn = Annotated[
    str,
    text(
        r"^arn:aws:iam::\d{12}:oidc-provider/token\.actions\.githubusercontent\.com$",
        "GitHub's provider: arn:aws:iam::ACCOUNT:oidc-provider/token.actions.githubusercontent.com",
    ),
]
ConnectionArn = Annotated[
    str,
    text(
        r"^arn:aws:code(connections|star-connections):[a-z0-9-]+:\d{12}:connection/.+$",
        "the ARN of a connection: arn:aws:codeconnections:REGION:ACCOUNT:connection/ID",
    ),
]


def deploy_role(stage: str) -> str:
    """Return the name of the role in which GitHub deploys a stage."""
    return f"ultracluster-ci-deploy-{stage}"


class Stage(Spec):
    """One deployment of the pipeline."""

    name: Annotated[str, text(r"^[a-z][a-z0-9-]{0,39}$", "1 to 40 of a-z, 0-9 and -, a letter first")]
    """Name of the stage, and of its environment on GitHub."""
    deployment: str
    """File name in config/ without .yaml."""
    approval: bool = False
    """Whether somebody has to agree: GitHub's environment must have required reviewers; inside AWS it asks."""

    def settings(self, folder: Path) -> Settings:
        """Return the settings in a folder of what it deploys.

        Raises:
            SettingsError: They cannot be used.
        """
        return settings.load(files.settings_file(self.deployment, folder))


class Pipeline(Spec):
    """What is deployed from which repository, and where to."""

    repository: Annotated[str, text(r"^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$", "OWNER/NAME of a repository on GitHub")]
    """OWNER/NAME of the repository on GitHub, in its own upper and lower case, which IAM distinguishes."""
    account: Account | None = None
    """AWS account of all stages, in quotes; null: nothing is deployed."""
    region: Region
    """AWS Region of all stages."""
    branch: Annotated[str, text(r"^[A-Za-z0-9_][A-Za-z0-9._/-]*$", "the name of a branch such as main")] = "main"
    """What is merged to it is deployed."""
    stages: Annotated[list[Stage], Field(min_length=1), FEW]
    """Deployments, one after the other."""
    oidc_provider_arn: OidcProviderArn | None = None
    """IAM's identity provider for GitHub, of which an account has one at most; null: make it."""
    connection_arn: ConnectionArn | None = None
    """Connection to GitHub for the pipeline inside AWS; null: no such pipeline."""
    permissions_boundary_arn: OptionalPolicyArn = default(None)
    """Managed policy beyond which no role of the pipeline may do anything; null: none. Deployments have that of their
    own settings."""

    @property
    def missing(self) -> list[str]:
        """What has to be filled in before anything can be deployed, a sentence each."""
        missing = []
        if self.repository == PLACEHOLDER:
            missing.append(f"repository is still {PLACEHOLDER}: give your own")
        if self.account is None:
            missing.append("account is null: give the AWS account to deploy to, in quotes")
        return missing


def _violations(pipeline: Pipeline, folder: Path) -> Iterator[Violation]:
    arn, account, names = pipeline.oidc_provider_arn, pipeline.account, [stage.name for stage in pipeline.stages]
    boundary = pipeline.permissions_boundary_arn
    if boundary is not None and account is not None and f"::{account}:" not in boundary:
        yield pipeline.violation("permissions_boundary_arn", f"a policy of account {account}", "its roles are there")
    if arn is not None and account is not None and f"::{account}:" not in arn:
        reason = "a role trusts those of its own account alone"
        yield pipeline.violation("oidc_provider_arn", f"a provider of account {account}", reason)
    for key, values in (("name", names), ("deployment", [stage.deployment for stage in pipeline.stages])):
        for value, count in Counter(values).items():
            if count > 1:
                yield Violation(("stages",), value, f"another {key} for each stage", "one would overwrite the other")
    if READ in names:
        yield Violation(("stages",), READ, "any other name", "it is the name for the role of pull requests")
    known = files.deployments(folder)
    for index, stage in enumerate(pipeline.stages):
        place = ("stages", index, "deployment")
        if stage.deployment not in known:
            yield Violation(place, stage.deployment, ", ".join(known), "files in config/")
            continue
        deployed, file = stage.settings(folder), f"config/{stage.deployment}.yaml says so"
        if deployed.region != pipeline.region:
            yield Violation(
                place, deployed.region, f"region {pipeline.region}", f"{file}; all stages are in one Region"
            )
        if deployed.account not in (None, account):
            reason = f"{file}; all stages are in one account"
            yield Violation(place, deployed.account, f"account null or {account}", reason)


@cache
def _schema() -> dict[str, Any]:
    return Pipeline.model_json_schema(schema_generator=schemas.UntitledFields)


def load(path: Path = PATH, folder: Path | None = None) -> Pipeline:
    """Read the settings of the pipeline, and check those that its stages deploy.

    Args:
        path: pipeline.yaml.
        folder: That of the settings files; None: config/ beside it.

    Raises:
        SettingsError: The file is missing, is not YAML, or breaks rules, all of which are named, a line each; or the
            settings of a stage cannot be used.
    """
    source = YamlSource.read(path)
    try:
        pipeline = Pipeline.model_validate(source.value)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        texts = [(error_path(each), text_of(each, _schema())) for each in errors[:MAX_REPORTED]]
        raise SettingsError(source.report(texts), more=len(errors[MAX_REPORTED:])) from None
    if violations := list(_violations(pipeline, folder or path.with_name("config"))):
        raise SettingsError(source.report((each.path, str(each)) for each in violations))
    return pipeline


def json_schema() -> str:
    """Return the JSON Schema by which editors check and complete the file."""
    return schemas.text(_schema())


if __name__ == "__main__":
    SCHEMA_PATH.write_text(json_schema(), encoding="utf-8")
