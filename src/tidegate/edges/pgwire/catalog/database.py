"""The emulated catalogs in a SQLite database of their own, in memory: one for each session, made
when a client first asks, from what the gate shows to its caller."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false
# The functions of SQLite take and give anything.

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import apsw
import apsw.ext

from tidegate.edges.pgwire.catalog.tables import (
    COLUMNS,
    FORMATTED,
    INFORMATION,
    CatalogRows,
)
from tidegate.edges.pgwire.catalog.translation import CatalogQuery
from tidegate.edges.pgwire.errors import not_emulated
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column
from tidegate.sql.patterns import PatternFault, compile_pattern

MAX_ROWS = 200_000
MAX_S = 10.0
MAX_BYTES = 33_554_432
"""Of the texts of one answer."""
_MAX_VALUE = 1_000_000
_MAX_COLUMNS = 500
_STEPS = 20_000
_INFORMATION_COLUMNS = {name: block.split() for name, block in INFORMATION.items()}


class CatalogDatabase:
    """Answers queries on the catalogs. `session` gives the values of functions such as
    current_user."""

    def __init__(self, rows: CatalogRows, session: dict[str, str]) -> None:
        self._rows = rows
        self._session = session
        self._connection = apsw.Connection(":memory:")
        self._connection.execute("ATTACH ':memory:' AS information_schema")
        self._fill()
        self._names = {row[0]: str(row[1]) for row in rows.tables["pg_class"]}
        self._oids = {name: oid for oid, name in self._names.items()}
        self._types = {row[0]: str(row[1]) for row in rows.tables["pg_type"]}
        self._schemas = {row[0]: str(row[1]) for row in rows.tables["pg_namespace"]}
        extensions: Any = apsw.ext
        extensions.make_virtual_module(
            self._connection, "generate_series", extensions.generate_series
        )
        for name, function in self._functions().items():
            self._connection.create_scalar_function(name, function)
        self._connection.limit(apsw.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
        self._connection.limit(apsw.SQLITE_LIMIT_COLUMN, _MAX_COLUMNS)
        self._connection.set_authorizer(_only_reading)

    def run(
        self, query: CatalogQuery, parameters: Sequence[Any]
    ) -> tuple[tuple[Column, ...], list[tuple[Any, ...]]]:
        """The columns and rows of a query. Raises: TidegateError."""
        until = time.monotonic() + MAX_S
        self._connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        try:
            described = apsw.ext.query_info(self._connection, query.text).description
            rows: list[tuple[Any, ...]] = []
            size = 0
            for row in self._connection.execute(query.text, tuple(parameters) or None):
                rows.append(row)
                size += sum([len(each) for each in row if isinstance(each, (str, bytes))])
                if len(rows) > MAX_ROWS or size > MAX_BYTES:
                    raise not_emulated(
                        "54000", f"The catalogs gave over {MAX_ROWS} rows, or {MAX_BYTES} bytes."
                    )
        except apsw.InterruptError:
            raise TidegateError(
                Code.LIMIT_TIME, f"The query on the catalogs took over {MAX_S:.0f} s."
            ) from None
        except (apsw.Error, ValueError, TypeError) as error:
            raise not_emulated(
                "0A000", f"This query on PostgreSQL's catalogs is not emulated: {error}."
            ) from None
        finally:
            self._connection.set_progress_handler(None)
        columns = [
            Column(name, "", kind)
            for (name, *_), kind in zip(
                described, query.kinds or ("other",) * len(described), strict=False
            )
        ]
        if len(columns) != len(described):  # a star stands for several columns
            columns = [
                Column(name, "", "boolean" if declared == "BOOLEAN" else "other")
                for name, declared, *_ in described
            ]
        return tuple(columns), rows

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()

    def _fill(self) -> None:
        connection: Any = self._connection
        execute, fill = connection.execute, connection.executemany
        for table, block in COLUMNS.items():
            names = [
                f'"{name[:-1]}" BOOLEAN' if name.endswith("?") else f'"{name}"'
                for name in block.split()
            ]
            execute(f'CREATE TABLE "{table}" ({", ".join(names)})')
            marks = ", ".join("?" for _ in names)
            fill(f'INSERT INTO "{table}" VALUES ({marks})', self._rows.tables[table])
        for table, names in _INFORMATION_COLUMNS.items():
            listed = ", ".join(f'"{name}"' for name in names)
            execute(f'CREATE TABLE information_schema."{table}" ({listed})')
            marks = ", ".join("?" for _ in names)
            fill(
                f'INSERT INTO information_schema."{table}" VALUES ({marks})',
                self._rows.information[table],
            )

    def _functions(self) -> dict[str, Callable[..., Any]]:
        session, definitions = self._session, self._rows.definitions
        comments = self._rows.comments

        def of_session(name: str) -> Callable[..., Any]:
            return lambda *_: session.get(name)

        def always(value: Any) -> Callable[..., Any]:
            return lambda *_: value

        def definition(oid: Any, *more: Any) -> Any:
            if more and isinstance(more[0], int) and more[0] > 0:
                return self._index_column(_number(oid), more[0])
            return definitions.get(_number(oid))

        return {
            "regexp_like": lambda text, pattern: _matches(text, pattern, 0),
            "regexp_ilike": lambda text, pattern: _matches(text, pattern, re.IGNORECASE),
            "in_array": _in_array,
            "to_boolean": lambda value: int(str(value).lower() in ("1", "t", "true", "on", "yes")),
            "name_of_class": lambda oid: self._names.get(_number(oid), _text(oid)),
            "name_of_type": lambda oid: FORMATTED.get(_number(oid), self._types.get(_number(oid))),
            "name_of_namespace": lambda oid: self._schemas.get(_number(oid), _text(oid)),
            "oid_of_class": lambda name: self._oids.get(_last_name(name), _number(name)),
            "oid_of_type": lambda name: _number(name),
            "oid_of_namespace": lambda name: next(
                (oid for oid, each in self._schemas.items() if each == name), None
            ),
            "to_regtype": lambda name: next(
                (oid for oid, each in self._types.items() if each == _last_name(name)), None
            ),
            "to_regclass": lambda name: self._oids.get(_last_name(name)),
            "array_to_string": lambda array, between, *_: _joined(array, between),
            "obj_description": lambda oid, *_: comments.get((_number(oid), 0)),
            "col_description": lambda oid, number: comments.get((_number(oid), _number(number))),
            "shobj_description": always(None),
            "format_type": lambda oid, *_: FORMATTED.get(_number(oid), self._array_type(oid)),
            "pg_get_expr": lambda text, *_: text,
            "pg_get_indexdef": definition,
            "pg_get_constraintdef": lambda oid, *_: definitions.get(_number(oid)),
            "pg_get_viewdef": lambda oid, *_: definitions.get(_number(oid)),
            "pg_get_partkeydef": always(None),
            "pg_get_userbyid": lambda _: session["current_user"],
            "pg_get_serial_sequence": always(None),
            "pg_get_statisticsobjdef_columns": always(None),
            "pg_get_function_result": always(None),
            "pg_get_function_arguments": always(None),
            "pg_encoding_to_char": always("UTF8"),
            "array_upper": lambda array, _: len(json.loads(array)) if array else None,
            "array_item": lambda array, at: dict(enumerate(json.loads(array), 1)).get(at),
            "pg_collation_is_visible": always(1),
            "pg_table_is_visible": always(1),
            "pg_type_is_visible": always(1),
            "pg_function_is_visible": always(1),
            "pg_relation_is_publishable": always(0),
            "pg_partition_ancestors": lambda oid: _number(oid),
            "pg_get_triggerdef": always(None),
            "pg_is_in_recovery": always(0),
            "pg_my_temp_schema": always(0),
            "pg_backend_pid": always(int(session.get("pid", "0"))),
            "pg_relation_size": always(0),
            "pg_table_size": always(0),
            "pg_total_relation_size": always(0),
            "pg_size_pretty": lambda size: f"{size} bytes",
            "has_schema_privilege": always(1),
            "has_table_privilege": always(1),
            "has_any_column_privilege": always(1),
            "has_database_privilege": always(1),
            "txid_current": always(0),
            "quote_ident": lambda name: name,
            "current_schemas": lambda *_: json.dumps([session["current_schema"]]),
            "current_setting": lambda name, *_: session.get(f"setting {str(name).lower()}"),
            **{
                name: of_session(name)
                for name in (
                    "current_database", "current_schema", "current_user", "version",
                )
            },
            **{
                name: of_session("current_user")
                for name in ("session_user", "user", "current_role")
            },
            "current_catalog": of_session("current_database"),
        }  # fmt: skip

    def _array_type(self, oid: Any) -> str | None:
        name = self._types.get(_number(oid), "")
        return f"{name[1:]}[]" if name.startswith("_") else name or None

    def _index_column(self, index: int, number: int) -> str | None:
        names = [name.rstrip("?") for name in COLUMNS["pg_attribute"].split()]
        oid, name, place = names.index("attrelid"), names.index("attname"), names.index("attnum")
        for row in self._rows.tables["pg_attribute"]:
            if row[oid] == index and row[place] == number:
                return str(row[name])
        return None


_READING = frozenset(
    {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE}
)


def _only_reading(action: int, *_: Any) -> int:
    return apsw.SQLITE_OK if action in _READING else apsw.SQLITE_DENY


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


def _in_array(value: Any, array: Any) -> int | None:
    """`value = ANY (array)`; an array is JSON, or PostgreSQL's own text of one."""
    if value is None or array is None:
        return None
    text = str(array)
    listed = text[1:-1].split(",") if text.startswith(("{", "[")) else []
    return int(str(value) in [each.strip().strip('"') for each in listed])


def _joined(array: Any, between: Any) -> str | None:
    if array is None:
        return None
    return str(between).join(str(each) for each in json.loads(array) if each is not None)


def _number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return -1


def _text(value: Any) -> str | None:
    return None if value is None else "-" if value == 0 else str(value)


def _last_name(name: Any) -> str:
    return str(name).rpartition(".")[2].strip('"')
