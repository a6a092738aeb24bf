"""Conversations over HTTP of which each is held twice: once with a server that takes every short
way, and once with one that finds everything out again for each call.

A short way is what spares a call some work because of an earlier one, or because its rows are
plain: see decisions 99 and 100."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from msgspec import structs

from support.audit_records import records
from support.eventually import LOOK_S
from support.surface_client import modern_meta
from support.surface_shop import build_shop
from tidegate.app import App
from tidegate.config.loading import load
from tidegate.config.reload import ConfigWatcher
from tidegate.gateway import decision
from tidegate.model.actors import Scope
from tidegate.model.budgets import Budget, Measure
from tidegate.protocol.repeated_calls import RepeatedCalls
from tidegate.results import numbers
from tidegate.serve.edges import open_http
from tidegate.serve.settings_following import follow_settings
from tidegate.sql.masking import rewrite
from tidegate.store.records import TokenRights

MODERN = "2026-07-28"
META = modern_meta("tests", elicitation={})
OWN_TRACE = "c0ffee"
"""With this the ids of traces begin that a conversation names itself: they are compared."""
# Each match begins with one of a set of characters, which are found much faster than alternatives.
VARYING = re.compile(
    r'["\\0-9a-fTWwr](?:(?<=")(?:requestState":"[^"]*"|retry_after_s\\*":[\d.]+)'
    r'|(?<=["\\])(?:(?<=\\)\\*")?more\\*":\\*"[^"\\]*\\*"'
    rf"|(?<=[0-9a-f])(?:(?<![0-9a-f].)(?!(?<={OWN_TRACE[0]}){OWN_TRACE[1:]})[0-9a-f]{{9,}}"
    r"|(?<=\d)\d{3}-\d\d-\d\d(?:T[\d:.]+(?:Z|\+00:00)?| \d\d:\d\d:\d\d UTC))"
    r"|(?<=T)here is no result '[^']*'|(?<=[Ww])ait \d+ seconds|(?<=r)etry-after: \d+)"
)
"""What differs from one run to the next: seals, ids and codes, moments, how long to wait, and
handles of results, of which most look like secrets, and are left out of the record, and some do
not."""
SIZES = re.compile(r"(content-length|date): .*\r\n")
UNLIKE = frozenset({"time", "elapsed_ms"})


def off(*_: Any) -> None:
    """In the place of a short way: there is none."""


ShortWays = tuple[tuple[Any, str, Callable[..., Any]], ...]
SHORT_WAYS: ShortWays = (
    (RepeatedCalls, "find", off),
    (decision, "_alike", off),
    (rewrite, "_framed", off),
    (numbers, "have_floats_only_at", off),
)
"""Where each begins, and what is there when it is turned off."""
NUMBER = re.compile(r"(?<![\w.'\"])\d{1,3}(?![\w.'\"])")
COMPARED = re.compile(r"(?<=[=<>] ')[^'\"]+(?=')")


def with_other_values(sql: str) -> str:
    """A statement that differs in its plain values only, as a rule."""
    return COMPARED.sub("x", NUMBER.sub(lambda found: str(int(found[0]) + 13), sql))


class Reply(NamedTuple):
    """`text` is the body as it was sent."""

    status: int
    text: str

    @property
    def result(self) -> dict[str, Any]:
        return json.loads(self.text)["result"]


class Desk:
    """A running server over the sample shop, the file of its settings, and what was replied."""

    def __init__(self, directory: Path, settings: dict[str, Any], source: dict[str, Any]) -> None:
        self.shop = build_shop(directory / "shop.db")
        self.state = directory / "state"
        self._file = directory / "tidegate.json"
        self._settings = settings
        self.write(**source)
        self.app = App.open(load(str(self._file)))
        follow_settings(
            self.app, ConfigWatcher(self._file), lambda: load(str(self._file)), lambda said: None
        )
        self.edge = open_http(self.app, "127.0.0.1", 0)
        self.replies: list[str] = []
        self.writers: list[asyncio.StreamWriter] = []

    def write(self, **source: Any) -> None:
        """Declare the source anew."""
        declared = {"name": "shop", "url": f"sqlite:///{self.shop}", **source}
        settings = {"state": str(self.state), "sources": [declared], "http": "127.0.0.1:0"}
        self._file.write_text(json.dumps(settings | self._settings))
        self._file.chmod(0o600)

    def set_budget(self, amount: int, measure: Measure = "calls", **about: Any) -> None:
        """Give a budget of a day; `about` names its token or its source."""
        wanted = Budget("", measure, "day", amount, **about)
        self.app.budgets.set(wanted, self.app.budgets.find(wanted), "cli:ann")

    def token(self, name: str = "tests", scope: Scope = Scope.FULL_ACCESS) -> str:
        return self.app.tokens.create(name, TokenRights(scope))[0]

    def narrow(self, name: str, **rights: Any) -> None:
        """Give a token other rights."""
        entry = self.app.tokens.find(name)
        self.app.tokens.change(structs.replace(entry, **rights), entry)

    async def line(self, token: str, **headers: str) -> Line:
        port = urlsplit(self.edge.name).port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        self.writers.append(writer)
        return Line(self, token, headers, (reader, writer))


class Line:
    """One connection, and the headers that each request on it has."""

    def __init__(
        self,
        desk: Desk,
        token: str,
        headers: dict[str, str],
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._desk = desk
        self._reader, self._writer = streams
        self._token = token
        self._headers = headers
        self._number = 9
        self._begun = b""

    def beside(self, token: str, **headers: str) -> Line:
        """Another client on the same connection, as behind a proxy."""
        return Line(self._desk, token, headers, (self._reader, self._writer))

    async def call(self, arguments: dict[str, Any], **given: Any) -> Reply:
        """Call a tool, as `send` does, and read the reply."""
        self.send(arguments, **given)
        return await self.read()

    def send(
        self,
        arguments: dict[str, Any],
        *,
        name: str = "query",
        apart: bool = False,
        meta: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        **params: Any,
    ) -> None:
        """Send a call of a tool. `apart`: what comes at once is not one whole request, so its head
        is read by the parser; the next request has begun with it."""
        params = {"name": name, "arguments": arguments, "_meta": META | (meta or {}), **params}
        self.send_frame("tools/call", name, params, apart=apart, headers=headers)

    def send_frame(
        self,
        method: str,
        name: str,
        params: dict[str, Any],
        *,
        apart: bool = False,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Send a request of any method; `name` is that of what it is about."""
        self._number += 1
        call = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        body = json.dumps(call, ensure_ascii=self._number % 2 == 0).encode()
        given = {
            "Host": "127.0.0.1", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self._token}", "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method, "Mcp-Name": name, **self._headers, **(headers or {}),
            "Content-Length": str(len(body)),
        }  # fmt: skip
        lines = [f"{key.replace('_', '-')}: {value}\r\n" for key, value in given.items()]
        head = f"POST /mcp HTTP/1.1\r\n{''.join(lines)}\r\n".encode()
        sent, self._begun = self._begun, b"P" if apart else b""
        self._writer.write((head + body).removeprefix(sent) + self._begun)

    async def until_ended(self, task: str, meta: dict[str, Any]) -> Reply:
        """The reply about a task that has ended; those before it are not kept."""
        replies, kept, number = self._desk.replies, len(self._desk.replies), self._number
        for _ in range(1_000):
            self.send_frame("tasks/get", task, {"taskId": task, "_meta": meta})
            reply = await self.read()
            if reply.result["status"] not in ("working", "input_required"):
                return reply
            del replies[kept:]
            self._number = number
            await asyncio.sleep(LOOK_S)
        raise AssertionError("the task has not ended")

    def leave(self) -> None:
        self._writer.close()

    async def read(self) -> Reply:
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = re.search(rb"content-length: (\d+)", head)
        if length is not None:
            text = (await self._reader.readexactly(int(length[1]))).decode()
        else:
            assert b"transfer-encoding: chunked" in head, head
            text = ""
            while size := int(await self._reader.readuntil(b"\r\n"), 16):
                text += (await self._reader.readexactly(size)).decode()
                await self._reader.readexactly(2)
            await self._reader.readexactly(2)
        whole = SIZES.sub("", head.decode()) + text
        self._desk.replies.append(VARYING.sub("#", whole.replace(str(self._desk.shop), "shop.db")))
        status = int(head.split(b" ")[1])
        return Reply(status, text)


