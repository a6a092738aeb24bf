"""`tidegate cloud snapshot SOURCE QUERY` and `tidegate cloud diff OLD NEW`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.cli.local_actor import ask, with_app
from tidegate.cli.settings import load_for_statement
from tidegate.cli.terminal import print_status, show, show_json
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Query
from tidegate.model.results import Limits, Page
from tidegate.model.statements import Statement
from tidegate.products.cloud.documents.snapshots import (
    FORMAT,
    Difference,
    Snapshot,
    compare,
    read_snapshot,
)
from tidegate.results.notes import cut_note, partial_note
from tidegate.system.private_files import replace_file

_MOST_ROWS = 1_000_000
_MOST_BYTES = 512 * 1_048_576
_SHOWN = 200
DIFFERENT = 1
"""The exit status of `diff` where something changed."""


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`."""
    return _diff(arguments) if arguments.action == "diff" else _snapshot(arguments)


def _snapshot(arguments: argparse.Namespace) -> int:
    path = Path(arguments.output)
    if path.exists() and not arguments.overwrite:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is a file {path}.",
            hint="Name another one, or give --overwrite.",
        )

    async def work(app: App) -> Page:
        limits = Limits(_MOST_ROWS, timeout_s=arguments.timeout, max_bytes=_MOST_BYTES)
        query = Query(Statement(arguments.query), limits=limits)
        return await ask(app, "snapshot", query, arguments.source, Page)

    page = with_app(App.open(load_for_statement(arguments)), work)
    if page.truncations:
        raise TidegateError(
            Code.LIMIT_BYTES,
            f"There is no snapshot of this result, as it is not whole: {cut_note(page)}.",
            hint="Narrow the query.",
        )
    if page.upstream is not None and page.upstream.skipped:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is no snapshot of a part. {partial_note(page.upstream.skipped)}.",
            hint="Name the accounts and regions that may be read, without on_error=skip.",
        )
    taken = Snapshot(
        FORMAT,
        arguments.source,
        arguments.query,
        datetime.now(UTC).isoformat(timespec="seconds"),
        tuple(column.name for column in page.columns),
        msgspec.json.decode(page.rows, type=tuple[tuple[Any, ...], ...]),
    )
    try:
        replace_file(path, msgspec.json.encode(taken))
    except OSError as error:
        raise TidegateError(
            Code.CLIENT_FILE, f"{path} cannot be written: {error.strerror or error}."
        ) from None
    print_status(f"{page.row_count:,} rows written to {path}")
    return 0


def _diff(arguments: argparse.Namespace) -> int:
    before, after = _read(arguments.old), _read(arguments.new)
    if before.query != after.query or before.source != after.source:
        print_status("note: the snapshots are of different queries")
    found = compare(before, after, arguments.key)
    if arguments.json:
        show_json(_as_json(before, after, found))
    else:
        _show(found)
    print_status(
        f"added {len(found.added):,}  removed {len(found.removed):,}  "
        f"changed {len(found.changed):,} since {before.taken_at}"
    )
    return 0 if found.is_empty else DIFFERENT


def _read(name: str) -> Snapshot:
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        raise TidegateError(
            Code.CLIENT_FILE, f"{name} cannot be read: {error.strerror or error}."
        ) from None
    return read_snapshot(content, name)


def _as_json(before: Snapshot, after: Snapshot, found: Difference) -> dict[str, Any]:
    return {
        "from": before.taken_at,
        "to": after.taken_at,
        "added": found.added,
        "removed": found.removed,
        "changed": [
            {
                "key": list(each.key),
                "fields": {
                    name: {"was": was, "is": now} for name, (was, now) in each.fields.items()
                },
            }
            for each in found.changed
        ],
    }


def _show(found: Difference) -> None:
    lines = [f"+ {_text(row)}" for row in found.added]
    lines += [f"- {_text(row)}" for row in found.removed]
    for each in found.changed:
        pairs = each.fields.items()
        fields = [f"{name}: {_text(was)} -> {_text(now)}" for name, (was, now) in pairs]
        lines.append(f"~ {', '.join(map(_text, each.key))}: {'; '.join(fields)}")
    for line in lines[:_SHOWN]:
        show(line)
    if len(lines) > _SHOWN:
        print_status(f"{len(lines) - _SHOWN:,} more are not shown; --json has all")


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
