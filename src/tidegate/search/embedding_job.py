"""Fills a column of vectors from a column of texts, a batch of rows at a time, through the gate.

Beside the vectors is a column of digests: each names the model and the text that its vector was
made of. So a run that was stopped goes on where it ended, a later run embeds changed texts only, a
row whose text has gone loses its vector, and vectors of another model are recognized. Vectors and
digests are in the row itself and go with it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from tidegate.errors import Code, TidegateError, masking_refused
from tidegate.model.requests import Browse, Query
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog, ColumnInfo
from tidegate.model.statements import Statement
from tidegate.results.column_kinds import read_type
from tidegate.search.postgres_vectors import vector_text
from tidegate.search.ranking import Handle
from tidegate.search.requests import Embeddings, EmbedTexts
from tidegate.search.statements import Sql, rows_of
from tidegate.search.target import Target, find_table, target_of
from tidegate.sql.dialects import find

BATCH = 64
READ = 256
MOST_INDEXED = 2_000
"""The dimensions up to which pgvector's indexes take 32-bit floats; halfvec goes to 4,000."""
DIGEST = "_digest"
NEXT, OLD = "_next", "_old"
"""How the columns are called that are filled for a new model, and that one has replaced."""
_MOST_CHARACTERS = 8_000
"""Characters of a text that are embedded: more than any of the models reads."""


class Job(msgspec.Struct, frozen=True):
    """What will be filled. `model` is how digests name it; `missing` are the columns that are not
    there yet, as (name, type); `host` is where texts are sent, empty if they stay here."""

    target: Target
    text: str
    vector: str
    digest: str
    model: str
    dimensions: int
    type: str
    host: str = ""
    missing: tuple[tuple[str, str], ...] = ()

    @property
    def definitions(self) -> list[str]:
        """The statements that add the missing columns."""
        sql = Sql(self.target)
        return [
            f"ALTER TABLE {sql.table} ADD COLUMN {sql.name(name)} {type_}"
            for name, type_ in self.missing
        ]

    @property
    def index(self) -> str | None:
        """The statement that makes an index of the vectors, where the database has such."""
        if find(self.target.dialect).vectors != "typed":
            return None
        sql = Sql(self.target)
        return (
            f"CREATE INDEX ON {sql.table} USING hnsw"
            f" ({sql.name(self.vector)} {self.type.partition('(')[0]}_cosine_ops)"
        )


class Progress(NamedTuple):
    """What a pass has done so far: rows read, texts embedded, vectors removed."""

    read: int
    embedded: int
    removed: int


class Stale(NamedTuple):
    """What comparing texts with digests has found: rows read, those with the vector of an earlier
    text, those with a vector and no text."""

    read: int
    changed: int
    gone: int


class Counts(msgspec.Struct, frozen=True):
    """The state of a column of vectors: rows with a text, those whose vector the model made, those
    with one of another model, and those without one."""

    texts: int
    current: int
    other_model: int
    missing: int


async def plan(handle: Handle, table: str, column: str, into: str | None = None) -> Job:
    """The work to do for the texts of `column`; asks the provider for the model's dimensions.

    Raises: TidegateError TABLE_UNKNOWN, ARGUMENT_INVALID, POLICY_MASKED, UNSUPPORTED,
    EMBEDDING_DIMENSION, and what the provider raises.
    """
    catalog = await handle(Browse("catalog"), Catalog)
    found = find_table(catalog, table)
    target = target_of(catalog, found)
    text = _text_column(target, column)
    vector = into or f"{text}_embedding"
    place = f"{found.schema}.{found.name}"
    made = await handle(EmbedTexts(("dimensions",), "document", place, vector), Embeddings)
    type_ = _type(catalog.dialect, made.dimensions)
    columns = {each.name: each for each in found.columns}
    wanted = [(vector, type_), (f"{vector}{DIGEST}", "text")]
    missing = tuple([(name, kind) for name, kind in wanted if name not in columns])
    if vector in columns:
        type_ = _checked_type(columns[vector], made)
    return Job(
        *(target, text, vector, f"{vector}{DIGEST}"),
        *(
            f"{made.provider}/{made.model}/{made.dimensions}",
            made.dimensions,
            type_,
            made.host,
            missing,
        ),
    )


