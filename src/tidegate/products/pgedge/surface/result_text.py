"""Writes a result in the document's form: the statement, `Results:`, the rows as JSON objects, and
last how many there are, which is not known before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec import structs

from tidegate.model.results import Column, Page, Truncation
from tidegate.products.pgedge.text_to_sql.model import Answer, Check, UsedJoin
from tidegate.results.formats import unique
from tidegate.results.notes import page_note, pages_note

_rows = msgspec.json.Decoder(list[list[msgspec.Raw]])
_encode = msgspec.json.encode


def sql_heading(sql: str) -> str:
    """What comes before the rows of a statement that the caller wrote."""
    return f"SQL Query:\n{sql}\n\nResults:\n"


def question_heading(question: str, sql: str) -> str:
    """What comes before the rows of a statement that was made of a question."""
    return f"Natural Language Query: {question}\n\nGenerated SQL:\n{sql}\n\nResults:\n"


_VECTORS = frozenset({"vector", "halfvec", "sparsevec"})
_SHOWN_OF_VECTOR = 4
_LONG_VECTOR = 80
"""Characters of a vector from which on its first numbers replace it."""
VECTORS_CUT = (
    f"Vectors are shown by their first {_SHOWN_OF_VECTOR} numbers; cast one to text to see it all."
)


def vector_places(columns: Sequence[Column]) -> list[int]:
    """The places of the columns of vectors: a vector is some kB, and no one reads it."""
    return [
        place
        for place, column in enumerate(columns)
        if column.type.rpartition(".")[2].partition("(")[0].lower() in _VECTORS
    ]


def _short_vector(value: bytes) -> bytes:
    """A long vector as JSON text with its first numbers and how many there are."""
    if len(value) <= _LONG_VECTOR or value[:1] != b'"':
        return value
    text = msgspec.json.decode(value, type=str)
    first = ",".join(text.split(",", _SHOWN_OF_VECTOR)[:_SHOWN_OF_VECTOR])
    return _encode(f"{first},… {text.count(',') + 1} numbers{text[-1:] if text[:1] == '[' else ''}")


def with_short_vectors(page: Page) -> tuple[Page, list[str]]:
    """The page with its long vectors cut, and a note about that."""
    places = vector_places(page.columns)
    if not places:
        return page, []
    rows = _rows.decode(page.rows)
    cut = False
    for row in rows:
        for place in places:
            short = _short_vector(bytes(row[place]))
            if len(short) < len(bytes(row[place])):
                row[place], cut = msgspec.Raw(short), True
    return (structs.replace(page, rows=_encode(rows)), [VECTORS_CUT]) if cut else (page, [])


class ObjectRows:
    """Makes JSON objects of rows, one on a line: a name that comes twice gets `_2`. `notes` say
    what was cut of them."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._vectors = vector_places(columns)
        self.notes: list[str] = []
        self._names = [_encode(name) + b": " for name in unique([each.name for each in columns])]
        self._before = b"[\n"

    def of_json(self, rows: bytes) -> Iterator[bytes]:
        """The text of rows that are a JSON array of arrays."""
        names = self._names
        for row in _rows.decode(rows):
            for place in self._vectors:
                short = _short_vector(bytes(row[place]))
                if len(short) < len(bytes(row[place])):
                    row[place], self.notes = msgspec.Raw(short), [VECTORS_CUT]
            values = [name + bytes(value) for name, value in zip(names, row, strict=True)]
            yield self._before + b"{" + b", ".join(values) + b"}"
            self._before = b",\n"

    def end(self) -> bytes:
        """What closes the array."""
        return b"[]" if self._before == b"[\n" else b"\n]"


def page_text(page: Page) -> bytes:
    """The rows of a page as text, without what comes before and after them."""
    rows = ObjectRows(page.columns)
    return b"".join((*rows.of_json(page.rows), rows.end()))


def ending(page: Page, offset: int, notes: Sequence[str] = ()) -> str:
    """What follows the rows: their count, and everything that was left out."""
    count = page.row_count
    lines = [f"{count} row" if count == 1 else f"{count} rows"]
    if offset:
        lines[0] += f" from row {offset + 1} on"
    lines += [_CUTS[cut.kind](cut, offset + count) for cut in page.truncations]
    if note := page_note(page):
        lines.append(note)
    return "\n\n" + "\n".join([*lines, *notes])


def _rows_cut(cut: Truncation, shown: int) -> str:
    return f"More rows are available: use offset={shown} for the next ones."


def _bytes_cut(cut: Truncation, shown: int) -> str:
    return (
        f"The result was cut at {cut.limit} bytes: use offset={shown} for the next rows, or"
        " select fewer columns."
    )


def _value_cut(cut: Truncation, shown: int) -> str:
    return f"Values of one large row were cut at {cut.limit} bytes: select fewer columns."


def _pages_cut(cut: Truncation, shown: int) -> str:
    return f"The rows are {pages_note(cut)}."


def _budget_cut(cut: Truncation, shown: int) -> str:
    return f"The budget has no more: after it renews, use offset={shown} for the next rows."


_CUTS: dict[str, Callable[[Truncation, int], str]] = {
    "rows": _rows_cut,
    "bytes": _bytes_cut,
    "value": _value_cut,
    "pages": _pages_cut,
    "budget": _budget_cut,
}


class Sent(msgspec.Struct, frozen=True):
    """What left this machine for an answer: so many bytes of prompts, with names, comments or
    values of the schema (`share`)."""

    model: str
    host: str
    bytes: int
    share: str
    requests: int

    @classmethod
    def of(cls, answer: Answer) -> Sent | None:
        """None if no model was asked."""
        used = answer.model
        if used is None:
            return None
        return cls(used.model, used.host, used.bytes, used.share, answer.rounds)

    def __str__(self) -> str:
        requests = "1 request" if self.requests == 1 else f"{self.requests} requests"
        return (
            f"Sent to {self.model or 'the model'} at {self.host}: {self.bytes:,} bytes with"
            f" {self.share} of the schema, in {requests}"
        )


class StructuredResult(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """`structuredContent` of a query. `rows` are arrays in the order of `columns`; `next_offset` is
    there where rows were left out. Of the answer to a question there are its assumptions, its joins
    and checks, what was sent to a model, and the `handle` that names it for later ones."""

    sql: str
    columns: tuple[Column, ...]
    rows: msgspec.Raw
    row_count: int
    question: str | None = None
    source: str | None = None
    next_offset: int | None = None
    truncations: tuple[Truncation, ...] = ()
    masked: tuple[tuple[str, str], ...] = ()
    assumptions: tuple[str, ...] = ()
    joins: tuple[UsedJoin, ...] = ()
    checks: tuple[Check, ...] = ()
    sent: Sent | None = None
    handle: str | None = None


def structured(
    page: Page,
    sql: str,
    offset: int,
    *,
    source: str | None = None,
    question: str | None = None,
    answer: Answer | None = None,
) -> bytes:
    """A page as JSON for clients that take structured content; `answer` is what it belongs to."""
    of = answer or Answer(question="", source=None)
    cut = any(each.kind in ("rows", "bytes") for each in page.truncations)
    return _encode(
        StructuredResult(
            sql,
            page.columns,
            msgspec.Raw(page.rows),
            page.row_count,
            question,
            source,
            offset + page.row_count if cut else None,
            page.truncations,
            page.masked,
            of.assumptions,
            of.joins,
            of.checks,
            Sent.of(of),
            of.handle,
        )
    )
