"""What the record and the history say of a call: who, by what, where, with what end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from tidegate.audit.log import AuditLog
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import Gateway
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Browse, Call, ListSources, Query, Request
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.results.row_stream import RowChannel
from tidegate.store.sqlite.state import SqliteState

WRITER = Actor("tok_1", "writer", Scope.READ_WRITE)
READER = Actor("tok_2", "reader", Scope.READ_ONLY)
GONE = {"seq", "time", "call_id", "elapsed_ms", "hash", "bytes"}
"""What differs from run to run."""


class Shop:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with apsw.Connection(str(directory / "shop.db")) as made:
            made.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
            made.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        url = f"sqlite:///{directory}/shop.db"
        source = Source("s1", "shop", url, "sqlite", "sqlite", access="write")
        odd = Source("s2", "odd", "odd://x", "odd", "odd")
        self.state = SqliteState(directory / "state.db")
        self.audit, self.history = AuditLog(directory / "audit"), History(self.state.history)
        self.connections = SourceConnections(self.state.sources, open_engine, [source, odd])
        self.gateway = Gateway(self.connections, self.audit, self.history)

    async def ask(self, request: Request | str, actor: Actor = WRITER, **more: Any) -> Any:
        wanted = Query(Statement(request)) if isinstance(request, str) else request
        call = Call(
            actor, "core", "query", wanted,
            **{"scope": Scope.READ_ONLY, "source": "shop", "client": "ide/1", **more},
        )  # fmt: skip
        return (await self.gateway.handle(call)).payload

    def lines(self) -> list[dict[str, Any]]:
        text = "".join(path.read_text() for path in sorted((self.directory / "audit").iterdir()))
        found = [json.loads(line) for line in text.splitlines()]
        return [line for line in found if line["phase"] in ("intent", "outcome", "refusal")]

    def events(self) -> list[dict[str, Any]]:
        return [
            {name: value for name, value in line.items() if name not in GONE}
            for line in self.lines()
        ]


@asynccontextmanager
async def shop(directory: Path) -> AsyncIterator[Shop]:
    built = Shop(directory)
    try:
        yield built
    finally:
        await built.connections.close()
        built.history.close()
        built.audit.close()
        built.state.close()


BASE = {
    "actor": "tok_1", "actor_name": "writer", "client": "ide/1", "surface": "core",
    "tool": "query", "source": "shop", "request": "query",
}  # fmt: skip
ALLOWED = {"verdict": "allow", "rule": "all"}


async def test_a_read_is_one_event_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        await built.ask("SELECT id FROM t")
        (line,) = built.lines()
        assert built.events() == [
            {
                **BASE, **ALLOWED, "phase": "outcome", "effect": "read", "rows": 2,
                "statement": "SELECT id FROM t", "digest": line["digest"],
                "statement_class": "select",
            }
        ]  # fmt: skip
        assert line["bytes"] > 0 and line["elapsed_ms"] >= 0 and line["call_id"]


async def test_a_read_whose_rows_leave_before_its_end_has_an_intent_before_them(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path) as built:
        channel = RowChannel()
        request = Query(Statement("SELECT id FROM t"), sink=channel)
        asking = asyncio.ensure_future(built.ask(request))
        asking.add_done_callback(lambda _: channel.end())
        phases: list[list[str]] = []
        async for _ in channel:
            phases.append([line["phase"] for line in built.lines()])
        await asking
        assert phases[0] == ["intent"]
        assert [line["phase"] for line in built.lines()] == ["intent", "outcome"]


async def test_a_change_has_an_intent_and_an_outcome_with_one_id(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        await built.ask("DELETE FROM t WHERE id < 2")
        intent, outcome = built.lines()
        assert (intent["phase"], outcome["phase"]) == ("intent", "outcome")
        assert intent["call_id"] == outcome["call_id"]
        assert intent["effect"] == outcome["effect"] == "write"
        assert "rows" not in intent and outcome["rows"] == 1
        assert intent["statement_class"] == outcome["statement_class"] == "delete"


async def test_a_refusal_names_the_code_the_rule_and_the_verdict(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        with pytest.raises(TidegateError) as refused:
            await built.ask("DELETE FROM t WHERE id = 1", READER)
        (event,) = built.events()
        assert event["phase"] == "refusal"
        assert (event["code"], event["rule"]) == ("policy.scope", "actor.writes")
        assert (event["verdict"], event["effect"]) == ("deny", "write")
        assert event["error"] == refused.value.message
        assert (event["actor"], event["actor_name"]) == ("tok_2", "reader")


async def test_a_statement_that_fails_has_an_outcome_with_the_error(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        with pytest.raises(TidegateError):
            await built.ask("SELECT nope FROM t")
        (event,) = built.events()
        assert (event["phase"], event["code"], event["verdict"]) == (
            "outcome",
            "sql.failed",
            "allow",
        )
        assert "nope" in event["error"]


async def test_a_call_that_finds_no_source_is_on_record_with_the_name_it_gave(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path) as built:
        with pytest.raises(TidegateError):
            await built.ask("SELECT 'hunter2' AS password", source="elsewhere")
        (event,) = built.events()
        assert (event["source"], event["code"]) == ("elsewhere", Code.SOURCE_UNKNOWN.value)
        assert "verdict" not in event and "effect" not in event and "rule" not in event
        assert "hunter2" not in json.dumps(event)


async def test_a_call_to_a_source_of_an_unknown_engine_keeps_no_secret_on_record(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path) as built:
        with pytest.raises(TidegateError):
            await built.ask("SELECT 'hunter2' AS password", source="odd")
        (event,) = built.events()
        assert event["source"] == "odd" and event["phase"] == "refusal"
        assert "hunter2" not in json.dumps(event)


async def test_metadata_is_on_record_with_how_much_there_was(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        await built.ask(Browse("catalog"))
        await built.ask(ListSources(), source=None)
        browsed, listed = built.events()
        assert (browsed["request"], browsed["effect"]) == ("browse", "read")
        assert "statement" not in browsed
        assert (listed["request"], listed["rows"]) == (ListSources.kind, 2)


async def test_the_history_has_what_ran_and_how_it_ended(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        await built.ask("SELECT id FROM t")
        await built.ask("DELETE FROM t WHERE id = 1")
        for text, actor in (("SELECT nope FROM t", WRITER), ("DELETE FROM t WHERE id = 2", READER)):
            with pytest.raises(TidegateError):
                await built.ask(text, actor)
        await built.ask(Browse("catalog"))
        built.history.flush()
        entries = built.history.search("", sources=None)
        assert [(entry.text, entry.row_count, entry.success) for entry in entries] == [
            ("SELECT nope FROM t", 0, False),
            ("DELETE FROM t WHERE id = 1", 1, True),
            ("SELECT id FROM t", 2, True),
        ]
        newest, *_ = entries
        assert "nope" in newest.error
        assert {entry.error for entry in entries if entry.success} == {""}
        assert (newest.source, newest.actor, newest.surface, newest.tool, newest.dialect) == (
            *("shop", "tok_1", "core", "query", "sqlite"),
        )
