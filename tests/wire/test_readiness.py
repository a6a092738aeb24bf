"""TRIALS B9 and B10: `/health`, `/ready`, the Host header, and the server's log."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support.http_application import Answer, ask
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.edges.http.application import HttpApplication
from tidegate.edges.http.origin_checks import OriginChecks
from tidegate.serve import LogFormatter, http_endpoints


def play(
    directory: Path, scenario: Callable[[App, Callable[..., Awaitable[Answer]]], Awaitable[None]]
) -> None:
    """Run a scenario with an application that is bound to port 7878."""

    async def whole() -> None:
        app = App.open(Config(state=str(directory)))
        checks = OriginChecks(["gate.example", "proxy.example:8443"], port=7878)
        application = HttpApplication(
            http_endpoints(app), app.authenticate, origin_checks=checks, readiness=app.readiness
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
        assert list(answer.json["failing"]) == ["state"]
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
