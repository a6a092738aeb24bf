"""Pairing over HTTP: what is answered to whom, and that nothing there grants."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.http_application import Answer, ask
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.edges.http.application import HttpApplication
from tidegate.edges.http.endpoint import Endpoint, JsonConventions
from tidegate.edges.http.pairing import ASK, EXCHANGE, pairing_routes
from tidegate.identity.pairing import challenge_of
from tidegate.model.actors import Scope
from tidegate.store.records import TokenRights

VERIFIER = "v" * 43
REQUEST = {"client": "claude", "code_challenge": challenge_of(VERIFIER), "scope": "readWrite"}


class Harness:
    """A server without surfaces, and the operator beside it."""

    def __init__(self, directory: Path) -> None:
        self.app = App.open(Config(state=str(directory)))
        pairing = Endpoint("/", pairing_routes(self.app.pairing_service), JsonConventions())
        self.edge = HttpApplication([pairing], self.app.authenticate)

    async def post(self, path: str, body: Any, **more: Any) -> Answer:
        return await ask(self.edge, "POST", path, body, **more)

    async def asked(self) -> Any:
        answer = await self.post(ASK, REQUEST)
        assert answer.status == 201
        return answer.json

    async def exchange(self, code: str, verifier: str = VERIFIER, **more: Any) -> Answer:
        return await self.post(EXCHANGE, {"code": code, "code_verifier": verifier}, **more)


Scenario = Callable[[Harness], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Callable[[Scenario], None]]:
    """Run a scenario in a harness of its own."""

    def run(scenario: Scenario) -> None:
        async def whole() -> None:
            harness = Harness(tmp_path)
            try:
                await scenario(harness)
            finally:
                await harness.app.close()

        asyncio.run(whole())

    yield run


def test_a_person_at_the_machine_approves_and_the_client_fetches_its_token(play: Any) -> None:
    async def scenario(harness: Harness) -> None:
        asked = await harness.asked()
        waiting = await harness.exchange(asked["code"])
        assert (waiting.status, waiting.json["error"]) == (202, "pending")
        harness.app.pairing_service.approve(asked["id"])
        fetched = await harness.exchange(asked["code"])
        assert fetched.status == 200
        assert fetched.headers["cache-control"] == "no-store"
        assert harness.app.tokens.verify(fetched.json["token"]).scope is Scope.READ_WRITE
        again = await harness.exchange(asked["code"])
        assert (again.status, again.json["error"]) == (410, "gone")

    play(scenario)


def test_refusals_have_the_status_of_their_kind(play: Any) -> None:
    async def scenario(harness: Harness) -> None:
        first, second = await harness.asked(), await harness.asked()
        assert (await harness.exchange("c" * 43)).status == 404
        assert (await harness.exchange(first["code"], "w" * 43)).status == 403
        assert (await harness.exchange(first["code"])).status == 410
        harness.app.pairing_service.deny(second["id"])
        denied = await harness.exchange(second["code"])
        assert (denied.status, denied.json["error"]) == (403, "denied")
        assert harness.app.tokens.list() == ()

    play(scenario)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        {},
        {**REQUEST, "code_challenge_method": "plain"},
        {**REQUEST, "scope": "root"},
        {**REQUEST, "approved": True},
        {**REQUEST, "redirect": "https://evil.example/"},
        {**REQUEST, "sources": "shop"},
        {**REQUEST, "client": "x" * 65},
        {**REQUEST, "sources": ["x" * 60] * 17},
        json.dumps(REQUEST).encode() + b" " * 1024,
    ],
)
def test_what_is_no_request_is_refused_and_nothing_waits(play: Any, body: Any) -> None:
    async def scenario(harness: Harness) -> None:
        assert (await harness.post(ASK, body)).status == 400
        assert harness.app.pairing_service.waiting() == ()

    play(scenario)


def test_only_json_is_taken_and_only_by_post(play: Any) -> None:
    async def scenario(harness: Harness) -> None:
        plain = await harness.post(ASK, REQUEST, headers={"content-type": "text/plain"})
        assert plain.status == 400
        for path in (ASK, EXCHANGE):
            answer = await ask(harness.edge, "GET", path)
            assert (answer.status, answer.headers["allow"]) == (405, "POST")
        assert harness.app.pairing_service.waiting() == ()

    play(scenario)


def test_a_page_of_another_origin_or_host_is_refused(play: Any) -> None:
    async def scenario(harness: Harness) -> None:
        origin = await harness.post(ASK, REQUEST, headers={"origin": "https://evil.example"})
        host = await harness.post(ASK, REQUEST, headers={"host": "evil.example"})
        assert (origin.status, host.status) == (403, 403)
        assert harness.app.pairing_service.waiting() == ()

    play(scenario)


def test_five_failures_lock_an_address_out_and_say_for_how_long(play: Any) -> None:
    async def scenario(harness: Harness) -> None:
        asked = await harness.asked()
        harness.app.pairing_service.approve(asked["id"])
        for _ in range(5):
            assert (await harness.exchange("c" * 43)).status == 404
        locked = await harness.exchange(asked["code"])
        assert locked.status == 429
        assert 0 < int(locked.headers["retry-after"]) <= 900
        assert (await harness.exchange(asked["code"], address="127.0.0.2")).status == 200

    play(scenario)


def test_nothing_over_http_approves_whatever_token_it_comes_with(play: Any) -> None:
    async def scenario(harness: Harness) -> None:
        owner, _ = harness.app.tokens.create("owner", TokenRights(Scope.FULL_ACCESS))
        asked = await harness.asked()
        bearer = {"authorization": f"Bearer {owner}"}
        for action in ("approve", "deny", "list", asked["id"], f"{asked['id']}/approve"):
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
                answer = await ask(harness.edge, method, f"{ASK}/{action}", {}, bearer)
                assert answer.status == 404
        for body in ({**REQUEST, "state": "approved"}, {**REQUEST, "granted": {}}):
            assert (await harness.post(ASK, body, headers=bearer)).status == 400
        assert (await harness.exchange(asked["code"], headers=bearer)).status == 202
        assert [entry.name for entry in harness.app.tokens.list()] == ["owner"]

    play(scenario)
