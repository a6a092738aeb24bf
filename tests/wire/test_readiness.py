"""TRIALS B9 and B10: `/health`, `/ready`, the Host header, and the server's log."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from support.command_line import serving
from support.eventually import HANG_S, wait_until
from support.http_application import Answer, ask
from tidegate.app import App
from tidegate.config.model import AuditSettings, Config
from tidegate.config.sources import SourceSettings
from tidegate.edges.http.application import HealthChecks, HttpApplication
from tidegate.edges.http.origin_checks import OriginChecks
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Query
from tidegate.model.results import Page
from tidegate.model.statements import Statement
from tidegate.serve.edges import http_endpoints
from tidegate.serve.log import LogFormatter
from tidegate.serve.status import without_names


def play(
    directory: Path,
    scenario: Callable[[App, Callable[..., Awaitable[Answer]]], Awaitable[None]],
    **settings: Any,
) -> None:
    """Run a scenario with an application that is bound to port 7878."""

    async def whole() -> None:
        app = App.open(Config(state=str(directory), **settings))
        checks = OriginChecks(["gate.example", "proxy.example:8443"], port=7878)
        application = HttpApplication(
            http_endpoints(app),
            app.authenticate,
            origin_checks=checks,
            health=HealthChecks(app.readiness.tried, partial(without_names, app)),
        )

        async def send(path: str, host: str = "localhost:7878", method: str = "GET") -> Answer:
            return await ask(application, method, path, None, {"host": host})

        try:
            await scenario(app, send)
        finally:
            await app.close()

    asyncio.run(whole())


@pytest.mark.parametrize("path", ["/health", "/ready"])
@pytest.mark.parametrize("host", ["localhost:7878", "10.0.0.7:7878", "any.example"])
def test_b10_a_check_by_any_host_is_answered(tmp_path: Path, path: str, host: str) -> None:
    async def scenario(app: App, send: Callable[..., Awaitable[Answer]]) -> None:
        answer = await send(path, host)
        assert answer.status == 200
        assert answer.json == {"status": "ok" if path == "/health" else "ready"}
        assert (await send(path, host, "POST")).status == 405

    play(tmp_path, scenario)


def test_b10_ready_is_refused_while_the_state_cannot_be_read(tmp_path: Path) -> None:
    async def scenario(app: App, send: Callable[..., Awaitable[Answer]]) -> None:
        assert (await send("/ready")).status == 200
        await app.close()
        (tmp_path / "state.db").unlink()
        (tmp_path / "state.db").mkdir()
        answer = await send("/ready")
        assert (answer.status, answer.json["status"]) == (503, "not_ready")
        assert answer.json["failing"] == {"state": "state.failed"}
        assert (await send("/health")).status == 200

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("host", "admitted"),
    [
        ("localhost:7878", True),
        ("localhost", True),
        ("127.0.0.1:7878", True),
        ("[::1]:7878", True),
        ("gate.example", True),
        ("gate.example:443", True),
        ("proxy.example:8443", True),
        ("proxy.example", False),
        ("proxy.example:8444", False),
        ("localhost:7879", False),
        ("127.0.0.1:80", False),
        ("[::1]:1", False),
        ("evil.example:7878", False),
    ],
)
def test_b10_a_host_of_another_name_or_port_is_refused(
    tmp_path: Path, host: str, admitted: bool
) -> None:
    async def scenario(app: App, send: Callable[..., Awaitable[Answer]]) -> None:
        answer = await send("/mcp", host, "POST")
        assert answer.status == (401 if admitted else 403)
        if not admitted:
            assert host in answer.json["error"]["message"]
            assert "allowed_hosts" in answer.json["error"]["message"]

    play(tmp_path, scenario)


def test_b9_a_log_line_has_time_level_and_call_id() -> None:
    record = logging.LogRecord("tidegate.x", logging.WARNING, "", 0, "it failed", None, None)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING tidegate\.x it failed",
        LogFormatter().format(record),
    )
    record.call = "c-17"
    assert LogFormatter().format(record).endswith("Z WARNING tidegate.x call=c-17 it failed")


def test_b9_ready_is_refused_while_the_audit_log_cannot_be_written(tmp_path: Path) -> None:
    async def scenario(app: App, send: Callable[..., Awaitable[Answer]]) -> None:
        assert (await send("/ready")).status == 200
        descriptor = app.audit._writer.descriptor
        kept, full = os.dup(descriptor), os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, descriptor)
        os.close(full)
        with pytest.raises(TidegateError) as caught:
            app.note("settings.read", {})
        assert caught.value.code is Code.AUDIT_UNAVAILABLE
        answer = await send("/ready")
        assert (answer.status, answer.json["failing"]) == (503, {"audit": "audit.unavailable"})
        assert (await send("/health")).status == 200
        os.dup2(kept, descriptor)
        os.close(kept)
        app.note("settings.read", {})
        assert (await send("/ready")).status == 200

    play(tmp_path, scenario)


def test_b9_b16_an_anchor_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    async def scenario(app: App, send: Callable[..., Awaitable[Answer]]) -> None:
        app.note("settings.read", {})
        wait_until(lambda: app.audit.problems, "the checkpoint")
        assert "missing" in app.audit.problems["checkpoints"]
        answer = await send("/ready")
        assert (answer.status, answer.json["status"]) == (200, "ready")
        assert list(answer.json["degraded"]) == ["checkpoints"]
        (tmp_path / "missing").mkdir()
        app.note("settings.read", {})
        wait_until(lambda: not app.audit.problems, "the next checkpoint")
        assert "degraded" not in (await send("/ready")).json

    anchor = str(tmp_path / "missing" / "anchor.jsonl")
    play(tmp_path, scenario, audit=AuditSettings(anchor=anchor, checkpoint_lines=1))


async def query(app: App, source: str) -> None:
    actor = Actor("reader", "reader", Scope.READ_ONLY)
    await app.gateway.handle(Call(actor, "core", "query", Query(Statement("SELECT 1")), source))


def test_b9_b12_a_missing_file_fails_its_source_alone_until_it_is_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    there, missing = tmp_path / "there.db", tmp_path / "missing.db"
    there.touch()

    async def scenario(app: App, send: Callable[..., Awaitable[Answer]]) -> None:
        (warning,) = caplog.records
        assert "source later" in warning.message
        caplog.clear()
        await query(app, "now")
        for _ in range(3):
            with pytest.raises(TidegateError) as caught:
                await query(app, "later")
            assert caught.value.code is Code.SOURCE_UNREACHABLE
        (line,) = caplog.records  # one for the cause
        assert "source later: source.unreachable" in line.message
        assert re.search(r" call=\w+-\w+ source later", LogFormatter().format(line))
        answer = await send("/ready")
        assert answer.status == 200
        assert answer.json["degraded"] == {"sources": "1 cannot be opened"}
        missing.touch()
        await query(app, "later")
        assert "degraded" not in (await send("/ready")).json

    sources = [
        SourceSettings(name, f"sqlite:///{path}")
        for name, path in (("now", there), ("later", missing))
    ]
    play(tmp_path / "state", scenario, sources=tuple(sources))


def test_b9_the_line_of_a_fault_has_its_calls_id() -> None:
    try:
        raise ValueError("of ours")
    except ValueError as fault:
        fault.add_note("call=c-18")
        record = logging.LogRecord(
            "tidegate.x", logging.ERROR, "", 0, "fault", None, (type(fault), fault, None)
        )
    assert " ERROR tidegate.x call=c-18 fault" in LogFormatter().format(record)


def test_a_source_that_no_engine_opens_fails_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A bad scheme, option, access or role stops neither the server nor another source."""
    bad = (
        SourceSettings("scheme", "sqlte:///towns.db"),
        SourceSettings("jdbc", "jdbc"),
        SourceSettings("option", "sqlite:///:memory:", options={"speed": "1"}),
        SourceSettings("access", f"files://{tmp_path}", access="write"),
    )
    good = SourceSettings("good", "sqlite:///:memory:")

    async def scenario(app: App, send: Callable[..., Awaitable[Answer]]) -> None:
        assert set(app.conditions.degraded()) == {f"source {each.name}" for each in bad}
        answer = await send("/ready")
        assert answer.status == 200
        assert answer.json["degraded"] == {"sources": f"{len(bad)} cannot be opened"}
        agent = Actor("a", "a", Scope.READ_ONLY)

        async def ask_one(name: str) -> Page:
            call = Call(agent, "core", "query", Query(Statement("SELECT 1")), name)
            reply = await app.gateway.handle(call)
            assert isinstance(reply.payload, Page)
            return reply.payload

        for each in bad:
            with pytest.raises(TidegateError) as caught:
                await ask_one(each.name)
            assert caught.value.code in (Code.SOURCE_URL, Code.CONFIG_INVALID)
        assert (await ask_one(good.name)).rows
        listed = {entry.source.name for entry in app.connections.list_for(agent)}
        assert listed == {each.name for each in (*bad, good)}

    with caplog.at_level(logging.WARNING, "tidegate.sources"):
        play(tmp_path / "state", scenario, sources=(*bad, good))
    for each in bad:
        assert f"source {each.name}: " in caplog.text


FEW_DESCRIPTORS = (
    "-c",
    "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96));"
    "from tidegate.cli.main import main; sys.exit(main(sys.argv[1:]))",
)


def test_a_server_without_a_free_descriptor_says_so_in_its_log_and_recovers(tmp_path: Path) -> None:
    with ExitStack() as clients:
        server = clients.enter_context(
            serving(["serve", "--http", "127.0.0.1:0"], tmp_path, program=FEW_DESCRIPTORS)
        )
        line = server.until("serving")
        port = int(re.findall(r":(\d+)/mcp", line)[0])
        many = [
            clients.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(120)
        ]
        assert "all 96 file descriptors are in use" in server.until("descriptors")
        for each in many:
            each.close()
        wait_until(lambda: health(port) == 200, "a client is answered again")


def health(port: int) -> int:
    """The status of the answer; 0 if the connection was one of those that could not be served."""
    connection = HTTPConnection("127.0.0.1", port, timeout=HANG_S)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    except ConnectionError:
        return 0
    finally:
        connection.close()
