"""Makes the requests of a change, and sends them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column
from tidegate.products.cloud.documents.document_catalog import Found
from tidegate.products.cloud.documents.model import Method, SqlVerb
from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.documents.schema import ANONYMOUS
from tidegate.products.cloud.engine.change_text import Assignment, ChangeText, read_change
from tidegate.products.cloud.engine.changes import (
    Change,
    ChangeCursor,
    build_change,
    combinations,
    reply,
    returned,
    send_changes,
)
from tidegate.products.cloud.engine.hidden_rows import check_change, hidden_reply, without_reply
from tidegate.products.cloud.engine.statement_text import no_method, with_literals
from tidegate.products.cloud.engine.statement_work import StatementWork
from tidegate.products.cloud.http.requests import PlainText, find_method
from tidegate.products.cloud.language.descriptions import columns_of, find_method_by_name
from tidegate.products.cloud.language.statements import CloudStatement, ExecStatement, SqlStatement


class PlannedChanges(NamedTuple):
    """Requests in their order, and what follows RETURNING. `shows_reply`: all that the
    replies hold is the result, as of EXEC."""

    changes: list[Change]
    returning: str = ""
    shows_reply: bool = False


async def plan_changes(
    statement: CloudStatement, params: tuple[Any, ...] | None, work: StatementWork
) -> PlannedChanges:
    """The requests that a statement means. Sends no request; a query inside the statement
    is run.

    Raises: TidegateError SQL_UNREADABLE, TABLE_UNKNOWN, ARGUMENT_INVALID; as a query.
    """
    if isinstance(statement, ExecStatement):
        planned = await work.in_thread(_exec, statement, work)
        for each in planned.changes:
            check_change(each.found, work.hidden.of(each.found), (), is_exec=True)
        return planned
    if not isinstance(statement, SqlStatement):
        raise TidegateError(Code.UNSUPPORTED, "The statement changes nothing.")
    text = await work.in_thread(read_change, statement, with_literals(statement.text, params))
    found = await work.in_thread(work.documents.resource, text.path)
    rules = (await work.in_thread(lambda: work.hidden)).of(found)
    names = text.names or [each.name for each in text.assignments]
    check_change(found, rules, names, is_exec=False)
    sets = await _sets(text, work)

    def build() -> PlannedChanges:
        changes = [build_change(found, _method(found, text.verb, each), each) for each in sets]
        if changes and text.returning:
            _check_returning(found, changes[0].method, text.returning)
        return PlannedChanges(changes, text.returning)

    return await work.in_thread(build)


async def carry_out(planned: PlannedChanges, work: StatementWork) -> ChangeCursor:
    """Send the requests. Raises: as `send_changes`; SQL_FAILED where they took effect and
    RETURNING fails."""
    counts = work.fetches.counts
    rules = work.hidden.of(planned.changes[0].found) if planned.changes else None
    try:
        outcome = await work.send(send_changes(planned.changes, work.calls, counts))
    except TidegateError as error:
        raise without_reply(error, rules) from None
    if rules is not None:
        first = planned.changes[0]
        outcome.rows = hidden_reply(outcome.rows, first.found, first.method, rules)
    columns: list[Column] = []
    rows: list[Any] = []
    if planned.changes:
        first = planned.changes[0]
        if planned.returning:
            try:
                columns, rows = await work.in_thread(
                    returned, first.found, first.method, outcome.rows, planned.returning
                )
            except TidegateError as error:
                raise TidegateError(
                    error.code,
                    f"The change took effect, and what RETURNING asks for is not known:"
                    f" {error.message}",
                    hint="Do not send it again; read the resource with SELECT.",
                ) from None
        elif planned.shows_reply and outcome.rows:
            columns, rows = reply(first.found, first.method, outcome.rows)
    return ChangeCursor(columns, rows, counts, affected=len(outcome.done))


def _exec(statement: ExecStatement, work: StatementWork) -> PlannedChanges:
    found = work.documents.resource(statement.path[:3])
    method = find_method_by_name(found, statement.path[3])
    values: dict[str, Any] = dict(statement.values)
    if statement.body and method.body is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The method {method.name} of {found.path} has no request body schema: it takes no"
            " @@json.",
            hint=f"DESCRIBE METHOD {found.path}.{method.name} lists what it takes.",
        )
    given = {folded(each) for each in values}
    for name, value in statement.body.items():
        column = _body_column(method, name)
        if folded(column) in given:
            raise TidegateError(
                Code.ARGUMENT_INVALID, f"The parameter {name[:80]} is given twice, once in @@json."
            )
        values[column] = value
    required = {each.name for each in method.parameters if each.is_required}
    known = {folded(each) for each in values}
    missing = sorted(
        each.name
        for each in method.parameters
        if each.name in required and not {folded(each.name), folded(each.wire_name)} & known
    )
    if missing:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"EXEC of {found.path}.{method.name} lacks the parameters {', '.join(missing)}.",
            hint=f"DESCRIBE METHOD {found.path}.{method.name} lists them.",
        )
    return PlannedChanges([build_change(found, method, values)], shows_reply=True)


def _body_column(method: Method, name: str) -> str:
    """The name in SQL of a field of the body."""
    for parameter in method.parameters:
        if parameter.place == "body" and name in (parameter.wire_name, parameter.name):
            return parameter.name
    return name


def _method(found: Found, verb: SqlVerb, values: Mapping[str, Any]) -> Method:
    """Raises: TidegateError ARGUMENT_INVALID if no method can be used."""
    given = [name for name, value in values.items() if value is not None]
    method = find_method(found.resource, verb, given)
    if method is None:
        raise no_method(found, verb.upper(), given)
    return method


async def _sets(text: ChangeText, work: StatementWork) -> list[dict[str, Any]]:
    """The values of each request."""
    if text.rows:
        rows = await work.rows(text.rows)
        if rows and len(rows[0]) != len(text.names):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The statement has {len(rows[0])} values for {len(text.names)} columns.",
            )
        plain = [name in text.as_text for name in text.names]
        return [
            {
                name: PlainText(value) if is_plain and isinstance(value, str) else value
                for name, value, is_plain in zip(text.names, row, plain, strict=True)
            }
            for row in rows
        ]
    plain = [each for each in text.assignments if not each.is_list]
    values = await work.rows(f"SELECT {', '.join(each.sql for each in plain)}") if plain else [()]
    if plain and len(values[0]) != len(plain):
        raise TidegateError(Code.ARGUMENT_INVALID, "A value of the change is more than one.")
    known = dict(zip([each.name for each in plain], [[each] for each in values[0]], strict=True))
    for each in text.assignments:
        if each.is_list:
            known[each.name] = await _members(each, work)
        elif each.name in text.as_text:
            known[each.name] = [PlainText(x) if isinstance(x, str) else x for x in known[each.name]]
    return combinations(list(known), list(known.values()))


async def _members(assignment: Assignment, work: StatementWork) -> list[Any]:
    """The members of an IN list, each once, without NULL."""
    rows = await work.rows(assignment.sql)
    if any(len(row) != 1 for row in rows):
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"The list of {assignment.name[:80]} has several columns."
        )
    return list(dict.fromkeys(row[0] for row in rows if row[0] is not None))


def _check_returning(found: Found, method: Method, returning: str) -> None:
    """Refuse what cannot be returned before anything is sent, where the document lists what
    is. Raises: TidegateError SQL_FAILED."""
    if set(columns_of(found, method)) <= {ANONYMOUS}:
        return
    try:
        returned(found, method, [], returning)
    except TidegateError as error:
        raise TidegateError(
            Code.SQL_FAILED,
            f"RETURNING cannot be answered, and nothing was sent: {error.message}",
            hint=f"DESCRIBE METHOD {found.path}.{method.name} lists what it gives.",
        ) from None
