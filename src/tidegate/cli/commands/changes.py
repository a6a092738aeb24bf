"""`tidegate changes`: lists the changes that can be taken back."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.approvals.render import visible
from tidegate.cli.local_actor import ask, with_app
from tidegate.cli.settings import load_for_query
from tidegate.cli.terminal import print_status, show_json, show_table
from tidegate.model.changes import ChangeEntry, ChangeList, ListChanges

SHOWN = 50
_COLUMNS = ("id", "time", "source", "caller", "rows", "tables", "state")


def run(arguments: argparse.Namespace) -> int:
    """List them, newest first."""

    async def work(app: App) -> None:
        wanted = ListChanges(limit=arguments.limit or SHOWN)
        found = await ask(app, "changes", wanted, arguments.source, ChangeList)
        if arguments.json:
            show_json({"changes": [fields_of(entry) for entry in found.entries]})
        elif not found.entries:
            print_status("no change is kept; `tidegate source update NAME --undo keep` keeps them")
        else:
            show_table(_COLUMNS, [_row(entry) for entry in found.entries], fitted=True)

    with_app(App.open(load_for_query(arguments)), work)
    return 0


def fields_of(entry: ChangeEntry) -> dict[str, Any]:
    """All that is known of a change, with times as text."""
    fields: dict[str, Any] = msgspec.to_builtins(entry)
    for name in ("made_at", "expires_at"):
        fields[name] = _moment(fields[name])
    return fields


def _row(entry: ChangeEntry) -> list[str]:
    state = {"prepared": "unknown", "done": "", "undone": "taken back"}[entry.state]
    if entry.undoes:
        state = f"{state} (took back {entry.undoes})".strip()
    return [
        entry.id,
        _moment(entry.made_at),
        visible(entry.source),
        visible(entry.actor_name),
        str(entry.rows),
        visible(", ".join(entry.tables)),
        state,
    ]


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
