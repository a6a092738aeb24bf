"""Counts the rows that a statement has changed, those of triggers included.

The server counts what its storage engines write for a session. That is more than what was changed:
rows that stay as they were count, in a partitioned table some count twice. So it is used where
triggers may have changed rows, or cannot be seen. What InnoDB does for a foreign key is counted
nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tidegate.engines.common.row_images import check_count
from tidegate.engines.common.whole_changes import WholeChange, whole_change_of
from tidegate.errors import Code, TidegateError
from tidegate.model.decisions import Permit
from tidegate.model.statements import Judgement
from tidegate.products.mysql.engine.catalog import sees_triggers
from tidegate.products.mysql.engine.connection import MysqlSession

_COUNTS = b"""SHOW SESSION STATUS WHERE Variable_name IN
  ('Handler_write', 'Handler_update', 'Handler_delete')"""
_TRIGGERS = """SELECT count(*) FROM information_schema.triggers
  WHERE event_object_schema = ? AND event_object_table IN ({})"""
_FOLLOWERS = b"""SELECT unique_constraint_schema, referenced_table_name, delete_rule, update_rule
  FROM information_schema.referential_constraints
  WHERE NOT (delete_rule IN ('RESTRICT', 'NO ACTION')
  AND update_rule IN ('RESTRICT', 'NO ACTION'))"""
"""Of all databases: the server reads the definitions of all tables for one of them as well."""
_ENGINE = b"""SELECT t.table_name, t.engine, e.transactions, t.table_type
  FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine
  WHERE t.table_schema = ? AND t.table_name = ?"""
_DEFINITION = b"""SELECT view_definition FROM information_schema.views
  WHERE table_schema = ? AND table_name = ?"""
_OF_VIEW = re.compile(r"(?:\bfrom|\bjoin|_join)[\s(]*`((?:[^`]|``)+)`\.`((?:[^`]|``)+)`", re.I)
"""A table in a view's definition as the server keeps it: with its database, and joins by JOIN."""
_STAY = frozenset({"RESTRICT", "NO ACTION"})

Places = dict[str, set[str]]
"""Names of tables by their database."""


class RowCounter:
    """Counts what one statement changes. Whether its tables have triggers is asked when it has run:
    the transaction holds the tables then, and no trigger comes or goes until its end."""

    def __init__(
        self, permit: Permit, places: Places, before: int, whole: WholeChange | None
    ) -> None:
        self.permit = permit
        self._whole = whole
        self._places = places
        self._before = before

    @classmethod
    async def begin(
        cls, session: MysqlSession, permit: Permit, database: str | None
    ) -> RowCounter | None:
        """Ready to count a change of limited size; None if nothing limits it. Raises: ServerError,
        TidegateError."""
        whole, limited = whole_change_of(permit), permit.max_rows_changed is not None
        if whole is None and not limited:
            return None
        tables = () if permit.judgement is None else permit.judgement.tables
        places = _places(tables, database)
        keeping = await _keeping(session, places)
        if keeping and limited:
            raise TidegateError(
                Code.UNSUPPORTED,
                f"{keeping} does not roll back, so no limit of the rows that may be changed can be"
                " kept for it. Nothing was changed.",
                hint="An operator can convert the table to InnoDB, or set no max_rows_changed.",
            )
        if keeping and whole is not None:
            # What was compared could not be taken back: its text alone decides.
            if permit.judgement is not None and permit.judgement.open_ended:
                raise whole.refusal_of_open(keeping)
            whole = None
        if whole is not None:
            whole.begin([await _number(session, query) for query in whole.counts_before])
        before = await _total(session) if limited else 0
        return cls(permit, places, before, whole)

    async def end(self, session: MysqlSession, own: int, *, returns: bool = False) -> int:
        """How many rows the statement has changed: at least its `own`. `returns`: these are the
        rows that it returned, each once.

        Raises: TidegateError LIMIT_CHANGES, POLICY_CONFIRM, POLICY_DENIED; ServerError.
        """
        if self._whole is not None:
            found = own if returns else session.line.matched or own
            queries = self._whole.counts_after(found)
            counts = [await _number(session, query) for query in queries]
            self._whole.end(found, counts)
        if self.permit.max_rows_changed is None:
            return own
        check_count(self.permit, own)
        written = await _total(session) - self._before
        if written == own or not await _may_have_triggers(session, self._places):
            return own
        rows = max(own, written)
        check_count(self.permit, rows, followers=True)
        return rows


