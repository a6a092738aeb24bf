"""What a text is and may do: SQLite prepares it, calls the authorizer and lists its program.

SQLite calls the authorizer for every action while it prepares a statement, also inside views and
triggers, and again whenever it prepares the statement once more because the schema changed. A
`CachedStatement` is what was found, a pure value in a bounded cache by text. A stale one can cost
time but never let anything through.
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING

import apsw

from tidegate.engines.sqlite.cost_estimate import MAX_VALUE_BYTES, CostEstimate
from tidegate.engines.sqlite.errors import is_quoted_text
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column
from tidegate.model.statements import Effect, Judgement
from tidegate.sql.dialects.model import words
from tidegate.sql.quoted_names import in_backticks

if TYPE_CHECKING:
    from tidegate.engines.sqlite.connection import CompiledInfo, SqliteSession


PACE = 100
SLOW_PACE = 10
"""Opcodes between two readings of the clock, for a program of cheap steps and for a bounded one."""
MOST_LATE = 3
"""So many runs in turn that were late are those of a slow statement."""


MAX_PAUSE = 16
"""Texts of one likeness that a worker runs, at most, before the event loop tries one again."""


class Mode(Enum):
    """READ runs reads. OBSERVE lets a change be prepared, to see what it would do. WRITE runs it.
    OWN is for our own statements: BEGIN, COMMIT and ROLLBACK."""

    READ = 0
    OBSERVE = 1
    WRITE = 2
    OWN = 3


READ_PRAGMAS = words(
    "application_id auto_vacuum busy_timeout cache_size collation_list compile_options data_version"
    " database_list encoding foreign_key_check foreign_key_list foreign_keys freelist_count"
    " function_list index_info index_list index_xinfo integrity_check journal_mode"
    " journal_size_limit locking_mode max_page_count mmap_size module_list page_count page_size"
    " pragma_list quick_check recursive_triggers schema_version synchronous table_info table_list"
    " table_xinfo temp_store user_version wal_autocheckpoint"
)
"""Pragmas that only read, when they are given no value to set."""

ARGUMENT_PRAGMAS = words(
    "foreign_key_check foreign_key_list index_info index_list index_xinfo integrity_check"
    " quick_check table_info table_list table_xinfo"
)
"""Those whose argument names what to read, and sets nothing."""

REFUSED_FUNCTIONS = words(
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

ROW_CHANGES = frozenset({apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE})
"""Those of them that change rows. All others may change the schema, or how SQLite reads it."""

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
    """The callback of one connection. It enforces `mode`, and notes what it has seen; `changed` are
    tables of which rows may change, also by triggers and foreign keys; `reacting` those that
    triggers change.

    `prepared` turns True whenever SQLite prepares; the notes are those since `forget`.
    """

    __slots__ = (
        "changed",
        "changes",
        "effect",
        "functions",
        "mode",
        "pragma",
        "prepared",
        "reacting",
        "reads",
        "refused",
        "schema",
        "tables",
    )

    def __init__(self) -> None:
        self.mode = Mode.READ
        self.prepared = False
        self.forget()

    def forget(self) -> None:
        """Reset the findings."""
        self.effect = Effect.READ
        self.reads = False
        self.pragma = False
        self.changes = False
        self.changed: set[str] = set()
        self.reacting: set[str] = set()
        self.schema = False
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
        return self._change(action, first, second, database, inside)

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
        self,
        action: int,
        first: str | None,
        second: str | None,
        database: str | None,
        inside: str | None,
    ) -> int:
        effect = CHANGES.get(action)
        if effect is None:
            effect, what = REFUSALS.get(action, (Effect.UNKNOWN, "an unknown action"))
            return self._refuse(effect, what)
        self.changes = True
        if action not in ROW_CHANGES:
            self.schema = True
        elif first:
            self.changed.add(first)
            if inside is not None:
                self.reacting.add(first)
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


class CachedStatement:
    """What is known of a text. `inline` and `columns` change: whether the event loop may run it,
    and its columns as the event loop's connection saw them last.

    `pace` is how many opcodes may run on the event loop between two reads of the clock. `like` is
    the plan that this one was copied from (`for_likeness`); the next `due` similar texts go to a
    worker. `late` counts its last runs there, and those of texts like it, that took too long by the
    clock.
    `vacuums`: it is a VACUUM, which runs outside a transaction; the judge admits no other statement
    of which the authorizer sees nothing.
    `takes_quoted_texts`: a view or trigger that it uses has a text in double quotes, or may have.
    `parameters` counts placeholders. `explains` is 0, or 1 or 2 for EXPLAIN and EXPLAIN QUERY PLAN.
    """

    __slots__ = (
        "changes_schema",
        "columns",
        "due",
        "explains",
        "fits_inline",
        "inline",
        "judgement",
        "late",
        "like",
        "max_value_bytes",
        "pace",
        "parameters",
        "pause",
        "small",
        "steady",
        "takes_quoted_texts",
        "vacuums",
    )

    def __init__(
        self,
        judgement: Judgement,
        *,
        parameters: int = 0,
        explains: int = 0,
        program: CostEstimate | None = None,
        changes_schema: bool = False,
        vacuums: bool = False,
    ) -> None:
        self.judgement = judgement
        self.parameters = parameters
        self.explains = explains
        self.changes_schema = changes_schema
        self.vacuums = vacuums
        self.takes_quoted_texts = changes_schema
        self.small = program is None or program.small
        tame = program is not None and program.tame
        self.fits_inline = tame or (program is not None and program.bounded)
        self.steady = program is not None and program.steady and parameters == 0
        self.max_value_bytes = MAX_VALUE_BYTES if program is None else program.max_value_bytes
        self.pace = SLOW_PACE if self.fits_inline and not tame else PACE
        self.inline = tame
        self.pause = self.due = 1
        self.late = 0
        self.like: CachedStatement | None = None
        self.columns: tuple[Column, ...] | None = None

    def for_likeness(self) -> CachedStatement:
        """A plan for a text that differs from this one's in plain values only.

        Its columns are read again: their names may hold the values.
        """
        plan = CachedStatement.__new__(CachedStatement)  # `copy` takes ten times as long
        plan.judgement = self.judgement
        plan.parameters = self.parameters
        plan.explains = self.explains
        plan.changes_schema = self.changes_schema
        plan.vacuums = False
        plan.takes_quoted_texts = self.takes_quoted_texts
        plan.small = self.small
        plan.fits_inline = self.fits_inline
        plan.steady = self.steady
        plan.max_value_bytes = self.max_value_bytes
        plan.inline = self.inline
        plan.pause = plan.due = 1
        plan.late = self.late
        plan.pace = self.pace
        plan.like = self
        plan.columns = None
        return plan

    def was_quick(self) -> None:
        """A worker ran it in little time: the event loop may run it, and texts like it."""
        if self.steady:
            self.pace = PACE  # the same again costs the same
        self.inline = self.fits_inline or self.steady
        like = self.like
        if like is not None and not like.inline:
            like.due -= 1
            like.inline = self.fits_inline and like.due <= 0

    def was_late(self) -> None:
        """It took long on the event loop, by the clock. Once, the system may have run another
        process meanwhile: a machine that is busy would send quick statements to workers, where each
        costs six times as much. So it is slow if it is late each time."""
        self._count_late(self.late + 1)
        if self.late == MOST_LATE:
            self._count_late(0)
            self.was_slow()

    def was_in_time(self) -> None:
        """It took little time on the event loop."""
        self._count_late(0)

    def _count_late(self, count: int) -> None:
        self.late = count
        if self.like is not None:
            self.like.late = count

    def was_slow(self) -> None:
        """It did not end well on the event loop: each time, more texts like it go to a worker."""
        self.inline = False
        like = self.like
        if like is not None and like.pace == SLOW_PACE:
            like.inline = False
            like.pause = like.due = min(2 * like.pause, MAX_PAUSE)

    @property
    def reads(self) -> bool:
        return self.judgement.effect is Effect.READ


class StatementCache:
    """A bounded cache of plans by text: two generations, so that a hit costs one look-up.

    `recent` is the later one: a caller in a hurry searches it first."""

    __slots__ = ("_capacity", "_old", "recent")

    def __init__(self, capacity: int = 1024) -> None:
        self._capacity = capacity
        self.recent: dict[str, CachedStatement] = {}
        self._old: dict[str, CachedStatement] = {}

    def get(self, text: str) -> CachedStatement | None:
        plan = self.recent.get(text)
        if plan is None:
            plan = self._old.get(text)
            if plan is not None:
                self.put(text, plan)
        return plan

    def put(self, text: str, plan: CachedStatement) -> None:
        if len(self.recent) >= self._capacity:
            self._old, self.recent = self.recent, {}
        self.recent[text] = plan

    def clear(self) -> None:
        self.recent.clear()
        self._old.clear()


def prepare(session: SqliteSession, text: str) -> CachedStatement:
    """What a text is. A name in double quotes that nothing has is an error in it, and a text where
    a view or a trigger has it: see `docs/explanation/decisions/0072-*`.

    Raises: TidegateError SQL_EMPTY, SQL_MULTIPLE; what SQLite raises.
    """
    session.take_quoted_texts(taken=False)
    try:
        return _prepared(session, text)
    except apsw.SQLError as error:
        if not is_quoted_text(error):
            raise
        # SQLite does not say whose name it is. In backticks, one is never a text.
        unmistakable = in_backticks(text, "sqlite")
        session.take_quoted_texts(taken=True)
        if unmistakable is None:
            raise
        if unmistakable != text:
            try:
                _prepared(session, unmistakable)
            except apsw.SQLError:
                raise error from None
        plan = _prepared(session, text)
        plan.takes_quoted_texts = True
        return plan


def _prepared(session: SqliteSession, text: str) -> CachedStatement:
    authorizer = session.authorizer
    try:
        with session.mode(Mode.OBSERVE):
            authorizer.forget()
            compiled = _only_statement(session, text)
            if authorizer.changes and compiled.readonly and compiled.description:
                # Connecting a virtual table prepared changes of its own; now it is connected.
                authorizer.forget()
                compiled = session.compile_statement(text)
            return _plan(session, text, compiled)
    except apsw.Error:
        if authorizer.refused is None:
            raise
        return CachedStatement(_refusal(authorizer))


def _only_statement(session: SqliteSession, text: str) -> CompiledInfo:
    """Prepare the one statement of a text. Empty ones, and comments, may be around it."""
    only: CompiledInfo | None = None
    rest = text
    while rest.strip(" \t\r\n\f;"):
        compiled = session.compile_statement(rest) if only is None else _compile_next(session, rest)
        if compiled.real:
            if only is not None:
                raise TidegateError(Code.SQL_MULTIPLE, "The text holds more than one statement.")
            only = compiled
        if not compiled.sql:
            break
        rest = rest[len(compiled.sql) :]
    if only is None:
        raise TidegateError(Code.SQL_EMPTY, "The text holds no statement.")
    return only


def _compile_next(session: SqliteSession, rest: str) -> CompiledInfo:
    try:
        return session.compile_statement(rest)
    except apsw.Error as error:
        raise TidegateError(
            Code.SQL_MULTIPLE, "There is more text after the first statement."
        ) from error


def _plan(session: SqliteSession, text: str, compiled: CompiledInfo) -> CachedStatement:
    authorizer = session.authorizer
    effect = _effect(authorizer, compiled)
    judgement = Judgement(
        effect=effect,
        rule="sqlite.authorizer",
        reason=_reason(effect, compiled),
        tables=tuple(sorted(authorizer.tables)),
        functions=tuple(sorted(authorizer.functions)),
    )
    program: CostEstimate | None = None
    if effect is Effect.READ and not compiled.explains:
        nulls = (None,) * compiled.parameters if compiled.parameters else None
        listing = session.connection.execute(text, nulls, can_cache=False, explain=1)
        # An operand that is a pointer, as in a check of FTS5, is listed as bytes that are no text:
        # without an estimate the statement runs in a thread.
        with suppress(UnicodeDecodeError):
            program = CostEstimate(listing.fetchall())
    return CachedStatement(
        judgement,
        parameters=compiled.parameters,
        explains=compiled.explains,
        program=program,
        changes_schema=authorizer.schema and not compiled.explains,
        vacuums=effect is Effect.ADMIN,
    )


def _effect(authorizer: Authorizer, compiled: CompiledInfo) -> Effect:
    """The effect, from the authorizer's notes and SQLite's own flag."""
    if compiled.explains:
        return Effect.READ
    if authorizer.effect is not Effect.READ:
        return authorizer.effect
    if authorizer.pragma:
        return Effect.READ
    if not compiled.readonly:
        return Effect.ADMIN  # VACUUM asks the authorizer nothing
    return Effect.READ if authorizer.reads else Effect.UNKNOWN


def _reason(effect: Effect, compiled: CompiledInfo) -> str:
    if compiled.explains:
        return "SQLite only explains it."
    if effect is Effect.READ:
        return "SQLite sees only reads."
    return f"SQLite sees an effect: {effect.label}."


def _refusal(authorizer: Authorizer) -> Judgement:
    refused = authorizer.refused or "the statement"
    is_function = refused.startswith("the function ")
    return Judgement(
        effect=authorizer.effect,
        rule="sqlite.authorizer",
        reason=f"SQLite refuses {refused} to every caller.",
        code=(Code.SQL_FUNCTION if is_function else Code.POLICY_DENIED).value,
        tables=tuple(sorted(authorizer.tables)),
        functions=tuple(sorted(authorizer.functions)),
    )
