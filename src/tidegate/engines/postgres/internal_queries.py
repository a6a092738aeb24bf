"""Queries of ours in an open transaction, for dry runs and for changes that are kept."""

from __future__ import annotations

from collections.abc import Iterable

from psycopg.pq.abc import PGresult

from tidegate.engines.postgres.command_protocol import FAILED, Params
from tidegate.engines.postgres.connection import PostgresSession
from tidegate.engines.postgres.errors import translate
from tidegate.engines.postgres.types import Reader, Rows


async def send_queries(session: PostgresSession, *queries: tuple[bytes, Params]) -> list[PGresult]:
    """Run queries in the open transaction; a result each. Raises: TidegateError."""
    line = session.line
    line.send(*queries)
    await line.sync()
    results: list[PGresult] = []
    for _ in queries:
        result = await session.only_result()
        if result.status in FAILED:
            raise translate(result)
        results.append(result)
    while line.unanswered:
        await line.result()
    return results


def rows_of(result: PGresult) -> Rows:
    """The rows of a result, as values."""
    return Reader.of(result).rows(result)


def array_of(names: Iterable[str]) -> str:
    """Names as the text of an array of texts."""
    return "{" + ",".join(map(_element, names)) + "}"


def _element(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
