"""Print what makes a shell complete commands, options, models, providers and clients with Tab.

bash   eval "$(dragoman completion bash)"      in ~/.bashrc
zsh    eval "$(dragoman completion zsh)"       in ~/.zshrc, behind compinit
fish   dragoman completion fish | source       in ~/.config/fish/config.fish
"""

from __future__ import annotations

import argparse
from typing import Final

from dragoman.cli.complete import complete
from dragoman.cli.main import DONE
from dragoman.cli.terminal import harmless, say
from dragoman.errors import DragomanError, UsageError

EXAMPLE = "  dragoman completion fish | source"

_BASH: Final = r"""_dragoman() {
    local line="${COMP_LINE:0:COMP_POINT}" words=() cur prefix="" word
    read -r -a words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    cur="${words[${#words[@]}-1]}"
    [[ $cur == *[:=]* ]] && prefix="${cur%"${cur##*[:=]}"}"
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        COMPREPLY+=("${word#"$prefix"}")
    done < <("${words[0]}" completion --candidates "${words[@]:1}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _dragoman dragoman
"""
_ZSH: Final = r"""_dragoman() {
    local -a described
    local line
    for line in "${(@f)$("${words[1]}" completion --candidates "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] && described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( $#described )); then
        _describe -t words dragoman described
    else
        _files
    fi
}
compdef _dragoman dragoman
"""
_FISH: Final = r"""function __dragoman_candidates
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] completion --candidates $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c dragoman -f -a '(__dragoman_candidates)'
"""
_SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("shell", nargs="?", choices=list(_SCRIPTS), metavar="|".join(_SCRIPTS), help="the shell")
    parser.add_argument("--candidates", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """Print the script, or the candidates that a script asks for."""
    if options.candidates is not None:
        try:
            found = complete(options.candidates)
        except DragomanError:  # a configuration that cannot be read must not break somebody's Tab key
            found = []
        say("".join(f"{harmless(word)}\t{harmless(says)}\n" for word, says in found))
        return DONE
    if options.shell is None:
        raise UsageError(f"expected a shell: {', '.join(_SCRIPTS)}")
    say(_SCRIPTS[options.shell])
    return DONE
