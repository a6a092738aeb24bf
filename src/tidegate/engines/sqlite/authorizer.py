"""Decides what SQLite may do on a connection, by SQLite's own authorizer callback.

SQLite calls it for every action while it prepares a statement, also inside views and triggers, and
again whenever it prepares anew because the schema changed. What is not on a list here is refused.
"""

from __future__ import annotations

from enum import Enum

import apsw

from tidegate.statements import Effect


class Mode(Enum):
    """READ runs reads. OBSERVE lets a change be prepared, to see what it would do. WRITE runs it.
    OWN is for our own statements: BEGIN, COMMIT and ROLLBACK."""

    READ = 0
    OBSERVE = 1
    WRITE = 2
    OWN = 3


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


READ_PRAGMAS = _words(
    "application_id auto_vacuum busy_timeout cache_size collation_list compile_options data_version"
    " database_list encoding foreign_key_check foreign_key_list foreign_keys freelist_count"
    " function_list index_info index_list index_xinfo integrity_check journal_mode"
    " journal_size_limit locking_mode max_page_count mmap_size module_list page_count page_size"
    " pragma_list quick_check recursive_triggers schema_version synchronous table_info table_list"
    " table_xinfo temp_store user_version wal_autocheckpoint"
)
"""Pragmas that only read, when they are given no value to set."""

ARGUMENT_PRAGMAS = _words(
    "foreign_key_check foreign_key_list index_info index_list index_xinfo integrity_check"
    " quick_check table_info table_list table_xinfo"
)
"""Those whose argument names what to read, and sets nothing."""

REFUSED_FUNCTIONS = _words(
    "load_extension fts3_tokenizer writefile readfile edit fsdir lsmode sqlite_log eval"
    " sqlite_dbpage_write carray_bind"
)

READS = frozenset({apsw.SQLITE_SELECT, apsw.SQLITE_RECURSIVE, apsw.SQLITE_READ})

CHANGES: dict[int, Effect] = {
    apsw.SQLITE_INSERT: Effect.WRITE,
    apsw.SQLITE_UPDATE: Effect.WRITE,
    apsw.SQLITE_DELETE: Effect.WRITE,
    apsw.SQLITE_CREATE_TABLE: Effect.WRITE,
    apsw.SQLITE_CREATE_INDEX: Effect.WRITE,
    apsw.SQLITE_CREATE_VIEW: Effect.WRITE,
    apsw.SQLITE_CREATE_TRIGGER: Effect.WRITE,
    apsw.SQLITE_CREATE_VTABLE: Effect.WRITE,
    apsw.SQLITE_ALTER_TABLE: Effect.WRITE,
    apsw.SQLITE_REINDEX: Effect.WRITE,
    apsw.SQLITE_ANALYZE: Effect.WRITE,
    apsw.SQLITE_DROP_TABLE: Effect.DESTRUCTIVE,
    apsw.SQLITE_DROP_INDEX: Effect.DESTRUCTIVE,
    apsw.SQLITE_DROP_VIEW: Effect.DESTRUCTIVE,
    apsw.SQLITE_DROP_TRIGGER: Effect.DESTRUCTIVE,
    apsw.SQLITE_DROP_VTABLE: Effect.DESTRUCTIVE,
}
"""Actions that change the database: prepared under OBSERVE, run under WRITE."""

TABLE_COMES_SECOND = frozenset(
    {
        apsw.SQLITE_ALTER_TABLE,
        apsw.SQLITE_CREATE_INDEX,
        apsw.SQLITE_CREATE_TRIGGER,
        apsw.SQLITE_DROP_INDEX,
        apsw.SQLITE_DROP_TRIGGER,
    }
)

