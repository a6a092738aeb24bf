"""What of a table can be searched: its key, its texts, and its vectors with the texts they are of.

Columns that are masked for the caller take no part, and neither does what was made of them. Pure.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.schema import Catalog, ColumnInfo, Index, Table
from tidegate.results.column_kinds import read_type

_RETIRED = ("_embedding_next", "_embedding_old")
"""How columns end that `tidegate embed --replace` is filling or has replaced."""
_DIGESTS = re.compile(r".*_(?:embedding|vector)(?:_next|_old)?_digest", re.DOTALL)
_SUFFIX = re.compile(r"_?(?:embeddings?|vectors?|vec|emb)(?:_\d+)?$", re.IGNORECASE)
_VECTOR = re.compile(
    r'(?:"?(?P<schema>[^".]+)"?\.)?(?P<kind>vector|halfvec|sparsevec|bit)(?:\((?P<size>\d+)\))?'
)
_WRITTEN = re.compile(
    r'(?:(?P<schema>"(?:[^"]|"")+"|[^".]+)\.)?(?P<name>"(?:[^"]|"")+"|[^"]+)', re.DOTALL
)
"""A table's name as SQL writes it."""
_ARRAY = re.compile(r"(?:FLOAT|DOUBLE|REAL|FLOAT4|FLOAT8)(?:\[(\d*)\])", re.IGNORECASE)
_BM25 = re.compile(r"text_bm25_ops|varchar_bm25_ops|bpchar_bm25_ops")
"""The operator classes of pg_textsearch, as its version 1.0 names them."""
_OTHERS = frozenset({"bm25", "vchordrq", "vchordg"})
"""Kinds of indexes that are for searches and of which some or all are not used."""
_TITLES = re.compile(r"title|name|subject|heading|label", re.IGNORECASE)
_CONTENTS = re.compile(r"content|body|text|description|comment|message|summary", re.IGNORECASE)
_TITLE, _CONTENT, _OTHER = 0.3, 0.7, 0.5


class VectorColumn(msgspec.Struct, frozen=True):
    """A column of vectors. `kind` is `vector`, `halfvec`, `sparsevec`, `bit`, `array`, `list` or
    `blob`; `dimensions` is 0 where the type does not say. `schema` is where its type is, if that
    is not on the search path. `text` is the column whose texts the vectors are of, if one is known.
    """

    name: str
    kind: str
    dimensions: int
    text: str | None
    weight: float
    schema: str | None = None


class Target(msgspec.Struct, frozen=True):
    """One table as it can be searched by one caller. `key` names a row; it is empty where only the
    database's own row id does. `comments` are notes on columns that were left out."""

    table: Table
    dialect: str
    key: tuple[str, ...]
    texts: tuple[str, ...]
    vectors: tuple[VectorColumn, ...]
    notes: tuple[str, ...] = ()

    @property
    def indexes(self) -> tuple[Index, ...]:
        """The indexes that any search of the table may use."""
        return tuple([index for index in self.table.indexes if index.usable])


def find_table(catalog: Catalog, name: str) -> Table:
    """The table of a name: as it is, with its schema before it, or as SQL writes it in quotes; else
    in any case.

    Raises: TidegateError TABLE_UNKNOWN.
    """
    schema, plain = _read_name(name)
    for fold in (str, str.lower):
        names = (fold(name), fold(plain))
        found = [
            table
            for table in catalog.tables
            if (
                # A name may hold dots and quotes itself.
                names[0] in (fold(table.name), fold(f"{table.schema}.{table.name}"))
                or (names[1] == fold(table.name) and schema in (None, fold(table.schema)))
            )
        ]
        home = [table for table in found if table.schema == catalog.default_schema]
        if found:
            return (home or found)[0]
        schema = schema and schema.lower()
    known = {table.name.lower(): table.name for table in catalog.tables}
    near = [known[each] for each in difflib.get_close_matches(name.lower(), known, 3)]
    hint = f"Did you mean {', '.join(near)}?" if near else None
    raise TidegateError(Code.TABLE_UNKNOWN, f"There is no table `{name[:120]}`.", hint=hint)


