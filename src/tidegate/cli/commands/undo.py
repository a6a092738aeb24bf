"""`tidegate undo CHANGE`: takes a change back, after a person at the terminal has agreed."""

from __future__ import annotations

import argparse
import getpass
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.approvals.approvals import ApprovalNeeded
from tidegate.approvals.render import visible
from tidegate.cli.consent import require_consent
from tidegate.cli.local_actor import ask, with_app
from tidegate.cli.settings import load_for_query
from tidegate.cli.terminal import print_status, show_json, show_table
from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import cli
from tidegate.model.changes import (
    ChangeEntry,
    ChangeList,
    DescribeUndo,
    ListChanges,
    UndoChange,
    Undone,
    UndoPreview,
    UndoTable,
)
from tidegate.model.requests import Call
from tidegate.model.results import Limits

_EVERY = 1_000_000
_LIMITS = Limits(timeout_s=60.0)


def run(arguments: argparse.Namespace) -> int:
    """Show what would go back, ask, and put it back."""

    async def work(app: App) -> None:
        entry = await _find(app, arguments.change)
        wanted = DescribeUndo(entry.id, limits=_LIMITS)
        preview = await ask(app, "undo", wanted, entry.source, UndoPreview)
        if not arguments.json:
            _show(preview)
        if not preview.possible and not preview.conflict_count:
            raise TidegateError(
                Code.UNDO_UNAVAILABLE,
                f"The change {entry.id} cannot be taken back: {preview.reason}.",
            )
        if preview.possible:
            what = f"take back the change {entry.id} of the source {entry.source}"
            require_consent(app, "undo", what, arguments)
        done = await _undo(app, entry)
        if arguments.json:
            show_json(msgspec.to_builtins(done))
            return
        rows = "1 row" if done.rows == 1 else f"{done.rows:,} rows"
        print_status(f"took back {entry.id}: put {rows} back of {', '.join(done.tables)}")
        for remark in done.remarks:
            print_status(f"note: {remark}")
        if done.change:
            print_status(f"`tidegate undo {done.change}` takes this back")

    with_app(App.open(load_for_query(arguments)), work)
    return 0


async def _find(app: App, start: str) -> ChangeEntry:
    """The change whose id is this, or alone starts so. Raises: TidegateError UNDO_UNAVAILABLE."""
    listed = await ask(app, "undo", ListChanges(limit=_EVERY), None, ChangeList)
    found = [entry for entry in listed.entries if entry.id.startswith(start)]
    if len(found) == 1:
        return found[0]
    problem = f"Several changes start with {start!r}" if found else f"No change {start!r} is kept"
    raise TidegateError(
        Code.UNDO_UNAVAILABLE, f"{problem}.", hint="`tidegate changes` lists those that are kept."
    )


async def _undo(app: App, entry: ChangeEntry) -> Undone:
    """Take it back. Where the source has a person approve changes, that is the one at the terminal,
    who has just agreed. Raises: TidegateError."""
    request = UndoChange(entry.id, limits=_LIMITS)
    call = Call(cli(allow_writes=True), "cli", "undo", request, entry.source)
    try:
        payload: Any = (await app.gateway.handle(call)).payload
    except ApprovalNeeded as needed:
        by = f"cli:{getpass.getuser()}"
        app.approvals.resolve(needed.question.id, "allowed", by)
        payload = (await app.gateway.handle(call)).payload
    if not isinstance(payload, Undone):
        raise TidegateError(Code.INTERNAL, f"Unexpected reply: {type(payload).__name__}.")
    return payload


def _show(preview: UndoPreview) -> None:
    for table in preview.tables:
        print_status(f"{visible(table.table)}: {_rows(table.count)}")
        if table.reason:
            print_status(table.reason)
        elif table.columns:
            show_table(("", *table.columns), _lines(table))
            if table.count > len(table.before):
                print_status(f"and {table.count - len(table.before):,} more")
    for name in preview.triggers:
        print_status(
            f"note: the trigger {visible(name)} may fire again; what it changes in other rows does"
            " not go back"
        )


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _lines(table: UndoTable) -> list[list[str]]:
    """A row for each row that goes or comes, with the values that change as `now -> then`."""
    lines: list[list[str]] = []
    for after, before in zip(table.after, table.before, strict=True):
        if after is None or before is None:
            cells = [_cell(value) for value in after or before or ()]
            lines.append(["goes" if before is None else "comes back", *cells])
            continue
        pairs = zip(after, before, strict=True)
        cells = [
            _cell(old) if old == new else f"{_cell(new)} -> {_cell(old)}" for new, old in pairs
        ]
        lines.append(["changes back", *cells])
    return lines


def _cell(value: str | None) -> str:
    return "NULL" if value is None else visible(value)
