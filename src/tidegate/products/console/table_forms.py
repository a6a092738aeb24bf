"""Tables by form on the Data page: what a form may say, and the statements that it makes.

Nothing runs here. The page sends the statements as runs of the person, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Query
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.products.console.data_calls import Caller, DataCalls, Place
from tidegate.sql.table_forms.model import Plan, Step, TableForm
from tidegate.sql.table_forms.writer import TableWriter, writer_of

_STALE = "The table was changed since this form was opened."


class Planned(Place, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `form-plan`: a form, and the table that it changes with the form that this had
    when it was opened; without these a new one."""

    form: TableForm
    table: str = ""
    was: TableForm | None = None


class TableForms:
    """Forms of tables."""

    def __init__(self, calls: DataCalls) -> None:
        self._calls = calls

    async def form(self, query: Mapping[str, str], caller: Caller) -> dict[str, Any]:
        """The form of a table, or an empty one, and what the database lacks. Raises: TidegateError
        UNSUPPORTED, TABLE_UNKNOWN."""
        place, name = Place.of(query), query.get("table", "")
        writer = _writer(self._calls.source(caller, place.source))
        if name:
            table, catalog = await self._calls.table(caller, place, name)
            if table.kind != "table":
                raise TidegateError(
                    Code.UNSUPPORTED, f"{name[:200]} is no table but a {table.kind}"
                )
            form = writer.read(table)
        else:
            catalog = await self._calls.catalog(caller, place)
            form = TableForm("", catalog.default_schema if place.schema is None else place.schema)
        return {
            "form": msgspec.to_builtins(form),
            "database": catalog.database,
            "lacks": dict(writer.lacks),
            "types": list(writer.types),
            "tables": [
                {"schema": each.schema, "name": each.name, "key": _key_of(each.columns)}
                for each in catalog.tables
                if each.kind == "table"
            ],
        }

    async def plan(self, body: Planned, caller: Caller) -> dict[str, Any]:
        """The statements of a form, with what the gate would say to each. Raises: as `form`."""
        writer = _writer(self._calls.source(caller, body.source))
        stale = False
        if body.table:
            table, _ = await self._calls.table(caller, body, body.table)
            # What another has added since would be dropped by a form that does not know of it.
            stale = writer.read(table) != body.was
            plan = Plan(lacks=(_STALE,)) if stale else writer.alter(table, body.form)
        else:
            plan = writer.create(body.form)
        return {
            "steps": [await self._step(each, body, caller) for each in plan.steps],
            "lacks": list(plan.lacks),
            "stays": plan.stays,
            "stale": stale,
        }

    async def _step(self, step: Step, place: Place, caller: Caller) -> dict[str, Any]:
        query = Query(Statement(step.text), database=place.database, schema=place.schema)
        call = self._calls.call(caller, query, place.source, tool="run")
        judgement, explanation = await self._calls.judge_under_rules(call)
        verdict = explanation.verdict
        return {
            "text": step.text,
            "warnings": list(step.warnings),
            "effect": judgement.effect.label,
            "verdict": "ask" if verdict.kind == "confirm" else verdict.kind,
            "why": verdict.reason if verdict.kind == "deny" else "",
        }


def _writer(source: Source) -> TableWriter:
    writer = writer_of(source.engine, source.dialect)
    if writer is None:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"Tables of {source.name} are not made by a form: its engine is not among those whose"
            " definitions it can write",
            hint="Write the statement in a query tab.",
        )
    return writer


def _key_of(columns: Any) -> list[str]:
    return [each.name for each in sorted(columns, key=lambda each: each.key) if each.key]
