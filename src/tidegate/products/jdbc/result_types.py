"""The type that a database's own JDBC driver reports for a column: code, name and Java class.

For sources without a JDBC driver, so that a client sees the same as through one. The tables are
those of pgjdbc 42.5, MariaDB Connector/J 2.7.6 and sqlite-jdbc 3.40, with which tests compare;
those of DuckDB and of MySQL Connector/J 8 are facts of their sources and manuals, which no test
compares. Codes are those of `java.sql.Types`. Pure.

What these drivers look up in the catalog is not known here: an enumeration, a composite type and a
domain of PostgreSQL have the code OTHER, and a serial column is the integer that it is.
"""

from __future__ import annotations

import re
from typing import Any

from tidegate.model.results import Column, ColumnKind, DriverType
from tidegate.sql.dialects import find

_CODES: dict[ColumnKind, int] = {
    "boolean": 16,
    "integer": -5,
    "decimal": 3,
    "float": 8,
    "text": 12,
    "bytes": -3,
    "date": 91,
    "time": 92,
    "time_tz": 2013,
    "timestamp": 93,
    "timestamp_tz": 2014,
    "interval": 1111,
    "uuid": 1111,
    "json": 1111,
    "array": 2003,
    "struct": 2002,
    "other": 1111,
}
"""The code of a kind of column whose own type says no more."""

OTHER = 1111
_STRING, _OBJECT, _BYTES = "java.lang.String", "java.lang.Object", "[B"
_INTEGER, _LONG, _BIG = "java.lang.Integer", "java.lang.Long", "java.math.BigInteger"
_SHORT, _BYTE = "java.lang.Short", "java.lang.Byte"
_FLOAT, _DOUBLE, _DECIMAL = "java.lang.Float", "java.lang.Double", "java.math.BigDecimal"
_BOOLEAN = "java.lang.Boolean"
_DATE, _TIME, _TIMESTAMP = "java.sql.Date", "java.sql.Time", "java.sql.Timestamp"
_ARRAY, _XML = "java.sql.Array", "java.sql.SQLXML"
_CLASSES = {
    -7: _BOOLEAN, 16: _BOOLEAN, -6: _INTEGER, 5: _INTEGER, 4: _INTEGER, -5: _LONG, 2: _DECIMAL,
    3: _DECIMAL, 7: _FLOAT, 6: _DOUBLE, 8: _DOUBLE, 91: _DATE, 92: _TIME, 93: _TIMESTAMP,
    2014: "java.time.OffsetDateTime", 2013: "java.time.OffsetTime", -2: _BYTES, -3: _BYTES,
    -4: _BYTES, 2003: _ARRAY, 2009: _XML,
}  # fmt: skip
"""The class of each code, where nothing more is known; else it is a string."""

TEXT_CODES = frozenset({1, 12, -1, -15, -9, -16, 2005, 2011})
"""CHAR, VARCHAR, LONGVARCHAR, their N variants, CLOB and NCLOB."""

_ARGUMENTS = re.compile(r"\s*\([^)]*\)")

_POSTGRES: dict[str, tuple[int, str, str]] = {
    "smallint": (5, "int2", _INTEGER),
    "integer": (4, "int4", _INTEGER),
    "bigint": (-5, "int8", _LONG),
    "oid": (-5, "oid", _LONG),
    "numeric": (2, "numeric", _DECIMAL),
    "real": (7, "float4", _FLOAT),
    "double precision": (8, "float8", _DOUBLE),
    "money": (8, "money", "org.postgresql.util.PGmoney"),
    "boolean": (-7, "bool", _BOOLEAN),
    "bit": (-7, "bit", _BOOLEAN),
    "bit varying": (OTHER, "varbit", _STRING),
    "character": (1, "bpchar", _STRING),
    '"char"': (1, "char", _STRING),
    "character varying": (12, "varchar", _STRING),
    "text": (12, "text", _STRING),
    "name": (12, "name", _STRING),
    "bytea": (-2, "bytea", _BYTES),
    "date": (91, "date", _DATE),
    "time without time zone": (92, "time", _TIME),
    "time with time zone": (92, "timetz", _TIME),
    "timestamp without time zone": (93, "timestamp", _TIMESTAMP),
    "timestamp with time zone": (93, "timestamptz", _TIMESTAMP),
    "uuid": (OTHER, "uuid", "java.util.UUID"),
    "json": (OTHER, "json", "org.postgresql.util.PGobject"),
    "jsonb": (OTHER, "jsonb", _STRING),
    "xml": (2009, "xml", _XML),
    "interval": (OTHER, "interval", "org.postgresql.util.PGInterval"),
    "refcursor": (2012, "refcursor", "java.sql.ResultSet"),
    **{
        shape: (OTHER, shape, f"org.postgresql.geometric.PG{shape}")
        for shape in ("point", "line", "lseg", "box", "path", "polygon", "circle")
    },
}
_POSTGRES_ELEMENTS = {name: short for name, (_, short, _) in _POSTGRES.items()}

