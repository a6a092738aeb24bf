"""The arguments of `changes` and `undo`."""

from __future__ import annotations

from tidegate.cli.arguments.options import (
    Commands,
    at_least_one,
    consent_option,
    filled,
    home_options,
    json_option,
)


def add_changes(commands: Commands) -> None:
    changes = commands.add_parser(
        "changes",
        help="list the changes that can be taken back",
        description="List the changes whose rows are kept, newest first. Rows are kept for sources "
        "with `--undo keep` or `--undo require`, and for as many days as the setting "
        "`undo.keep_days` says.",
    )
    changes.add_argument("--source", type=filled, metavar="NAME", help="only changes of one source")
    changes.add_argument(
        "--limit", type=at_least_one, metavar="N", help="show at most N (default: 50)"
    )
    changes.set_defaults(module="changes")
    json_option(changes)
    home_options(changes)


def add_undo(commands: Commands) -> None:
    undo = commands.add_parser(
        "undo",
        help="take back a change: put its rows back as they were",
        description="Show the rows that a change touched, ask on the terminal, and put them back "
        "as they were before it, all of them or none. Nothing is changed if one of the rows is not "
        "as the change left it. The undo is a change itself, and can be taken back.",
    )
    undo.add_argument("change", metavar="CHANGE", help="the id of a change, or its beginning")
    undo.set_defaults(module="undo")
    json_option(undo)
    consent_option(undo)
    home_options(undo)
