"""Writes a result as Parquet, by DuckDB, which is an extra.

Rows go into a temporary database first: the type of a column whose source declares none is known
only when all its values were seen. No value is changed: a column that does not fit its type stays
text.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tidegate.config.installation import add_command
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column
from tidegate.results.formats import unique
from tidegate.results.json_values import text
from tidegate.sql.dialects import find
from tidegate.system.private_files import private_umask

_quote = find("postgres").quote  # as DuckDB writes it, whose engine may not be here

_TYPES = {
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "float": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamp_tz": "TIMESTAMPTZ",
    "uuid": "UUID",
    "bytes": "BLOB",
}
_PRECISE = {"TIME": "TIME_NS", "TIMESTAMP": "TIMESTAMP_NS", "TIMESTAMPTZ": "TIMESTAMPTZ_NS"}
"""The types for values with more than six digits after the second."""
_MOST_DIGITS = 38


class ParquetWriter:
    """Writes a result to `path` when it ends; `close` removes what is temporary.

    `as_text` names the columns that stayed text though their type is another.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._duckdb: Any = import_module("duckdb")  # its types are not complete
        except ImportError as missing:
            raise TidegateError(
                Code.ENGINE_MISSING,
                "Parquet needs the package `duckdb`.",
                hint=f"Run: {add_command('duckdb')}",
            ) from missing
        self._path = path
        self._directory = tempfile.mkdtemp(prefix="tidegate-")
        self._database = self._duckdb.connect(str(Path(self._directory) / "rows.duckdb"))
        self._columns: tuple[Column, ...] = ()
        self._seen: list[set[type[Any]]] = []
        self._insert = ""
        self.as_text: list[str] = []

    def begin(self, columns: tuple[Column, ...]) -> None:
        if not columns:
            raise TidegateError(
                Code.ARGUMENT_INVALID, "A Parquet file needs a column, and the result has none."
            )
        self._columns = columns
        self._seen = [set() for _ in columns]
        names = ", ".join(f"c{place} VARCHAR" for place in range(len(columns)))
        self._database.execute(f"CREATE TABLE rows ({names})")
        self._insert = "INSERT INTO rows SELECT " + ", ".join(
            "unnest(?::VARCHAR[])" for _ in columns
        )

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        given: list[list[str | None]] = []
        for seen, column in zip(self._seen, zip(*rows, strict=True), strict=True):
            seen.update(map(type, column))
            given.append([text(value) for value in column])
        self._database.execute(self._insert, given)

    def end(self) -> None:
        """Write the file. Raises: TidegateError STATE_FAILED if it cannot be written."""
        names = unique([column.name or f"column_{n}" for n, column in enumerate(self._columns, 1)])
        shown = ", ".join(
            f"{self._expression(place)} AS {_quote(name)}" for place, name in enumerate(names)
        )
        self.as_text = [
            name
            for name, column, place in zip(names, self._columns, range(len(names)), strict=True)
            if column.kind in (*_TYPES, "decimal") and self._expression(place) == f"c{place}"
        ]
        path = str(self._path).replace("'", "''")
        copy = f"COPY (SELECT {shown} FROM rows) TO '{path}' (FORMAT parquet)"
        try:
            self._database.execute("SET TimeZone = 'UTC'")
            with private_umask():  # DuckDB replaces the file
                self._database.execute(copy)
        except self._duckdb.IOException as error:
            raise TidegateError(
                Code.STATE_FAILED, "The Parquet file could not be written: is the disk full?"
            ) from error

    def close(self) -> None:
        """Remove the temporary database. Safe to call twice."""
        self._database.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _expression(self, place: int) -> str:
        """The column in the type that all its values fit, or as text."""
        name = f"c{place}"
        kind = self._type_of(place)
        if kind is None:
            return name
        if (
            kind in _PRECISE
            and self._database.execute(
                f"SELECT 1 FROM rows WHERE regexp_matches({name}, '[.][0-9]{{7}}') LIMIT 1"
            ).fetchone()
        ):
            kind = _PRECISE[kind]
        cast = f"from_base64({name})" if kind == "BLOB" else f"TRY_CAST({name} AS {kind})"
        if kind != "BLOB":
            lost = f"SELECT 1 FROM rows WHERE {name} IS NOT NULL AND {cast} IS NULL LIMIT 1"
            if self._database.execute(lost).fetchone() is not None:
                return name
        return cast

    def _type_of(self, place: int) -> str | None:
        column = self._columns[place]
        seen = self._seen[place] - {type(None)}
        if not seen or seen <= {str}:
            if column.kind == "decimal":
                return self._decimal(place)
            # A text column's values are texts, whatever they look like.
            return _TYPES.get(column.kind) if column.kind != "bytes" or not seen else None
        if seen <= {bool}:
            return "BOOLEAN"
        if seen <= {int}:
            return self._integer(place)
        if seen <= {int, float}:
            return "DOUBLE"
        if seen <= {bytes, bytearray, memoryview}:
            return "BLOB"
        return self._decimal(place) if column.kind == "decimal" else _TYPES.get(column.kind)

    def _integer(self, place: int) -> str | None:
        cast = f"TRY_CAST(c{place} AS HUGEINT)"
        least, most, beyond = self._database.execute(
            f"SELECT min({cast}), max({cast}),"
            f" count(*) FILTER (c{place} IS NOT NULL AND {cast} IS NULL) FROM rows"
        ).fetchone()
        if beyond:
            return None
        if least >= -(2**63) and most < 2**63:
            return "BIGINT"
        return "UBIGINT" if least >= 0 and most < 2**64 else f"DECIMAL({_MOST_DIGITS}, 0)"

    def _decimal(self, place: int) -> str | None:
        """As many digits after the point as any value has, or None if they do not fit."""
        column = self._columns[place]
        if column.precision is not None and column.precision <= _MOST_DIGITS:
            return f"DECIMAL({column.precision}, {max(0, column.scale or 0)})"
        before, after = self._database.execute(
            f"SELECT max(length(ltrim(split_part(c{place}, '.', 1), '-'))),"
            f" max(length(split_part(c{place}, '.', 2))) FROM rows"
        ).fetchone()
        digits, scale = (before or 1) + (after or 0), after or 0
        return f"DECIMAL({_MOST_DIGITS}, {scale})" if digits <= _MOST_DIGITS else None
