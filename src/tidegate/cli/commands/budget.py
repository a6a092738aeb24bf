"""`tidegate budget list | set | remove`."""

from __future__ import annotations

import argparse
from typing import Any

from tidegate.app import App
from tidegate.budgets.amounts import parse_amount, parse_kind
from tidegate.budgets.budgets import BudgetState, gives_more
from tidegate.cli.consent import require_consent
from tidegate.cli.listing import chosen
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import load_for_query
from tidegate.cli.terminal import print_status, show_json, show_table
from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import BUILTIN
from tidegate.model.budgets import UNITS, Budget, in_words, moment

_BY = "cli"


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`."""
    action = {"list": _list, "set": _set, "remove": _remove}[arguments.action]

    async def work(app: App) -> None:
        action(app, arguments)

    with_app(App.open(load_for_query(arguments)), work)
    return 0


def _list(app: App, arguments: argparse.Namespace) -> None:
    there = app.budgets.list()
    states = chosen(there, arguments, "budgets", lambda each: each.budget.about)
    if arguments.json:
        show_json({"budgets": [_described(each) for each in states]})
        return
    if not states:
        print_status(
            "no budgets; `tidegate budget set 500 calls/minute --token NAME` limits a token"
        )
        return
    rows = [
        [
            each.budget.about,
            each.budget.size,
            in_words(each.budget.measure, each.left),
            moment(each.ends_at),
        ]
        for each in states
    ]
    show_table(("for", "budget", "left now", "renews"), rows)


def _set(app: App, arguments: argparse.Namespace) -> None:
    measure, window = parse_kind(arguments.kind)
    amount = parse_amount(measure, arguments.amount)
    wanted = Budget("", measure, window, amount, *_about(app, arguments))
    was = app.budgets.find(wanted)
    if was is not None and was.amount == amount:
        print_status(f"nothing to change: {was.size} for {was.about}")
        return
    if gives_more(was, wanted):
        what = f"raise the budget for {wanted.about} to {wanted.size}"
        require_consent(app, "raise", what, arguments)
    app.budgets.set(wanted, was, _BY)
    print_status(f"{wanted.size} for {wanted.about}, from the next call on")


def _remove(app: App, arguments: argparse.Namespace) -> None:
    measure, window = parse_kind(arguments.kind)
    about = (arguments.token or "", arguments.owner or "", arguments.source or "")
    wanted = Budget("", measure, window, 0, *about)
    was = app.budgets.find(wanted)
    if was is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is no budget of {measure} in a {window} for {wanted.about}.",
            hint="`tidegate budget list` shows all.",
        )
    require_consent(app, "remove", f"remove the budget of {was.size} for {was.about}", arguments)
    app.budgets.remove(was)
    print_status(f"removed: no more budget of {measure} in a {window} for {was.about}")


def _about(app: App, arguments: argparse.Namespace) -> tuple[str, str, str]:
    """What the options name, which must be there. Raises: TidegateError ARGUMENT_INVALID,
    SOURCE_UNKNOWN."""
    token, owner, source = arguments.token or "", arguments.owner or "", arguments.source or ""
    if token and token not in BUILTIN:
        token = app.tokens.find(token).name
    if owner:
        owner = app.operators.find(owner).name
    if source and source not in {each.name for each in app.connections.sources()}:
        raise TidegateError(Code.SOURCE_UNKNOWN, f"There is no source {source[:80]!r}.")
    return token, owner, source


def _described(state: BudgetState) -> dict[str, Any]:
    budget = state.budget
    unit = UNITS[budget.measure]
    return {
        "id": budget.id,
        "token": budget.token or None,
        "owner": budget.owner or None,
        "source": budget.source or None,
        "measure": budget.measure,
        "window": budget.window,
        "amount": budget.amount / unit if unit > 1 else budget.amount,
        "left": state.left / unit if unit > 1 else state.left,
        "renews_at": state.ends_at,
        "changed_at": budget.changed_at,
        "changed_by": budget.changed_by,
    }
