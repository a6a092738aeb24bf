"""`tidegate completion bash | zsh | fish`: the script by which a shell completes `tidegate`."""

from __future__ import annotations

import argparse

from argcomplete.shell_integration import shellcode

from tidegate.cli.terminal import show


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    script = shellcode(["tidegate"], shell=arguments.shell)
    if arguments.shell == "zsh":
        # Without it `compdef` is not there in a shell that has set up no completion yet.
        script = script.replace(
            "    autoload is-at-least\n",
            "    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"
            "    autoload is-at-least\n",
        )
    show(script.rstrip("\n"))
    return 0
