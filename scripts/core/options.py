"""What commands have in common on the command line: the deployment, its account, the format of the result."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import augment_usage_errors
from click.shell_completion import CompletionItem

from config import files
from scripts.core.errors import OperationError, UnusableError

if TYPE_CHECKING:
    from config.settings import Settings

ROOT = Path(__file__).parents[2]
CONFIG = files.folder(os.environ)
"""Directory of the settings files."""
SETTINGS_REFERENCE = "docs/reference/settings.md"
BUILD = ROOT / "build"
_WRITABLE = "run it in a checkout that you may write, such as a clone of this one"
VARIABLE = "ULTRACLUSTER_DEPLOYMENT"
COMPLETION = "_ULTRACLUSTER_COMPLETE"
"""The variable by which a shell asks Click what completes a line."""
COMMON = ("profile", "region", "debug")
"""Options of all commands on an account; the last one is of all commands."""
Function = Callable[..., Any]
FunctionT = TypeVar("FunctionT", bound=Function)


class HintedUsageError(click.UsageError):
    """A wrong command line, with what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Command(click.Command):
    """A command whose help ends with examples, and that takes words after ``--`` as they are.

    Attributes:
        examples: Command lines after the program's name, with what each does.
        further: The parameter that gets the words after ``--``; None: there are none.
        is_changing: Whether it changes something outside this machine.
    """

    examples: Sequence[tuple[str, str]] = ()
    further: str | None = None
    is_changing: bool = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words after ``--`` apart, so that none is taken for the deployment."""
        with augment_usage_errors(ctx):
            return self._parse(ctx, args)

    def _parse(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self.further is None:
            return super().parse_args(ctx, self._with_deployment(ctx, args))
        end = args.index("--") if "--" in args else len(args)
        words = tuple(args[end + 1 :])
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args[:end])
        if rest and not ctx.resilient_parsing:
            raise HintedUsageError(f"got {' '.join(rest)}", f"further words go after --: -- {' '.join(rest)}")
        ctx.params[self.further] = words
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Call the function.

        Raises:
            OperationError: The command changes something, and stopped because nobody reads its output any more.
        """
        try:
            with augment_usage_errors(ctx):
                return super().invoke(ctx)
        except BrokenPipeError:
            only_shows = ctx.params.get("dry_run") or ctx.params.get("only_list")
            if only_shows or not self.is_changing:
                raise
            raise OperationError(
                "nobody reads standard output any more, so the command stopped", "the same command does what is left"
            ) from None

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the pieces of the usage line."""
        pieces = super().collect_usage_pieces(ctx)
        return [*pieces, "[-- WORDS...]"] if self.further else pieces

    def _with_deployment(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Prepend the deployment of `VARIABLE` where the first word names none, but may be the next argument."""
        name = os.environ.get(VARIABLE)
        arguments = [each for each in self.params if isinstance(each, click.Argument)]
        if not name or not arguments[1:] or arguments[0].envvar != VARIABLE:
            return args
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        word, last = given.get(arguments[0].name), arguments[-1]
        is_full = last.nargs == 1 and isinstance(given.get(last.name), str)
        if not isinstance(word, str) or word in deployments() or is_full:
            return args
        return [name, *args]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then those that all commands on an account have."""
        own: list[tuple[str, str]] = []
        common: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)):
                (common if parameter.name in COMMON else own).append(record)
        for title, records in (("Options", own), ("Common options", common)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        write_examples(formatter, self.examples)


class Group(click.Group):
    """A group whose help ends with the first example of each of its commands."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        commands = [each for _, each in sorted(self.commands.items()) if isinstance(each, Command)]
        write_examples(formatter, [each.examples[0] for each in commands if each.examples])


def write_examples(formatter: click.HelpFormatter, examples: Sequence[tuple[str, str]]) -> None:
    """Write command lines after the program's name, with what each does, as the last section of a help."""
    if examples:
        with formatter.section("Examples"):
            for words, meaning in examples:
                formatter.write_text(f"# {meaning}")
                formatter.write(f"{'':{formatter.current_indent}}./ultracluster {words}\n")


