"""Takes back a change of a Datalog source by the facts that its journal has of it."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.cli.consent import require_consent
from tidegate.cli.terminal import print_status, show_json, show_table
from tidegate.engines.registry import resolve_options
from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import cli
from tidegate.model.requests import Browse, Call, Request
from tidegate.model.results import Limits
from tidegate.model.schema import Catalog
from tidegate.products.datalog.engine.journal import Journal, Record, exact, inverse
from tidegate.products.datalog.requests import DatalogOperation, DatalogRequest, DatalogTarget

MOST_FACTS = 1_000
"""Facts of a change that is taken back: each is compared with the database first."""
_MOST_SHOWN = 20
_LIMITS = Limits(max_bytes=16 * 1024 * 1024, timeout_s=60.0)


async def undo(app: App, arguments: argparse.Namespace) -> int:
    """List the last changes, or take back `arguments.record`. Raises: TidegateError."""
    journal = _journal_of(app, arguments.source)
    records = list(journal.records())
    if arguments.record is None:
        return _list(records[-_MOST_SHOWN:], as_json=arguments.json)
    record = next((each for each in reversed(records) if each.id == arguments.record), None)
    if record is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The journal has no change {arguments.record[:80]!r}.",
            hint=f"`tidegate datalog undo {arguments.source}` lists the last ones.",
        )
    if len(record.facts) > MOST_FACTS:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The change has {len(record.facts):,} facts, and at most {MOST_FACTS:,} are taken"
            " back.",
        )
    catalog: Catalog = await _ask(app, arguments.source, Browse(aspect="catalog"))
    types = {column.name: column.type for table in catalog.tables for column in table.columns}
    forms = inverse(record, types)
    await _compare(app, arguments.source, record, types)
    rows = [(form[0][4:], *form[1:]) for form in forms[:_MOST_SHOWN]]
    show_table(("", "entity", "attribute", "value"), [[str(each) for each in row] for row in rows])
    if len(forms) > _MOST_SHOWN:
        print_status(f"and {len(forms) - _MOST_SHOWN} more")
    what = f"take back the change {record.id} of the source {arguments.source}"
    require_consent(app, "undo", what, arguments)
    await _compare(app, arguments.source, record, types)
    await _ask(app, arguments.source, _request(DatalogOperation.TRANSACT, {"txData": forms}))
    if arguments.json:
        show_json({"undone": record.id, "facts": len(forms)})
    else:
        print_status(f"took back {len(forms)} facts of {record.id}")
    return 0


async def _compare(app: App, source: str, record: Record, types: dict[str, str]) -> None:
    """See that all facts are as the change left them. Raises: TidegateError ARGUMENT_INVALID."""
    for fact in record.facts:
        asked = {"e": fact.e, "a": fact.a, "v": exact(fact, types)}
        found = await _ask(app, source, _request(DatalogOperation.COUNT_DATOMS, asked))
        if bool(msgspec.json.decode(found.json)) is not fact.added:
            now = "is gone" if fact.added else "is there again"
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The fact {fact.e} {fact.a} {str(fact.v)[:80]} {now} since, so the change is not"
                " taken back.",
                hint="Take back later changes first, or correct the facts by hand.",
            )


def _list(records: list[Record], *, as_json: bool) -> int:
    rows = [
        {
            "record": each.id,
            "time": datetime.fromtimestamp(each.time, UTC).isoformat(timespec="seconds"),
            "caller": each.actor,
            "added": sum(fact.added for fact in each.facts),
            "retracted": sum(not fact.added for fact in each.facts),
        }
        for each in records
    ]
    if as_json:
        show_json({"records": rows})
    else:
        names = ("record", "time", "caller", "added", "retracted")
        show_table(names, [[str(row[name]) for name in names] for row in rows])
    return 0


def _journal_of(app: App, name: str) -> Journal:
    found = [each for each in app.connections.sources() if each.name == name]
    if not found:
        raise TidegateError(
            Code.SOURCE_UNKNOWN,
            f"There is no source {name!r}.",
            hint="`tidegate source list` shows them.",
        )
    path = resolve_options(found[0]).get("journal") if found[0].engine == "datalevin" else None
    if path is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The source {name} keeps no journal of its changes.",
            hint=f"`tidegate source update {name} --option journal=FILE` keeps one from now on.",
        )
    return Journal(path)


def _request(operation: DatalogOperation, asked: dict[str, Any]) -> DatalogRequest:
    return DatalogRequest(
        operation=operation,
        target=DatalogTarget("database"),
        arguments=asked,
        text=f"undo: {operation.value}",
        limits=_LIMITS,
    )


async def _ask(app: App, source: str, request: Request) -> Any:
    call = Call(cli(allow_writes=True), "cli", "datalog undo", request, source)
    return (await app.gateway.handle(call)).payload
