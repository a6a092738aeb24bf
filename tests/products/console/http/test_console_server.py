"""The panels of a server over HTTP: what they show, to whom, and how a session is cancelled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.audit_records import records
from support.console_visitor import Visitor
from support.data_desk import PASSPHRASE, Desk, answer, desk
from support.eventually import wait_until

SLEEPS = {"pg": "SELECT pg_sleep(60) AS slept", "maria": "SELECT SLEEP(60) AS slept"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    flags = {name: ["--changes", "allow"] for name in ("pg", "maria")}
    directory = tmp_path_factory.mktemp("server")
    with desk(directory, ("lite", "duck", "pg", "maria"), flags, masks=False) as found:
        yield found


def read(visitor: Visitor, source: str) -> dict[str, Any]:
    found: dict[str, Any] = answer(visitor.get(f"data/server?source={source}"))
    return found


def rows(found: dict[str, Any], panel: str) -> list[dict[str, str | None]]:
    shown = found["panels"][panel]
    return [dict(zip(shown["columns"], row, strict=True)) for row in shown["rows"]]


@pytest.mark.parametrize("source", ["lite", "duck", "pg", "maria"])
def test_each_engine_shows_its_sizes_and_memory_or_says_why_not(place: Desk, source: str) -> None:
    found = read(place.visitor(), source)
    assert {"orders", "customers"} <= {each["table"] for each in rows(found, "sizes")}
    assert all(each["value"] for each in rows(found, "memory"))
    without = [name for name, each in found["panels"].items() if each["reason"]]
    if source in ("lite", "duck"):
        assert without == ["rights", "sessions", "blocking", "statements"]
        assert not found["may_cancel"]
    else:
        assert set(without) <= {"statements"}
        assert found["may_cancel"]


@pytest.mark.parametrize("source", ["pg", "maria"])
def test_texts_of_others_are_for_admins_alone(place: Desk, source: str) -> None:
    mine = read(place.visitor("ada"), source)
    assert any(each["query"] for each in rows(mine, "sessions"))
    theirs = read(place.visitor("vera"), source)
    assert theirs["panels"]["sessions"]["rows"]
    assert "query" not in theirs["panels"]["sessions"]["columns"]
    assert "Only an admin" in theirs["panels"]["sessions"]["without_texts"]
    assert "Only an admin" in theirs["panels"]["statements"]["reason"]
    assert not theirs["may_cancel"]
    assert theirs["slow"]["own"] and not mine["slow"]["own"]


def test_no_text_and_no_size_is_shown_where_masks_bind(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with desk(tmp_path_factory.mktemp("masked"), ("lite", "pg"), operators=False) as found:
        file, panels = [read(found.visitor(), source)["panels"] for source in ("lite", "pg")]
    assert file["memory"]["rows"] == [] and "hidden from this caller" in file["memory"]["reason"]
    assert "query" not in panels["sessions"]["columns"] and panels["sessions"]["rows"]
    for name in ("statements", "sizes", "blocking", "memory"):
        assert panels[name]["rows"] == []
        assert "hidden from this caller" in panels[name]["reason"]


def test_slow_statements_come_from_the_history(place: Desk) -> None:
    visitor = place.visitor()
    run = answer(visitor.post("data/runs", {"source": "lite", "statement": "SELECT 42 AS slow"}))
    wait_until(
        lambda: answer(visitor.get(f"data/runs/{run['id']}"))["ended_at"] is not None, "the end"
    )
    statements = [each["statement"] for each in read(visitor, "lite")["slow"]["statements"]]
    assert "SELECT 42 AS slow" in statements


@pytest.mark.parametrize("source", ["pg", "maria"])
def test_a_session_is_cancelled_once_a_person_has_said_yes(place: Desk, source: str) -> None:
    visitor = place.visitor()
    sleeper, failed = begin_sleep(place, source)

    def sleeping() -> dict[str, str | None] | None:
        found = rows(read(visitor, source), "sessions")
        return next((each for each in found if each["query"] == SLEEPS[source]), None)

    session = wait_until(sleeping, "the session that sleeps")
    assert session is not None
    body = {"source": source, "session": session["id"], "started": session["started"]}
    other = {**body, "started": f"{session['started']}x"}
    viewer = place.visitor("vera").post("data/server/cancel", body)
    assert viewer.status_code in (400, 403), viewer.text

    wrong = cancelled(place, visitor, other)
    assert wrong.status_code == 400, wrong.text
    assert sleeper.is_alive()
    assert answer(cancelled(place, visitor, body))["state"] == "cancelled"
    sleeper.join(timeout=30)
    assert not sleeper.is_alive() and failed
    lines = [each for each in records(place.state) if each.get("request") == "cancel_session"]
    assert {each["phase"] for each in lines} >= {"refusal", "intent", "outcome"}


def cancelled(place: Desk, visitor: Visitor, body: dict[str, Any]) -> httpx.Response:
    """Ask, have another operator allow it, and send it again."""
    asked = answer(visitor.post("data/server/cancel", body))
    assert asked["state"] == "asked"
    allow(place.visitor("pru"), asked["approval"])
    return visitor.post("data/server/cancel", body)


def allow(visitor: Visitor, id: str) -> None:
    inbox = answer(visitor.get("inbox"))["pending"]
    card = next(each for each in inbox if each["id"] == id)
    assert "".join(text for _, text in card["statement"]).startswith("CANCEL SESSION")
    body = {"digest": card["digest"], "passphrase": PASSPHRASE}
    answer(visitor.post(f"inbox/{id}/allow", body))


def begin_sleep(place: Desk, source: str) -> tuple[threading.Thread, list[str]]:
    """A statement that sleeps in another session of the server."""
    failed: list[str] = []

    def sleep() -> None:
        try:
            if source == "pg":
                postgres_server.shared().ask(SLEEPS[source])
            else:
                failed.append(str(mysql_server.shared().script(SLEEPS[source])))
        except Exception as error:  # noqa: BLE001 - whatever the driver raises
            failed.append(str(error))

    thread = threading.Thread(target=sleep, daemon=True)
    thread.start()
    return thread, failed


@pytest.mark.parametrize(
    ("source", "grants"),
    [
        ("plain_pg", {"GRANT pg_read_all_stats TO teller", "GRANT pg_signal_backend TO teller"}),
        ("plain_maria", {"GRANT PROCESS ON *.* TO 'reader'@'%'"}),
    ],
)
def test_what_the_account_may_not_see_is_named_with_its_grant(
    place: Desk, source: str, grants: set[str]
) -> None:
    if source == "plain_pg":
        server = postgres_server.shared()
        server.ask("DROP ROLE IF EXISTS teller")
        server.ask("CREATE ROLE teller LOGIN")
        url = server.url(user="teller")
    else:
        url = mysql_server.shared().url(user="reader")
    words = ["source", "add", source, url]
    added = place.run(*words, "--passphrase-file", str(place.directory / "consent"))
    assert added.status == 0, added.err
    visitor = place.visitor()
    found = wait_until(lambda: read(visitor, source) if is_there(visitor, source) else None, "it")
    assert found is not None
    missing = {each["grant"] for each in rows(found, "rights") if each["granted"] == "false"}
    assert grants <= missing
    if source == "plain_maria":
        assert "PROCESS" in found["panels"]["blocking"]["reason"]


def is_there(visitor: Visitor, source: str) -> bool:
    return any(each["name"] == source for each in answer(visitor.get("data/sources"))["sources"])