def _text_column(target: Target, name: str) -> str:
    for column in target.table.columns:
        if column.name.lower() != name.lower():
            continue
        if column.masked is not None:
            raise masking_refused(
                f"The column `{column.name}` is masked, and masked columns are not embedded",
                "source.masking",
                hint="Name another column.",
            )
        if column.name in target.texts:
            return column.name
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        f"The table `{target.table.name}` has no column of texts `{name[:120]}`",
        hint=f"Its columns of texts: {', '.join(target.texts) or 'none'}.",
    )


def _type(dialect: str, dimensions: int) -> str:
    kept = find(dialect).vectors
    if kept == "typed":
        return f"{'vector' if dimensions <= MOST_INDEXED else 'halfvec'}({dimensions})"
    return f"FLOAT[{dimensions}]" if kept == "arrays" else "BLOB"


def _checked_type(column: ColumnInfo, made: Embeddings) -> str:
    """The type of a column that is there. Raises: TidegateError EMBEDDING_DIMENSION."""
    size = column.type.partition("(")[2].rstrip(")") or column.type.partition("[")[2].rstrip("]")
    if read_type(column.type)[0] == "text" or (size.isdigit() and int(size) != made.dimensions):
        raise TidegateError(
            Code.EMBEDDING_DIMENSION,
            f"The column `{column.name}` has the type {column.type}, and the vectors of"
            f" {made.model} have {made.dimensions} dimensions",
            hint="Name another column with --into.",
        )
    return column.type


async def check_ready(handle: Handle, job: Job) -> None:
    """Look for what a run needs before anyone is asked to agree to it: a key that names the rows,
    and the type of the vectors. Raises: TidegateError UNSUPPORTED, and what the gate raises."""
    _require_key(job)
    if find(job.target.dialect).vectors != "typed":
        return
    name = job.type.partition("(")[0].rpartition(".")[2]
    sql = Sql(job.target)
    query = f"SELECT 1 FROM pg_catalog.pg_type WHERE typname = {sql.value(name)} LIMIT 1"
    try:
        page = await handle(sql.query(query, 1), Page)
    except TidegateError as error:
        if error.code not in (Code.POLICY_MASKED, Code.POLICY_TABLE, Code.SQL_FAILED):
            raise
        return  # not to be seen: the database says it when the column is added
    if not page.row_count:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"The database has no type `{name}`: the extension pgvector is not in it",
            hint="Have a superuser run CREATE EXTENSION vector in it, and run this again.",
        )


def _require_key(job: Job) -> None:
    """Raises: TidegateError UNSUPPORTED for a table without a primary key."""
    if not job.target.key:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"The table `{job.target.table.name}` has no primary key to name its rows by",
            hint="Add one, or embed another table.",
        )


async def make_columns(handle: Handle, job: Job) -> None:
    """Add the columns that are missing. One that another run adds meanwhile is used as it is.

    Raises: TidegateError.
    """
    table = job.target.table
    for (name, _), text in zip(job.missing, job.definitions, strict=True):
        try:
            await handle(Query(Statement(text)), Page)
        except TidegateError as error:
            catalog = await handle(Browse("catalog"), Catalog)
            columns = find_table(catalog, f"{table.schema}.{table.name}").columns
            if error.code is not Code.SQL_FAILED or all(each.name != name for each in columns):
                raise


