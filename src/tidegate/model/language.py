"""A language: how the texts for one kind of source are judged and rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tidegate.model.data_rules import DataRules, Show
from tidegate.model.joined_tables import Condition, TableNames
from tidegate.model.profiles import Comparison
from tidegate.model.requests import EngineRequest, Request
from tidegate.model.results import Column
from tidegate.model.schema import Catalog, Table
from tidegate.model.sources import Source
from tidegate.model.statements import Judgement, Statement


class Language(Protocol):
    """The language of a source. An engine's registry entry names the module that defines it as
    `LANGUAGE`.

    A language derives from this class. The defaults are those of a language that cannot hide
    parts of a source: then every request of a caller from whom something is hidden is refused.
    Methods are pure: they read no database, no file and no clock. `classify` and `rewrite` are
    called on the event loop for short texts and on a thread for long ones, by several threads at
    once, and may raise `model.long_work.TakesLong` where `may_take_long` is false.
    """

    def classify(self, request: Request, source: Source) -> Judgement:
        """What the request would do, as far as its text shows.

        Called for requests that have no judgement of their own. Raises nothing: a request that
        cannot be read has the effect UNKNOWN, which is refused. What it says of a `Query` depends
        on the statement's text and the source alone: the gate keeps decisions by these.
        """
        ...

    def redact(self, text: str, dialect: str, *, mentions: bool = False) -> str:
        """A text of this language without what may be a secret; equal to `text` if there is none.

        What is recorded, kept in the history or shown to a person went through this. The text may
        be cut at its end, or be no statement at all: then leave out what cannot be read.
        `mentions`: what was cut off mentions a secret, which any literal in the text may be.
        `secrets.redact` serves a language whose literals are in quotes.
        """
        ...

    def literal(self, value: Any, dialect: str) -> str:
        """The value as a literal of this language."""
        ...

    def rewrite(
        self,
        request: EngineRequest,
        source: Source,
        rules: DataRules,
        catalog: Catalog,
        key: str,
    ) -> EngineRequest | None:
        """The request changed so that it shows nothing that `rules` hide.

        `catalog` is the whole catalog of the database, `key` (letters and digits) the secret of
        hashed masks. None means that this language cannot do it: the request is refused.
        Raises: TidegateError POLICY_MASKED, POLICY_TABLE.
        """
        return None

    def masked_columns(
        self, catalog: Catalog, source: Source, rules: DataRules
    ) -> Mapping[tuple[str, str], Mapping[str, Show]]:
        """What `rules` show of masked columns, by the (schema, name) of their tables: for callers
        that see `catalog`, the whole one of the database. Nothing if the rules do not fit it."""
        return {}

    def bound_to_session(self, catalog: Catalog, source: Source, rules: DataRules) -> str | None:
        """The table of which `rules` may hide less or more by the settings of a session
        (`EngineRequest.settings`); None if what they hide is the same for all."""
        return None

    def ddl(self, table: Table, source: Source) -> str | None:
        """A definition of `table` that names only what `table` holds, for callers who may not see
        the database's own. None if the language has no definitions."""
        return None

    def sample(
        self,
        table: Table,
        columns: Sequence[str],
        most_rows: int,
        source: Source,
        *,
        all_over: bool = False,
    ) -> Statement | None:
        """A statement that reads `columns` of some rows of `table`, `most_rows` at most: the first,
        or with `all_over` rows from all parts of it. None if the language has none."""
        return None

    def sampled(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Sequence[Any]:
        """Rows with the values of `columns` out of the rows that a sample returned."""
        return rows

    def bounds(
        self, table: Table, columns: Sequence[str], source: Source
    ) -> tuple[Sequence[str], Statement | None]:
        """Those of `columns` of which the database knows the least and the greatest value, and a
        statement for one row with these two of each."""
        return (), None

    def statistics(self, table: Table, source: Source) -> Statement | None:
        """A statement for the database's statistics: rows of a column's name, its commonest values
        as an array, its least and its greatest value, as text. None if it keeps none."""
        return None

    def read_table(
        self,
        names: TableNames,
        columns: Sequence[Column],
        conditions: Sequence[Condition],
        source: Source,
    ) -> Statement | None:
        """A statement that reads `columns` of the table with these names, all of them if none are
        given, for a join in another source. It may leave out rows that do not meet `conditions`.
        None if the language has no tables."""
        return None

    def padded(self, table: Table, source: Source) -> frozenset[str]:
        """The columns of which the database fills values up with blanks that it does not
        compare."""
        return frozenset()

    def overlaps(self, comparisons: Sequence[Comparison], source: Source) -> Statement | None:
        """A statement that counts how many values of columns are keys that they may refer to. A row
        for each of `comparisons`: its place among them; of the column values that are not null,
        different ones, and how many of these are keys; of the keys those that were tested for
        repetition, and different ones. None if the language has none."""
        return None
