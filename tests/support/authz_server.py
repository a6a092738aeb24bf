"""A server over one source of one engine, everyone who may call it, and a watch on its data."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from support.authz_calls import (
    ENGINE_ROWS,
    HANDLE,
    ID,
    NAME,
    OPENED,
    ROWS,
    RUNS,
    SERVER_ROWS,
    TAB,
    URI,
    URL,
    Row,
    explained,
)
from support.authz_engines import ENGINES, SETTINGS, Shop
from support.authz_grids import Grid
from support.surface_client import Peer
from tidegate.app import App
from tidegate.config.loading import load
from tidegate.config.model import Config
from tidegate.config.oauth import OAuthSettings
from tidegate.identity.builtin_actors import ANONYMOUS, cli, stdio
from tidegate.identity.oauth import OAuth
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call
from tidegate.store.records import TokenRights
from tidegate.surfaces.registry import SURFACES
from tidegate.surfaces.surface import Surface
from tidegate.workspace.requests import OpenTable, Tab

TAG = "shop"
ACTORS = (
    "reader", "writer", "owner", "tagged", "oauth", "foreign", "anon", "stdio", "person", "listed"
)  # fmt: skip
TOKENS: dict[str, TokenRights] = {
    "reader": TokenRights(Scope.READ_ONLY),
    "writer": TokenRights(Scope.READ_WRITE),
    "owner": TokenRights(Scope.FULL_ACCESS),
    "tagged": TokenRights(Scope.READ_WRITE, tags=frozenset({TAG})),
    "listed": TokenRights(Scope.READ_WRITE, tables=frozenset({"customers", "orders", "notes"})),
    "foreign": TokenRights(
        Scope.FULL_ACCESS, sources=frozenset({"elsewhere"}), tags=frozenset({"other"})
    ),
}
CODES = {
    "blocked": "policy.blocked",
    "source": "policy.source",
    "scope": "policy.scope",
    "ro": "policy.read_only",
    "phrase": "policy.confirm",
    "ask": "approval.needed",
    "unfit": "policy.confirm_needless",
    "ident": "policy.identity",
    "masked": "policy.masked",
}
WITHOUT_PLAN = ("masked", "engine.unsupported", "sql.failed")
"""What is said where a plan cannot be had: by the gate, by the engine, by the database."""
GONE = ("result.gone", "window.unknown_tab")


class Harness:
    """One source called by its setting's name, with more `settings`, and those `beside` it. Open it
    with `Harness.opened`."""

    def __init__(self, directory: Path, engine: str, setting: str, **more: Any) -> None:
        self.engine = ENGINES[engine]
        self.engine_name = engine
        self.setting = setting
        self.known_actors: dict[str, Actor] = {}
        place = directory / "shop"
        place.mkdir()
        # What one way of a tool drops is gone for the other.
        self.shop: Shop = self.engine.make(place, (*ACTORS, *(f"{a}_confirmed" for a in ACTORS)))
        source = {
            "name": setting, "url": self.shop.url, "tags": (TAG,), **SETTINGS[setting]
        }  # fmt: skip
        source |= more.pop("settings", {})
        sources = [source, *more.pop("beside", ())]
        workbench = {"extended": True} | more.pop("workbench", {})
        settings = {"sources": sources, "state": str(directory / "state")}
        surfaces = {"postgres": {"source": setting}, "workbench": workbench}
        settings["surface"] = {name: surfaces[name] for name in surfaces if name in SURFACES}
        self.config: Config = load(msgspec.json.encode(settings | more).decode())
        self.app = App.open(self.config)
        (self.source,) = [each for each in self.app.connections.sources() if each.name == setting]

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, directory: Path, engine: str, setting: str, **more: Any
    ) -> AsyncIterator[Harness]:
        harness = cls(directory, engine, setting, **more)
        try:
            yield harness
        finally:
            await harness.app.close()
            harness.shop.close()

    async def actors(self) -> dict[str, Actor]:
        """Everybody, each made by what makes it in a running server."""
        made = {"anon": ANONYMOUS, "stdio": stdio(allow_writes=True), "person": cli()}
        made["oauth"] = await oauth_actor(scope="db:write", groups=[TAG])
        for name, rights in TOKENS.items():
            bearer, _ = self.app.tokens.create(name, rights)
            made[name] = self.app.tokens.verify(bearer)
        return made

    async def peers(self, surface: str, *names: str) -> list[Peer]:
        """Some of the actors at one surface."""
        if not self.known_actors:
            self.known_actors = await self.actors()
        found = [Peer(self.app.surface(surface), self.known_actors[name]) for name in names]
        for peer in found:
            await peer.open()
        return found

    async def callers(self) -> dict[tuple[str, str], Caller]:
        """By surface and actor."""
        actors = self.known_actors = await self.actors()
        found: dict[tuple[str, str], Caller] = {}
        for name in SURFACES:
            surface = self.app.surface(name)
            for actor in ACTORS:
                found[name, actor] = Caller(self, surface, actors[actor])
                await found[name, actor].open()
        return found

    def row(self, key: tuple[str, str]) -> Row:
        """The row of a tool or resource on this engine."""
        alone = ENGINE_ROWS.get((self.engine_name, *key))
        if alone is not None:
            return alone
        return SERVER_ROWS.get(key, ROWS[key]) if self.engine.has_server else ROWS[key]

    def grids(self, key: tuple[str, str]) -> dict[str, Grid]:
        """The grid of each effect that a tool is called with."""
        row = self.row(key)
        if not row.explains:
            return row.grids
        return {e: explained(e, self.engine) for e in RUNS}

    async def connect(self) -> None:
        """Open the source, whoever may have closed it."""
        connection = self.app.connections.find(self.source.name, cli())
        await self.app.connections.engine(connection)

    async def tab(self) -> str:
        """The id of a tab on this source, opened at the desk itself."""
        call = Call(cli(), "test", "test", OpenTable("orders"), self.source.name)
        opened = await self.app.workspace.open_table(call, (self.source,))
        assert isinstance(opened, Tab)
        return opened.id


class Refused(Exception):
    """A call that a tool needs before it was refused."""

    def __init__(self, reply: dict[str, Any]) -> None:
        super().__init__(str(reply))
        self.reply = reply


class Caller:
    """One actor at one surface."""

    def __init__(self, harness: Harness, surface: Surface, actor: Actor) -> None:
        self._harness = harness
        self._surface = surface.name
        self.peer = Peer(surface, actor)

    async def open(self) -> None:
        await self.peer.open()

    async def outcome(self, name: str, effect: str, actor: str) -> str:
        """What came of a call of a tool or a resource, as a word of `authz_grids`."""
        harness = self._harness
        row = harness.row((self._surface, name))
        if row.takes == URI:
            uri = name.partition("{?")[0].replace("{id}", harness.source.id)
            uri += row.arguments.get("?", "")
            return word(await self.peer.request("resources/read", uri=uri))
        try:
            arguments = await self.arguments_of(name, effect, actor)
        except Refused as refused:
            return word(refused.reply)
        found = word(await self.peer.call(name.partition(" ")[0], **arguments))
        return "denied" if row.explains and found in WITHOUT_PLAN else found

    async def arguments_of(self, name: str, effect: str, actor: str) -> dict[str, Any]:
        """The arguments of a call of a tool, after the calls that it needs before it. Raises:
        Refused if one of those is."""
        harness = self._harness
        row = harness.row((self._surface, name))
        names = {"database": harness.shop.database, "schema": harness.shop.schema}
        arguments = {
            key: value.format(**names) if isinstance(value, str) else value
            for key, value in row.arguments.items()
        }
        if row.takes == TAB:
            arguments[TAB] = await harness.tab()
        elif row.takes == HANDLE:
            arguments[HANDLE] = await self._handle()
        elif row.takes == OPENED:
            connected = await self.peer.call("connect", url=harness.source.name)
            if connected["result"].get("isError"):
                raise Refused(connected)
            arguments[OPENED] = connected["result"]["structuredContent"]["id"]
        else:
            named = {ID: harness.source.id, NAME: harness.source.name, URL: harness.source.name}
            arguments[row.takes] = named[row.takes]
        if row.text is not None:
            way = name.partition(" ")[2]
            by = f"{actor}_{way}" if way else actor
            arguments[row.text] = harness.engine.statement(effect, by)
        if name == "disconnect":
            await harness.connect()
        if name == "record":
            extracted = await self.peer.call(name, **arguments)
            if extracted["result"].get("isError"):
                raise Refused(extracted)
            arguments["confirmed"] = True
        return arguments

    async def _handle(self) -> str:
        """The handle of a cut result, or one that leads nowhere if there is no result."""
        name = self._harness.source.name
        text = "SELECT id FROM customers"
        reply = await self.peer.call("query", sql=text, max_rows=1, source=name)
        said = reply["result"]["content"][0]["text"]
        _, found, rest = said.partition('"more":"')
        return rest.partition('"')[0] if found else f"{name}/none"


def word(reply: dict[str, Any]) -> str:
    """What a reply says, as a word of `authz_grids`; a code that has none stays as it is."""
    if "error" in reply:
        code = reply["error"].get("data", {}).get("code", reply["error"]["message"])
    elif reply["result"].get("isError"):
        said = reply["result"]["content"][0]["text"]
        code = msgspec.json.decode(said)["code"] if said[:1] == "{" else said.partition(": ")[0]
    else:
        return "ok"
    return word_of(code)


def word_of(code: str) -> str:
    """What an error code means, as a word of `authz_grids`."""
    if code == "policy.table":
        return "masked"
    for known, meant in CODES.items():
        if code == meant:
            return known
    if code in GONE:
        return "gone"
    refused = ("sql.multiple_statements", "sql.unreadable", "sql.unknown_statement",
               "sql.function_refused", "policy.denied")  # fmt: skip
    return "denied" if code in refused else code


async def oauth_actor(scope: str, groups: list[str], sources: list[str] | None = None) -> Actor:
    """Who comes with a token of an authorization server: signed, verified and mapped in earnest."""
    import jwt
    from cryptography.hazmat.primitives.asymmetric import ec

    issuer, resource = "https://login.example.com", "https://gate.example.com/mcp"
    private = ec.generate_private_key(ec.SECP256R1())
    public = jwt.algorithms.ECAlgorithm.to_jwk(private.public_key(), as_dict=True)
    settings = OAuthSettings(
        issuer=issuer,
        resource=resource,
        scopes={"db:read": "readOnly", "db:write": "readWrite"},
        tags_claim="groups",
        sources_claim="databases",
    )

    def fetch(url: str) -> dict[str, Any]:
        if url.endswith("/jwks"):
            return {"keys": [{**public, "kid": "1", "use": "sig"}]}
        return {"issuer": issuer, "jwks_uri": f"{issuer}/jwks"}

    now = int(time.time())
    claims = {
        "iss": issuer, "aud": resource, "sub": "alice", "exp": now + 3_600, "iat": now,
        "client_id": "claude", "scope": scope, "groups": groups, "databases": sources or [],
    }  # fmt: skip
    bearer = jwt.encode(claims, private, "ES256", {"kid": "1", "typ": "at+jwt"})
    return await OAuth(settings, frozenset({resource}), fetch=fetch).verify(bearer)


def play(directory: Path, engine: str, setting: str, scenario: Any, **more: Any) -> Any:
    """What `scenario(harness)` returns, in a harness of its own."""

    async def whole() -> Any:
        async with Harness.opened(directory, engine, setting, **more) as harness:
            return await scenario(harness)

    return asyncio.run(whole())
