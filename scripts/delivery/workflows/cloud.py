"""The account that local workflows work in: an emulated one, begun when the first job asks for credentials."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Protocol

from rehearsal.aws import ACCOUNT

NODE_SHELL = """\
sinfo() { case "$*" in *'%R|%T|%D|%a'*) echo 'trn1|idle~|1|up' ;; esac; }
squeue() { :; }
scontrol() { :; }
export -f sinfo squeue scontrol
exec bash -s
"""
"""Stands for the shell of all nodes: Slurm has one queue, whose node is off, and no jobs."""


class Cloud(Protocol):
    """An account."""

    def credentials(self, workspace: Path, region: str) -> Mapping[str, str]:
        """Return environment variables for it; those whose names end with KEY or TOKEN are secret."""


class EmulatedCloud:
    """An emulated account with what the stages of pipeline.yaml name, bootstrapped for the CDK."""

    def __init__(self) -> None:
        self._running = ExitStack()
        self._variables: dict[str, str] = {}

    def credentials(self, workspace: Path, region: str) -> Mapping[str, str]:
        """Return environment variables for it, with the Region.

        Args:
            workspace: The clone whose pipeline.yaml counts.
            region: Of the stacks.

        Raises:
            RuntimeError: The CDK could not bootstrap it.
        """
        if not self._variables:
            self._begin(workspace, region)
        # The emulator takes any secret. These are masked, and show if something prints them.
        fresh = {"AWS_SECRET_ACCESS_KEY": secrets.token_hex(20), "AWS_SESSION_TOKEN": secrets.token_hex(20)}
        return {**self._variables, **fresh, "AWS_REGION": region, "AWS_DEFAULT_REGION": region}

    def close(self) -> None:
        """End it, and all that is in it."""
        self._running.close()

    def _begin(self, workspace: Path, region: str) -> None:
        from config.pipeline import load
        from rehearsal import stand_ins
        from rehearsal.aws import EmulatedAws
        from rehearsal.cdk import CommandLine
        from toolchain.bootstrap import arguments

        aws = self._running.enter_context(EmulatedAws())
        pipeline = load(workspace / "pipeline.yaml")
        stages = [stage.settings(workspace / "config") for stage in pipeline.stages]
        for each in stages:
            stand_ins.create(aws, each)
        with closing(CommandLine(aws)) as cdk:
            for bootstrap in dict.fromkeys(each.bootstrap for each in stages):
                said: list[str] = []
                if cdk.bootstrap(region, said.append, arguments(bootstrap)) != 0:
                    raise RuntimeError("\n".join(said))
        aws.set_shell(NODE_SHELL)
        self._variables = {**aws.settings, "AWS_ACCESS_KEY_ID": "workflow", "CDK_DEFAULT_ACCOUNT": ACCOUNT}
