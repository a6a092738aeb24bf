"""What a statement would send: the method of each resource, its parameters, its calls."""

from __future__ import annotations

from typing import Any, Final

from tidegate.cloud.accounts import is_spread
from tidegate.cloud.descriptions import Rows
from tidegate.cloud.document_catalog import Found
from tidegate.cloud.model import Method
from tidegate.cloud.requests import find_method
from tidegate.cloud.statements import (
    CloudStatement,
    SqlStatement,
)
from tidegate.engines.cloud.change_plan import plan_changes
from tidegate.engines.cloud.change_text import ChangeText, read_change
from tidegate.engines.cloud.statement_text import bind_tables, no_method, with_literals
from tidegate.engines.cloud.statement_work import StatementWork
from tidegate.engines.cloud.virtual_tables import TablePlan, VirtualTable

COLUMNS: Final = ("resource", "method", "request", "parameters", "calls", "paging")
"""`calls` is how many requests the first pages are, or for what there is one each."""


async def explain(
    statement: CloudStatement, params: tuple[Any, ...] | None, work: StatementWork
) -> Rows:
    """Says how a statement would be answered, and sends nothing.

    Raises: TidegateError ARGUMENT_INVALID that names missing parameters, TABLE_UNKNOWN,
    SQL_UNREADABLE, SQL_FAILED.
    """
    rows: list[tuple[Any, ...]]
    if isinstance(statement, SqlStatement) and statement.verb == "select":
        run = await work.new_run(with_literals(statement.text, params))
        try:
            plans = await work.in_thread(run.plans)
        finally:
            await work.in_thread(run.close)
        rows = [_loop(*each) for each in plans]
        rows += [(each.shown, "", each.text, "", "0", "") for each in run.joined.values()]
    elif isinstance(statement, SqlStatement) and await _reads_resources(statement, params, work):
        rows = await work.in_thread(_unread, statement, params, work)
    else:
        planned = await plan_changes(statement, params, work)
        rows = [
            (
                each.found.path,
                each.method.name,
                each.shown,
                ", ".join(each.values),
                "1",
                "",
            )
            for each in planned.changes
        ]
    work.end()
    return Rows(COLUMNS, rows)


def _loop(table: VirtualTable, plan: TablePlan) -> tuple[Any, ...]:
    table.check_fit(plan)
    method = plan.method.method
    names: list[str] = []
    calls: list[str] = []
    for argument in plan.arguments:
        if argument.looks_up:
            continue
        parameter = plan.method.parameters[argument.place]
        name = parameter.name
        names.append(name)
        if is_spread(table.table.found.provider, parameter):
            calls.append(f"one for each that {name} means")
        if argument.is_list:
            calls.append(f"one for each member of {name}")
    if not plan.waits:
        calls.append("one for each key from another table")
    return (
        table.table.found.path,
        method.name,
        _request(method),
        ", ".join(names),
        ", ".join(calls) or "1",
        _paging(method),
    )


def _request(method: Method) -> str:
    return f"{method.http_verb} {method.server.url.rstrip('/')}{method.path}"


def _paging(method: Method) -> str:
    pagination = method.settings.pagination
    return pagination.algorithm if pagination is not None else ""


async def _reads_resources(
    statement: SqlStatement, params: tuple[Any, ...] | None, work: StatementWork
) -> bool:
    """Whether values of a change come from resources, which only requests can tell."""

    def look() -> bool:
        text = read_change(statement, with_literals(statement.text, params))
        queries = (
            [text.rows] if text.rows else [f"SELECT {_value(a.sql)}" for a in text.assignments]
        )
        return any(bind_tables(each, work.documents, work.hidden).tables for each in queries)

    return await work.in_thread(look)


def _value(sql: str) -> str:
    is_query = sql.lstrip()[:6].upper() in ("SELECT", "VALUES") or sql[:4].upper() == "WITH"
    return f"({sql})" if is_query else sql


def _unread(
    statement: SqlStatement, params: tuple[Any, ...] | None, work: StatementWork
) -> list[tuple[Any, ...]]:
    """The method of a change whose values are not known yet."""
    text: ChangeText = read_change(statement, with_literals(statement.text, params))
    found: Found = work.documents.resource(text.path)
    names = text.names or tuple([each.name for each in text.assignments])
    method = find_method(found.resource, text.verb, names)
    if method is None:
        raise no_method(found, text.verb.upper())
    calls = "one for each row of its query"
    return [(found.path, method.name, _request(method), ", ".join(names), calls, "")]
