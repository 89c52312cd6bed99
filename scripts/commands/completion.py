"""Print the completion script of a shell: commands, options, deployments and queues.

It completes the command of any checkout, and a link to it on PATH. Nothing is installed.

Exit code 0: printed; 2: there is no such shell.
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from scripts.core import options
from scripts.core.errors import ExitCode
from scripts.core.text import echo

_COMMANDS = {
    "bash": {"bash_complete $1)": 'bash_complete "$1" 2>/dev/null)'},
    "zsh": {
        "(( ! $+commands[ultracluster] )) && return 1\n": "\n",
        "zsh_complete ultracluster)": "zsh_complete ${~words[1]} 2>/dev/null)",
    },
    "fish": {
        "COMP_CWORD=(commandline -t) ultracluster)": "COMP_CWORD=(commandline -t) (commandline -opc)[1] 2>/dev/null)",
        'string split ","': 'string split -m 1 ","',  # help may have commas
    },
}
"""What is replaced in Click's scripts: these call what was typed, not `ultracluster` on PATH alone."""
_LINES = {
    "bash": 'source <("$PWD"/ultracluster completion bash)   # in ~/.bashrc, with the path of the checkout',
    "zsh": 'source <("$PWD"/ultracluster completion zsh)   # in ~/.zshrc, after compinit',
    "fish": "./ultracluster completion fish > ~/.config/fish/completions/ultracluster.fish",
}


@options.command(__doc__, *((f"completion {shell}", line) for shell, line in _LINES.items()))
@click.argument("shell", type=click.Choice(tuple(_COMMANDS)))
def command(*, shell: str) -> int:
    """Print the script, and return the exit code."""
    complete = get_completion_class(shell)
    if complete is None:
        raise LookupError(shell)
    script = complete(click.get_current_context().find_root().command, {}, "ultracluster", options.COMPLETION).source()
    for before, after in _COMMANDS[shell].items():
        script = script.replace(before, after)
    echo(script)
    return ExitCode.DONE