_MYSQL: dict[str, tuple[int, str, str]] = {
    "tinyint": (-6, "TINYINT", _INTEGER),
    "smallint": (5, "SMALLINT", _INTEGER),
    "mediumint": (4, "MEDIUMINT", _INTEGER),
    "int": (4, "INTEGER", _INTEGER),
    "bigint": (-5, "BIGINT", _LONG),
    "tinyint unsigned": (-6, "TINYINT", _INTEGER),
    "smallint unsigned": (5, "SMALLINT UNSIGNED", _INTEGER),
    "mediumint unsigned": (4, "MEDIUMINT UNSIGNED", _INTEGER),
    "int unsigned": (4, "INTEGER UNSIGNED", _LONG),
    "bigint unsigned": (-5, "BIGINT UNSIGNED", _BIG),
    "decimal": (3, "DECIMAL", _DECIMAL),
    "float": (7, "FLOAT", _FLOAT),
    "double": (8, "DOUBLE", _DOUBLE),
    "bit": (-3, "BIT", _BYTES),
    "char": (1, "CHAR", _STRING),
    "varchar": (12, "VARCHAR", _STRING),
    "tinytext": (12, "VARCHAR", _STRING),
    "text": (12, "TEXT", _STRING),
    "mediumtext": (12, "MEDIUMTEXT", _STRING),
    "longtext": (-1, "LONGTEXT", _STRING),
    "json": (-1, "LONGTEXT", _STRING),
    "binary": (-2, "BINARY", _BYTES),
    "varbinary": (-3, "VARBINARY", _BYTES),
    "tinyblob": (-3, "TINYBLOB", _BYTES),
    "blob": (-3, "BLOB", _BYTES),
    "mediumblob": (-3, "MEDIUMBLOB", _BYTES),
    "longblob": (-4, "LONGBLOB", _BYTES),
    "date": (91, "DATE", _DATE),
    "year": (91, "YEAR", _DATE),
    "time": (92, "TIME", _TIME),
    "datetime": (93, "DATETIME", _TIMESTAMP),
    "timestamp": (93, "TIMESTAMP", _TIMESTAMP),
    "enum": (1, "CHAR", _STRING),
    "set": (1, "CHAR", _STRING),
    "uuid": (1, "CHAR", _STRING),
    "geometry": (-3, "GEOMETRY", _BYTES),
    "null": (0, "NULL", _STRING),
}
_MYSQL_WHOLE: dict[str, tuple[int, str, str]] = {
    "tinyint(1)": (-7, "TINYINT", _BOOLEAN),
    "bit(1)": (-7, "BIT", _BOOLEAN),
}
_MYSQL_LISTED = {
    "text": -1, "mediumtext": -1, "blob": -4, "mediumblob": -4, "enum": 12, "set": 12,
    "uuid": OTHER, "bit": -7, "geometry": OTHER, "point": OTHER,
}  # fmt: skip
"""Codes that `getColumns` of the driver gives and a result does not."""

CONNECTOR_J = "mysql connector-j"
"""In place of a dialect: the types of MySQL's own driver, which differ from those of MariaDB's."""

