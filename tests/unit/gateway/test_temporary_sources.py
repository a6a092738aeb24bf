"""A source that is opened at run time is seen by its session alone, and ends with it."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from msgspec import structs

from support.surface_client import READER, Notes, Peer
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings, TemporarySourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.gateway.source_connections import SourceConnections
from tidegate.gateway.temporary_sources import check_allowed
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Basis, Call, OpenTemporary, Query, ReleaseResult
from tidegate.model.results import Page
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.model import Info, RevisionPolicy, Settings, ToolResult
from tidegate.protocol.session_state import SessionState, SessionStates, settled
from tidegate.protocol.transport import TransportContext
from tidegate.store.sqlite.state import SqliteState
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.core.errors import render_error
from tidegate.surfaces.surface import Primitives, Refusals, ServerProfile, Surface
from tidegate.surfaces.tool_context import ToolContext

META = "io.modelcontextprotocol/"
MODERN = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
OTHER = Actor("tok_other", "other", Scope.READ_ONLY)


class Open(msgspec.Struct, frozen=True):
    name: str
    url: str


class Ask(msgspec.Struct, frozen=True):
    source: str
    sql: str
    handle: str | None = None


class Nothing(msgspec.Struct, frozen=True):
    pass


async def open_source(context: ToolContext, args: Open) -> ToolResult:
    state = context.new_state()
    source = await context.handle(OpenTemporary(args.name, args.url), None, Source)
    return text(json.dumps([source.name, state.id]))


async def ask(context: ToolContext, args: Ask) -> ToolResult:
    if args.handle is not None:
        context.find_state(args.handle)
    page = await context.handle(Query(Statement(args.sql)), args.source, Page)
    return text(page.rows.decode())


async def list_names(context: ToolContext, args: Nothing) -> ToolResult:
    return text(json.dumps([entry.source.name for entry in await context.sources()]))


def text(content: str) -> ToolResult:
    return ToolResult(body=content.encode(), structured=False)


def surface(app: App) -> Surface:
    return Surface(
        app.gateway,
        ServerProfile(
            name="temporary",
            info=Info("temporary", "1"),
            settings=Settings(RevisionPolicy(("2025-11-25", "2026-07-28"))),
            capabilities={"tools": {}},
        ),
        Primitives(
            (
                SurfaceTool("open", "Open", Open, open_source),
                SurfaceTool("ask", "Ask", Ask, ask),
                SurfaceTool("names", "Names", Nothing, list_names),
            )
        ),
        Refusals(render_error),
    )


def make(path: Path) -> str:
    with apsw.Connection(str(path)) as made:
        made.execute("CREATE TABLE t(id INTEGER); INSERT INTO t VALUES (1), (2)")
    return f"sqlite:///{path}"


@asynccontextmanager
async def opened(directory: Path, **settings: Any):
    (directory / "listed").mkdir()
    (directory / "elsewhere").mkdir()
    (directory / "state").mkdir(mode=0o700)
    settings.setdefault("directories", (str(directory / "listed"),))
    config = Config(
        sources=(SourceSettings("shop", make(directory / "shop.db")),),
        temporary_sources=TemporarySourceSettings(**settings),
    )
    app = App(config, directory / "state")
    try:
        yield app
    finally:
        await app.close()
        await settled()


async def test_a_session_uses_its_source_and_others_do_not_see_it(tmp_path):
    async with opened(tmp_path) as app:
        mine, same_actor, other = (Peer(surface(app), actor) for actor in (READER, READER, OTHER))
        for peer in (mine, same_actor, other):
            await peer.open()
        await mine.result("open", name="extra", url=make(tmp_path / "listed" / "extra.db"))
        assert await mine.text("ask", source="extra", sql="SELECT * FROM t") == "[[1],[2]]"
        assert json.loads(await mine.text("names")) == ["shop", "extra"]
        for peer in (same_actor, other):
            assert json.loads(await peer.text("names")) == ["shop"]
            assert "extra" in await peer.text("ask", source="extra", sql="SELECT 1")
            assert "[[1]]" not in await peer.text("ask", source="extra", sql="SELECT 1")


async def test_it_is_closed_with_its_session(tmp_path):
    async with opened(tmp_path) as app:
        peer = Peer(surface(app))
        await peer.open()
        await peer.result("open", name="extra", url=make(tmp_path / "listed" / "extra.db"))
        await peer.text("ask", source="extra", sql="SELECT 1")
        connection = app.connections.find("extra", READER, peer.session.state.id)
        engine = connection.engine
        assert engine is not None
        peer.session.close()
        with pytest.raises(TidegateError):
            app.connections.find("extra", READER, peer.session.state.id)
        await app.connections.close()
        with pytest.raises(TidegateError):
            await engine.schema_version()
        with pytest.raises(TidegateError):
            await app.connections.engine(connection)


async def test_it_is_closed_when_its_time_is_over(tmp_path):
    async with opened(tmp_path, lifetime_s=0.05) as app:
        peer = Peer(surface(app))
        await peer.open()
        await peer.result("open", name="extra", url=make(tmp_path / "listed" / "extra.db"))
        while "extra" in json.loads(await peer.text("names")):
            await asyncio.get_running_loop().run_in_executor(None, lambda: None)
        assert json.loads(await peer.text("names")) == ["shop"]


async def test_in_the_stateless_era_the_handle_finds_it_for_its_own_actor(tmp_path):
    async with opened(tmp_path) as app:
        served = surface(app)
        kernel = Kernel(served, served.settings)

        async def call(actor, tool, **arguments):
            transport = TransportContext(actor, Notes())
            params = {"name": tool, "arguments": arguments, "_meta": MODERN}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = await kernel.serve(msgspec.json.encode(message), transport)
            return msgspec.json.decode(answer.frame)["result"]["content"][0]["text"]

        url = make(tmp_path / "listed" / "extra.db")
        _, handle = json.loads(await call(READER, "open", name="extra", url=url))
        asked = {"source": "extra", "sql": "SELECT count(*) FROM t"}
        assert await call(READER, "ask", **asked, handle=handle) == "[[2]]"
        assert await call(READER, "ask", **asked) != "[[2]]"
        assert await call(OTHER, "ask", **asked, handle=handle) != "[[2]]"
        kernel.sessions.end_of([READER.id])
        assert await call(READER, "ask", **asked, handle=handle) != "[[2]]"
        kernel.close()


async def test_it_only_reads(tmp_path):
    async with opened(tmp_path) as app:
        peer = Peer(surface(app), Actor("tok_w", "w", Scope.FULL_ACCESS))
        await peer.open()
        url = make(tmp_path / "listed" / "extra.db")
        await peer.result("open", name="extra", url=url)
        assert await peer.text("ask", source="extra", sql="DELETE FROM t") != "[]"
        assert await peer.text("ask", source="extra", sql="SELECT count(*) FROM t") == "[[2]]"


@pytest.mark.needs("duckdb")
async def test_what_was_read_is_given_out_though_its_source_ended_with_the_call(tmp_path):
    async with opened(tmp_path) as app:
        url = make(tmp_path / "listed" / "extra.db")

        def call(request, source=None):
            return app.gateway.handle(Call(READER, "s", "ask", request, source, session="one"))

        await call(OpenTemporary(name="extra", url=url))
        reply = await call(Query(Statement("SELECT id FROM t")), "extra")
        basis = Basis(reply.source, reply.identity, reply.data_rules, "one")
        app.gateway.end_session("one")
        await call(ReleaseResult((basis,)))
        saved = basis._replace(source=structs.replace(basis.source, temporary=False))
        with pytest.raises(TidegateError) as caught:
            await call(ReleaseResult((saved,)))
        assert caught.value.code is Code.SOURCE_UNKNOWN


async def test_the_file_of_a_source_is_refused_by_every_name(tmp_path):
    saved = make(tmp_path / "shop.db")
    listed = tmp_path / "folder"
    listed.mkdir()
    (listed / "rows.csv").write_text("a\n1\n")
    (tmp_path / "shop-link.db").symlink_to(tmp_path / "shop.db")
    os.link(tmp_path / "shop.db", tmp_path / "shop-twin.db")
    (tmp_path / "state").mkdir(mode=0o700)
    config = Config(
        sources=(SourceSettings("shop", saved), SourceSettings("files", f"files://{listed}")),
        temporary_sources=TemporarySourceSettings(directories=(str(tmp_path),)),
    )
    app = App(config, tmp_path / "state")
    try:
        peer = Peer(surface(app))
        await peer.open()
        for url in (
            saved,
            f"sqlite:///{tmp_path}/folder/../shop.db",
            f"sqlite:///{tmp_path}/shop-link.db",
            f"sqlite:///{tmp_path}/shop-twin.db",
            f"duckdb:///{tmp_path}/shop.db",
            f"files://{listed}",
            f"files://{tmp_path}",
        ):
            assert "already" in await peer.text("open", name="twin", url=url), url
        other = make(tmp_path / "other.db")
        assert "other" in await peer.text("open", name="other", url=other)
    finally:
        await app.close()
        await settled()


@pytest.mark.parametrize(
    ("saved", "url", "refused"),
    [
        ("jdbc:postgresql://127.0.0.1:5999/shop", "postgres://localhost:5999/shop", True),
        ("jdbc:postgresql://127.0.0.1:5999/shop", "postgres://localhost:5999/other", False),
        ("jdbc:mariadb://127.0.0.1:3999/shop", "mysql://localhost:3999/other", True),
        ("mysql://127.0.0.1:3999/shop", "mariadb://localhost:3999/other", True),
        ("mysql://127.0.0.1:3998/shop", "mariadb://localhost:3999/other", False),
        ("postgres://127.0.0.1:3999/shop", "mariadb://localhost:3999/shop", False),
    ],
)
async def test_the_server_of_a_source_is_refused_where_its_rows_could_be_read(
    tmp_path, saved, url, refused
):
    (tmp_path / "state").mkdir(mode=0o700)
    config = Config(
        sources=(SourceSettings("shop", saved),),
        temporary_sources=TemporarySourceSettings(hosts=("localhost:5999", "localhost:3999")),
    )
    app = App(config, tmp_path / "state")
    try:
        peer = Peer(surface(app))
        await peer.open()
        assert ("already" in await peer.text("open", name="twin", url=url)) is refused
    finally:
        await app.close()
        await settled()


async def test_it_cannot_stand_in_for_a_configured_source(tmp_path):
    async with opened(tmp_path, per_owner=1) as app:
        peer = Peer(surface(app))
        await peer.open()
        url = make(tmp_path / "listed" / "extra.db")
        assert "already" in await peer.text("open", name="shop", url=url)
        await peer.result("open", name="extra", url=url)
        assert "most it may have" in await peer.text("open", name="more", url=url)


LISTED = TemporarySourceSettings(hosts=("db.example", "10.0.0.1:5433"))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://db.example/shop",
        "postgresql://u@DB.example:5432/shop?sslmode=require",
        "postgresql://10.0.0.1:5433/shop",
    ],
)
def test_a_host_on_the_list_is_allowed(url):
    check_allowed(url, LISTED)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://other.example/shop",
        "postgresql://10.0.0.1/shop",
        "postgresql://db.example,other.example/shop",
        "postgresql://db.example/shop?host=other.example",
        "postgresql://db.example/shop?hostaddr=10.0.0.9",
        "postgresql://db.example/shop?service=x",
        "postgresql://db.example/shop?ssh=me@bastion",
        "postgresql://db.example/shop?sslrootcert=/etc/passwd",
        "postgresql://${ENV:HOME}@db.example/shop",
        "postgresql://db.example@other.example/shop",
        "postgresql:///shop",
        "mysql://other.example/shop",
        "sqlite:///",
        "sqlite://",
    ],
)
def test_what_is_not_on_the_list_is_refused_by_the_rule(url):
    with pytest.raises(TidegateError) as caught:
        check_allowed(url, LISTED)
    assert caught.value.details["rule"] == "source.temporary"


def test_a_file_outside_the_listed_directories_is_refused_also_by_a_link(tmp_path):
    (tmp_path / "listed").mkdir()
    url = make(tmp_path / "secret.db")
    (tmp_path / "listed" / "link.db").symlink_to(tmp_path / "secret.db")
    settings = TemporarySourceSettings(directories=(str(tmp_path / "listed"),))
    for there in (
        url,
        f"sqlite:///{tmp_path}/listed/link.db",
        f"sqlite:///{tmp_path}/listed/../secret.db",
    ):
        with pytest.raises(TidegateError) as caught:
            check_allowed(there, settings)
        assert caught.value.details["rule"] == "source.temporary"


def test_nothing_is_listed_by_default(tmp_path):
    for url in (make(tmp_path / "a.db"), "postgresql://localhost/x"):
        with pytest.raises(TidegateError):
            check_allowed(url, TemporarySourceSettings())


async def test_hooks_run_once_and_last_first():
    state, received = SessionState(), []

    async def later():
        received.append("later")

    state.on_close(lambda: received.append("first"))
    state.on_close(later)
    state.on_close(lambda: received.append("last"))
    state["value"] = 1
    state.close()
    state.close()
    await settled()
    assert received == ["last", "first", "later"]
    assert not state
    state.on_close(lambda: received.append("too late"))
    assert received[-1] == "too late"


async def test_states_are_bounded_and_end_when_they_lie_unused():
    ended = asyncio.Event()
    states = SessionStates(idle_s=0.01, most_of_actor=2)
    first, second, third = (states.create(READER) for _ in range(3))
    assert first.closed
    assert states.find(second.id, OTHER) is None
    third.on_close(ended.set)
    await ended.wait()
    assert states.find(third.id, READER) is None


def test_a_temporary_source_ends_when_the_settings_change(tmp_path: Path) -> None:
    """It was opened under the rules before: a mask that is new would not hold for it."""

    async def scenario() -> None:
        app = App.open(Config(state=str(tmp_path / "state")))
        try:
            changes: list[Any] = []
            app.connections.watch_settings(lambda: changes.pop() if changes else None)
            source = Source("t1", "mine", "sqlite:////nowhere.db", "sqlite", "sqlite")
            app.connections.add_temporary(source, "t1", "session", 600, 3)
            assert app.connections.find("mine", OTHER, "session").source.name == "mine"
            changes.append(((), lambda source: source))
            with pytest.raises(TidegateError, match="mine"):
                app.connections.find("mine", OTHER, "session")
        finally:
            await app.close()

    asyncio.run(scenario())


async def test_a_source_that_ends_while_it_is_opened_is_an_unknown_one_for_who_waits(
    tmp_path: Path,
) -> None:
    begun, never = asyncio.Event(), asyncio.Event()

    async def open_slowly(source: Source) -> Any:
        begun.set()
        await never.wait()

    with closing(SqliteState(tmp_path / "state.db")) as state:
        connections = SourceConnections(state.sources, open_slowly, [])
        source = Source("", "t", "sqlite:///:memory:", "sqlite", "sqlite")
        connections.add_temporary(source, "id", "s", 60.0, 9)
        connection = connections.find("t", OTHER, "s")
        waiting = [asyncio.create_task(connections.engine(connection)) for _ in range(2)]
        await begun.wait()
        waiting[0].cancel()  # this call itself ends, and the other waits on
        assert (await asyncio.gather(waiting[0], return_exceptions=True)) != [None]
        await connections.close()
        with pytest.raises(TidegateError) as refused:
            await waiting[1]
        assert refused.value.code is Code.SOURCE_UNKNOWN
        assert waiting[0].cancelled()