async def count(handle: Handle, job: Job) -> Counts:
    """How far the column is filled. Raises: TidegateError."""
    sql = Sql(job.target)
    text = sql.name(job.text)
    present = f"{text} IS NOT NULL AND {text} <> ''"
    if job.missing:
        page = await handle(sql.query(f"SELECT count(*) FROM {sql.table} WHERE {present}", 1), Page)
        total = rows_of(page)[0][0]
        return Counts(total, 0, 0, total)
    ours = f"{sql.name(job.digest)} LIKE {sql.value(f'{_escaped(job.model)}:%')} ESCAPE '!'"
    vector = f"{sql.name(job.vector)} IS NOT NULL"
    cases = [
        "count(*)",
        f"sum(CASE WHEN {vector} AND {ours} THEN 1 ELSE 0 END)",
        f"sum(CASE WHEN {vector} AND NOT coalesce({ours}, false) THEN 1 ELSE 0 END)",
        f"sum(CASE WHEN {vector} THEN 0 ELSE 1 END)",
    ]
    query = f"SELECT {', '.join(cases)} FROM {sql.table} WHERE {present}"
    page = await handle(sql.query(query, 1), Page)
    return Counts(*[int(value or 0) for value in rows_of(page)[0]])


async def find_stale(handle: Handle, job: Job, most: int | None = None) -> Stale | None:
    """Compare the texts with what their vectors were made of, of `most` rows in the order of their
    key; None where there is nothing to compare, or no key to read by. Raises: TidegateError."""
    if job.missing or not job.target.key:
        return None
    read = changed = gone = 0
    last: Sequence[Any] | None = None
    while (most is None or read < most) and (rows := await _read(handle, job, last)):
        last = rows[-1][:-3]
        read += len(rows)
        for *_, text, digest, has_vector in rows:
            if not has_vector:
                continue
            if not text:
                gone += 1
            elif str(digest).startswith(f"{job.model}:") and digest != _digest(job, text):
                changed += 1
    return Stale(read, changed, gone)


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


async def fill(handle: Handle, job: Job) -> AsyncIterator[Progress]:
    """Embed what is not embedded yet, and remove the vectors of texts that have gone; reports
    after each batch. Rows come in the order of their key, and what is done stays done.

    Raises: TidegateError UNSUPPORTED for a table without a primary key, and what the gate and the
    provider raise.
    """
    _require_key(job)
    done = Progress(0, 0, 0)
    last: Sequence[Any] | None = None
    while rows := await _read(handle, job, last):
        # A person has agreed to this job, so no statement of it is one that changes every row.
        size = max(1, len(rows) - 1) if last is None and len(rows) < READ else READ
        last = rows[-1][:-3]
        stale = [row for row in rows if _digest(job, row[-3]) != (row[-2] if row[-1] else None)]
        gone = [row for row in stale if not row[-3]]
        changed = [row for row in stale if row[-3]]
        for batch in _parts(changed, min(size, BATCH)):
            await _embed(handle, job, batch)
        for batch in _parts(gone, size):
            await _write(handle, job, [(row[:-3], None, None) for row in batch])
        done = Progress(
            done.read + len(rows), done.embedded + len(changed), done.removed + len(gone)
        )
        yield done


