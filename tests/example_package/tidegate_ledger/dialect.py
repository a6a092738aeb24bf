"""SQLite's dialect, without functions that have no place in a ledger."""

from msgspec import structs

from tidegate.sql.dialects import sqlite

DIALECT = structs.replace(
    sqlite.DIALECT,
    name="ledger",
    title="Ledger",
    functions=sqlite.DIALECT.functions - {"random", "RANDOM"},
)