_SHAPES = (
    *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring"),
    *("multipolygon", "geometrycollection"),
)
_CONNECTOR_J: dict[str, tuple[int, str, str]] = {
    **{
        name: (code, name.upper(), java_class)
        for name, (code, _, java_class) in _MYSQL.items()
        if name not in ("uuid", "enum", "set")
    },
    "int": (4, "INT", _INTEGER),
    "int unsigned": (4, "INT UNSIGNED", _LONG),
    "decimal unsigned": (3, "DECIMAL UNSIGNED", _DECIMAL),
    "float unsigned": (7, "FLOAT UNSIGNED", _FLOAT),
    "double unsigned": (8, "DOUBLE UNSIGNED", _DOUBLE),
    "bit": (-7, "BIT", _BYTES),
    "text": (-1, "TEXT", _STRING),
    "mediumtext": (-1, "MEDIUMTEXT", _STRING),
    "json": (-1, "JSON", _STRING),
    "blob": (-4, "BLOB", _BYTES),
    "mediumblob": (-4, "MEDIUMBLOB", _BYTES),
    "datetime": (93, "DATETIME", "java.time.LocalDateTime"),
    "enum": (1, "CHAR", _STRING),
    "set": (1, "CHAR", _STRING),
    "uuid": (1, "CHAR", _STRING),
    "null": (0, "NULL", _OBJECT),
    **dict.fromkeys(_SHAPES, (-2, "GEOMETRY", _BYTES)),
}
_CONNECTOR_J_WHOLE: dict[str, tuple[int, str, str]] = {
    "tinyint(1)": (-7, "BIT", _BOOLEAN),
    "bit(1)": (-7, "BIT", _BOOLEAN),
}

_DUCKDB: dict[str, tuple[int, str]] = {
    "boolean": (16, _BOOLEAN),
    "tinyint": (-6, _BYTE),
    "utinyint": (5, _SHORT),
    "smallint": (5, _SHORT),
    "usmallint": (4, _INTEGER),
    "integer": (4, _INTEGER),
    "uinteger": (-5, _LONG),
    "bigint": (-5, _LONG),
    "ubigint": (OTHER, _BIG),
    "hugeint": (OTHER, _BIG),
    "uhugeint": (OTHER, _BIG),
    "float": (6, _FLOAT),
    "double": (8, _DOUBLE),
    "decimal": (3, _DECIMAL),
    "varchar": (12, _STRING),
    "blob": (2004, "org.duckdb.DuckDBResultSet$DuckDBBlobResult"),
    "date": (91, "java.time.LocalDate"),
    "time": (92, "java.time.LocalTime"),
    "time with time zone": (2013, "java.time.OffsetTime"),
    "timestamp": (93, _TIMESTAMP),
    "timestamp_s": (93, _TIMESTAMP),
    "timestamp_ms": (93, _TIMESTAMP),
    "timestamp_ns": (93, _TIMESTAMP),
    "timestamp with time zone": (2014, "java.time.OffsetDateTime"),
    "bit": (-7, _STRING),
    "uuid": (OTHER, "java.util.UUID"),
    "struct": (2002, "java.sql.Struct"),
}

_SQLITE = {
    "BOOLEAN": 16, "TINYINT": -6, "SMALLINT": 5, "INT2": 5, "BIGINT": -5, "INT8": -5,
    "UNSIGNED BIG INT": -5, "DATE": 91, "DATETIME": 91, "TIMESTAMP": 93, "INT": 4, "INTEGER": 4,
    "MEDIUMINT": 4, "DECIMAL": 3, "DOUBLE": 8, "DOUBLE PRECISION": 8, "NUMERIC": 2, "REAL": 7,
    "FLOAT": 6, "CHARACTER": 1, "NCHAR": 1, "NATIVE CHARACTER": 1, "CHAR": 1, "CLOB": 2005,
    "VARCHAR": 12, "VARYING CHARACTER": 12, "NVARCHAR": 12, "TEXT": 12, "BLOB": 2004,
}  # fmt: skip
_SQLITE_FLOATS = ("REAL", "FLOA", "DOUB", "DEC", "NUM")


