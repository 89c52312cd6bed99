"""A change of a settings file, tried on a copy: validated, planned and deployed before or without touching the file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.core import options
from scripts.core.errors import OperationError, UnusableError
from scripts.core.terminal import Say

if TYPE_CHECKING:
    from config.edit import Scalar
    from config.settings import Settings
    from scripts.change.approval import Approval
    from scripts.check.plan.report import Plan
    from scripts.check.preflight.check import Check
    from scripts.check.preflight.model import FailOn
    from ultracluster.domain.violations import Path as KeyPath


@dataclass(frozen=True)
class Candidate:
    """A copy of a settings file with other values."""

    deployment_name: str
    path: Path
    settings: Settings
    _approvals: list[Approval] = field(default_factory=list, repr=False, compare=False)
    """What was planned last, once something was."""

    @classmethod
    def create(cls, path: Path, directory: Path, values: Mapping[KeyPath, Scalar]) -> Candidate:
        """Copy a settings file into a directory of its own, and change values of the copy by their keys.

        Raises:
            UnusableError: The copy breaks rules; the message names all of them.
        """
        from config import files
        from config.edit import EditError, set_values
        from config.settings import SettingsError, load

        copy = directory / path.name
        directory.mkdir(exist_ok=True)
        files.copy(path, copy)
        try:
            set_values(copy, values)
            return cls(path.stem, copy, load(copy))
        except (EditError, SettingsError) as error:
            text = str(error).replace(str(copy), f"{options.shown(path)}")
            raise UnusableError(f"{text}\n{options.shown(path)} is unchanged.") from None

    def plan(self) -> Plan:
        """Return what a deployment would do. Needs what ``./ultracluster plan`` needs.

        Raises:
            PlanError: It cannot be planned.
        """
        from scripts.account.deployment import Deployment
        from scripts.change.approval import Approval
        from scripts.check.plan import cdk
        from scripts.check.plan.plan import make_plan

        if not self._assembly.exists():
            cdk.synthesize(str(self.path.with_suffix("")), self._assembly)
        self._approvals[:] = [Approval.of(Deployment(self.deployment_name, self.settings), self._assembly)]
        return make_plan(self.deployment_name, self._assembly)

    def check(self, checks: Sequence[Check], say: Say, fail_on: FailOn) -> None:
        """Let preflight check whether the account has room for what a deployment would add."""
        from scripts.account.deployment import Deployment
        from scripts.check.preflight.model import FAILURES
        from scripts.check.preflight.runner import run
        from scripts.core.findings import CheckStatus

        results = [each for group in run(checks, Deployment(self.deployment_name, self.settings)) for each in group]
        failed = [each for each in results if each.status in FAILURES[fail_on]]
        for each in results:
            if each not in failed and each.status in (CheckStatus.WARN, CheckStatus.UNKNOWN):
                say(f"{each.status} {each.id}: {each.sentence}")
        if failed:
            lines = [f"{each.id}: {each.sentence}. {each.hint}" for each in failed]
            raise OperationError("\n".join(["The account has no room for this:", *lines]))

    def deploy(self, *stacks: str, quiet: bool) -> None:
        """Let the CDK deploy stacks as planned last, and those that they depend on; without a name: all stacks.

        With `quiet` its output goes to standard error.

        Raises:
            OperationError: The CDK failed, or somebody else deploys or has deployed since the plan.
        """
        from scripts.change.deploy import MEANWHILE, deploy

        output = sys.stderr if quiet else None
        code, conflicts = deploy(self.deployment_name, self._approvals[0], (), stacks=stacks, output=output)
        if conflicts:
            raise OperationError("\n  ".join([f"{MEANWHILE}:", *conflicts]), "the same command plans again")
        if code != 0:
            raise OperationError(
                f"The CDK failed with exit code {code}",
                f"./ultracluster diagnose {self.deployment_name}; the same command tries again",
            )

    @property
    def _assembly(self) -> Path:
        return self.path.parent / "cdk.out"
