"""Each write that uses something up, run from two connections whose transactions overlap.

SQLite's write lock lets one transaction in at a time and so hides what a statement forgets. Here
PostgreSQL runs the very statements of the store: the first has changed the row and not committed
yet when the second, which has seen the row unchanged, waits for it.
"""

import re
import threading

import pytest

import support.postgres_server as postgres_server
from support.eventually import PATIENCE_S, wait_until
from tidegate.store.sqlite import approvals, budgets, operators, pairings

TABLES = """
CREATE TABLE approvals (serial int, id text, digest text, state text, decided_at float8,
    decided_by text, reason text, ended_at float8, until float8, uses int DEFAULT 0,
    most_uses int DEFAULT 1);
INSERT INTO approvals VALUES (1, 'granted', 'd', 'allowed', 100, '', '', NULL),
    (2, 'asked', 'e', 'pending', NULL, '', '', NULL);
CREATE TABLE operator_links (digest text, operator text, expires_at float8);
INSERT INTO operator_links VALUES ('l', 'ann', 1000);
CREATE TABLE pairings (id text, state text, expires_at float8, token_name text, granted text);
INSERT INTO pairings VALUES ('asked', 'pending', 1000, '', NULL),
    ('code', 'approved', 1000, '', '{}');
CREATE TABLE budgets (id text, amount bigint);
CREATE TABLE budget_use (budget text, began bigint, amount bigint, taken bigint, granted bigint,
    PRIMARY KEY (budget, began));
INSERT INTO budgets VALUES ('new', 5), ('used', 100);
INSERT INTO budget_use VALUES ('used', 60, 100, 97, 97);
"""
WRITES = {
    "a grant is used": (
        approvals.USE_GRANT,
        {"now": 200.0, "digest": "d", "since": 0.0, "latest": 260.0},
    ),
    "a request is decided": (
        approvals.DECIDE,
        {
            "state": "allowed", "by": "ann", "reason": "", "now": 200.0, "id": "asked",
            "until": None, "most_uses": 1,
        },
    ),
    "a link is used": (operators.USE_LINK, {"digest": "l", "now": 200.0, "latest": 5_000.0}),
    "a pairing is decided": (
        pairings.DECIDE,
        {
            "state": "approved", "expires_at": 2000.0, "token_name": "t", "granted": "{}",
            "id": "asked", "now": 200.0,
        },
    ),
    "the last of a budget is taken": (budgets.TAKE, {"id": "used", "began": 60, "need": 3}),
    "the first of a budget is taken": (budgets.TAKE, {"id": "new", "began": 60, "need": 5}),
    "a code is exchanged": (
        pairings.END,
        {"state": "exchanged", "id": "code", "was": "approved"},
    ),
}  # fmt: skip


@pytest.mark.skipif(not postgres_server.available(), reason="PostgreSQL is not installed")
@pytest.mark.parametrize("name", sorted(WRITES))
def test_b13_one_of_two_overlapping_transactions_gets_it(name):
    import psycopg

    statement, values = WRITES[name]
    statement = re.sub(r":(\w+)", r"%(\1)s", statement)
    server = postgres_server.shared(sorted(postgres_server.available())[-1])
    info = server.conninfo(server.new_database())
    with psycopg.connect(info) as first, psycopg.connect(info) as second:
        first.execute(TABLES)
        first.commit()
        counts = [first.execute(statement, values).rowcount]

        def run_second():
            counts.append(second.execute(statement, values).rowcount)
            second.commit()

        other = threading.Thread(target=run_second)
        other.start()
        pid = second.info.backend_pid
        with psycopg.connect(info, autocommit=True) as watcher:
            wait_until(
                lambda: watcher.execute(
                    "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'",
                    [pid],
                ).fetchone(),
                "the second statement to wait for the first",
            )
        first.commit()
        other.join(PATIENCE_S)
    assert counts == [1, 0]
