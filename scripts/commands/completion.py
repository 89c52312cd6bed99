"""Print the completion script of a shell: commands, options, deployments and queues.

It completes the command of any checkout, and a link to it on PATH. Nothing is installed.

Exit code 0: printed; 2: there is no such shell.
"""

from __future__ import annotations

import click

from scripts import options
from scripts.errors import ExitCode

# Click's own scripts for zsh and fish return silently unless `ultracluster` is on PATH. These call what was typed.
_BASH = """\
_ultracluster() {
  local line kind
  COMPREPLY=()
  while IFS=, read -r kind line; do
    case $kind in
      dir) compopt -o dirnames ;;
      file) compopt -o default ;;
      plain) COMPREPLY+=("$line") ;;
    esac
  done < <(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _ULTRACLUSTER_COMPLETE=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F _ultracluster ultracluster ./ultracluster
"""
_ZSH = """\
#compdef ultracluster
_ultracluster() {
  local -a described plain response
  response=("${(@f)$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \\
    _ULTRACLUSTER_COMPLETE=zsh_complete ${~words[1]} 2>/dev/null)}")
  for type key help in ${response}; do
    case $type in
      plain) if [[ $help == _ ]]; then plain+=("$key"); else described+=("$key:$help"); fi ;;
      dir) _path_files -/ ;;
      file) _path_files -f ;;
    esac
  done
  (( $#described )) && _describe -V unsorted described -U
  (( $#plain )) && compadd -U -V unsorted -a plain
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _ultracluster "$@"
else
  compdef _ultracluster ultracluster
fi
"""
_FISH = """\
function _ultracluster
  set -l words (commandline -opc)
  for line in (env _ULTRACLUSTER_COMPLETE=fish_complete COMP_WORDS=(commandline -cp | string collect) \\
      COMP_CWORD=(commandline -t | string collect) $words[1] 2>/dev/null)
    set -l item (string split -m 1 "," $line)
    switch $item[1]
      case dir
        __fish_complete_directories $item[2]
      case file
        __fish_complete_path $item[2]
      case plain
        echo $item[2]
    end
  end
end
complete --no-files --command ultracluster --arguments "(_ultracluster)"
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_LINES = {
    "bash": 'source <("$PWD"/ultracluster completion bash)   # in ~/.bashrc, with the path of the checkout',
    "zsh": 'source <("$PWD"/ultracluster completion zsh)   # in ~/.zshrc, after compinit',
    "fish": "./ultracluster completion fish > ~/.config/fish/completions/ultracluster.fish",
}


@options.command(__doc__, *((f"completion {shell}", line) for shell, line in _LINES.items()))
@click.argument("shell", type=click.Choice(tuple(SCRIPTS)))
def command(*, shell: str) -> int:
    """Print the script, and return the exit code."""
    print(SCRIPTS[shell], end="")
    return ExitCode.DONE
