"""Each deployment of config/ on this computer: deployed, used by a job on two nodes, destroyed.

In `make test-all` the one that has most: the stacks are made without the CDK's command line, and
commands that run in this process do the rest. In `make test-scenarios` each has its whole life, by the command that
shows it, and another with a fault. Further faults and settings are in the scenarios of tests/end_to_end/lives.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from config.settings import load
from emulator.faults import FAULTS
from emulator.inventory import inventory
from emulator.machines import image
from scripts.core.errors import ExitCode
from scripts.emulated import accounts
from tests.command_line import ultracluster
from tests.configurations import CONFIG
from tests.deployed import create_stacks
from tests.end_to_end.lives.life import END, assert_in_order, rehearse
from tests.end_to_end.lives.test_reserved import SEEN
from tests.stacks.deployments import CONFIGURATIONS, deploy

pytestmark = [pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

FAULT = "lustre"
"""What strikes a node, of whatever type: the health check before a job finds it."""
DAEMONS = """\
before=$(pgrep --exact slurmctld)
kill -KILL "$before"
until process=$(pgrep --exact slurmctld) && [ "$process" != "$before" ] && scontrol ping; do sleep 1; done
systemctl is-active slurmctld
systemctl show --property=MainPID --value slurmctld | grep --line-regexp "$process"
env --ignore-environment /usr/local/bin/get-compute-fleet-status.sh
! env --ignore-environment /usr/local/bin/update-compute-fleet-status.sh --status STOP_REQUESTED
"""
"""A controller that is killed starts again, as its unit says; the fleet's status needs no environment."""
Use = Callable[[str], None]


def change(name: str) -> None:
    """Change a deployment in place under a job that loses a node; the CDK validates its templates, as for users."""
    said = rehearse(name, variables={"CDK_VALIDATION": "true"})
    drained, refused = r" drains nodes\n.*?exit code 0", r"HeadNode.InstanceType .*? refused.*?exit code 1"
    running = rf"\$ ./ultracluster jobs list {name}\n  1 running.*? RUNNING +2 .*? a root volume of "
    assert_in_order((healthy(name), drained, r"EC2 terminates i-", refused, running, *END), said)


def healthy(name: str) -> str:
    """Return how `status` ends for a deployment without problems, as a pattern."""
    return rf"\$ ./ultracluster status {name}\n.*?  Healthy\.\n.*?  exit code 0"


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Use:
    """Return a function that deploys, runs a job on two nodes, destroys, and asserts that nothing is left."""

    def live(name: str) -> None:
        settings = load(CONFIG / f"{name}.yaml")

        def run(*words: str) -> str:
            code = ultracluster(*words)
            printed = capfd.readouterr()
            assert code == ExitCode.DONE, printed
            return printed.out

        image.prepare()
        with accounts.account(print) as account:
            assert account.machines
            accounts.create_prerequisites(account.aws, settings)
            accounts.bootstrap(account.aws, settings)
            before = inventory(account.aws, settings.region)
            create_stacks(account.aws, deploy(settings, tmp_path))
            for variable, value in {**account.aws.settings, **accounts.variables(settings.region)}.items():
                monkeypatch.setenv(variable, value)
            assert run("status", name).rstrip().endswith("Healthy.")
            said = run("exec", name, "--user", "root", "--", "bash", "-e", "-c", DAEMONS)
            assert re.search(r"is UP\nactive\n\d+\n{\n.*\"status\": \"RUNNING\"\n}\n", said, re.DOTALL), said
            script = "srun --nodes=2 --exclusive sh -c 'hostname; echo workers: $WORKERS_PER_NODE'"
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(script.encode())))
            printed = run("exec", name, "--stdin", "--", "bash", "-s")  # a script that is here
            assert printed.count("workers: 1") == 2, printed
            assert len(set(printed.split()) - {"workers:", "1"}) == 2, printed
            run("destroy", name, "--all", "--unprotect", "--no-final-backup", "--sweep", "--confirm", name)
            left = inventory(account.aws, settings.region) - before
            assert not [each for each in left if not accounts.reason_to_stay(settings, *each)]

    return live


@pytest.mark.parametrize("name", ["team"])
def test_a_shipped_deployment_runs_a_job(name: str, use: Use) -> None:
    use(name)


@pytest.mark.scenario
class TestChanges:
    """Further than in `make test-all`."""

    @pytest.mark.parametrize("name", CONFIGURATIONS)
    def test_a_shipped_deployment_is_changed(self, name: str) -> None:
        change(name)


@pytest.mark.scenario
class TestFaults:
    @pytest.mark.parametrize("name", CONFIGURATIONS)
    def test_a_shipped_deployment_loses_a_node(self, name: str) -> None:
        said = rehearse(name, faults=[FAULT])
        running = rf"\$ ./ultracluster jobs list {name}\n  1 running.*? RUNNING +2 "
        assert_in_order((healthy(name), f"While {FAULTS[FAULT].what}", SEEN[FAULT], running, *END), said)