Script = Callable[[Desk], Awaitable[None]]


async def hold(directory: Path, script: Script, settings: Any, source: Any) -> Any:
    """Replies, records, history and tables after a conversation."""
    desk = Desk(directory, settings, source)
    await desk.edge.start()
    try:
        await script(desk)
        history = [
            structs.replace(entry, at=0, elapsed_ms=0, actor="", database="")
            for entry in desk.app.history.search(limit=10_000)
        ]
    finally:
        for writer in desk.writers:
            writer.close()
        await desk.edge.stop(0)
        await desk.app.close()
    with closing(sqlite3.connect(desk.shop)) as shop:
        return desk.replies, told(desk.state), history, list(shop.iterdump())


def told(state: Path) -> list[str]:
    """The record, without what no two calls have in common."""
    return [
        VARYING.sub("#", json.dumps({k: v for k, v in line.items() if k not in UNLIKE}))
        for line in records(state)
    ]


def unlike(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The pairs that differ."""
    return [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]


def compare(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: Script,
    *,
    settings: dict[str, Any] | None = None,
    also: ShortWays = (),
    **source: Any,
) -> list[bool]:
    """Hold a conversation in both ways, and fail unless each says and leaves the same. Returns, for
    each call that was looked at, whether it was recognized by its bytes. `also` are short ways of
    a product."""
    found = RepeatedCalls.find
    recognized: list[bool] = []

    def counted(self: RepeatedCalls, *given: Any) -> Any:
        call = found(self, *given)
        recognized.append(call is not None)
        return call

    left: dict[str, Any] = {}
    for way in ("short", "whole"):
        place = directory / way
        place.mkdir()
        with monkeypatch.context() as patch:
            if way == "whole":
                turn_off(patch, also)
            else:
                patch.setattr(RepeatedCalls, "find", counted)
            left[way] = asyncio.run(hold(place, script, settings or {}, source))
    for one, other in zip(left["short"], left["whole"], strict=True):
        differing = unlike(one, other)
        assert not differing, differing
    return recognized


def turn_off(monkeypatch: pytest.MonkeyPatch, also: ShortWays = ()) -> None:
    """Find everything out again for each call."""
    for owner, name, none in SHORT_WAYS + also:
        monkeypatch.setattr(owner, name, none)
