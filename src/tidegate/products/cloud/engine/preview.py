"""What a change would send, and what is there now, for the person who is asked to approve it.

The requests are built as they would be sent, and not sent. What is there is read through the
resource's own SELECT. Values that may be secrets are left out of what is shown, not of the digest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import parse_qsl, urlencode

import msgspec

from tidegate.errors import TidegateError
from tidegate.model.statements import DryRun, NewState
from tidegate.products.cloud.documents.names import folded, snake_case
from tidegate.products.cloud.engine.booleans import as_boolean
from tidegate.products.cloud.engine.change_plan import PlannedChanges
from tidegate.products.cloud.engine.change_text import read_change
from tidegate.products.cloud.engine.changes import Change
from tidegate.products.cloud.engine.resource_table import quoted
from tidegate.products.cloud.engine.statement_text import with_literals
from tidegate.products.cloud.engine.statement_work import StatementWork
from tidegate.products.cloud.http.requests import find_method
from tidegate.products.cloud.language.statements import SqlStatement
from tidegate.secrets.redaction import MASK, mentions_secret, redact
from tidegate.sql import quoting

MOST_SHOWN: Final = 20
MOST_READ: Final = 5
"""Requests of a change that are shown, and of which the present state is read."""
_MOST_CHARS: Final = 2_000
_UNBOUND: Final = "its values come from a query: they may be others when it runs."
_ADDRESSED: Final = ("path", "query", "header", "server")

Values = Mapping[str, Any]


def digest(planned: PlannedChanges) -> str:
    """SHA-256 (hex) of all requests of a change, to the last byte."""
    whole = [
        (each.found.path, each.request.verb, each.request.url, each.request.headers,
         each.request.body or b"")
        for each in planned.changes
    ]  # fmt: skip
    return hashlib.sha256(repr(whole).encode()).hexdigest()


def reads_resources(statement: SqlStatement, params: tuple[Any, ...] | None) -> bool:
    """Whether a query inside the change gives its values: planning it would send requests."""
    text = read_change(statement, with_literals(statement.text, params))
    inner = (text.rows, *(each.sql for each in text.assignments))
    return any(re.search(r"\bFROM\b", each, re.IGNORECASE) for each in inner)


async def preview(planned: PlannedChanges, work: StatementWork, *, is_bound: bool) -> DryRun:
    """The requests as text, and for the first of them the state before and after. Changes nothing.
    The reason names what cannot be read, and reports when the approval is not bound to these very
    requests."""
    changes = planned.changes
    requests = tuple(_shown(each) for each in changes[:MOST_SHOWN])
    columns: tuple[str, ...] = ()
    before: list[tuple[str | None, ...] | None] = []
    after: list[tuple[str | None, ...] | None] = []
    reason = "" if is_bound else _UNBOUND
    for each in changes[:MOST_READ]:
        text = _state_query(each)
        if text is None:
            continue
        try:
            names, row = await _first_row(text, work)
        except TidegateError as error:
            reason = f"the present state could not be read: {error.message}"
            break
        if row is None:
            reason = "one of the things to change is not there."
        elif not columns or names == columns:
            columns = names
            before.append(row)
            after.append(_changed(each, names, row))
    return DryRun(
        affected=len(changes),
        columns=columns,
        before=tuple(before),
        after=tuple(after),
        reason=reason,
        requests=requests,
    )


async def new_state(planned: PlannedChanges, work: StatementWork) -> NewState:
    """What is there after the change, of the first of its requests. Raises nothing: the change took
    effect, whatever can be read now."""
    columns: tuple[str, ...] = ()
    rows: list[tuple[str | None, ...] | None] = []
    for each in planned.changes[:MOST_READ]:
        text = _state_query(each)
        if text is None:
            continue
        try:
            names, row = await _first_row(text, work)
        except TidegateError as error:
            return NewState(columns, tuple(rows), f"it could not be read: {error.message}")
        columns = columns or names
        rows.append(row if names == columns else None)
    reason = "" if rows else "no SELECT reads what the change was about."
    return NewState(columns, tuple(rows), reason)


def _shown(change: Change) -> str:
    """The request on one line: what it is for, its method and URL, and its body."""
    request = change.request
    base, mark, query = request.url.partition("?")
    pairs = [(name, _value(name, value)) for name, value in parse_qsl(query, True)]
    account = change.values.get("account")
    whose = f" (account {account})" if account is not None else ""
    text = f"{change.found.provider.name}{whose}: {request.verb} {base}"
    if mark:
        text += f"?{urlencode(pairs, safe='*')}"
    if request.body:
        text += f" {_body(request.body)}"
    return text[:_MOST_CHARS] + ("..." if len(text) > _MOST_CHARS else "")


def _body(body: bytes) -> str:
    try:
        read: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f"({len(body)} bytes)"
    return msgspec.json.encode(_without_secrets(read)).decode()


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {
            name: MASK if mentions_secret(name) else _without_secrets(inner)
            for name, inner in fields.items()
        }
    if isinstance(value, list):
        return [_without_secrets(inner) for inner in cast("list[Any]", value)]
    return redact(value) if isinstance(value, str) else value


def _value(name: str, value: str) -> str:
    return MASK if mentions_secret(name) else redact(value)


def _state_query(change: Change) -> str | None:
    """The SELECT that reads what the request is about; None if it creates something, or if no
    method of the resource reads one thing."""
    if change.request.verb == "POST":
        return None
    keys = {
        each.name: change.values[each.name]
        for each in change.method.parameters
        if each.place in _ADDRESSED and each.name in change.values
    }
    method = find_method(change.found.resource, "select", list(keys))
    if method is None or method.http_verb.upper() != "GET":
        return None
    wanted = {folded(each.name) for each in method.parameters if each.place in _ADDRESSED}
    bound = {name: value for name, value in keys.items() if folded(name) in wanted}
    if len(bound) < len(keys):
        return None  # it would read more than the one thing
    names = [change.found.provider.name, change.found.service.name, change.found.resource.name]
    where = " AND ".join(
        f"{quoted(name)} = {quoting.literal(value, 'cloud')}" for name, value in bound.items()
    )
    text = f"SELECT * FROM {'.'.join(map(quoted, names))}"
    return f"{text} WHERE {where} LIMIT 1" if where else None


async def _first_row(
    text: str, work: StatementWork
) -> tuple[tuple[str, ...], tuple[str | None, ...] | None]:
    run = await work.query(text)
    try:
        rows = await work.in_thread(run.take, 1)
    finally:
        await work.in_thread(run.close)
    names = tuple(column.name for column in run.columns)
    if not rows:
        return names, None
    return names, tuple(_cell(name, value) for name, value in zip(names, rows[0], strict=True))


def _changed(
    change: Change, names: tuple[str, ...], row: tuple[str | None, ...]
) -> tuple[str | None, ...] | None:
    """The row after the change, as far as the request says; None if it is gone."""
    if change.request.verb == "DELETE":
        return None
    sent: dict[str, Any] = {}
    for each in change.method.parameters:
        if each.name in change.values:
            value = change.values[each.name]
            if change.found.document.schemas.kind(each.schema) == "boolean":
                value = as_boolean(value)
            # Columns of rows have the API's own names, or these in snake case.
            for name in (each.wire_name, snake_case(each.wire_name), each.name):
                sent.setdefault(folded(name), value)
    return tuple(
        _cell(name, sent[folded(name)]) if folded(name) in sent else old
        for name, old in zip(names, row, strict=True)
    )


def _cell(name: str, value: Any) -> str | None:
    if value is None:
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return _value(name, text)[:_MOST_CHARS]
