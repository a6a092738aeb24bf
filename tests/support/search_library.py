"""A small library of texts with vectors on PostgreSQL, SQLite and DuckDB, and searches of it."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

import support.postgres_server as postgres_server
from support.surface_gateway import HASHED, SqliteGate
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call
from tidegate.model.sources import Source
from tidegate.search.embeddings.hash_test import HashTestProvider
from tidegate.search.hybrid import Handle, search
from tidegate.search.model import SearchResult, SimilaritySearch

READER = Actor("tok_reader", "reader", Scope.READ_ONLY)

BOOKS: tuple[tuple[str, str], ...] = (
    ("Winter boots", "Red boots with a warm lining keep feet dry in deep snow and mud."),
    ("Summer sandals", "Light sandals for the beach, made of leather and cork."),
    ("Rain coats", "A coat that keeps rain and wind out on long walks in autumn."),
    ("Tax law", "How the income of companies is taxed, with examples of each rule."),
    ("Contract law", "Offers, acceptance and breach: the law of contracts in short."),
    ("Bread baking", "Flour, water, salt and time make bread with a crust that sings."),
    ("Soup kitchen", "Soups for cold days: lentils, leeks, potatoes and a little cream."),
    ("Night trains", "Across the continent by sleeping car, from station to station."),
    ("Mountain paths", "Paths above the tree line, with huts, maps and warnings of snow."),
    ("Garden ponds", "Digging, lining and planting a pond, and who will live in it."),
)


NOTES = tuple(f"{a}{b}" for a in ("bar", "cel", "dom", "fen", "gul", "hib", "jor") for b in (
    "ado", "ebi", "iku", "oma", "uzo", "yna",
))  # fmt: skip


def vectors_of(texts: Sequence[str]) -> list[tuple[float, ...]]:
    """The vectors that the provider of the library makes."""
    provider = HashTestProvider(HASHED.dimensions)
    return [provider.vector(text) for text in texts]


def vector_text(vector: Sequence[float]) -> str:
    return f"[{','.join(map(repr, vector))}]"


def library(rows: int = len(BOOKS)) -> list[tuple[int, str, str, str, int]]:
    """Rows (id, title, content, language, year); beyond the books they repeat them in variation.

    The variations have words of their own: of vectors that are nearly equal, HNSW makes groups that
    may have no way from one to the other, and then an index finds nothing that is near.
    """
    found: list[tuple[int, str, str, str, int]] = []
    for number in range(rows):
        title, content = BOOKS[number % len(BOOKS)]
        edition = number // len(BOOKS)
        if edition:
            notes = " ".join(random.Random(number).sample(NOTES, 10))
            title = f"{title} {edition}"
            content = f"{content} Edition {edition} of the series. Notes: {notes}."
        found.append(
            (number + 1, title, content, "de" if number % 10 == 9 else "en", 1990 + edition)
        )
    return found


def make_postgres(
    *extra: str,
    kind: str = "vector",
    rows: int = len(BOOKS),
    index: str = "cosine",
    server_kind: str = "wheel",
) -> str:
    """A database with the table `docs`; returns its URL. `index` is the metric of an HNSW index,
    empty for none; `extra` are statements that follow."""
    import psycopg

    server = postgres_server.shared(server_kind)
    name = server.new_database()
    lines = library(rows)
    vectors = vectors_of([content for _, _, content, *_ in lines])
    with psycopg.connect(server.conninfo(name), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        made = (
            "CREATE TABLE docs (id int PRIMARY KEY, title text, content text, lang text, year int,"
            f" content_embedding {kind}(16), words tsvector"
            " GENERATED ALWAYS AS (to_tsvector('english', title || ' ' || content)) STORED)"
        )
        connection.execute(made.encode())
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO docs VALUES (%s, %s, %s, %s, %s, %s::vector::{kind})".encode(),
                [(*line, vector_text(vector)) for line, vector in zip(lines, vectors, strict=True)],
            )
        if index:
            over = f"(content_embedding {kind}_{index}_ops)"
            connection.execute(f"CREATE INDEX docs_hnsw ON docs USING hnsw {over}".encode())
        connection.execute("CREATE INDEX docs_words ON docs USING gin (words)")
        for statement in extra:
            connection.execute(statement.encode())
        connection.execute("ANALYZE docs")
    return server.url(name)


def make_sqlite(path: Path, *extra: str, rows: int = len(BOOKS), fts: bool = True) -> str:
    """A file with the table `docs` and the FTS5 table `docs_fts` over it; returns its URL."""
    import apsw

    lines = library(rows)
    vectors = vectors_of([content for _, _, content, *_ in lines])
    connection = apsw.Connection(str(path))
    connection.execute(
        "CREATE TABLE docs (id INTEGER PRIMARY KEY, title TEXT, content TEXT, lang TEXT,"
        " year INTEGER, content_embedding BLOB)"
    )
    connection.executemany(
        "INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?)",
        [
            (*line, struct.pack(f"<{len(vector)}f", *vector))
            for line, vector in zip(lines, vectors, strict=True)
        ],
    )
    if fts:
        connection.execute(
            "CREATE VIRTUAL TABLE docs_fts USING fts5(title, content, content='docs',"
            " content_rowid='id', tokenize='porter')"
        )
        connection.execute("INSERT INTO docs_fts(docs_fts) VALUES ('rebuild')")
    for statement in extra:
        connection.execute(statement)
    connection.close()
    return f"sqlite:///{path}"


def make_duckdb(path: Path, *extra: str, rows: int = len(BOOKS), kind: str = "FLOAT[16]") -> str:
    """A file with the table `docs`; returns its URL."""
    import duckdb

    lines = library(rows)
    vectors = vectors_of([content for _, _, content, *_ in lines])
    connection = duckdb.connect(str(path))
    connection.execute(
        "CREATE TABLE docs (id INTEGER PRIMARY KEY, title VARCHAR, content VARCHAR, lang VARCHAR,"
        f" year INTEGER, content_embedding {kind})"
    )
    connection.executemany(
        "INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?)",
        [(*line, list(vector)) for line, vector in zip(lines, vectors, strict=True)],
    )
    for statement in extra:
        connection.execute(statement)
    connection.close()
    return f"duckdb:///{path}"


def source_of(url: str, **fields: Any) -> Source:
    dialect = {"postgresql": "postgres"}.get(url.partition(":")[0], url.partition(":")[0])
    return Source("s1", "library", url, dialect, dialect, **fields)


class Library:
    """A gate over one source with a table `docs`."""

    def __init__(self, directory: Path, url: str, **fields: Any) -> None:
        (directory / "state").mkdir(mode=0o700)
        embeddings = fields.pop("embeddings", HASHED)
        self.source = source_of(url, **fields)
        self.gate = SqliteGate(directory / "state", self.source, embeddings=embeddings)

    async def search(self, text: str, actor: Actor = READER, **wanted: Any) -> SearchResult:
        """Search `docs` as a surface would; arguments are as a client sends them."""
        arguments = {"table_name": "docs", "query_text": text, **wanted}
        request = msgspec.convert(arguments, SimilaritySearch)
        async with self.gate.opened() as gate:
            return await search(handle_of(gate, actor), request)


def handle_of(gate: SqliteGate, actor: Actor = READER) -> Handle:
    """Requests about the library, as the actor."""

    async def handle(request: Any, expected: Any) -> Any:
        call = Call(actor, "core", "search", request, "library", reads_only=True)
        payload = (await gate.handle(call)).payload
        assert isinstance(payload, expected)
        return payload

    return handle


def ids(result: SearchResult) -> list[int]:
    return [row.key["id"] for row in result.rows]