def _parts(rows: list[list[Any]], size: int) -> Iterator[list[list[Any]]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _digest(job: Job, text: str | None) -> str | None:
    """What names the model and the text of a vector; None for no text, which has no vector."""
    if not text:
        return None
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
    return f"{job.model}:{digest}"


async def _read(handle: Handle, job: Job, last: Sequence[Any] | None) -> list[list[Any]]:
    """The next rows: key, text, digest, and whether there is a vector."""
    sql = Sql(job.target)
    keys = sql.key_columns()
    where = ""
    if last is not None:
        after = ", ".join(
            _typed(sql, name, value) for name, value in zip(job.target.key, last, strict=True)
        )
        where = f" WHERE ({', '.join(keys)}) > ({after})"
    text = (
        f"SELECT {', '.join(keys)}, {sql.prefix(job.text)}, {sql.name(job.digest)},"
        f" {sql.name(job.vector)} IS NOT NULL FROM {sql.table}{where}"
        f" ORDER BY {', '.join(keys)} LIMIT {READ}"
    )
    return rows_of(await handle(sql.query(text, READ), Page))


async def _embed(handle: Handle, job: Job, rows: Sequence[list[Any]]) -> None:
    table = job.target.table
    texts = tuple([str(row[-3])[:_MOST_CHARACTERS] for row in rows])
    blank = tuple([text if text.strip() else "." for text in texts])
    request = EmbedTexts(blank, "document", f"{table.schema}.{table.name}", job.vector)
    made = await handle(request, Embeddings)
    if made.dimensions != job.dimensions:
        raise TidegateError(
            Code.EMBEDDING_DIMENSION,
            f"The provider sent vectors of {made.dimensions} dimensions, and of"
            f" {job.dimensions} before",
        )
    values = [
        (row[:-3], vector, _digest(job, row[-3]))
        for row, vector in zip(rows, made.vectors, strict=True)
    ]
    await _write(handle, job, values)


_Value = tuple[Sequence[Any], Sequence[float] | None, str | None]


async def _write(handle: Handle, job: Job, values: Sequence[_Value]) -> None:
    """One statement for a batch of rows. A row that changed its text meanwhile gets the vector of
    the old one, and the digest shows it."""
    sql = Sql(job.target)
    names = job.target.key
    lines: list[str] = []
    for key, vector, digest in values:
        parts = [
            f"{_typed(sql, name, value)} AS k{at}"
            for at, (name, value) in enumerate(zip(names, key, strict=True), 1)
        ]
        parts += [
            f"{_vector(sql, job, vector)} AS e",
            f"{_cast(sql, sql.value(digest), 'text')} AS d",
        ]
        lines.append(f"SELECT {', '.join(parts)}")
    same = " AND ".join(f"t.{sql.name(name)} = v.k{at}" for at, name in enumerate(names, 1))
    text = (
        f"UPDATE {sql.table} AS t SET {sql.name(job.vector)} = v.e, {sql.name(job.digest)} = v.d"
        f" FROM ({' UNION ALL '.join(lines)}) AS v WHERE {same}"
    )
    limits = Limits(max_rows=1, timeout_s=120.0)
    await handle(Query(Statement(text, tuple(sql.params)), limits=limits), Page)


def _typed(sql: Sql, name: str, value: Any) -> str:
    """A value of a key as its column's type: a union of parameters would be text."""
    column = next(each for each in sql.target.table.columns if each.name == name)
    return _cast(sql, sql.value(value), column.type)


def _cast(sql: Sql, term: str, type_: str) -> str:
    return term if find(sql.dialect).vectors == "bytes" else f"CAST({term} AS {type_})"


def _vector(sql: Sql, job: Job, vector: Sequence[float] | None) -> str:
    if vector is None:
        return _cast(sql, sql.value(None), job.type)
    kept = find(sql.dialect).vectors
    if kept == "typed":
        return _cast(sql, sql.value(vector_text(vector, job.type.partition("(")[0])), job.type)
    if kept == "arrays":
        return _cast(sql, sql.value(list(vector)), job.type)
    return sql.value(struct.pack(f"<{len(vector)}f", *vector))


async def switch(handle: Handle, job: Job) -> None:
    """Let a column that was filled beside another one take its name; the other keeps its vectors
    under a name that no search reads. Raises: TidegateError."""
    sql = Sql(job.target)
    base = job.vector.removesuffix(NEXT)
    there = {column.name for column in job.target.table.columns}
    renames: list[tuple[str, str]] = []
    for name in (base, f"{base}{DIGEST}"):
        if name in there:
            renames.append((name, f"{base}{OLD}{name.removeprefix(base)}"))
    renames += [(job.vector, base), (job.digest, f"{base}{DIGEST}")]
    for old, new in renames:
        text = f"ALTER TABLE {sql.table} RENAME COLUMN {sql.name(old)} TO {sql.name(new)}"
        await handle(Query(Statement(text)), Page)
