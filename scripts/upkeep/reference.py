"""The reference of all commands and their JSON, from the command line and the models: `make snapshots` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from config.schemas import UntitledFields
from scripts.core.errors import ExitCode
from scripts.core.options import Command, common_options
from scripts.main import GROUPS, cli

_INTRODUCTION = """\
# Commands

Generated from `./ultracluster`; `./ultracluster COMMAND --help` has the same. DEPLOYMENT is the name of a settings file
in `config/`, or in the directory that `ULTRACLUSTER_CONFIG` names, without `.yaml`; without it
`ULTRACLUSTER_DEPLOYMENT` names it, or there is only one file. Commands that create or compare what the file says
need all of it to be right; all others on an account name what is wrong with it, and use what is right and what is
deployed: no file keeps you from `status`, `fleet stop` or `destroy`. Results go to standard output, all else to
standard error.

`--output json` prints a model, which has a schema; `--output markdown` prints what people see, the answer first, for a
ticket or pull request. Commands without either have no result but lines or a file that serve as they are:
`completion`, `image render` and `pipeline` print what a shell or a workflow reads, `submit` what Slurm prints,
`bootstrap` what the CDK prints, `image build` what ParallelCluster prints; `init` writes the settings file and `review`
a page or Markdown, `prove` a report in a folder, whose schema is here, too; `emulate`, `port-forward`, `shell`
and `rehearse` show what happens until they end.

| exit code | meaning |
|---|---|
"""
_MEANINGS = {
    ExitCode.DONE: "done, healthy, nothing differs",
    ExitCode.FAILED: "a negative result: failed, blocked, unhealthy, drifted, declined",
    ExitCode.UNUSABLE: "arguments, settings or credentials cannot be used, or nobody can be asked",
    ExitCode.TIMED_OUT: "a time limit that was given is over",
    ExitCode.HUNG_UP: "the terminal was closed",
    ExitCode.INTERRUPTED: "Ctrl-C",
    ExitCode.TERMINATED: "SIGTERM",
}


_RESULTS: Mapping[str, Sequence[str]] = {
    "deploy": ["scripts.change.deploy.DeployResult"],
    "destroy": ["scripts.change.destroy.model.Destruction"],
    "diagnose": ["scripts.watch.diagnose.diagnose.Diagnosis"],
    "drift": ["scripts.watch.drift.model.DriftReport"],
    "estimate": ["scripts.check.estimate.tables.Estimate"],
    "exec": ["scripts.account.remote.streamed_command.CommandResult"],
    "fleet": ["scripts.change.fleet.document.FleetState"],
    "inventory": ["scripts.watch.inventory.model.Inventory"],
    "jobs cancel": ["scripts.use.jobs.CancelledJobs"],
    "jobs list": ["scripts.use.jobs.JobList"],
    "jobs show": ["scripts.use.jobs.ShownJob"],
    "jobs logs": [f"scripts.watch.logs.show.{model}" for model in ("LogLines", "Line")],
    "logs": [f"scripts.watch.logs.show.{model}" for model in ("LogLines", "Line", "NodeList")],
    "plan": ["scripts.check.plan.report.Plan"],
    "prove": ["scripts.rehearse.prove.report.Proof"],
    "preflight": [f"scripts.check.preflight.model.{model}" for model in ("PreflightReport", "CheckList")],
    "restore": [f"scripts.change.restoration.{model}" for model in ("SnapshotList", "Snapshot")],
    "costs": ["scripts.use.costs.report.CostReport"],
    "env list": ["scripts.use.environments.EnvironmentList"],
    "runs list": ["scripts.use.runs.RunList"],
    "runs show": ["scripts.use.report.Comparison"],
    "ssh": ["scripts.use.sessions.Connection"],
    "status": ["scripts.watch.status.report.Status"],
    "status watch": ["scripts.watch.progress.model.Progress", "scripts.watch.progress.model.Stopped"],
    "synth": ["scripts.check.synth.SynthResult"],
    "upgrade": ["scripts.change.upgrade.upgrade.UpgradeResult"],
    "validate": ["scripts.check.validation.ValidationOutcome"],
    "version": ["scripts.core.versions.Versions"],
}
"""The models that commands print with --output json."""
PRINTS_THE_SAME: Mapping[str, str] = {"recover": "upgrade"}
"""Commands that print the model of another one."""


def schemas_by_command() -> dict[str, list[dict[str, Any]]]:
    """Return the JSON schemas of what commands print; `logs --follow` and `status --watch` print one per line."""
    schemas = {}
    for name, models in _RESULTS.items():
        pairs = (model.rpartition(".") for model in models)
        classes = (getattr(import_module(module), attribute) for module, _, attribute in pairs)
        schemas[name] = [
            model.model_json_schema(mode="serialization", schema_generator=UntitledFields) for model in classes
        ]
    return schemas


def commands_page() -> str:
    """Return the page, in Markdown."""
    codes = "".join(f"| {code.value} | {_MEANINGS[code]} |\n" for code in sorted(ExitCode))
    common = "".join(_rows(cli.get_command(click.Context(cli), "status"), common=True))
    options = f"\nAll commands take `--debug`, those on an account also the others:\n\n{_HEAD}{common}"
    parts = [_INTRODUCTION, codes, options]
    with click.Context(cli, info_name="./ultracluster") as context:
        for title, names in GROUPS.items():
            parts.append(f"\n## {title}\n")
            for name in names:
                command = cli.get_command(context, name)
                if command is not None:
                    parts += _sections(command, click.Context(command, info_name=name, parent=context))
    return "".join(parts)


_HEAD = "| option | meaning |\n|---|---|\n"


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    name = context.command_path.removeprefix("./ultracluster ")
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", (command.help or "").strip())
    if isinstance(command, click.Group):
        yield f"\n### {name}\n\n{text}\n"
        for below in command.list_commands(context):
            child = command.get_command(context, below)
            if child is not None:
                yield from _sections(child, click.Context(child, info_name=below, parent=context))
        return
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"\n{'####' if ' ' in name else '###'} {name}\n\n```\n{usage}\n```\n\n{text}\n"
    rows = list(_rows(command))
    names = (PRINTS_THE_SAME.get(name, name), name.partition(" ")[0])
    described = [words.replace(" ", "-") for words in names if words in _RESULTS]
    if described:
        result = f"Format of the result; its [schema](schemas/{described[0]}.json)."
        rows = [row.replace("Format of the result.", result) for row in rows]
    if rows:
        yield f"\n{_HEAD}{''.join(rows)}"
    if isinstance(command, Command) and command.examples:
        width = max(len(words) for words, _ in command.examples)
        lines = (f"./ultracluster {words:{width}}  # {meaning}" for words, meaning in command.examples)
        yield "\n```\n" + "\n".join(lines) + "\n```\n"


def _rows(command: click.Command | None, *, common: bool = False) -> Iterator[str]:
    if command is None:
        return
    shared = common_options(command)
    with click.Context(command) as context:
        for parameter in command.params:
            is_common = parameter.name in shared or parameter.name == "debug"
            if isinstance(parameter, click.Option) and is_common == common:
                record = parameter.get_help_record(context)
                if record:
                    flags, meaning = (part.replace("|", "\\|") for part in record)
                    yield f"| `{flags}` | {' '.join(meaning.split())} |\n"
