"""Submit a training run to a cluster: compile, then train. Run it anywhere; the cluster's own submit.py does the work.

On a head or login node it is called directly. From elsewhere the same command goes to the head node through Session
Manager, which needs ssm:SendCommand, ssm:GetCommandInvocation and cloudformation:DescribeStacks. Exit code: that of
submit.py (0: submitted, 1: Slurm refused, 2: the arguments or the input cannot be used); 1 also if the head node cannot
be reached.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts import environments

if TYPE_CHECKING:
    from config.settings import Settings

CONFIG = Path(__file__).parents[1] / "config"
SECONDS_TO_START, SECONDS_BETWEEN_POLLS = 60, 2.0
"""How long the head node may take to answer; how often it is asked whether it is done."""


class SubmissionError(Exception):
    """The command did not reach the head node; the message says why."""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser. It leaves all that follows the environment to the cluster's submit.py."""
    found = argparse.ArgumentParser(prog="python -m scripts.submit", description=__doc__)
    environments.add_argument(found, CONFIG)
    found.add_argument(
        "arguments", metavar="...", nargs=argparse.REMAINDER, help="those of submit.py (docs/training.md)"
    )
    return found


def command(settings: Settings, arguments: Sequence[str]) -> list[str]:
    """Return the command that submits, for head and login nodes of the settings' cluster."""
    jobs = f"{settings.storage.file_system.mount_dir}/ultracluster/jobs/current"
    return ["python3", f"{jobs}/submit.py", *arguments]


def send(settings: Settings, words: Sequence[str]) -> int:
    """Run a command as the cluster's user on the head node, print what it prints, and return its exit code.

    The last 24,000 characters of its output are all that Systems Manager gives back
    (https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCommandInvocation.html).

    Raises:
        SubmissionError: The head node cannot be reached.
    """
    from scripts.checks.deployment import Deployment
    from ultracluster.domain import neuron

    deployment = Deployment(settings.name, settings)
    stack = deployment.stack_name("cluster")
    instance = deployment.outputs(stack).get("HeadNodeInstanceId")
    if instance is None:
        raise SubmissionError(f"There is no stack {stack} with a head node in {settings.region}. First: make deploy")
    user = neuron.SYSTEMS[settings.cluster_spec.os].user
    login = shlex.join(["runuser", "--login", user, "--command", shlex.join(words)])
    client = deployment.account.client("ssm")
    sent = client.send_command(
        InstanceIds=[instance],
        DocumentName="AWS-RunShellScript",
        Parameters={"commands": [login]},
        TimeoutSeconds=SECONDS_TO_START,
    )
    answer = _wait(client, sent["Command"]["CommandId"], instance)
    sys.stdout.write(answer["StandardOutputContent"])
    sys.stderr.write(answer["StandardErrorContent"])
    if answer["ResponseCode"] < 0:
        raise SubmissionError(f"The head node {instance} did not run the command: {answer['StatusDetails']}")
    return int(answer["ResponseCode"])


def _wait(client: Any, command_id: str, instance: str) -> dict[str, Any]:
    """Return what became of a command, once it has ended."""
    while True:
        try:
            answer: dict[str, Any] = client.get_command_invocation(CommandId=command_id, InstanceId=instance)
            if answer["Status"] not in {"Pending", "InProgress", "Delayed", "Cancelling"}:
                return answer
        except client.exceptions.InvocationDoesNotExist:
            pass  # not yet: the answer to SendCommand comes first
        time.sleep(SECONDS_BETWEEN_POLLS)


def main() -> int:
    """Submit what the command line asks for, and return the exit code."""
    given = parser().parse_args()

    from botocore.exceptions import BotoCoreError, ClientError

    from config.settings import SettingsError, load

    try:
        settings = load(CONFIG / f"{given.environment}.yaml")
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    words = command(settings, given.arguments)
    if shutil.which("sbatch"):
        return subprocess.run(words, check=False).returncode
    try:
        return send(settings, words)
    except (BotoCoreError, ClientError, SubmissionError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
