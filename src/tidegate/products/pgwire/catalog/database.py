"""The emulated catalogs in a SQLite database of their own, in memory: one for each caller, made
when a client first asks, from what the gate shows to its caller."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false
# The functions of SQLite take and give anything.

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import apsw
import apsw.ext

from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.results import Column
from tidegate.products.pgwire.catalog.arrays import FUNCTIONS as ARRAY_FUNCTIONS
from tidegate.products.pgwire.catalog.arrays import read_array
from tidegate.products.pgwire.catalog.column_types import declared, declared_type
from tidegate.products.pgwire.catalog.layout import COLUMNS, INFORMATION
from tidegate.products.pgwire.catalog.objects import CatalogObjects
from tidegate.products.pgwire.catalog.tables import CatalogRows
from tidegate.products.pgwire.catalog.translation import CatalogQuery
from tidegate.products.pgwire.errors import not_emulated, refused
from tidegate.sql.patterns import PatternFault, compile_pattern

MAX_ROWS = 200_000
MAX_S = 10.0
MAX_BYTES = 33_554_432
"""Of the texts of one answer."""
_MAX_VALUE = 1_000_000
_MAX_PATTERN = 1_000
"""Of LIKE and GLOB, which cannot be stopped midway: a longer one takes many seconds for a value."""
_MAX_COLUMNS = 500
_STEPS = 20_000
_INFORMATION_COLUMNS = {name: block.split() for name, block in INFORMATION.items()}


class CatalogDatabase:
    """Answers queries on the catalogs. `session` gives the values of functions such as
    current_user; it may change between two queries."""

    def __init__(self, rows: CatalogRows, session: dict[str, str]) -> None:
        self._rows = rows
        self.session = session
        self._shown: dict[str, str] = {}
        self._objects = CatalogObjects(rows)
        self._connection = apsw.Connection(":memory:")
        self._connection.execute("ATTACH ':memory:' AS information_schema")
        self._fill()
        functions = {**ARRAY_FUNCTIONS, **self._objects.functions, **self._functions()}
        for name, function in functions.items():
            self._connection.create_scalar_function(name, function)
        # A name that is unknown is an error, and no text.
        self._connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        self._connection.limit(apsw.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
        self._connection.limit(apsw.SQLITE_LIMIT_COLUMN, _MAX_COLUMNS)
        self._connection.limit(apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _MAX_PATTERN)
        self._connection.set_authorizer(_only_reading)

    @property
    def schemas(self) -> dict[int, str]:
        """The names of the schemas by oid."""
        return self._objects.schemas

    def describe(self, query: CatalogQuery) -> tuple[Column, ...]:
        """The columns of a query. Those of which only the values show the type are texts. Raises:
        TidegateError."""
        try:
            described = apsw.ext.query_info(self._connection, query.text).description
        except (apsw.Error, ValueError, TypeError) as error:
            raise _not_answered(error) from None
        return _columns(query, described, ())

    def run(
        self,
        query: CatalogQuery,
        parameters: Sequence[Any],
        cancellation: Cancellation = NEVER,
    ) -> tuple[tuple[Column, ...], list[tuple[Any, ...]]]:
        """The columns and rows of a query. Raises: TidegateError, CALL_CANCELLED soon after
        `cancellation`, which another thread may cancel."""
        self._show_settings()
        until = time.monotonic() + MAX_S
        self._connection.set_progress_handler(
            lambda: cancellation.cancelled or time.monotonic() > until, _STEPS
        )
        given = [json.dumps(each) if isinstance(each, list) else each for each in parameters]
        try:
            described = apsw.ext.query_info(self._connection, query.text).description
            rows: list[tuple[Any, ...]] = []
            size = 0
            for row in self._connection.execute(query.text, tuple(given) or None):
                rows.append(row)
                size += sum([len(each) for each in row if isinstance(each, (str, bytes))])
                if len(rows) > MAX_ROWS or size > MAX_BYTES:
                    raise not_emulated(
                        "54000", f"The catalogs gave over {MAX_ROWS} rows, or {MAX_BYTES} bytes."
                    )
        except apsw.InterruptError:
            if cancellation.cancelled:
                raise TidegateError(Code.CALL_CANCELLED, "The call was cancelled.") from None
            raise TidegateError(
                Code.LIMIT_TIME, f"The query on the catalogs took over {MAX_S:.0f} s."
            ) from None
        except (apsw.Error, ValueError, TypeError) as error:
            raise _not_answered(error) from None
        finally:
            self._connection.set_progress_handler(None)
        columns = _columns(query, described, rows)
        return columns, _with_arrays(columns, rows)

    def _show_settings(self) -> None:
        """Let pg_settings have what holds in the session that asks now."""
        shown = {
            name.removeprefix("setting "): value
            for name, value in self.session.items()
            if name.startswith("setting ")
        }
        if shown == self._shown:
            return
        connection: Any = self._connection
        connection.set_authorizer(None)
        try:
            connection.executemany(
                "UPDATE pg_settings SET setting = ? WHERE name = ?",
                [(value, name) for name, value in shown.items()],
            )
        finally:
            connection.set_authorizer(_only_reading)
        self._shown = shown

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()

    def _fill(self) -> None:
        connection: Any = self._connection
        execute, fill = connection.execute, connection.executemany
        for table, block in COLUMNS.items():
            names = [f'"{each.rstrip("?")}" "{declared(each)}"' for each in block.split()]
            execute(f'CREATE TABLE "{table}" ({", ".join(names)})')
            marks = ", ".join("?" for _ in names)
            fill(f'INSERT INTO "{table}" VALUES ({marks})', self._rows.tables[table])
        for table, listed in _INFORMATION_COLUMNS.items():
            names = [f'"{each}" "{declared(each)}"' for each in listed]
            execute(f'CREATE TABLE information_schema."{table}" ({", ".join(names)})')
            marks = ", ".join("?" for _ in names)
            fill(
                f'INSERT INTO information_schema."{table}" VALUES ({marks})',
                self._rows.information[table],
            )

    def _functions(self) -> dict[str, Callable[..., Any]]:
        def of_session(name: str) -> Callable[..., Any]:
            return lambda *_: self.session.get(name)

        def always(value: Any) -> Callable[..., Any]:
            return lambda *_: value

        return {
            "regexp_like": lambda text, pattern: _matches(text, pattern, 0),
            "regexp_ilike": lambda text, pattern: _matches(text, pattern, re.IGNORECASE),
            "to_boolean": lambda value: (
                None
                if value is None
                else int(str(value).lower() in ("1", "t", "true", "on", "yes"))
            ),
            "pg_table_is_visible": lambda oid: self._objects.is_in(
                oid, self.session["current_schema"]
            ),
            "tidegate_now": lambda: datetime.now(UTC).isoformat(sep=" "),
            "epoch_of": _epoch,
            "age": always(0),
            "quote_ident": _quoted_name,
            "quote_literal": lambda text: (
                None if text is None else "'" + str(text).replace("'", "''") + "'"
            ),
            "starts_with": lambda text, begin: (
                None if text is None or begin is None else int(str(text).startswith(str(begin)))
            ),
            "split_part": lambda text, between, number: (
                None if text is None else _part(str(text), str(between), int(number))
            ),
            "left": lambda text, count: None if text is None else str(text)[:count],
            "regexp_replace": _replaced,
            "pg_get_userbyid": of_session("current_user"),
            "pg_encoding_to_char": always("UTF8"),
            "pg_size_pretty": lambda size: None if size is None else f"{size} bytes",
            "pg_backend_pid": always(int(self.session.get("pid", "0"))),
            "current_schemas": lambda implicit: json.dumps(
                [*(["pg_catalog"] if implicit else []), self.session["current_schema"]]
            ),
            "current_setting": self._setting,
            **{name: always(None) for name in _NULLS},
            **{name: always(0) for name in _ZEROS},
            **{name: always(1) for name in _ONES},
            **{
                name: of_session(name)
                for name in ("current_database", "current_schema", "current_user", "version")
            },
            **{
                name: of_session("current_user")
                for name in ("session_user", "user", "current_role")
            },
            "current_catalog": of_session("current_database"),
        }

    def _setting(self, name: Any, missing_ok: Any = 0) -> str | None:
        found = self.session.get(f"setting {str(name).lower()}")
        if found is None and not missing_ok:
            raise refused("42704", f'Unrecognized configuration parameter "{str(name)[:80]}".')
        return found


_NULLS = (
    "shobj_description", "pg_get_partkeydef", "pg_get_partition_constraintdef", "pg_get_triggerdef",
    "pg_get_serial_sequence", "pg_get_statisticsobjdef_columns", "pg_get_function_result",
    "pg_get_function_arguments", "pg_get_function_identity_arguments", "pg_get_functiondef",
    "pg_get_ruledef", "pg_tablespace_location", "inet_server_addr", "inet_client_addr",
    "inet_server_port", "pg_postmaster_start_time", "pg_conf_load_time",
)  # fmt: skip
_ZEROS = (
    "pg_relation_is_publishable", "pg_is_in_recovery", "pg_my_temp_schema", "pg_relation_size",
    "pg_table_size", "pg_total_relation_size", "pg_indexes_size", "pg_database_size",
    "pg_tablespace_size", "pg_stat_get_numscans", "txid_current", "row_security_active",
    "pg_is_other_temp_schema", "pg_index_column_has_property",
)  # fmt: skip
_ONES = (
    "pg_collation_is_visible", "pg_type_is_visible", "pg_function_is_visible",
    "pg_opclass_is_visible", "pg_operator_is_visible", "has_schema_privilege",
    "has_table_privilege", "has_any_column_privilege", "has_column_privilege",
    "has_database_privilege", "has_function_privilege", "has_sequence_privilege",
    "has_tablespace_privilege", "has_type_privilege", "pg_has_role",
)  # fmt: skip
"""What the functions say of things that no source here has: all that is shown may be read."""
_TRUE = frozenset({"1", "t", "true", "on", "yes", "y"})
_READING = frozenset(
    {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE}
)


def _only_reading(action: int, *_: Any) -> int:
    return apsw.SQLITE_OK if action in _READING else apsw.SQLITE_DENY


def _not_answered(error: Exception) -> TidegateError:
    return not_emulated("0A000", f"This query on PostgreSQL's catalogs is not emulated: {error}.")


def _columns(
    query: CatalogQuery, described: Sequence[Any], rows: Sequence[Sequence[Any]]
) -> tuple[Column, ...]:
    """The columns: by the query, else as the tables declare them, else by the first values."""
    types: list[str | None]
    if len(query.columns) == len(described) and all(name != "*" for name, _ in query.columns):
        types = [kind for _, kind in query.columns]
    else:  # a star means several columns
        named = dict(query.columns)
        types = [named.get(name) for name, *_ in described]
    found: list[Column] = []
    for at, ((name, declaration, *_), kind) in enumerate(zip(described, types, strict=True)):
        known = declared_type(declaration) or kind
        if known is None:
            known = _type_of_values([row[at] for row in rows])
        found.append(Column(name, known, "boolean" if known == "boolean" else "other"))
    return tuple(found)


def _type_of_values(values: Sequence[Any]) -> str:
    types: set[type[Any]] = {type(value) for value in values if value is not None}
    if types == {int}:
        return "bigint"
    return "double precision" if types == {float} else "text"


def _with_arrays(columns: Sequence[Column], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    places = {at for at, column in enumerate(columns) if column.type.endswith("[]")}
    if not places:
        return rows
    return [
        tuple(
            [
                read_array(value)[0] if at in places and value is not None else value
                for at, value in enumerate(row)
            ]
        )
        for row in rows
    ]


def _matches(text: Any, pattern: Any, flags: int) -> int | None:
    """Whether a pattern is found."""
    if text is None or pattern is None:
        return None
    searched = str(text)[:1_000]
    try:
        found = compile_pattern(str(pattern), len(searched), flags).search(searched)
    except PatternFault as fault:
        raise ValueError(f"a pattern is not used: {fault}") from None
    return int(found is not None)


def _replaced(text: Any, pattern: Any, by: Any, flags: Any = "") -> str | None:
    if text is None or pattern is None or by is None:
        return None
    searched = str(text)[:1_000]
    try:
        compiled = compile_pattern(str(pattern), len(searched), 0)
    except PatternFault as fault:
        raise ValueError(f"a pattern is not used: {fault}") from None
    return compiled.sub(lambda _: str(by), searched, count=0 if "g" in flags else 1)


def _part(text: str, between: str, number: int) -> str:
    parts = text.split(between) if between else [text]
    return parts[number - 1] if 1 <= number <= len(parts) else ""


def _epoch(moment: Any) -> float | None:
    return None if moment is None else datetime.fromisoformat(str(moment)).timestamp()


_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_$]*")


def _quoted_name(name: Any) -> str | None:
    if name is None or _PLAIN_NAME.fullmatch(str(name)):
        return name
    return '"' + str(name).replace('"', '""') + '"'
