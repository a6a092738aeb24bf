"""What a statement would send: the method of each resource, its parameters, its calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlglot import exp

from tidegate.products.cloud.documents.accounts import is_spread
from tidegate.products.cloud.documents.document_catalog import Found
from tidegate.products.cloud.documents.model import Method
from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.engine.change_plan import plan_changes
from tidegate.products.cloud.engine.change_text import ChangeText, read_change
from tidegate.products.cloud.engine.statement_text import bind_tables, no_method, with_literals
from tidegate.products.cloud.engine.statement_work import StatementWork
from tidegate.products.cloud.engine.text_change import parsed
from tidegate.products.cloud.engine.virtual_tables import TablePlan, VirtualTable
from tidegate.products.cloud.http.requests import find_method
from tidegate.products.cloud.language.descriptions import Rows
from tidegate.products.cloud.language.statements import (
    CloudStatement,
    SqlStatement,
)

COLUMNS: Final = ("resource", "method", "request", "parameters", "calls", "paging")
"""`calls` is how many requests the first pages are, or what one request is made for each of."""


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
        lengths = _list_lengths(with_literals(statement.text, params))
        rows = [_loop(*each, lengths) for each in plans]
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


def _list_lengths(text: str) -> dict[str, int]:
    """How many members the lists of literals in a SELECT have, by the folded names of their
    columns; without a name that has several lists."""
    lengths: dict[str, list[int]] = {}
    for each in parsed(text).find_all(exp.In):
        members: list[Any] = each.expressions
        if isinstance(each.this, exp.Column):
            known = {member.sql() for member in members if isinstance(member, exp.Literal)}
            count = len(known) if members and len(members) == len(known) else 0
            lengths.setdefault(folded(each.this.name), []).append(count)
    return {name: counts[0] for name, counts in lengths.items() if len(counts) == 1 and counts[0]}


def _loop(table: VirtualTable, plan: TablePlan, lengths: Mapping[str, int]) -> tuple[Any, ...]:
    table.check_fit(plan)
    method = plan.method.method
    names: list[str] = []
    calls: list[str] = []
    total = 1
    for argument in plan.arguments:
        if argument.looks_up:
            continue
        parameter = plan.method.parameters[argument.place]
        name = parameter.name
        names.append(name)
        if is_spread(table.table.found.provider, parameter):
            calls.append(f"one for each that {name} means")
            total = 0
        if argument.is_list:
            calls.append(f"one for each member of {name}")
            total *= lengths.get(folded(name), 0)
    for place, values in plan.constants:
        parameter = plan.method.parameters[place]
        names.append(parameter.name)
        if is_spread(table.table.found.provider, parameter):
            calls.append(f"one for each that {parameter.name} means")
            total = 0
        if len(values) > 1:
            calls.append(f"one for each member of {parameter.name}")
            total *= len(values)
    if not plan.waits:
        calls.append("one for each key from another table")
        total = 0
    return (
        table.table.found.path,
        method.name,
        _request(method),
        ", ".join(names),
        ": ".join(filter(None, [str(total) if total else "", ", ".join(calls)])),
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
        raise no_method(found, text.verb.upper(), names)
    calls = "one for each row of its query"
    return [(found.path, method.name, _request(method), ", ".join(names), calls, "")]