def _read_name(name: str) -> tuple[str | None, str]:
    """The schema, if it has one, and the table of a name as SQL writes it."""
    found = _WRITTEN.fullmatch(name)
    if found is None:
        return None, name
    schema = found["schema"]
    return None if schema is None else _unquoted(schema), _unquoted(found["name"])


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def target_of(catalog: Catalog, table: Table) -> Target:
    """What of `table` can be searched.

    Raises: TidegateError UNSUPPORTED if nothing can, with the reason.
    """
    masked = {column.name for column in table.columns if column.masked is not None}
    hidden = masked | {
        column.name
        for column in table.columns
        if column.default
        and (column.extra or "").startswith("generated")
        and any(re.search(rf"\b{re.escape(name)}\b", column.default) for name in masked)
    }
    shown = [column for column in table.columns if column.name not in hidden]
    texts = [column for column in shown if read_type(column.type)[0] == "text" and _is_text(column)]
    vectors = _vectors(table, shown, [column.name for column in texts], masked)
    key = _key(table, hidden)
    notes = ["Masked columns were not searched."] if masked else []
    notes += _unused(table)
    if not texts and not vectors:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"The table `{table.name}` has no column of texts or vectors that this caller may"
            " search",
            hint="Name a table with a column of texts.",
        )
    if not key and table.kind not in ("table", "materialized view", "virtual table"):
        raise TidegateError(
            Code.UNSUPPORTED,
            f"The rows of the {table.kind} `{table.name}` have no key",
            hint="Name the table that it reads.",
        )
    names = tuple([column.name for column in texts])
    return Target(table, catalog.dialect, key, names, tuple(vectors), tuple(notes))


def is_textsearch(index: Index) -> bool:
    """Whether it is a BM25 index of the extension pg_textsearch. The access methods of pg_search
    and vchord_bm25 have the same name, and other operators."""
    return index.kind == "bm25" and any(_BM25.fullmatch(each) for each in index.operators[:1])


def _unused(table: Table) -> list[str]:
    """Notes on indexes for searches whose extension is not one of those that are used."""
    return [
        f"The index {index.name} ({index.kind}) was not used: of its kind only those of"
        " pg_textsearch are."
        if index.kind == "bm25"
        else f"The index {index.name} ({index.kind}) was not used: its kind is not known here."
        for index in table.indexes
        if index.kind in _OTHERS and not is_textsearch(index)
    ]


def _is_text(column: ColumnInfo) -> bool:
    """Not what merely travels as text: words of a search index, and vectors."""
    if _DIGESTS.fullmatch(column.name):
        return False
    return _VECTOR.fullmatch(column.type) is None and column.type not in ("tsvector", "tsquery")


def _key(table: Table, hidden: set[str]) -> tuple[str, ...]:
    """The columns that name a row: the primary key, else a unique index without NULLs."""
    keys = sorted((column for column in table.columns if column.key), key=lambda each: each.key)
    names = tuple([column.name for column in keys])
    if names and not hidden & set(names):
        return names
    columns = {column.name: column for column in table.columns}
    for index in table.indexes:
        whole = all(name in columns and not columns[name].nullable for name in index.columns)
        if index.unique and index.usable and whole and not hidden & set(index.columns):
            return index.columns
    if "view" in table.kind and "id" in columns and "id" not in hidden:
        return ("id",)
    return ()


def _vectors(
    table: Table, columns: Sequence[ColumnInfo], texts: list[str], masked: set[str]
) -> list[VectorColumn]:
    found: list[VectorColumn] = []
    every = {column.name for column in table.columns}
    for column in columns:
        kind = _vector_type(column)
        if kind is None:
            continue
        if column.name.endswith(_RETIRED):
            continue
        base = _SUFFIX.sub("", column.name)
        if base in masked:
            continue  # its vectors tell of texts that are hidden
        text = base if base in texts and base in every else None
        if text is None and masked and base not in texts:
            continue  # it may be of a masked column
        name, size, schema = kind
        found.append(VectorColumn(column.name, name, size, text, _weight(base), schema))
    total = sum(vector.weight for vector in found)
    return [msgspec.structs.replace(each, weight=each.weight / total) for each in found]


def _vector_type(column: ColumnInfo) -> tuple[str, int, str | None] | None:
    match = _VECTOR.fullmatch(column.type)
    if match is not None:
        if match["kind"] == "bit" and _SUFFIX.search(column.name) is None:
            return None
        return match["kind"], int(match["size"] or 0), match["schema"]
    array = _ARRAY.fullmatch(column.type)
    if array is not None:
        return ("array", int(array[1]), None) if array[1] else ("list", 0, None)
    if column.type.upper() in ("BLOB", "") or column.type.upper().startswith("FLOAT["):
        return ("blob", 0, None) if _SUFFIX.search(column.name) else None
    return None


def _weight(name: str) -> float:
    if _TITLES.search(name):
        return _TITLE
    return _CONTENT if _CONTENTS.search(name) else _OTHER
