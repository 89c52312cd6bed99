"""Two checkouts deploy the same deployment at once, by the CDK's own command line."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from config.edit import set_values
from emulator.cdk import CommandLine
from scripts.account import operations
from scripts.check.plan import cdk
from scripts.core import options, terminal
from scripts.core.errors import ExitCode
from tests.command_line import Call
from tests.deployed import DeployedAccount
from tests.scripts.operated import OperatedClone

pytestmark = [pytest.mark.scenario, pytest.mark.slow]
NAME = "trn1-16"


class Checkouts:
    """Checkouts on machines of their own, in which somebody wants flow logs kept for some days."""

    def __init__(self, account: OperatedClone, call: Call, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._account, self._call, self._directory, self._monkeypatch = account, call, directory, monkeypatch

    def deploy(self, who: str, days: int, *words: str) -> tuple[int, str]:
        """Run `./ultracluster deploy`, and return its exit code, and what it prints on standard error."""
        config = self._directory / f"{who}-{days}"
        config.mkdir()
        shutil.copy(options.ROOT / f"config/{NAME}.yaml", config)
        set_values(config / f"{NAME}.yaml", {("network", "flow_log_retention_days"): days})
        with self._at(who, config):
            printed = self._call("deploy", NAME, *words)
        return printed.code, printed.error

    @contextmanager
    def _at(self, who: str, config: Path) -> Iterator[None]:
        with self._monkeypatch.context() as patch:
            patch.setattr(options, "CONFIG", config)
            patch.setattr("socket.gethostname", lambda: who)
            arn = f"arn:aws:sts::123456789012:assumed-role/Team/{who}"
            patch.setattr(operations, "_caller", lambda _: arn)
            yield

    @property
    def days(self) -> int:
        """For how long flow logs are kept."""
        cloudformation = self._account.client("cloudformation")
        template = cloudformation.get_template(StackName=f"{NAME}-network")["TemplateBody"]
        [found] = [each["Properties"]["RetentionInDays"] for each in template["Resources"].values()
                   if each["Type"] == "AWS::Logs::LogGroup"]  # fmt: skip
        return int(found)


@pytest.fixture
def checkouts(
    deployed: Callable[[str], DeployedAccount], call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Checkouts]:
    account = deployed(NAME)
    with account.clone() as aws, closing(CommandLine(aws)) as command_line:
        clone = OperatedClone(aws, account.synthesized)
        clone.act_as(command_line.environment, monkeypatch)
        yield Checkouts(clone, call, tmp_path, monkeypatch)


def test_what_somebody_else_deploys_is_nobodys_success(checkouts: Checkouts, monkeypatch: pytest.MonkeyPatch) -> None:
    results: dict[str, tuple[int, str]] = {}

    def asked(*_: str) -> None:
        results["ben"] = checkouts.deploy("ben", 120, "--yes")

    with monkeypatch.context() as patch:  # he deploys while she is asked
        patch.setattr(terminal, "require_answers", lambda **_: None)
        patch.setattr(terminal, "confirm", asked)
        results["anna"] = checkouts.deploy("anna", 90)
    assert [checkouts.days, results["ben"][0], results["anna"][0]] == [120, ExitCode.DONE, ExitCode.FAILED]
    assert results["anna"][1].startswith("error: trn1-16-network")
    assert " changed after this plan was made; nothing was deployed" in results["anna"][1]
    assert "UTC by ben with ./ultracluster deploy" in results["anna"][1]

    run = cdk.run

    def and_then(*words: str, **further: Any) -> int:
        code = run(*words, **further)
        monkeypatch.setattr(cdk, "run", run)
        results["ben"] = checkouts.deploy("ben", 60, "--yes")
        return code

    monkeypatch.setattr(cdk, "run", and_then)  # he deploys before she knows that hers has ended
    results["anna"] = checkouts.deploy("anna", 30, "--yes")
    assert [checkouts.days, results["ben"][0], results["anna"][0]] == [60, ExitCode.DONE, ExitCode.FAILED]
    assert "by ben with ./ultracluster deploy: not the template that you approved" in results["anna"][1]
    assert checkouts.deploy("anna", 60, "--yes")[0] == ExitCode.DONE  # the CDK has nothing to do, and says so
