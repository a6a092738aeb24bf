"""The arguments of `console`."""

from __future__ import annotations

from tidegate.cli.arguments.options import (
    Commands,
    at_least_one,
    consent_option,
    filled,
    home_options,
)


def add_console(commands: Commands) -> None:
    console = commands.add_parser(
        "console",
        help="open the console in a browser: approve calls, see what was done",
        description="Open the console in a browser, signed in by a link that works once, for two "
        "minutes. The server of this state directory serves it if it runs with --console; if none "
        "runs, this command serves it until Ctrl-C. If there is no operator yet, it first asks for "
        "a name and a passphrase.",
    )
    console.set_defaults(module="tidegate.products.console.commands.console")
    console.add_argument(
        "--operator",
        type=filled,
        metavar="NAME",
        help="sign in as this operator (default: the only one, or the one named as your account)",
    )
    console.add_argument(
        "--port",
        type=at_least_one,
        default=8765,
        metavar="PORT",
        help="serve there if no server runs (default 8765, or a free one if that is taken)",
    )
    console.add_argument("--print", action="store_true", help="print the link, and open no browser")
    home_options(console)
    consent_option(console)
