"""A state directory that an older version filled is taken over without loss.

`older_state/make.py` made it with the commands of commit 2a83567.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from support.command_line import Ended, serving
from tidegate.approvals.approval_request import ApprovalRequest
from tidegate.errors import Code, TidegateError
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Verdict
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement, Statement
from tidegate.store.sqlite.state import SqliteState

OLDER = Path(__file__).parent / "older_state"
MADE_IN = "/tmp/tidegate-older-state"
EXPECTED: dict[str, Any] = json.loads((OLDER / "expected.json").read_text())
HOUR = 3600.0
WEEK = 6.5 * 24 * HOUR
"""A question waits for seven days."""
TIMES = {
    "approvals": ("asked_at", "decided_at", "ended_at"),
    "history": ("at",),
    "tokens": ("created_at", "expires_at", "last_used_at"),
}

Run = Callable[..., Ended]
Take = Callable[[float], Path]


def grant_of(source: Source, statement: str, actor: str, **place: str | None) -> str:
    """The digest that a grant of this version has for the same call."""
    judgement = Judgement(Effect.WRITE, "", "")
    caller = Actor(actor, actor, Scope.READ_WRITE)
    verdict = Verdict("ask", "", "")
    text = Statement(statement)
    return ApprovalRequest(caller, source, text, judgement, verdict, **place).digest


@pytest.fixture
def take(state: Path, tmp_path: Path) -> Take:
    """`take(age)` puts the older state where this version looks, `age` seconds old."""

    def put(age: float) -> Path:
        shutil.copytree(OLDER / "state", state, dirs_exist_ok=True)
        for path in state.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        database = tmp_path / "shop.db"
        with closing(sqlite3.connect(database)) as shop:
            shop.executescript(EXPECTED["shop"])
        path = state / "state.db"
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute((OLDER / "state.sql").read_text())
            later = time.time() - age - EXPECTED["made_at"]
            for table, columns in TIMES.items():
                moved = ", ".join(f"{name} = {name} + {later}" for name in columns)
                connection.execute(f"UPDATE {table} SET {moved}")
            move_database(connection, f"sqlite:///{database}")
        path.chmod(0o600)
        return database

    return put


def move_database(connection: apsw.Connection, url: str) -> None:
    """The URL of a source is in what a grant is bound to. First see that it is as it was."""
    (old,) = {row[0] for row in connection.execute("SELECT url FROM sources")}
    assert old == f"sqlite:///{MADE_IN}/shop.db"
    rows = connection.execute("SELECT id, digest, actor, subject FROM approvals").fetchall()
    assert len(rows) == len(EXPECTED["approvals"])
    for id, digest, actor, subject in rows:
        told = json.loads(subject)
        place = {name: told.get(name) for name in ("database", "schema")}
        asked = told["statement"], actor
        source = Source(told["source_id"], told["source"], old, "sqlite", "sqlite")
        assert grant_of(source, *asked, **place) == digest
        there = Source(told["source_id"], told["source"], url, "sqlite", "sqlite")
        moved = (grant_of(there, *asked, **place), id)
        connection.execute("UPDATE approvals SET digest = ? WHERE id = ?", moved)
    connection.execute("UPDATE sources SET url = ?", (url,))


def _without_hashes(rows: list[list[Any]]) -> list[list[Any]]:
    return [
        ["HASH" if re.fullmatch(r"[0-9a-f]{64}", str(cell)) else cell for cell in row]
        for row in rows
    ]


def test_sources_and_what_is_hidden_in_them_are_as_they_were(run: Run, take: Take) -> None:
    database = take(WEEK)
    listed = run("source", "list", "--json").json["sources"]
    found = {each["name"]: each for each in listed}
    assert set(found) == {"shop", "asks", "plain"}
    assert {each["url"] for each in listed} == {f"sqlite:///{database}"}
    shop, plain = found["shop"], found["plain"]
    assert (shop["access"], shop["approval_for"], shop["tags"]) == ("write", "writes", ["prod"])
    assert (plain["access"], plain["agents"]) == ("read", "deny")
    for sql, shown in EXPECTED["reads"].items():
        ended = run("query", "shop", sql, "--json")
        assert ended.status == 0, ended.err
        # The version before hashed with the installation's key, which a database could log.
        assert _without_hashes(ended.json["rows"]) == _without_hashes(shown["rows"])


def test_tokens_are_as_they_were_and_a_revoked_one_stays_revoked(
    run: Run, take: Take, state: Path
) -> None:
    take(WEEK)
    listed = run("token", "list", "--json").json["tokens"]
    assert {each["name"] for each in listed} >= {"claude", "reader"}
    kept = SqliteState(state / "state.db")
    tokens = Tokens(kept.tokens)
    secrets = EXPECTED["secrets"]
    claude, reader = tokens.verify(secrets["claude"]), tokens.verify(secrets["reader"])
    assert (claude.name, claude.scope) == ("claude", Scope.READ_WRITE)
    assert (claude.sources, claude.tables) == (frozenset({"shop"}), frozenset({"orders"}))
    assert (reader.name, reader.scope) == ("reader", Scope.READ_ONLY)
    assert reader.tags == frozenset({"prod"})
    with pytest.raises(TidegateError) as refused:
        tokens.verify(secrets["gone"])
    assert refused.value.code is Code.AUTH_INVALID
    tokens.close()
    kept.close()


def test_the_history_is_found_by_its_words(run: Run, take: Take, state: Path) -> None:
    take(WEEK)
    assert run("source", "list").status == 0
    kept = SqliteState(state / "state.db")
    span: dict[str, Any] = {"sources": None, "since": None, "until": None, "limit": 99}
    everything = kept.history.search([], **span)
    assert len(everything) == 7
    assert [entry.text for entry in everything if not entry.success] == [
        "SELECT nope FROM customers"
    ]
    reads = list(EXPECTED["reads"])
    assert {entry.text for entry in kept.history.search(["email"], **span)} == {reads[0]}
    assert {entry.source for entry in kept.history.search(["total"], **span)} == {"shop", "asks"}
    kept.close()


def test_after_a_week_a_question_still_waits_and_an_unused_grant_has_ended(
    run: Run, take: Take
) -> None:
    take(WEEK)
    ids = EXPECTED["approvals"]
    listed = run("approvals", "list", "--all", "--json").json["approvals"]
    assert {each["id"]: each["state"] for each in listed} == {
        ids["allowed"]: "expired",
        ids["used"]: "used",
        ids["denied"]: "denied",
        ids["pending"]: "pending",
    }
    (denied,) = (each for each in listed if each["state"] == "denied")
    assert denied["reason"] == "not these" and denied["decided_by"].startswith("cli:")
    shown = run("approvals", "show", ids["pending"]).out
    assert "DELETE FROM orders WHERE id = 3" in shown
    assert "1 row would be changed" in shown
    assert run("approvals", "allow", ids["pending"]).status == 0


def test_a_grant_of_an_hour_ago_is_used_once_by_the_call_it_was_given_for(
    run: Run, take: Take
) -> None:
    database = take(HOUR)
    subject = run("approvals", "show", EXPECTED["approvals"]["allowed"]).out
    assert "UPDATE orders SET total = 10 WHERE id = 1" in subject

    def totals() -> list[float]:
        with closing(sqlite3.connect(database)) as connection:
            return [row[0] for row in connection.execute("SELECT total FROM orders ORDER BY id")]

    with serving(["serve", "--surface", "core", "--allow-writes"], database.parent / "state") as to:
        arguments = {"sql": "UPDATE orders SET total = 10 WHERE id = 1", "source": "asks"}
        call = {"name": "query", "arguments": arguments}
        assert totals() == [9.5, 20.0, 7.25]
        assert "isError" not in to.ask("tools/call", call)["result"]
        assert totals() == [10.0, 20.0, 7.25]
        again = to.ask("tools/call", call)["result"]
        assert again["isError"] and "approval.needed" in again["content"][0]["text"]
    assert totals() == [10.0, 20.0, 7.25]


def test_the_record_verifies_with_the_checkpoint_that_was_kept_and_goes_on(
    run: Run, take: Take, state: Path
) -> None:
    take(WEEK)
    kept = EXPECTED["checkpoint"]
    before = run("audit", "verify", "--anchor", kept, "--key", EXPECTED["key"])
    assert before.status == 0, before.out
    assert before.out.startswith(EXPECTED["verified"].strip())
    assert run("audit", "key").out.strip() == EXPECTED["key"]
    assert run("query", "plain", "SELECT count(*) FROM orders").status == 0
    after = run("audit", "verify", "--anchor", kept, "--json")
    assert after.status == 0, after.out
    assert after.json["intact"]
    assert len(sorted((state / "audit").glob("*.jsonl"))) >= 4
    events = run("audit", "tail", "-n", "500").out
    assert "source.added" in events and "approval.denied" in events


def test_a_line_of_the_older_record_that_was_changed_is_found(
    run: Run, take: Take, state: Path
) -> None:
    take(WEEK)
    path = state / "audit" / "000002.jsonl"
    content = path.read_bytes()
    changed = content.replace(b"asks", b"ASKS", 1)
    assert changed != content
    path.write_bytes(changed)
    ended = run("audit", "verify")
    assert ended.status == 1
    assert "000002.jsonl" in ended.out and "the line was changed" in ended.out