async def uncounted(
    session: MysqlSession, text: str, judgement: Judgement, database: str | None
) -> str:
    """Which rows of a change are not counted; empty if all are. Raises: ServerError,
    TidegateError."""
    if judgement.verb not in ("insert", "update", "delete"):
        return "how many rows it changes"
    places = _places(judgement.tables, database)
    if not places:
        return "rows of tables whose database is not known"
    grants = await _grants(session)
    if not all(sees_triggers(grants, schema) for schema in places):
        return (
            "rows of other tables that a foreign key changes, which the account may not see"
            " (it lacks TRIGGER on the database)"
        )
    mariadb = session.setting.mariadb
    if not mariadb and await _may_have_triggers(session, places, grants):
        return "the rows that triggers change"
    parents: list[str] = []
    for schema, parent, *rules in await session.query_internal(_FOLLOWERS):
        named = str(parent) in places.get(str(schema), ())
        if named and _follows(judgement.verb, text, *map(str, rules)):
            return _followers_of(str(parent))
        parents.append(str(parent))
    # What triggers change is known to the server alone: it may be rows of any parent.
    if parents and mariadb and await _may_have_triggers(session, places, grants):
        return _followers_of(parents[0])
    return ""


def _followers_of(parent: str) -> str:
    return f"rows that refer to {parent} and that a foreign key changes with it"


def _follows(verb: str, text: str, on_delete: str, on_update: str) -> bool:
    """Whether rows of another table may follow a change of this kind."""
    words = set(text.upper().split())
    deletes = verb == "delete" or "REPLACE" in words
    updates = verb == "update" or "DUPLICATE" in words
    return (deletes and on_delete not in _STAY) or (updates and on_update not in _STAY)


def _places(tables: Iterable[str], database: str | None) -> Places:
    found: Places = {}
    for name in tables:
        schema, dot, table = name.rpartition(".")
        schema = schema if dot else database or ""
        if not schema:
            return {}
        found.setdefault(schema, set()).add(table)
    return found


async def _keeping(session: MysqlSession, places: Places) -> str:
    """A table whose storage engine keeps what a ROLLBACK should take back, with that engine's name;
    empty if there is none. A view counts as the tables that it is of, of whatever database; one
    whose tables the account cannot see counts as such a table."""
    waiting = [(schema, name, "") for schema, names in places.items() for name in sorted(names)]
    seen = set(waiting)
    while waiting:
        schema, name, view = waiting.pop()
        if (schema, name) in session.transactional:
            continue
        found = await session.query_internal(_ENGINE, schema, name)
        if not found and view:
            return f"The view {view}, of whose tables the account cannot see all, perhaps"
        for shown, engine, transactions, kind in found:
            if "VIEW" in str(kind):
                tables = await _tables_of_view(session, schema, name)
                if not tables:
                    return f"The view {name}, whose definition the account cannot see, perhaps"
                more = {(*table, name) for table in tables} - seen
                seen |= more
                waiting += more
            elif transactions == "YES":
                session.transactional.add((schema, name))
            else:
                of_view = f", which {view} is a view of," if view else ""
                return f"The table {shown} ({engine}){of_view}"
    return ""


async def _tables_of_view(session: MysqlSession, schema: str, name: str) -> set[tuple[str, str]]:
    """The tables and views, with their databases; none where the definition is not shown."""
    found = await session.query_internal(_DEFINITION, schema, name)
    parts = _OF_VIEW.findall(str(found[0][0] or "")) if found else []
    return {(one.replace("``", "`"), other.replace("``", "`")) for one, other in parts}


async def _may_have_triggers(
    session: MysqlSession, places: Places, grants: list[str] | None = None
) -> bool:
    """Whether one of the tables has a trigger, or that cannot be seen."""
    grants = await _grants(session) if grants is None else grants
    for schema, tables in places.items():
        if not sees_triggers(grants, schema):
            return True
        query = _TRIGGERS.format(", ".join("?" * len(tables)))
        ((count,),) = await session.query_internal(query.encode(), schema, *tables)
        if count:
            return True
    return not places


async def _grants(session: MysqlSession) -> list[str]:
    return [str(row[0]) for row in await session.query_internal(b"SHOW GRANTS")]


async def _number(session: MysqlSession, query: str) -> int:
    ((count,),) = await session.query_internal(query.encode())
    return int(count)


async def _total(session: MysqlSession) -> int:
    return sum([int(value) for _, value in await session.query_internal(_COUNTS)])
