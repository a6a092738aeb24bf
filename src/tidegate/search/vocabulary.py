"""How the tables of a source that speaks no SQL are shown to those who search and ask it.

A product whose language is no SQL has a module with these functions (`Product.vocabularies`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from tidegate.model.gate_client import GateClient
from tidegate.model.profiles import TableProfile
from tidegate.model.results import Page
from tidegate.model.schema import Table
from tidegate.product import built_in, installed
from tidegate.results.notes import found_nothing
from tidegate.sql.dialects import DIALECTS

_BEGINS_SQL = ("(", "-", "/", "#", ";", "")
"""What a statement of SQL may begin with in place of a letter."""


class Vocabulary(Protocol):
    """The functions of such a module."""

    def table_line(
        self, table: Table, profile: TableProfile, only: Collection[str] | None = None
    ) -> str:
        """A table with what is known of its columns; with `only`, these and references, and the
        others are counted."""
        ...

    def heading(self, tables: Collection[Table]) -> str:
        """How these tables are asked for; empty if there is nothing to say."""
        ...

    def may_read(self, text: str) -> bool:
        """Whether a text may be a statement of this language, by its first characters."""
        ...

    def shows_nulls(self, text: str) -> bool:
        """Whether a name that its source does not have shows as nulls, and not as no row."""
        ...

    async def note_unknown(
        self, text: str, caller: GateClient, source: str | None, inputs: Sequence[Any] = ()
    ) -> str:
        """Which names of a statement that found nothing its source does not have; empty if that
        speaks another language, or has all of them."""
        ...


@cache
def find(dialect: str) -> Vocabulary | None:
    """The words of a dialect that is no SQL; None for SQL."""
    if dialect in DIALECTS:
        return None
    for product in (*built_in(), *installed()):
        if dialect in product.vocabularies:
            return _load(product.vocabularies[dialect])
    return None


def find_all() -> Iterable[Vocabulary]:
    """Those of the products that are here."""
    for product in built_in():
        yield from map(_load, product.vocabularies.values())


def reader_of(text: str) -> Vocabulary | None:
    """The words of the language that is no SQL and that a text may be a statement of."""
    first = text.lstrip()[:1]
    if first.isalpha() or first in _BEGINS_SQL:
        return None
    return next((each for each in find_all() if each.may_read(text)), None)


def may_be_mistaken(page: Page, text: str) -> bool:
    """Whether a note could help: the statement found nothing, and compares with a text or is of a
    language in which a misspelt name is no error."""
    other = reader_of(text)
    if other is None:
        return "'" in text and found_nothing(page)
    return other.shows_nulls(text) or found_nothing(page)


def _load(module: str) -> Vocabulary:
    return cast("Vocabulary", import_module(module))
