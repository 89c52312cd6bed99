"""The command line: a command's module is imported when the command is used.

Help and completion load neither boto3 nor rich nor pydantic.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from scripts.core import interrupts
from scripts.core.errors import ENDED, CliError, ExitCode
from scripts.core.text import echo

GROUPS = {
    "Rehearse": {
        "rehearse": "Deploy, run jobs and destroy in an emulated AWS",
        "emulate": "Emulate an account until Ctrl-C, to try commands on",
        "prove": "Deploy step by step within a cost limit, and report on AWS",
    },
    "Check": {
        "estimate": "Estimate sizes, cost, quotas and time to train, offline",
        "validate": "Run ParallelCluster's own validators, offline",
        "synth": "Write templates and ParallelCluster configuration, for review",
        "review": "Write a page on all that would be created, to approve",
        "preflight": "Check whether the account is ready, read-only",
        "plan": "Show what a deployment would do",
    },
    "Change": {
        "init": "Write a settings file of your own",
        "bootstrap": "Prepare account and Region for the CDK, once",
        "deploy": "Create or change a deployment",
        "fleet": "Stop, start or scale compute nodes",
        "upgrade": "Replace the cluster by a second one beside it",
        "recover": "Bring a lost head node back, or replace its cluster",
        "restore": "Copy /home from a snapshot of an earlier head node",
        "destroy": "Delete the cluster, or all of a deployment",
        "image": "Build an image with Neuron software",
        "pipeline": "Deploy and use the roles of GitHub's workflows",
    },
    "Watch": {
        "status": "Show the state, or follow an operation",
        "diagnose": "Find out why something failed, and what to do",
        "drift": "List what differs from the settings",
        "inventory": "List all resources with age and cost",
        "logs": "Show logs of a node, a file or a job",
    },
    "Use": {
        "ssh": "Open a shell on a node by Session Manager",
        "shell": "Open a shell on a compute node as a job",
        "exec": "Run a command on the head node",
        "port-forward": "Reach a port of a node, such as TensorBoard's",
        "submit": "Submit a training run",
        "env": "Make Python environments of programs",
        "jobs": "List and cancel jobs, show their logs",
        "runs": "List, compare and export training runs",
        "costs": "Show what jobs cost, by user, account, queue or job",
    },
    "Help": {
        "completion": "Print the completion script of a shell",
        "version": "Print versions of this project and what it pins",
    },
}
"""Commands by what a person wants, with a line for each. But for Help, a group is a package of `scripts`."""
EXAMPLES = (
    ("rehearse", "all of it on this machine, without an AWS account"),
    ("init research", "settings of your own, config/research.yaml"),
    ("estimate research --workload llama-2-7b", "what it costs, before it exists"),
    ("emulate research", "an account on this machine to try the following commands on"),
    ("preflight research", "what your account lacks, and how to fix it"),
    ("plan research", "what a deployment would do"),
    ("deploy research", "do it, after a question"),
    ("status research --watch", "how far it is"),
    ("ssh research", "a shell on the head node"),
    ("destroy research --all --unprotect", "delete everything again, after a last backup"),
)
_NARROW = 52
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
LINES = {name: line for commands in GROUPS.values() for name, line in commands.items()}


class Commands(click.Group):
    """The root of the tree, which imports one command at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(LINES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command.

        Raises:
            NoSuchCommand: There is none of that name; the message has similar ones.
        """
        if cmd_name in LINES:
            command: click.Command = import_module(f"scripts.commands.{cmd_name.replace('-', '_')}").command
            return command
        if ctx.resilient_parsing or cmd_name.startswith("-"):
            return None
        raise click.exceptions.NoSuchCommand(cmd_name, possibilities=LINES, ctx=ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands without importing any."""
        return [CompletionItem(name, help=line) for name, line in LINES.items() if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by group."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples, in the order in which a person needs them."""
        from scripts.core.options import write_examples

        write_examples(formatter, EXAMPLES)


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        context.invoke(import_module("scripts.commands.version").command, output="text")
        context.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Do as the command version."
)
def cli() -> None:
    """Build and run clusters of trn1.32xlarge nodes on AWS.

    DEPLOYMENT is the name of a settings file in config/, without .yaml. ULTRACLUSTER_DEPLOYMENT names the one to use
    where none is given.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code.

    Args:
        arguments: The command line after the program's name; None: that of this process.
    """
    with interrupts.listening():
        return _main(sys.argv[1:] if arguments is None else list(arguments))


def _main(given: Sequence[str]) -> int:
    stdout = sys.stdout
    try:
        # Without standalone mode Click returns what the command returns, and raises what it raises.
        code = cli.main(given, prog_name="ultracluster", standalone_mode=False, terminal_width=_width_of_help())
        return _code_after_signals(int(code or ExitCode.DONE))
    except SystemExit:
        if sys.stdout is stdout:
            raise
        return _discard_output()  # Click wraps standard output, and exits, after a write to a closed pipe
    except BaseException as error:
        own = given[: given.index("--")] if "--" in given else given
        code = exit_code_of(error, debug="--debug" in own)
        if code is None:
            raise
        number = interrupts.stopped()  # an error of another thread may come before the exception of the signal
        return code if number is None else 128 + number


def _code_after_signals(code: int) -> int:
    """Return the exit code of a command that has ended by itself: after a signal that of the signal, for the caller."""
    number = interrupts.stopped()
    if number is None or code in ENDED:
        return code
    if code == ExitCode.DONE:
        echo("The signal to stop came when all of this was done.", err=True)
    return 128 + number


def _width_of_help() -> int | None:
    """Return the width of help on a narrow terminal, where Click would write lines of 50 columns; None: Click's own."""
    columns = shutil.get_terminal_size().columns
    return columns if columns < _NARROW else None


def exit_code_of(error: BaseException, *, debug: bool = False) -> int | None:
    """Print an expected error for people, and return the exit code; None: it is not expected.

    Args:
        error: What ended a command.
        debug: Whether to print also where it happened, with all causes and the ids of requests that AWS refused.
    """
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.Abort) and error.__cause__ is not None:  # Click's word for Ctrl-C
        error = error.__cause__
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return 128 + error.number if isinstance(error, interrupts.Terminated) else ExitCode.INTERRUPTED
    if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
        return _discard_output()
    if debug:
        _note_causes(error)
    if isinstance(error, click.ClickException):
        if debug:
            traceback.print_exception(error)
        _show_usage_error(error)
        return ExitCode.UNUSABLE
    reported = _advice(error)
    if reported is not None:
        code, advice = reported
        if debug:
            traceback.print_exception(error)
        echo(f"error: {error}", err=True)
        if advice:
            echo(f"\nhint: {advice}", err=True)
        return code
    return None


