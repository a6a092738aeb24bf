"""The catalogue queries: texts only. A fixed number of them, however many tables there are."""

from __future__ import annotations

SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")

DATABASES = b"SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY 1"

STORED_FUNCTIONS = b"""
SELECT DISTINCT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_TYPE = 'FUNCTION'"""

_NAMES = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES
WHERE {where} AND TABLE_TYPE <> 'SEQUENCE' AND TABLE_TYPE <> 'TEMPORARY' ORDER BY 1, 2"""

_TABLES = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_ROWS, TABLE_COMMENT
FROM information_schema.TABLES WHERE {where}"""

_COLUMNS = """
SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT,
  COLUMN_COMMENT, EXTRA, ORDINAL_POSITION, GENERATION_EXPRESSION
FROM information_schema.COLUMNS WHERE {where}"""

_INDEXES = """
SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, NON_UNIQUE, COLUMN_NAME, INDEX_TYPE, SEQ_IN_INDEX
FROM information_schema.STATISTICS WHERE {where}"""

_VIEWS = """
SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE {where}"""

_FOREIGN_KEYS = """
SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA,
  REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME, ORDINAL_POSITION
FROM information_schema.KEY_COLUMN_USAGE WHERE {where} AND REFERENCED_TABLE_NAME IS NOT NULL"""

_RULES = """
SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, UPDATE_RULE, DELETE_RULE
FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE {where}"""

_CHANGES = """
alter_db alter_sequence alter_table create_db create_index create_sequence create_table create_view
drop_db drop_index drop_sequence drop_table drop_view rename_table
"""

_COUNTERS = ", ".join(f"'Com_{name}'" for name in _CHANGES.split()) + ", 'Uptime'"


def quoted(name: str) -> str:
    """An identifier."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A text literal; the sessions read backslashes as escapes, which is verified."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _where(schema: str | None, table: str | None, column: str = "TABLE_SCHEMA") -> str:
    if schema is None:
        return f"{column} NOT IN ({', '.join(literal(name) for name in SYSTEM)})"
    narrowed = "" if table is None else f" AND TABLE_NAME = {literal(table)}"
    return f"{column} = {literal(schema)}{narrowed}"


def names(schema: str | None) -> bytes:
    """Every table and view of one database, or of all but the system's."""
    return _NAMES.format(where=_where(schema, None)).encode()


def details(schema: str | None, table: str | None) -> tuple[bytes, ...]:
    """Tables, columns, indexes, views, foreign keys and their rules."""
    where = _where(schema, table)
    told = (_TABLES, _COLUMNS, _INDEXES, _VIEWS, _FOREIGN_KEYS)
    texts = [text.format(where=where) for text in told]
    texts.append(_RULES.format(where=_where(schema, table, "CONSTRAINT_SCHEMA")))
    return tuple(text.encode() for text in texts)


def counters(mariadb: bool) -> bytes:
    """How often each kind of statement that changes schemas was run since the server started."""
    where = "information_schema" if mariadb else "performance_schema"
    return (
        f"SELECT VARIABLE_NAME, VARIABLE_VALUE, UNIX_TIMESTAMP() FROM {where}.GLOBAL_STATUS"
        f" WHERE VARIABLE_NAME IN ({_COUNTERS}) ORDER BY 1"
    ).encode()


def views(places: list[tuple[str, str]]) -> bytes:
    """The definitions of those of the named tables that are views."""
    return " UNION ALL ".join(
        "SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS"
        f" WHERE TABLE_SCHEMA = {literal(schema)} AND TABLE_NAME = {literal(table)}"
        for schema, table in places
    ).encode()
