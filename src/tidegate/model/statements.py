"""A statement, and what is known of it before it runs. Frozen; imports nothing of ours."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import msgspec


class Statement(msgspec.Struct, frozen=True):
    """One SQL text with its parameters (None: none were given).

    `fingerprint` is what `sql.fingerprint` gives for the text, where that is known already.
    """

    text: str
    params: tuple[Any, ...] | None = None
    fingerprint: str | None = None


class Effect(IntEnum):
    """What a statement would do. A lattice: opinions are joined with `max`, never lowered.

    `label` is the lower-case word used in records and replies.
    """

    label: str

    READ = 0
    SESSION = 1
    WRITE = 2
    DESTRUCTIVE = 3
    ADMIN = 4
    UNKNOWN = 5


for _effect in Effect:
    _effect.label = _effect.name.lower()  # on every call's record: a property would cost a call


class Administration(msgspec.Struct, frozen=True):
    """What is known of a statement that administers the database and that a person may approve.

    `shows`: it can show data, at once or by a right, an account or code that it makes. `drops`: it
    takes away what no other statement brings back. `in_transaction`: the database runs it in a
    transaction, so that it is undone if it fails or is stopped. `runs_query`: it runs a query, on
    which the database's own opinion counts.
    """

    shows: bool = True
    drops: bool = False
    in_transaction: bool = True
    runs_query: bool = False


class TouchedTable(msgspec.Struct, frozen=True):
    """A table of which a change may touch rows that are there: by its text as the statement names
    it, empty where that is no plain name. `nested`: the change is a part of the statement.
    `replaces`: rows that are in the way of what it writes are removed. It then writes `most` rows
    at most, if that is not 0."""

    text: str
    updates: bool
    deletes: bool
    inserts: bool
    nested: bool
    replaces: bool = False
    most: int = 0


class Judgement(msgspec.Struct, frozen=True):
    """What a request would do, and by which rule. Says nothing about permission.

    `metadata` marks a request that is no statement and shows no data: it needs no approval.
    `verb` is what the statement does, in one word: `select`, `insert`, `update`, `delete`,
    `merge`, `ddl`, `exec`, `explain`, or the statement's first word in lower case. It is empty
    where a statement cannot be read. `administration` is there for a statement with the effect
    ADMIN that a person may approve; all others with that effect are refused.
    `refuses_transaction`: the database runs it in no transaction, so that what it has done stays
    if it fails.
    `trusted` are the functions of users that the source's setting `functions` lets this read call
    (`schema.name`), also by a view or an operator; `own` those that it calls, as far as is known.
    `unqualified`: it changes every row, as its text tells. `touches` are the tables of a change of
    which only the rows can tell that. `open_ended`: nothing in the text compares a column with a
    constant, so that it may be about every row where none can be compared.
    """

    effect: Effect
    rule: str
    reason: str
    code: str | None = None
    hint: str | None = None
    tables: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    unqualified: bool = False
    metadata: bool = False
    verb: str = ""
    administration: Administration | None = None
    refuses_transaction: bool = False
    touches: tuple[TouchedTable, ...] = ()
    open_ended: bool = False
    trusted: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    @property
    def outside_transaction(self) -> bool:
        """Whether it is known that the statement runs outside a transaction."""
        administration = self.administration
        return self.refuses_transaction or (
            administration is not None and not administration.in_transaction
        )


class NewState(msgspec.Struct, frozen=True):
    """What was there after a change: `rows` in the order of `columns`, as text, None for what is
    gone. A `reason` says what could not be read, and why."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...] | None, ...] = ()
    reason: str = ""


class DryRun(msgspec.Struct, frozen=True):
    """What a change would do, tried in a transaction that was rolled back.

    `affected` counts rows; None if nothing was tried, and `reason` says why. `before` and `after`
    are some of the rows in the order of `columns`, as text or None for NULL; a row that would be
    deleted has no after, one that would be added no before. A `reason` next to a count says why
    there are no rows to show. `withheld` are the columns that are masked for the caller: what is
    shown to its client leaves them out. Where a change is not about rows, `what` says of which
    things `added` come and `removed` go. `requests` are there where a change is made of requests:
    `affected` counts them, nothing was tried, and the rows are what is there and what would be.
    `state` is what was there once the approved change had run, where it was read.
    `separable_under` is there if the change touches nothing that is hidden from some operator: its
    rows can be shown without the columns that are hidden from one. It is a digest of the rules
    (`policy.data_rules.digest_of`), which may change.
    """

    affected: int | None = None
    columns: tuple[str, ...] = ()
    before: tuple[tuple[str | None, ...] | None, ...] = ()
    after: tuple[tuple[str | None, ...] | None, ...] = ()
    reason: str = ""
    withheld: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    what: str = ""
    requests: tuple[str, ...] = ()
    state: NewState | None = None
    separable_under: str = ""

    @property
    def row_count(self) -> int | None:
        return self.affected