def command(
    text: str | None,
    *examples: tuple[str, str],
    further: str | None = None,
    name: str | None = None,
) -> Callable[[Function], Command]:
    """Make a function a command.

    Args:
        text: The help: first a line for lists, then paragraphs.
        examples: Command lines after ``./ultracluster``, with what each does.
        further: The parameter that gets the words after ``--``.
        name: The word that calls it, if it is not the function's.
    """
    settings: dict[str, Any] = {"max_content_width": 100}

    def decorate(function: Function) -> Command:
        made: Command = click.command(name, cls=Command, help=cleandoc(text or ""), context_settings=settings)(function)
        made.examples, made.further = examples, further
        text_of_debug = "On an error, print where it happened, all causes, and the ids of AWS's requests."
        made.params.append(click.Option(["--debug"], is_flag=True, expose_value=False, help=text_of_debug))
        return made

    return decorate


def changing(command: Command) -> Command:
    """Declare that a command changes something outside this machine, so that it never ends early without an error."""
    command.is_changing = True
    return command


def subcommand(
    group: click.Group, text: str, *examples: tuple[str, str], further: str | None = None, name: str | None = None
) -> Callable[[Function], Command]:
    """Make a function a command of a group; the arguments are those of `command`."""

    def decorate(function: Function) -> Command:
        made = command(text, *examples, further=further, name=name)(function)
        group.add_command(made)
        return made

    return decorate


def common_options(command: click.Command) -> Sequence[str]:
    """Return the options that a command has in common with all on an account; none: it is not on one."""
    return COMMON if {each.name for each in command.params}.issuperset(COMMON) else ()


def check_build() -> None:
    """Make build/, into which a command writes at its end: it fails before it works for a minute.

    Raises:
        UnusableError: It cannot be written.
    """
    try:
        BUILD.mkdir(exist_ok=True)
    except OSError as error:
        raise UnusableError(f"{BUILD} cannot be made: {error.strerror}", _WRITABLE) from None
    if not os.access(BUILD, os.W_OK):
        raise UnusableError(f"{BUILD} cannot be written", _WRITABLE)


def deployments() -> list[str]:
    """Return the names of the settings files."""
    return files.deployments(CONFIG)


def settings_file(name: str) -> Path:
    """Return the settings file of a deployment: no command has another way from a name to a file."""
    return files.settings_file(name, CONFIG)


def shown(path: Path) -> str:
    """Return a settings file as people know it: config/NAME.yaml in this checkout, the path elsewhere."""
    return f"config/{path.name}" if path.parent in (files.CHECKOUT, Path()) else str(path)


def shown_folder() -> str:
    """Return the folder of the settings files in the same way."""
    return "config/" if CONFIG == files.CHECKOUT else f"{CONFIG}, which {files.VARIABLE} names"


class DeploymentName(click.ParamType[str]):
    """The name of a settings file in config/, without .yaml."""

    name = "deployment"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, if there is such a file."""
        known = deployments()
        if value not in known:
            similar = get_close_matches(Path(value).name.removesuffix(".yaml"), known)
            meant = f" (did you mean {' or '.join(similar)}?)" if similar else ""
            origin = f" from {VARIABLE}" if value == os.environ.get(VARIABLE) else ""
            self.fail(f"got {value}{origin}; allowed: files in {shown_folder()}, {', '.join(known)}{meant}", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete names of settings files."""
        return [CompletionItem(name) for name in deployments() if name.startswith(incomplete)]


def _given_or_only(name: str | None) -> str:
    known = deployments()
    if not name and len(known) == 1:
        return known[0]
    if not name:
        raise HintedUsageError(f"got no DEPLOYMENT; allowed: {', '.join(known)}", f"name one, or set {VARIABLE}")
    return name


