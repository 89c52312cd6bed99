"""The account of `./ultracluster emulate`."""

from __future__ import annotations

import signal
from contextlib import closing
from typing import TYPE_CHECKING, Final, NoReturn

from scripts.core import options
from scripts.core.errors import OperationError, UnusableError
from scripts.core.text import echo
from scripts.emulated import CommandLine, EmulatedAws, scenarios
from scripts.emulated.accounts import account, borrowed, exports, prerequisites_of
from toolchain.bootstrap import arguments
from ultracluster.domain.parallelcluster_versions import not_asked

if TYPE_CHECKING:
    from config.settings import Settings


TINY: Final = (
    "--backend cpu --layers 2 --hidden 32 --heads 2 --intermediate 64 --vocabulary 256 --sequence-length 32 "
    "--max-predictions 5 --micro-batch 8 --global-batch 32 --learning-rate 0.01 --warmup-steps 2 "
    "--steps 200 --checkpoint-interval 20"
)
"""Options of a model that two processors train in seconds: there is no Trainium."""


def training(deployment_name: str, settings: Settings) -> list[str]:
    """Return lines on how to train something on emulated nodes; none without the programs of training jobs."""
    if settings.cluster.neuron_sdk is None:
        return []
    if not borrowed():
        return ["Training runs need PyTorch on the nodes: make setup-training, then start this again."]
    nodes = min(2, settings.cluster.queues[0].compute_resources[0].max_count)
    output = f"{settings.storage.file_system.mount_dir}/runs/tiny"
    run = f"submit {deployment_name} --nodes {nodes} --output {output} --no-compile -- {TINY}"
    return ["Once it is deployed, a training run that processors can do:", "", f"  ./ultracluster {run}"]


def wait_for_ctrl_c(aws: EmulatedAws) -> NoReturn:
    """Wait for Ctrl-C, and raise KeyboardInterrupt.

    Raises:
        OperationError: The emulated AWS has ended meanwhile.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs in the background ignore it
    code = aws.wait()
    how = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
    raise OperationError(
        f"The emulated AWS {how}: all that was in it is gone",
        "start another one, and set what it prints in the other shells; if nobody killed it, this computer may lack "
        "memory (`dmesg` says so): fewer nodes, or a scenario, which has none",
    )


def described(scenario: str) -> str:
    """Return what is wrong in a scenario."""
    return scenarios.SCENARIOS[scenario].what


def emulate(deployment_name: str, settings: Settings, name: str | None) -> None:
    """Make the account, tell how to use it, and wait for Ctrl-C.

    Raises:
        OperationError: The CDK could not prepare it, or it ended by itself.
        UnusableError: The settings have nothing that the scenario is about.
    """
    scenario = scenarios.SCENARIOS[name] if name else scenarios.GOOD
    with account(print, nodes=name is None) as running, closing(CommandLine(running.aws)) as cdk:
        aws, file = running.aws, options.shown(options.settings_file(deployment_name))

        def bootstrap() -> None:
            said: list[str] = []
            own = arguments(settings.bootstrap, settings.permissions_boundary_arn)
            if cdk.bootstrap(settings.region, said.append, own) != 0:
                raise OperationError("\n".join(said))

        try:
            with scenarios.account(aws, prerequisites_of(settings), scenario, bootstrap) as variables:
                state = f"but for one thing ({name}): {scenario.what}" if name else "and is bootstrapped for the CDK"
                echo(f"It has what {file} needs, {state}.")
                if remark := not_asked(settings.cluster.parallelcluster_version):
                    echo(f"{remark}.")
                if name:
                    echo(f"The check {scenario.caught_by} of preflight must say so.")
                echo("\nIn another shell, which `exit` leads out of:\n\n  unset AWS_PROFILE")
                echo("\n".join(f"  {line}" for line in exports(variables, settings.region)))
                echo(f"  ./ultracluster preflight {deployment_name}\n  ./ultracluster deploy {deployment_name}")
                if running.machines:
                    echo("\n".join(["", *training(deployment_name, settings)]))
                echo("\nCtrl-C here stops it and discards everything in it.")
                wait_for_ctrl_c(aws)
        except scenarios.NotApplicableError as error:
            raise UnusableError(f"{name}: {error}", f"set it in {file}, or in a copy") from None