def _show_usage_error(error: click.ClickException) -> None:
    """Print Click's error as all others are, with the usage line and where help is."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    echo(f"error: {error.format_message()}", err=True)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        hint = getattr(error, "hint", f"./{error.ctx.command_path} --help")
        echo(f"\n{error.ctx.get_usage()}\nhint: {hint}", err=True)


def _note_causes(error: BaseException) -> None:
    """Let tracebacks show every cause, those raised `from None` too, each with the id of AWS's request."""
    seen: set[BaseException] = set()
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        seen.add(cause)
        response = getattr(cause, "response", None)  # of botocore's ClientError
        request_id = response.get("ResponseMetadata", {}).get("RequestId") if isinstance(response, dict) else None
        if request_id:
            cause.add_note(f"AWS request id: {request_id}")
        cause.__suppress_context__ = False
        cause = cause.__cause__ or cause.__context__


def _discard_output() -> ExitCode:
    """Send what is still to be printed nowhere: the reader has seen enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.DONE


def _advice(error: BaseException) -> tuple[int, str] | None:
    """Return the exit code of an expected error, and what to do; None: it is not expected."""
    if isinstance(error, CliError):
        return error.exit_code, error.hint

    from botocore.exceptions import BotoCoreError, ClientError

    from config.settings import SettingsError
    from scripts.core.aws_errors import hint
    from toolchain.parallelcluster import MissingEnvironmentError

    if isinstance(error, SettingsError | MissingEnvironmentError):
        return ExitCode.UNUSABLE, ""
    if isinstance(error, BotoCoreError | ClientError):
        return ExitCode.UNUSABLE, hint(error)
    if isinstance(error, OSError) and error.errno in _NOT_WRITABLE:
        return ExitCode.UNUSABLE, ""
    return None


def run() -> int:
    """Run the command line as this process, and return its exit code."""
    code = main()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
    if code in ENDED:
        sys.stderr.flush()
        os._exit(code)  # Python would wait for threads, and those for minutes if AWS does not answer
    return code