def deployment_among(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the DEPLOYMENT that the first of some paths may be, or that is given otherwise, and the other paths.

    Empty: there is none.

    Raises:
        click.BadParameter: The first is neither a path on a cluster, nor of this machine, nor such a name.
    """
    known = deployments()
    is_name = len(words) > 1 and not words[0].startswith("/") and not any(Path(each).is_dir() for each in words)
    if len(words) > 1 and (words[0] in known or is_name):
        return DeploymentName().convert(words[0], None, None), list(words[1:])
    chosen = os.environ.get(VARIABLE) or (known[0] if len(known) == 1 else "")
    return chosen if chosen in known else "", list(words)


def deployment_name(function: FunctionT) -> FunctionT:
    """Add the argument DEPLOYMENT; the function gets it as ``name``."""
    return click.argument(
        "name",
        metavar="DEPLOYMENT",
        type=DeploymentName(),
        required=False,
        envvar=VARIABLE,
        callback=lambda _, __, name: _given_or_only(name),
    )(function)


def settings_of(name: str) -> Settings:
    """Return the settings of a deployment.

    Raises:
        SettingsError: They cannot be used; the message has all errors.
    """
    from config.settings import load

    return load(settings_file(name))


def _use_profile(context: click.Context, _: click.Parameter, name: str | None) -> None:
    if name and not context.resilient_parsing:
        os.environ["AWS_PROFILE"] = name  # of this process and of the CDK


profile = click.option(
    "--profile",
    metavar="NAME",
    expose_value=False,
    callback=_use_profile,
    help="Profile of the AWS CLI; default: AWS_PROFILE.",
)


def account(function: Function) -> Function:
    """Add the options of an AWS account."""
    region = click.option("--region", metavar="REGION", help="To be sure: the Region of the settings, else an error.")
    return profile(region(function))


def output(*formats: str) -> Callable[[Function], Function]:
    """Add --output; the function gets ``output``.

    Args:
        formats: Those beside text.
    """
    choice = click.Choice(("text", *formats))
    return click.option("--output", "-o", type=choice, default="text", show_default=True, help="Format of the result.")


yes = click.option("--yes", is_flag=True, help="Do not ask, as in pipelines.")


def _refuse_yes(context: click.Context, _: click.Parameter, given: bool) -> None:
    if given:
        text = f"--yes is not enough for `{context.info_name}`, which deletes what cannot be had back"
        raise HintedUsageError(text, "--confirm NAME, with the name of the deployment, asks nothing")


def confirm(function: Function) -> Function:
    """Add --confirm NAME, of commands that delete; --yes, which others have, is refused and says so."""
    text = "The deployment's name, instead of typing it when asked; --yes is not enough."
    named = click.option("--confirm", metavar="NAME", help=text)
    return named(click.option("--yes", is_flag=True, hidden=True, expose_value=False, callback=_refuse_yes)(function))


drain = click.option("--drain", is_flag=True, help="Accept no new jobs, and wait until all others have ended.")
force = click.option("--force", is_flag=True, help="Terminate nodes of jobs, also if Slurm cannot be asked.")


def complete_queues(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete QUEUE and QUEUE/COMPUTE-RESOURCE from the settings file, without checking it."""
    from config.yaml_text import decode, parse

    # While an option has no value yet, Click leaves the arguments in `args`.
    name = ctx.params.get("name") or next((word for word in ctx.args if word in deployments()), None)
    try:
        document = parse(decode(settings_file(str(name)).read_bytes())).value
        queues = {each["name"]: each["compute_resources"] for each in document["cluster"]["queues"]}
    except (OSError, ValueError, LookupError, TypeError):
        return []
    targets = [*queues, *(f"{queue}/{each['name']}" for queue, nodes in queues.items() for each in nodes)]
    return [target for target in targets if target.startswith(incomplete)]


USER = r"[A-Za-z0-9_][A-Za-z0-9_.@\\+-]{0,127}"
"""Users of a cluster, those of directories such as ``name@domain`` too. None is an option of a program."""


class UserName(click.ParamType[str]):
    """A user of the cluster."""

    name = "user"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the user; it goes into a command on the head node."""
        if not re.fullmatch(USER, value, re.ASCII):
            self.fail(f"got {value!r}; allowed: a user of the cluster, such as ubuntu", param, ctx)
        return value


class Positive(click.ParamType[float]):
    """A number above 0."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not 0 < number < float("inf"):
            self.fail(f"got {value}; allowed: numbers above 0", param, ctx)
        return number


def names(_: click.Context, __: click.Parameter, text: str) -> list[str]:
    """Return the names of ``a,b``; a callback of options."""
    return [name for name in text.split(",") if name]


def exclusive(**given: object) -> None:
    """Check that at most one of several options is given.

    Raises:
        UsageError: There is more than one.
    """
    used = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if len(used) > 1:
        raise click.UsageError(f"{' and '.join(used)} exclude each other.")
