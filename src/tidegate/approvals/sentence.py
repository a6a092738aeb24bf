"""What a caller wants, in one sentence: for the card of a question, and for messages about it."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.model.changes import UndoChange
from tidegate.model.statements import DryRun
from tidegate.store.records import PendingApproval

IN_CONSOLE = "console"
"""The surface of what a person does in the console."""


def sentence_of(question: PendingApproval, name: Callable[[str], str] = str) -> str:
    """What the caller wants, in one sentence. `name` gives the form in which it holds the names of
    the caller, the tables and the source."""
    subject = question.subject
    # What a person does in the console is the person's, not the page's.
    client = "" if subject.surface == IN_CONSOLE else subject.client.partition("/")[0]
    who = client or subject.actor_name
    return f"{name(who)} wants to {_what(question, name)} on {name(subject.source)}"


def _what(question: PendingApproval, name: Callable[[str], str]) -> str:
    subject, dry_run = question.subject, question.dry_run
    where = f" of {', '.join(map(name, subject.tables[:3]))}" if subject.tables else ""
    if len(subject.tables) > 3:
        where += f" and {len(subject.tables) - 3} more"
    if dry_run is not None and dry_run.affected is not None:
        count = dry_run.affected
        if dry_run.requests:
            return f"send {count:,} request{'s' * (count != 1)}{where}"
        if not dry_run.what:
            verb = "put back" if subject.tool == UndoChange.kind else _verb(dry_run)
            to = where.replace(" of ", " to ", 1) if verb == "add" else where
            return f"{verb} {count:,} row{'s' * (count != 1)}{to}"
    if subject.effect == "read":
        return f"read{where.replace(' of ', ' ', 1) or ' data'}"
    return f"run a statement ({subject.effect}){where.replace(' of ', ' about ', 1)}"


def _verb(dry_run: DryRun) -> str:
    if dry_run.before and all(row is None for row in dry_run.before):
        return "add"
    if dry_run.after and all(row is None for row in dry_run.after):
        return "delete"
    return "change"
