"""The roles of GitHub's workflows: the CDK on their app, and what workflows read of them."""

from __future__ import annotations

import shutil

from config.pipeline import PATH, READ, READ_ROLE, Pipeline, deploy_role, load
from scripts.check.plan.cdk import run
from scripts.core import options
from scripts.core.errors import ExitCode, UnusableError

_APP = ("--app", "python3 pipeline_app.py", "--output", "build/pipeline")


def synthesize() -> int:
    """Write the templates of the roles to build/pipeline, and return the CDK's exit code."""
    shutil.rmtree(options.BUILD / "pipeline", ignore_errors=True)
    return cdk("synth", "--quiet")


def cdk(*words: str) -> int:
    """Run the CDK on the app of the roles, and return its exit code."""
    return run(*_APP, *words)


def deploy(*words: str) -> tuple[int, list[str]]:
    """Synthesize the roles and let the CDK deploy them, which shows changes of permissions, and asks.

    Returns:
        The exit code, and what others have done to the stacks meanwhile, as `deploy.carry_out` does.

    Raises:
        OperationError: Somebody else's operation is in progress, or was since the synthesis; nothing is deployed.
    """
    from scripts.account import operations
    from scripts.account.deployment import Account, described
    from scripts.change.approval import Approval
    from scripts.change.deploy import carry_out

    code = synthesize()
    if code != ExitCode.DONE:
        return code, []
    account, directory = Account(load(folder=options.CONFIG).region), options.BUILD / "pipeline"

    def check_progress() -> None:
        account.forget()
        existing = [stack for name in approval.stacks if (stack := described(account, name))]
        operations.check_stacks(account, existing, "the same command, once that has ended")

    approval = Approval(account, directory, check_progress)

    def start(name: str) -> int:
        return run("deploy", "--all", "--app", str(directory), "--change-set-name", name, *words)

    return carry_out(approval, start)


def outputs_of(pipeline: Pipeline, stage: str) -> dict[str, str]:
    """Return the outputs for a stage, or for the role of pull requests.

    Raises:
        UnusableError: There is no such stage.
    """
    stages = {each.name: each for each in pipeline.stages}
    if stage not in (READ, *stages):
        raise UnusableError(f"STAGE: got {stage}; allowed: {READ}, or a stage of {PATH.name}: {', '.join(stages)}")
    chosen, ready = stages.get(stage), not pipeline.missing
    role = READ_ROLE if stage == READ else deploy_role(stage)
    return {
        "role": f"arn:aws:iam::{pipeline.account}:role/{role}" if ready else "",
        "region": pipeline.region,
        "deployment": chosen.deployment if chosen else "",
        "approval": str(chosen is not None and chosen.approval).lower(),
        "ready": str(ready).lower(),
    }
