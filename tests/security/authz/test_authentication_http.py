"""Authentication over HTTP: statuses, challenges, lockout and its record, and anonymous callers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.http_application import Answer, ask
from tidegate.app import App
from tidegate.config.loading import load
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.edges.http.application import HttpApplication
from tidegate.edges.http.endpoint import Endpoint, HttpConventions
from tidegate.edges.http.www_authenticate import Challenge
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.protocol.kernel import Kernel
from tidegate.store.records import TokenRights

GUESS = {"authorization": f"Bearer tg_{'a' * 43}"}
REVISION = "2026-07-28"


class Harness:
    def __init__(self, directory: Path) -> None:
        self.app = App.open(Config(state=str(directory)))
        surface = self.app.surface("core")
        kernel = Kernel(surface, surface.settings)
        self.edge = HttpApplication(
            [Endpoint("/mcp", kernel, HttpConventions(Challenge("TablePro MCP")))],
            self.app.authenticate,
        )

    async def list_tools(self, headers: dict[str, str], address: str = "10.0.0.1") -> Answer:
        meta = {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        named = {"mcp-protocol-version": REVISION, "mcp-method": "tools/list"}
        return await ask(self.edge, "POST", "/mcp", body, {**named, **headers}, address)


Scenario = Callable[[Harness], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Scenario], list[dict[str, Any]]]:
    """Run a scenario in a harness of its own; gives what was put on record beside calls."""

    def run(scenario: Scenario) -> list[dict[str, Any]]:
        async def whole() -> None:
            harness = Harness(tmp_path)
            try:
                await scenario(harness)
            finally:
                await harness.app.close()

        asyncio.run(whole())
        lines = [
            json.loads(line)
            for file in sorted((tmp_path / "audit").glob("*.jsonl"))
            for line in file.read_text().splitlines()
        ]
        return [line for line in lines if line["phase"] == "event"]

    return run


def test_a_challenge_has_the_realm_of_the_document_and_says_what_was_wrong(play: Any) -> None:
    async def scenario(harness: Harness) -> None:
        missing = await harness.list_tools({})
        assert (missing.status, missing.json["error"]["code"]) == (401, -32001)
        assert missing.headers["www-authenticate"] == 'Bearer realm="TablePro MCP"'
        invalid = await harness.list_tools(GUESS)
        assert (invalid.status, invalid.json["error"]["code"]) == (401, -32001)
        assert invalid.headers["www-authenticate"] == (
            'Bearer realm="TablePro MCP", error="invalid_token"'
        )

    play(scenario)


def test_an_expired_token_is_distinguished_from_a_wrong_one() -> None:
    challenge = Challenge("TablePro MCP")
    assert challenge.to(TidegateError(Code.AUTH_EXPIRED, "x")) == (
        b'Bearer realm="TablePro MCP", error="invalid_token", error_description="token_expired"'
    )


def test_the_sixth_guess_is_answered_429_and_the_record_tells_of_it(play: Any) -> None:
    async def scenario(harness: Harness) -> None:
        statuses = [(await harness.list_tools(GUESS)).status for _ in range(6)]
        assert statuses == [401] * 5 + [429]
        locked = await harness.list_tools(GUESS)
        assert locked.json["error"]["code"] == -32000
        assert 0 < int(locked.headers["retry-after"]) <= 300
        assert "www-authenticate" not in locked.headers
        good, _ = harness.app.tokens.create("good", TokenRights(Scope.READ_ONLY))
        bearer = {"authorization": f"bearer {good}"}
        assert (await harness.list_tools(bearer)).status == 200
        assert (await harness.list_tools(GUESS, "10.0.0.2")).status == 401

    events = play(scenario)
    reported = [(event["name"], event["details"].get("address")) for event in events]
    assert reported.count(("login.failed", "10.0.0.1")) == 5
    assert reported.count(("login.locked_out", "10.0.0.1")) == 1
    assert reported.count(("login.failed", "10.0.0.2")) == 1
    assert GUESS["authorization"][7:] not in json.dumps(events)


@pytest.mark.parametrize(
    "authorization",
    ["Basic dXNlcjp0b2tlbg==", "Bearer", "Bearer ", "tg_" + "a" * 43, "Token {}", "Bearer x {}"],
)
def test_only_a_bearer_token_in_the_header_counts(play: Any, authorization: str) -> None:
    async def scenario(harness: Harness) -> None:
        good, _ = harness.app.tokens.create("good", TokenRights(Scope.READ_ONLY))
        answer = await harness.list_tools({"authorization": authorization.format(good)})
        assert answer.status == 401

    play(scenario)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "gate.example.com", "::"])  # noqa: S104
def test_no_one_without_a_token_is_served_beyond_this_machine(host: str) -> None:
    address = f"[{host}]:0" if ":" in host else f"{host}:0"
    with pytest.raises(TidegateError) as caught:
        Config(http=address, auth=False)
    assert caught.value.code is Code.CONFIG_INVALID


def test_an_authorization_server_and_no_authentication_exclude_each_other() -> None:
    oauth = {
        "issuer": "https://login.example.com",
        "resource": "https://gate.example.com/mcp",
        "scopes": {"db:read": "readOnly"},
    }
    assert load(json.dumps({"oauth": oauth})).oauth is not None
    with pytest.raises(TidegateError) as caught:
        load(json.dumps({"oauth": oauth, "auth": False}))
    assert caught.value.code is Code.CONFIG_INVALID


@pytest.mark.parametrize(
    "changed",
    [
        {"issuer": "http://login.example.com"},
        {"issuer": "https://login.example.com?x=1"},
        {"issuer": "https://user:word@login.example.com"},
        {"issuer": "file:///etc/passwd"},
        {"jwks_url": "http://keys.example.com/jwks"},
        {"resource": "https://gate.example.com"},
        {"resource": 'https://gate.example.com/"/mcp'},
        {"scopes": {}},
        {"scopes": {"db:read": "root"}},
        {"scopes": {'a"b': "readOnly"}},
        {"algorithms": ["none"]},
        {"algorithms": ["HS256"]},
        {"algorithms": []},
        {"audiences": ["x"]},
    ],
)
def test_settings_that_would_let_strangers_in_are_refused(changed: dict[str, Any]) -> None:
    oauth = {
        "issuer": "https://login.example.com",
        "resource": "https://gate.example.com/mcp",
        "scopes": {"db:read": "readOnly"},
        **changed,
    }
    with pytest.raises(TidegateError) as caught:
        load(json.dumps({"oauth": oauth}))
    assert caught.value.code is Code.CONFIG_INVALID


def test_a_misspelt_setting_of_the_authorization_server_is_answered_with_the_right_one() -> None:
    with pytest.raises(TidegateError) as caught:
        load(json.dumps({"oauth": {"isuer": "https://login.example.com"}}))
    assert "oauth.isuer" in caught.value.message
    assert "`issuer`" in caught.value.hint


def test_a_tag_opens_the_sources_that_carry_it_and_no_other(tmp_path: Path) -> None:
    names = {"live": ("prod",), "copy": ("test",), "bare": ()}
    for name in names:
        (tmp_path / f"{name}.db").touch()
    sources = tuple(
        SourceSettings(name=name, url=f"sqlite:///{tmp_path / name}.db", tags=tags)
        for name, tags in names.items()
    )

    async def scenario() -> None:
        app = App.open(Config(sources=sources, state=str(tmp_path / "state")))
        try:
            for given, seen in (
                ({"tags": frozenset({"prod"})}, {"live"}),
                ({"tags": frozenset({"prod"}), "sources": frozenset({"bare"})}, {"live", "bare"}),
                ({"tags": frozenset()}, set()),
                ({}, set(names)),
            ):
                made, _ = app.tokens.create(
                    f"t{len(seen)}{len(given)}", TokenRights(Scope.READ_ONLY, **given)
                )
                actor = app.tokens.verify(made)
                entries = app.connections.list_for(actor)
                assert {entry.source.name for entry in entries} == seen
        finally:
            await app.close()

    asyncio.run(scenario())
