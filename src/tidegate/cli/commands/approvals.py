"""`tidegate approvals list | show | allow | deny`: the inbox of the person who approves calls.

The commands use the state file and no server, so that no token can reach them.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.approvals.render import describe, visible
from tidegate.cli.consent import require_consent
from tidegate.cli.listing import chosen
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import load_for_state
from tidegate.cli.terminal import color, print_status, show, show_json, show_table, uses_color
from tidegate.config.installation import as_typed
from tidegate.errors import TidegateError
from tidegate.store.records import PendingApproval

_COLUMNS = ("id", "state", "asked", "caller", "source", "effect", "statement")
_LOOK_S = 0.5
_CLEAR = "\x1b[H\x1b[2J"


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`."""
    actions = {"list": _list, "show": _show, "allow": _allow, "deny": _deny}
    action = actions[arguments.action]

    async def work(app: App) -> None:
        if arguments.action == "list" and arguments.watch:
            await _watch(app, arguments)
        action(app, arguments)

    with_app(App.open(load_for_state(arguments)), work)
    return 0


async def _watch(app: App, arguments: argparse.Namespace) -> None:
    """Show the list again whenever it changes, until it is interrupted."""
    shown: dict[str, PendingApproval] | None = None
    while True:
        questions = app.approvals.list(everything=arguments.all)
        now = {question.id: question for question in questions}
        if now != shown:
            if sys.stdout.isatty() and not arguments.json:
                _redraw(questions)
            else:
                _show_changes(app, shown or {}, now, arguments)
        shown = now
        await asyncio.sleep(_LOOK_S)


def _redraw(questions: Sequence[PendingApproval]) -> None:
    """The list in place of the one before."""
    sys.stdout.write(_CLEAR if uses_color(sys.stdout) else "")
    moment = _moment(time.time())
    count = len(questions) or "no"
    many = "" if count == 1 else "s"
    show(f"{count} pending approval{many} at {moment}; Ctrl-C ends")
    if questions:
        show_table(_COLUMNS, [_row(question) for question in questions], fitted=True)


def _show_changes(
    app: App,
    before: Mapping[str, PendingApproval],
    now: Mapping[str, PendingApproval],
    arguments: argparse.Namespace,
) -> None:
    """A line for each approval that is new or has another state."""
    # One that is no longer listed was answered, or has expired.
    gone: list[PendingApproval] = []
    for id in before.keys() - now.keys():
        with suppress(TidegateError):  # it has been removed since
            gone.append(app.approvals.find(id))
    for question in (*gone, *now.values()):
        known = before.get(question.id)
        if known is not None and known.state == question.state:
            continue
        if arguments.json:
            show(msgspec.json.encode(_fields(question)).decode())
        else:
            show("  ".join(" ".join(visible(word).split()) for word in _row(question)))


def _list(app: App, arguments: argparse.Namespace) -> None:
    questions = chosen(
        app.approvals.list(everything=arguments.all),
        arguments,
        "approvals",
        lambda question: question.id,
    )
    if arguments.json:
        show_json({"approvals": [_fields(question) for question in questions]})
        return
    if not questions:
        print_status("no pending approvals")
        return
    show_table(_COLUMNS, [_row(question) for question in questions], fitted=True)


def _show(app: App, arguments: argparse.Namespace) -> None:
    question = app.approvals.find(arguments.id)
    if arguments.json:
        show_json(_fields(question))
        return
    show(f"{color(question.id, '1')}  {_state(question)}")
    show(f"Asked:     {_moment(question.asked_at)}, by {_calls(question.askers)}")
    show(describe(question))
    if question.state == "pending":
        allow = as_typed(f"tidegate approvals allow {question.id}")
        show(f"Answer:    {allow}, or deny {question.id}")


def _allow(app: App, arguments: argparse.Namespace) -> None:
    question = app.approvals.find(arguments.id)
    if question.state == "pending":
        require_consent(app, "allow", f"let {_call(question)} run, once", arguments)
    _decide(app, arguments.id, "allowed", "")
    print_status("The call runs once, when the caller repeats it.")


def _deny(app: App, arguments: argparse.Namespace) -> None:
    _decide(app, arguments.id, "denied", arguments.reason)


def _decide(app: App, start: str, state: Any, reason: str) -> None:
    question = app.approvals.find(start)
    app.approvals.resolve(question.id, state, f"cli:{getpass.getuser()}", reason)
    print_status(f"{state} {question.id}: {_whose(question)}")


def _call(question: PendingApproval) -> str:
    return f"the {question.subject.effect} {question.id} of {_whose(question)}"


def _whose(question: PendingApproval) -> str:
    subject = question.subject
    return f"{visible(subject.actor_name)} on {visible(subject.source)}"


def _row(question: PendingApproval) -> list[str]:
    subject = question.subject
    return [
        question.id,
        question.state,
        _moment(question.asked_at),
        visible(subject.actor_name),
        subject.source,
        subject.effect,
        subject.statement,
    ]


def _fields(question: PendingApproval) -> dict[str, Any]:
    """All stored fields, with times as text and without the digest."""
    fields = msgspec.to_builtins(question)
    del fields["digest"]
    for name in ("asked_at", "decided_at", "ended_at"):
        fields[name] = None if fields[name] is None else _moment(fields[name])
    return fields


def _state(question: PendingApproval) -> str:
    words: str = question.state
    if question.decided_at is not None:
        words = f"{words} ({question.decided_by}, {_moment(question.decided_at)}"
        words += f": {visible(question.reason)})" if question.reason else ")"
    if question.ended_at is not None:
        words += f", ended {_moment(question.ended_at)}"
    return words


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count:,} calls"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
