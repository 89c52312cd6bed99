"""Network and storage of a deployment in a good account."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from emulator.aws import ACCOUNT
from emulator.templates import Resolver
from tests.scripts.preflight.conftest import GoodAccount
from toolchain.assembly import Assembly
from toolchain.synthesis import synthesize

NOTHING = {"Nothing": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}
DIRECTORY = TemporaryDirectory()  # until the tests end


@cache
def assembly(environment: str) -> Assembly:
    """Return the assembly of a deployment, the same one each time."""
    return synthesize(environment, Path(DIRECTORY.name, Path(environment).name), ACCOUNT)


def stack(account: GoodAccount, name: str, **outputs: str) -> None:
    """Make a stack that has nothing but outputs."""
    template = json.dumps({"Resources": NOTHING, "Outputs": {key: {"Value": each} for key, each in outputs.items()}})
    cloudformation = account.client("cloudformation")
    cloudformation.create_stack(StackName=name, TemplateBody=template)
    cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 0.05})


def deployed(environment: str = "trn1-16") -> Callable[[GoodAccount], None]:
    """Make what the outputs of network and storage name, and stacks that have those outputs."""

    def deploy(account: GoodAccount) -> None:
        resolver = Resolver(assembly(environment), account.aws)
        for part in ("network", "storage"):
            made = assembly(environment).stacks[f"{account.settings.name}-{part}"]
            outputs = {key: resolver.resolve(made, each["Value"]) for key, each in made.template["Outputs"].items()}
            stack(account, made.name, **outputs)

    return deploy
