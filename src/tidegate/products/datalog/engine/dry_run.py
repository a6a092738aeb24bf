"""What a change of a Datalog source would do, found out by reads: for the person who is asked.

A transaction is tried on the database as it is and never stored. Of a store's entries, of documents
and of vectors it is read what is there now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from tidegate.errors import TidegateError
from tidegate.model.results import Limits
from tidegate.model.statements import DryRun
from tidegate.products.datalog.requests import DatalogOperation, DatalogRequest
from tidegate.typed_values import decode_json

Read = Callable[[str, dict[str, Any]], Awaitable[bytes]]
"""Asks for one operation that reads, by its name and arguments; answers JSON."""

LIMITS = Limits(max_bytes=8 * 1024 * 1024, timeout_s=10.0)
"""What a read may take: a worker that is late is ended, for all its callers."""
MOST_FORMS = 1_000
"""Maps and vectors of a transaction that is tried: a longer one holds up other callers."""
MOST_SHOWN = 20
_MOST_CHARS = 200


class _Fact(msgspec.Struct):
    e: Any
    a: Any
    v: Any
    added: bool


class _Report(msgspec.Struct):
    """What a transaction would do; `makes` are the attributes that are not there yet."""

    added: int
    retracted: int
    facts: list[_Fact]
    makes: list[str]


async def try_change(request: DatalogRequest, read: Read) -> DryRun:
    """What the request would change. Raises: TidegateError."""
    operation, arguments = request.operation, request.arguments
    try:
        match operation:
            case DatalogOperation.TRANSACT:
                return await _transaction(arguments, read)
            case DatalogOperation.KV_TRANSACT:
                return await _entries(arguments, read)
            case DatalogOperation.CLEAR_DOCUMENTS:
                count = msgspec.json.decode(await read("document_count", {}), type=int)
                return DryRun(count, added=0, removed=count, what="documents")
            case DatalogOperation.ADD_DOCUMENT | DatalogOperation.REMOVE_DOCUMENT:
                ref = {"docRef": arguments.get("docRef")}
                adds = operation is DatalogOperation.ADD_DOCUMENT
                return _one("document", await read("document_indexed", ref), adds=adds)
            case DatalogOperation.ADD_VECTOR | DatalogOperation.REMOVE_VECTOR:
                ref = {"vectorRef": arguments.get("vectorRef")}
                adds = operation is DatalogOperation.ADD_VECTOR
                return _one("vector", await read("vector_indexed", ref), adds=adds)
            case _:
                return DryRun(reason=_opening(arguments))
    except TidegateError as error:
        if "absent" not in error.details:
            raise
        return DryRun(reason=f"it makes what is not there yet: {error.message}")


async def _transaction(arguments: Mapping[str, Any], read: Read) -> DryRun:
    forms = arguments.get("txData", ())
    if len(forms) > MOST_FORMS:
        return DryRun(
            reason=f"it has {len(forms):,} entries, and at most {MOST_FORMS:,} are tried."
        )
    report = decode_json(await read("simulate", {"txData": forms}), _Report)
    shown = report.facts[:MOST_SHOWN]
    rows = [(_text(each.e), _text(each.a), _text(each.v)) for each in shown]
    makes = ", ".join(report.makes[:MOST_SHOWN])
    return DryRun(
        report.added + report.retracted,
        ("entity", "attribute", "value"),
        tuple([None if each.added else row for each, row in zip(shown, rows, strict=True)]),
        tuple([row if each.added else None for each, row in zip(shown, rows, strict=True)]),
        reason=f"It makes attributes that are not there yet: {makes}" if makes else "",
        added=report.added,
        removed=report.retracted,
        what="facts",
    )


async def _entries(arguments: Mapping[str, Any], read: Read) -> DryRun:
    """Each entry, and what its key has now."""
    entries = cast("Sequence[Sequence[Any]]", arguments.get("txs", ()))
    before: list[tuple[str | None, ...] | None] = []
    after: list[tuple[str | None, ...] | None] = []
    for entry in entries[:MOST_SHOWN]:
        operation, *rest = entry
        table = arguments["dbi"] if "dbi" in arguments else rest.pop(0)
        key, *values = rest
        asked = {"dbi": table, "key": key}
        asked |= {name: arguments[name] for name in ("keyType", "valueType") if name in arguments}
        now = await _value_of(asked, read)
        shown = (_text(table), _text(key))
        before.append(None if now is None else (*shown, now))
        put = (*shown, _text(values[0] if values else None))
        after.append(put if _is_put(operation) else None)
    puts = sum(_is_put(entry[0]) for entry in entries)
    kept = [place for place in range(len(before)) if before[place] or after[place]]
    return DryRun(
        len(entries),
        ("table", "key", "value"),
        tuple([before[place] for place in kept]),
        tuple([after[place] for place in kept]),
        added=puts,
        removed=len(entries) - puts,
        what="entries",
    )


def _is_put(operation: Any) -> bool:
    return str(operation).removeprefix(":").startswith("put")


async def _value_of(asked: dict[str, Any], read: Read) -> str | None:
    """What a key has now; None if it has nothing, or its table is yet to be made."""
    try:
        found = msgspec.json.decode(await read("kv_get", asked))
    except TidegateError as error:
        if "absent" not in error.details:
            raise
        return None
    return None if found is None else _text(found)


def _one(what: str, answer: bytes, *, adds: bool) -> DryRun:
    there = msgspec.json.decode(answer, type=bool)
    if adds:
        reason = f"It replaces the {what} that is there." if there else ""
        return DryRun(1, reason=reason, added=1, removed=int(there), what=f"{what}s")
    reason = "" if there else f"There is no such {what}."
    return DryRun(int(there), reason=reason, added=0, removed=int(there), what=f"{what}s")


def _opening(arguments: Mapping[str, Any]) -> str:
    schema = arguments.get("schema")
    names = sorted(cast("dict[str, Any]", schema)) if isinstance(schema, dict) else []
    named = ", ".join(names[:MOST_SHOWN])
    if named:
        return f"it makes the database if it is absent, and these attributes: {named}"
    return "it makes what it opens, if that is absent."


def _text(value: Any) -> str:
    """A value as text, in Datalevin's spelling, of bounded length."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