def jdbc_type(column: Column, dialect: str, first: Any = None) -> DriverType:
    """The type of a result's column. `first` is the column's first value as JSON: SQLite's driver
    reads it."""
    if column.driver_type is not None:
        return column.driver_type
    name = column.type.lower()
    plain = _ARGUMENTS.sub("", name)
    if dialect == CONNECTOR_J:
        known = _connector_j(name, plain)
        return DriverType(*known) if known else _by_kind(column)
    driver = find(dialect).driver_types
    if driver == "sqlite-jdbc":
        return _sqlite(column.type, first)
    if driver == "pgjdbc":
        return _postgres(plain)
    if driver == "connector-j":
        found = _MYSQL_WHOLE.get(name) or _MYSQL.get(plain)
        return DriverType(*found) if found else _by_kind(column)
    if driver == "duckdb-jdbc":
        return _duckdb(column.type, plain)
    return _by_kind(column)


def listed_code(type_name: str, dialect: str) -> int:
    """The code that the driver's `getColumns` gives for a table's column of a type."""
    name = type_name.lower()
    plain = _ARGUMENTS.sub("", name)
    if dialect == CONNECTOR_J:
        known = _connector_j(name, plain)
        return known[0] if known and plain != "uuid" else OTHER
    driver = find(dialect).driver_types
    if driver == "sqlite-jdbc":
        return _sqlite_listed(type_name)
    if driver == "pgjdbc":
        return _postgres(plain).code
    if driver == "connector-j":
        if name in _MYSQL_WHOLE:
            return _MYSQL_WHOLE[name][0]
        base = plain.removesuffix(" zerofill")
        found = _MYSQL.get(base)
        return _MYSQL_LISTED.get(base, found[0] if found else OTHER)
    if driver == "duckdb-jdbc":
        return _duckdb(type_name, plain).code
    return OTHER


def _connector_j(name: str, plain: str) -> tuple[int, str, str] | None:
    filled = plain.endswith(" zerofill")  # which makes it unsigned
    plain = plain.removesuffix(" zerofill")
    if filled and not plain.endswith(" unsigned"):
        plain += " unsigned"
    return _CONNECTOR_J_WHOLE.get(name) or _CONNECTOR_J.get(plain)


def _postgres(plain: str) -> DriverType:
    if plain.endswith("[]"):
        element = plain.rstrip("[]")
        return DriverType(2003, f"_{_POSTGRES_ELEMENTS.get(element, element)}", _ARRAY)
    found = _POSTGRES.get(plain)
    return DriverType(*found) if found else DriverType(OTHER, plain, _STRING)


def _duckdb(name: str, plain: str) -> DriverType:
    if plain.endswith("]"):
        return DriverType(2003, name, "org.duckdb.DuckDBArray")
    base = "struct" if plain.startswith("struct") else plain
    code, java_class = _DUCKDB.get(base, (OTHER, _STRING))
    return DriverType(code, name, java_class)


def _sqlite(declared: str, first: Any) -> DriverType:
    if declared:
        name = _ARGUMENTS.sub("", declared).strip()
        return DriverType(_SQLITE.get(name.upper(), 2), name.upper(), _class_of(first))
    if first is None:
        return DriverType(2, "NUMERIC", _OBJECT)
    if isinstance(first, int):
        small = -(2**31) <= first < 2**31
        return DriverType(4 if small else -5, "INTEGER", _class_of(first))
    if isinstance(first, float):
        return DriverType(6, "FLOAT", _DOUBLE)
    return DriverType(12, "TEXT", _STRING)


def _class_of(value: Any) -> str:
    if isinstance(value, int):
        return _INTEGER if -(2**31) <= value < 2**31 else _LONG
    if isinstance(value, float):
        return _DOUBLE
    return _STRING if isinstance(value, str) else _OBJECT


def _sqlite_listed(declared: str) -> int:
    name = declared.upper()
    if "INT" in name or name == "BOOLEAN":
        return 4
    return 6 if name.startswith(_SQLITE_FLOATS) or "DOUB" in name else 12


def _by_kind(column: Column) -> DriverType:
    code = _CODES[column.kind]
    return DriverType(code, column.type, _CLASSES.get(code, _STRING))
