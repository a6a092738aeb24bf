"""The arguments of `budget`."""

from __future__ import annotations

from tidegate.cli.arguments.options import (
    Commands,
    consent_option,
    filled,
    home_options,
    json_option,
    listing_options,
)


def add_budget(commands: Commands) -> None:
    budget = commands.add_parser(
        "budget", help="limit how much callers use of sources in a minute, an hour or a day"
    )
    actions = budget.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    setting = actions.add_parser(
        "set",
        help="set a budget, or change the one there is",
        description="Set how much a token, all tokens of an operator or every caller of a source "
        "may use in each minute, hour or day of UTC. Running servers follow on the next call. To "
        "raise a budget asks on the terminal, as `token edit` does; to set or lower one does not.",
    )
    setting.add_argument(
        "amount",
        metavar="AMOUNT",
        help="how much: a number, also as 20k, 5M or 1G; of seconds also 2.5",
    )
    removing = actions.add_parser("remove", help="let calls be free of a budget")
    for action in (setting, removing):
        action.add_argument(
            "kind",
            metavar="MEASURE/WINDOW",
            help="calls, rows, bytes or seconds, in each minute, hour or day: calls/minute",
        )
        whose = action.add_mutually_exclusive_group()
        whose.add_argument("--token", type=filled, metavar="NAME", help="for this token")
        whose.add_argument(
            "--owner", type=filled, metavar="OPERATOR", help="for all tokens of this operator"
        )
        action.add_argument(
            "--source",
            type=filled,
            metavar="NAME",
            help="on this source alone; without a token or an owner, for all callers together",
        )
        consent_option(action)
    listing = actions.add_parser("list", help="list the budgets, and what is left of each")
    json_option(listing)
    listing_options(listing)
    for action in (setting, removing, listing):
        action.set_defaults(module="budget")
        home_options(action)
