"""Write a settings file of your own, config/DEPLOYMENT.yaml, from a template or a configuration of ParallelCluster.

What is not given by options is asked for at a terminal. Without a terminal the template's values are kept, with a zone
of the Region, and named. An existing file is never overwritten. All settings are in
docs/reference/settings.md.

With --from or --from-cluster what the configuration has goes to settings, what has none to cluster.overrides. Nothing
of it is lost: what is changed or added is said, with the reason; what cannot be taken is an error that names the line.
Without a terminal all values that are missing are named at once (docs/guides/import.md).

Exit code 0: written; 1: the file exists already; 2: the values or arguments cannot be used, and nothing is
written; 130: Ctrl-C.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from config import files
from scripts.core import options, terminal
from scripts.core.errors import ExitCode, OperationError
from scripts.core.text import echo
from ultracluster.domain import names


def answers(_: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """Return values by key."""
    for each in values:
        if not each.partition("=")[1]:
            raise click.BadParameter(f"got {each}; allowed: KEY=VALUE", param=parameter)
    return {key: value for key, _, value in (each.partition("=") for each in values)}


TEMPLATE = "trn1-16"


class NewName(click.ParamType[str]):
    """The name of a deployment to be."""

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, if stacks can have it."""
        if not re.fullmatch(names.DEPLOYMENT_NAME_PATTERN, value):
            self.fail(f"got {value}; allowed: 2 to 40 of a-z, 0-9 and -, a letter first", param, ctx)
        if not files.is_settings(value):
            self.fail(f"got {value}; allowed: a name that does not end in users: {value}.yaml has users", param, ctx)
        return value


@options.command(
    __doc__,
    ("init research", "asks for Region, zone and number of nodes"),
    ("init research --region us-east-1 --zone use1-az6 --nodes 4", "asks nothing"),
    ("init research --template dev", "small, and nothing is retained"),
    ("init research --from pcluster.yaml", "takes over a configuration of ParallelCluster"),
    ("init research --from-cluster hpc", "takes over that of a cluster in the account"),
)
@click.argument("name", metavar="DEPLOYMENT", type=NewName())
@click.option("--region", "aws_region", metavar="REGION", help="AWS Region, such as us-west-2.")
@click.option("--zone", metavar="ZONE-ID", help="Availability zone id, such as usw2-az4: the same in every account.")
@click.option("--nodes", type=click.IntRange(min=1), metavar="N", help="Compute nodes at most.")
@click.option(
    "--template",
    type=options.DeploymentName(),
    help=f"Settings to start from: a file in config/, by default {TEMPLATE}.",
)
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Configuration of ParallelCluster 3 to take over, also one in a CloudFormation template.",
)
@click.option(
    "--from-cluster",
    metavar="CLUSTER",
    help="Cluster of ParallelCluster 3 in the account, whose configuration is taken over; nothing of it is changed.",
)
@click.option(
    "--value",
    "values",
    multiple=True,
    metavar="KEY=VALUE",
    callback=answers,
    help="With --from or --from-cluster: a value that is left open, such as a placeholder. May be given several times.",
)
@click.option("--new-network", is_flag=True, help="With them: make a network, and use none of the subnets.")
@options.profile
def command(
    *,
    name: str,
    aws_region: str | None,
    zone: str | None,
    nodes: int | None,
    template: str | None,
    source: Path | None,
    from_cluster: str | None,
    values: dict[str, str],
    new_network: bool,
) -> int:
    """Write the file, and return the exit code."""
    path = options.settings_file(name)
    if path.exists():
        raise OperationError(f"{options.shown(path)} exists already", f"./ultracluster estimate {name}")
    if source is not None or from_cluster is not None:
        used = {"from": source, "from_cluster": from_cluster, "template": template, "nodes": nodes}
        options.exclusive(**used)
        if source is not None:
            text, called = source.read_bytes(), str(source)
        else:
            assert from_cluster is not None  # noqa: S101 - one of the two
            aws_region, text = _of_cluster(from_cluster, name, aws_region)
            called = from_cluster
        given = {**values, **_given(name, aws_region, zone)}
        _take(path, name, text, called, given, new_network=new_network)
        if from_cluster is not None:
            echo(f"It is a new cluster beside {from_cluster}: the custom resource that makes it adopts none.", err=True)
        terminal.suggest(f"estimate {name}", "sizes and costs", always=True)
        return ExitCode.DONE
    if values or new_network:
        raise click.UsageError(f"{'--value' if values else '--new-network'} is of use with --from or --from-cluster.")

    from scripts.change.init.draft import NODES, REGION, ZONE, Draft, Keys

    start = template or options.DeploymentName().convert(TEMPLATE, None, None)
    draft, is_asking = Draft(name, start), sys.stdin.isatty()
    answers: dict[Keys, Any] = {REGION: aws_region, ZONE: zone, NODES: nodes}
    draft.set({keys: answer for keys, answer in answers.items() if answer is not None}, guesses_zone=is_asking)
    missing = [keys for keys, answer in answers.items() if answer is None]
    while is_asking and missing:
        draft.ask(missing.pop(0))
    with path.open("x", encoding="utf-8") as file:
        file.write(draft.text)
    echo(f"Wrote {options.shown(path)}:\n{draft.report(missing)}", err=True)
    echo(f"All settings: {options.SETTINGS_REFERENCE}", err=True)
    terminal.suggest(f"estimate {name}", "sizes and costs", always=True)
    return ExitCode.DONE


def _given(name: str, region: str | None, zone: str | None) -> dict[str, str]:
    """Return what is known of a configuration from options."""
    known = {"region": region, "AWS::Region": region, "zone_id": zone, "AWS::StackName": name}
    return {key: value for key, value in known.items() if value is not None}


def _of_cluster(cluster: str, name: str, region: str | None) -> tuple[str, bytes]:
    """Return the Region and the configuration of a cluster."""
    from scripts.account.deployment import session
    from scripts.change.init.cluster import configuration_of

    if cluster == name:
        raise click.UsageError(f"got {name} for both; allowed: another name: the cluster keeps its own.")
    if (region := region or session().region_name) is None:
        raise click.UsageError("--region is missing, and the profile has none.")
    return region, configuration_of(cluster, region)


def _take(path: Path, name: str, text: bytes, source: str, given: dict[str, str], *, new_network: bool) -> None:
    """Write settings that have what a configuration has."""
    from scripts.change.init.source import Question, read
    from scripts.change.init.taking import report, take

    def ask(question: Question) -> str:
        where = f" ({source}:{question.line}, {question.where})" if question.line else ""
        echo(f"{question.key}{where}{': ' * bool(question.reason)}{question.reason}", err=True)
        answer: str = click.prompt(question.key, err=True)
        return answer

    is_asking = sys.stdin.isatty()
    result = take(
        lambda known: read(text, source, known),
        name,
        given,
        ask if is_asking else None,
        new_network=new_network,
    )
    with path.open("x", encoding="utf-8") as file:
        file.write(result.text)
    echo(f"Wrote {options.shown(path)}", err=True)
    for line in report(result, source):
        echo(line, err=True)
