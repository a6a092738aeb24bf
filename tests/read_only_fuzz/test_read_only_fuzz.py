"""Nothing that the judge calls a read changes anything, on four engines without fences; and what
does change something is seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.eventually import HANG_S

TESTS = Path(__file__).parents[1]
HUNT_S = 900
"""Far more than a hunt takes: it ends by its count."""
COUNT = 15_000
"""Distinct statements for each engine; the four make 60,000."""

EXECUTED = 4_000
SUCCEEDED = 1_500
"""Of them, the least that must be called reads and run, and that the database must take: a judge
that refused everything, or a database without the tables that are asked for, would prove nothing.
"""

CHANGES = {
    "sqlite": (
        "UPDATE t SET b = 'x'",
        "CREATE TABLE z (a)",
        "PRAGMA user_version = 7",
        "PRAGMA query_only = 1",
        "PRAGMA query_only = 0",
        "CREATE TEMP TABLE z2 (a)",
        "ATTACH 'new.db' AS other",
        "VACUUM INTO 'copy.db'",
        "INSERT INTO ft(ft) VALUES ('optimize')",
        "BEGIN",
    ),
    "duckdb": (
        "UPDATE t SET b = 'x'",
        "SELECT nextval('s')",
        "SELECT * FROM sly",
        "COPY t TO 'copy.csv'",
        "SET threads = 2",
        "SET VARIABLE q = 1",
        "CREATE TEMP TABLE z (a INTEGER)",
        "CREATE MACRO z(q) AS q",
        "PREPARE q AS SELECT 1",
        "ATTACH 'new.duckdb' AS other",
        "BEGIN",
        "EXPLAIN ANALYZE DELETE FROM t",
    ),
    "mysql": (
        "UPDATE t SET b = 'x'",
        "CREATE TABLE z (a INT)",
        "CREATE TEMPORARY TABLE z2 (a INT)",
        "SET GLOBAL max_connections = 98",
        "SET SESSION sort_buffer_size = 99999",
        "SET @q = 1",
        "CREATE USER mallory",
        "SELECT 1 INTO OUTFILE 'seen'",
        "INSERT INTO loose VALUES (2)",
        "SELECT NEXTVAL(s)",
        "SELECT spy()",
        "SELECT GET_LOCK('x', 0)",
        "BEGIN",
        "LOCK TABLES t READ",
    ),
    "postgres": (
        "UPDATE t SET b = 'x' WHERE a = 1",
        "CREATE TABLE z (a int)",
        "CREATE TEMP TABLE z2 (a int)",
        "SELECT nextval('s')",
        "SELECT * FROM u FOR UPDATE",
        "SELECT * FROM sly",
        "SELECT set_config('work_mem', '99', false)",
        "ALTER SYSTEM SET work_mem = 99",
        "SELECT pg_advisory_lock(1)",
        "SELECT lo_create(0)",
        "SELECT lo_export(4711, '{folder}/lo')",
        "COPY u TO PROGRAM 'touch {folder}/copied'",
        "TABLE prog",
        "LISTEN q",
        "PREPARE q AS SELECT 1",
        "DECLARE q CURSOR WITH HOLD FOR SELECT 1",
        "SELECT pg_create_physical_replication_slot('q')",
        "CREATE ROLE mallory",
        "SELECT pg_stat_reset()",
        "BEGIN",
    ),
}


def engine(name: str) -> Any:
    """The engine as a parameter, skipped where its server is not there."""
    there = {"mysql": mysql_server.available(), "postgres": bool(postgres_server.available())}
    mark = pytest.mark.skipif(not there.get(name, True), reason=f"needs a server of {name}")
    return pytest.param(name, marks=mark)


ENGINES = [engine(name) for name in CHANGES]


def ran(*command: str, said: str = "", limit_s: float = 0.2) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which a statement may bring down and whose folder may change."""
    return subprocess.run(
        [sys.executable, "-m", *command],
        input=said,
        capture_output=True,
        text=True,
        timeout=HUNT_S + HANG_S,
        env={**os.environ, "PYTHONPATH": str(TESTS), "TIDEGATE_HUNT_LIMIT_S": str(limit_s)},
        check=False,
    )


@pytest.mark.parametrize("name", ENGINES)
def test_generated_reads_leave_everything_as_it_was(name: str) -> None:
    limit = str(HUNT_S // 60)
    done = ran("read_only_fuzz", "--engine", name, "--count", str(COUNT), "--minutes", limit)
    assert done.stdout, done.stderr
    summary = json.loads(done.stdout)
    assert summary["finds"] == []
    assert (done.returncode, summary["changed"]) == (0, 0)
    assert summary["generated"] >= COUNT, summary
    assert summary["executed"] >= EXECUTED, summary
    assert summary["executed"] - summary["failed"] >= SUCCEEDED, summary


@pytest.mark.parametrize("name", ENGINES)
def test_the_digest_sees_every_kind_of_change(name: str) -> None:
    harmless = "SELECT * FROM t"
    said = "\n".join((harmless, *CHANGES[name], harmless))
    done = ran("read_only_fuzz.digest", name, said=said, limit_s=30)
    assert done.returncode == 0, done.stderr
    first, *seen, last = [json.loads(line) for line in done.stdout.splitlines()]
    unseen = [change for change, parts in zip(CHANGES[name], seen, strict=True) if not parts]
    assert (first, unseen, last) == ([], [], [])


@pytest.mark.parametrize(
    ("name", "planted", "least"),
    [
        ("sqlite", "/* x */ DELETE FROM u WHERE a > 1 -- y", "DELETE FROM u"),
        ("duckdb", "SELECT nextval('s') AS n", "SELECT nextval('s') AS n"),
    ],
)
def test_a_planted_false_read_is_found(name: str, planted: str, least: str) -> None:
    done = ran("read_only_fuzz", "--engine", name, "--count", "500", "--plant", planted, limit_s=2)
    (find,) = json.loads(done.stdout)["finds"]
    assert done.returncode == 1
    assert find["text"] == planted
    assert find["minimal"] in (planted, least)
    assert find["changed"]
