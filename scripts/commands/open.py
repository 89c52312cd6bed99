"""Open pages of the AWS console: stacks, instances, file system, dashboard and logs of a deployment.

Without a browser the addresses are printed only.

Exit code 0: opened or printed; 2: arguments or settings cannot be used.
"""

from __future__ import annotations

import webbrowser
from urllib.parse import quote

import click

from scripts import options
from scripts.errors import ExitCode

PAGES = ("stacks", "cluster", "nodes", "storage", "dashboard", "logs")


def addresses(name: str) -> dict[str, str]:
    """Return the addresses of a deployment's pages by what they show."""
    settings = options.settings_of(name)
    region, cluster = settings.region, settings.cluster_spec.name
    host = f"https://{region}.console.aws.amazon.com"
    log_group = quote(quote(f"/aws/parallelcluster/{cluster}", safe=""), safe="").replace("%", "$")
    stacks = f"{host}/cloudformation/home?region={region}#/stacks?filteringText="
    return {
        "stacks": f"{stacks}{quote(settings.name)}",
        "cluster": f"{stacks}{quote(cluster)}",
        "nodes": f"{host}/ec2/home?region={region}#Instances:tag:parallelcluster:cluster-name={quote(cluster)}",
        "storage": f"{host}/fsx/home?region={region}#file-systems",
        "dashboard": f"{host}/cloudwatch/home?region={region}#dashboards",
        "logs": f"{host}/cloudwatch/home?region={region}#logsV2:log-groups$3FlogGroupNameFilter$3D{log_group}",
    }


@options.command(
    __doc__,
    ("open research", "all stacks of the deployment"),
    ("open research dashboard --print", "only print the address"),
    name="open",
)
@options.deployment_name
@click.argument("page", type=click.Choice(PAGES), default="stacks")
@click.option("--print", "only_print", is_flag=True, help="Print the address; open nothing.")
def command(*, name: str, page: str, only_print: bool) -> int:
    """Print and open a page, and return the exit code."""
    address = addresses(name)[page]
    print(address)
    if not only_print:
        webbrowser.open(address)
    return ExitCode.DONE
