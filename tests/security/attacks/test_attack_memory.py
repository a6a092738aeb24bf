"""Attacks on the memory: results that are small to ask for and large to hold."""

from __future__ import annotations

import json
import socket
from collections.abc import Generator
from contextlib import ExitStack

import apsw
import pytest

from support.attack_target import Target, headers_of, target, tool_call
from support.eventually import PATIENCE_S
from tidegate.edges.http1.server import MOST_UNREAD
from tidegate.engines.sqlite.cost_estimate import CostEstimate
from tidegate.errors import TidegateError
from tidegate.gateway.result_cache import (
    MAX_CACHE_BYTES,
    MAX_KEPT_BYTES,
    CachedResult,
    ResultCache,
    RowBuffer,
)
from tidegate.model.requests import Query
from tidegate.model.results import Column
from tidegate.model.statements import Statement

MOST_MB = 700
"""One row's 64 MB, in several forms at once, and what the server takes anyway."""

MANY_CLIENTS = 90


@pytest.fixture
def server(tmp_path) -> Generator[Target]:
    """One of its own: it is the most memory that a process ever had that is looked at."""
    with target(tmp_path, "--no-auth") as running:
        yield running


def rows(count: int, what: str) -> str:
    return (
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
        f" SELECT {what} FROM n"
    )


COPIES = "WITH c AS MATERIALIZED (SELECT zeroblob(16000000) AS z) SELECT {} FROM c"


@pytest.mark.parametrize(
    ("text", "max_rows"),
    [
        (COPIES.format(",".join(["z"] * 300)), 1),
        (COPIES.format(",".join(["z"] * 4)), 1),
        (rows(2_000, "CASE WHEN i < 3 THEN 1 ELSE zeroblob(4000000) END"), 1),
        (rows(2_000, "CASE WHEN i < 1200 THEN 1 ELSE zeroblob(4000000) END"), 10_000),
        (rows(2_000, "CASE WHEN i % 2 THEN 1 ELSE zeroblob(4000000) END"), 10_000),
        (rows(2_000, "replace(hex(zeroblob(400000)), '00', char(1))"), 1),
    ],
    ids=["one wide row", "one large row", "shelved", "after small ones", "in turns", "escaped"],
)
def test_a_large_result_is_cut_before_it_is_held(server: Target, text: str, max_rows: int) -> None:
    answer = server.query(text, max_rows=max_rows)
    assert answer.status == 200
    assert server.memory_mb() < MOST_MB
    assert server.query("SELECT 1").text == '{"columns":["1"],"rows":[[1]]}'


def test_shelved_results_are_bounded_together(server: Target) -> None:
    text = rows(4_900, ",".join(["i * 0.5"] * 300))
    for _ in range(12):
        assert server.query(text, max_rows=1).status == 200
    assert server.memory_mb() < MOST_MB


def test_clients_that_read_no_replies_take_bounded_memory(server: Target) -> None:
    """Each reply is the largest that the limits permit: 4 MiB of rows, which the text of a tool's
    result writes with two bytes for each quote."""
    text = rows(2_000, """replace(hex(zeroblob(2000)), '00', '"')""")
    request = json.dumps(tool_call("query", sql=text, max_rows=10_000)).encode()
    names = {"Content-Type": "application/json", "Accept": "*/*", **headers_of("query")}
    lines = "".join(f"{name}: {value}\r\n" for name, value in names.items())
    head = f"POST /mcp/core HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}"
    clients: list[socket.socket] = []
    with ExitStack() as stack:
        for _ in range(MANY_CLIENTS):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.settimeout(PATIENCE_S)
            client.connect(("127.0.0.1", server.port))
            client.sendall(f"{head}Content-Length: {len(request)}\r\n\r\n".encode() + request)
            start = client.recv(400)  # its reply has begun; the rest stays in the server
            assert start.startswith(b"HTTP/1.1 200 OK\r\n")
            clients.append(client)
        size = int(start.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        assert size > 7_000_000
        assert size * MANY_CLIENTS > 2 * MOST_UNREAD
        assert server.memory_mb() < MOST_MB
        assert server.query("SELECT 1").text == '{"columns":["1"],"rows":[[1]]}'
        left = len(start.partition(b"\r\n\r\n")[2])
        while part := client.recv(1_000_000):  # the last one reads on, and gets all
            left += len(part)
            if left == size:
                break
        assert left == size


def test_more_shows_the_same_rows_as_one_large_page(server: Target) -> None:
    text = rows(1_500, "i, 'é' || i, i / 4.0, NULL, i * 9007199254740993, zeroblob(2), 9e999")
    whole = json.loads(server.query(text, max_rows=2_000).text)["rows"]
    page = json.loads(server.query(text, max_rows=100).text)
    shown = list(page["rows"])
    while handle := page.get("more"):
        page = json.loads(server.call("more", handle=handle, max_rows=333).text)
        shown += page["rows"]
    assert len(shown) == 1_500
    assert shown == whole


def test_a_handle_works_for_its_actor_and_source_alone() -> None:
    result_cache = ResultCache()
    handle = result_cache.put(cached(1_000))
    for actor, source in (("other", "s"), ("a", "other")):
        with pytest.raises(TidegateError):
            result_cache.take(handle, actor, source)
    assert result_cache.take(handle, "a", "s").take(1) == [["x" * 1_000]]
    with pytest.raises(TidegateError):
        result_cache.take(handle, "a", "s")


def test_the_shelf_makes_room_by_size() -> None:
    result_cache = ResultCache()
    size = MAX_KEPT_BYTES - 100
    handles = [result_cache.put(cached(size)) for _ in range(12)]
    kept = []
    for handle in handles:
        try:
            kept.append(result_cache.take(handle, "a", "s"))
        except TidegateError:
            continue
    assert len(kept) == MAX_CACHE_BYTES // size
    assert result_cache.put(cached(size))


def cached(size: int) -> CachedResult:
    query = Query(Statement("SELECT 1"))
    return CachedResult("a", "s", query, (Column("x", ""),), RowBuffer(query, [("x" * size,)]))


@pytest.mark.parametrize(
    ("text", "small"),
    [
        ("SELECT 1", True),
        ("SELECT " + ", ".join(f"{n} || 'x'" for n in range(1_000)), False),
        ("SELECT 1" + " UNION SELECT 1" * 300, False),
    ],
)
def test_only_small_programs_are_kept_for_the_next_time(text: str, small: bool) -> None:
    connection = apsw.Connection(":memory:")
    assert CostEstimate(connection.execute(text, explain=1).fetchall()).small is small