REFUSALS: dict[int, tuple[Effect, str]] = {
    apsw.SQLITE_TRANSACTION: (Effect.SESSION, "transaction control"),
    apsw.SQLITE_SAVEPOINT: (Effect.SESSION, "transaction control"),
    apsw.SQLITE_CREATE_TEMP_TABLE: (Effect.SESSION, "a temporary table"),
    apsw.SQLITE_CREATE_TEMP_INDEX: (Effect.SESSION, "a temporary index"),
    apsw.SQLITE_CREATE_TEMP_VIEW: (Effect.SESSION, "a temporary view"),
    apsw.SQLITE_CREATE_TEMP_TRIGGER: (Effect.WRITE, "a temporary trigger"),
    apsw.SQLITE_DROP_TEMP_TABLE: (Effect.SESSION, "a temporary table"),
    apsw.SQLITE_DROP_TEMP_INDEX: (Effect.SESSION, "a temporary index"),
    apsw.SQLITE_DROP_TEMP_VIEW: (Effect.SESSION, "a temporary view"),
    apsw.SQLITE_DROP_TEMP_TRIGGER: (Effect.SESSION, "a temporary trigger"),
    apsw.SQLITE_ATTACH: (Effect.ADMIN, "ATTACH"),
    apsw.SQLITE_DETACH: (Effect.ADMIN, "DETACH"),
}
"""Actions that no caller may take, with what they would be."""


class Authorizer:
    """The callback of one connection. It enforces `mode`, and notes what it has seen.

    `prepared` turns True whenever SQLite prepares; the notes are those since `forget`.
    """

    __slots__ = (
        "changes",
        "effect",
        "functions",
        "mode",
        "pragma",
        "prepared",
        "reads",
        "refused",
        "tables",
    )

    def __init__(self) -> None:
        self.mode = Mode.READ
        self.prepared = False
        self.forget()

    def forget(self) -> None:
        """Start the notes anew."""
        self.effect = Effect.READ
        self.reads = False
        self.pragma = False
        self.changes = False
        self.refused: str | None = None
        self.tables: set[str] = set()
        self.functions: set[str] = set()

    def __call__(
        self,
        action: int,
        first: str | None,
        second: str | None,
        database: str | None,
        inside: str | None,
    ) -> int:
        self.prepared = True
        if self.mode is Mode.OWN:
            return apsw.SQLITE_OK
        if action in READS:
            self.reads = True
            if first:
                self.tables.add(first)
            return apsw.SQLITE_OK
        if action == apsw.SQLITE_FUNCTION:
            return self._function((second or "").lower())
        if action == apsw.SQLITE_PRAGMA:
            return self._pragma((first or "").lower(), second)
        return self._change(action, first, second, database)

    def _function(self, name: str) -> int:
        self.functions.add(name)
        if name in REFUSED_FUNCTIONS:
            return self._refuse(Effect.ADMIN, f"the function {name}")
        return apsw.SQLITE_OK

    def _pragma(self, name: str, value: str | None) -> int:
        if name in READ_PRAGMAS and (value is None or name in ARGUMENT_PRAGMAS):
            self.pragma = True
            return apsw.SQLITE_OK
        return self._refuse(Effect.ADMIN, f"PRAGMA {name}")

    def _change(
        self, action: int, first: str | None, second: str | None, database: str | None
    ) -> int:
        effect = CHANGES.get(action)
        if effect is None:
            effect, what = REFUSALS.get(action, (Effect.UNKNOWN, "an unknown action"))
            return self._refuse(effect, what)
        self.changes = True
        if action == apsw.SQLITE_ALTER_TABLE and database is not None:
            effect = Effect.DESTRUCTIVE  # SQLite gives the name of a dropped column here
        elif database == "temp":
            effect = Effect.SESSION
        table = second if action in TABLE_COMES_SECOND else first
        if table and action != apsw.SQLITE_REINDEX and not table.startswith("sqlite_"):
            self.tables.add(table)
        self.effect = max(self.effect, effect)
        if self.mode is Mode.READ:
            return self._refuse(effect, "a change of the database")
        return apsw.SQLITE_OK

    def _refuse(self, effect: Effect, what: str) -> int:
        self.effect = max(self.effect, effect)
        if self.refused is None:
            self.refused = what
        return apsw.SQLITE_DENY
