"""Connection phrases in queries: what they reach, for whom, and what they never do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
import pytest

from products.pgedge.support.scripted_model import KEY, scripted, wrote
from support.postgres_server import PASSWORD
from support.postgres_surface import PostgresShop, SurfaceUnderTest, served
from support.surface_client import READER, Peer
from support.tcp_proxy import between
from tidegate.gateway.database_identities import place_of
from tidegate.model.actors import Actor, Scope
from tidegate.products.pgedge.surface.connection_phrases import Phrase, read_phrase
from tidegate.store.records import TokenRights

ResultT = TypeVar("ResultT")


@pytest.fixture(scope="module")
def shops() -> Iterator[tuple[PostgresShop, PostgresShop]]:
    here, there = PostgresShop.lasting(), PostgresShop.lasting("CREATE TABLE far (n integer)")
    there.ask("INSERT INTO far VALUES (42)")
    yield here, there
    here.drop()
    there.drop()


Shops = tuple[PostgresShop, PostgresShop]


def play(
    directory: Path,
    shops: tuple[PostgresShop, ...],
    scene: Callable[[SurfaceUnderTest], Awaitable[ResultT]],
    **settings: Any,
) -> ResultT:
    async def run() -> ResultT:
        whole = {"surface": {"postgres": {"source": "shop"}}} | settings
        async with served(directory, *shops, **whole) as surface:
            return await scene(surface)

    return asyncio.run(run())


def tcp(shop: PostgresShop, login: str = "", host: str = "127.0.0.1") -> str:
    return f"postgres://{login}{host}:{shop.server.port}/{shop.database}"


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        (
            "Show users at postgres://otherhost/otherdb",
            Phrase("postgres://otherhost/otherdb", "Show users"),
        ),
        (
            "set default database to postgres://newhost/newdb",
            Phrase("postgres://newhost/newdb", None),
        ),
        (
            "What's new in postgresql://h:5433/d?",
            Phrase("postgresql://h:5433/d", "What's new"),
        ),
        ("SELECT 1 from postgres://u:p@h/d;", Phrase("postgres://u:p@h/d", "SELECT 1")),
        ("database postgres://h/d select 1", Phrase("postgres://h/d", "select 1")),
        ("use database shop2", Phrase("shop2", None)),
        ("use database shop2. ", Phrase("shop2", None)),
        ("database postgres://h/d, select 1", Phrase("postgres://h/d", "select 1")),
        ("Show users at postgres://h/d).\n", Phrase("postgres://h/d", "Show users")),
        ("Show users at postgres://" + "." * 8_000 + " x", None),
        ("Switch to postgres://h/d.", Phrase("postgres://h/d", None)),
        ("SELECT 'users at postgres://h/d'", None),
        ("SELECT 'it''s at postgres://h/d'", None),
        ("SELECT 1 -- at postgres://h/d", None),
        ("SELECT 1 /* at postgres://h/d */", None),
        ("SELECT $$x$$, 'from postgres://h/d' -- from postgres://h/d", None),
        ("Show users at postgres://h/d who left", None),
        ("set default database to postgres://h/d and delete all", None),
        ("SELECT 1", None),
    ],
)
def test_a_phrase_counts_outside_literals_at_the_ends_of_the_text_alone(
    text: str, phrase: Phrase | None
) -> None:
    assert read_phrase(text) == phrase


def test_a_phrase_that_reaches_a_saved_database_is_that_source_with_its_masks(
    tmp_path: Path, shops: Shops
) -> None:
    here, there = shops
    sources = [
        {"name": "shop", "url": there.url},
        {
            "name": "guarded",
            "url": here.url,
            "masks": [{"column": "users.email", "show": "nothing"}],
        },
    ]

    async def scene(surface: SurfaceUnderTest) -> list[str]:
        sql = "SELECT min(email) AS mail FROM users"
        return [
            await surface.text("query_database", query=f"{sql} at {tcp(here)}"),
            await surface.text("query_database", query=f"{sql} at {tcp(here, host='localhost')}"),
            await surface.text("query_database", query=f"{sql} at {tcp(here, 'postgres:hush@')}"),
            await surface.text("query_database", query="SELECT n FROM far"),
        ]

    *guarded, own = play(tmp_path, shops, scene, sources=sources)
    for text in guarded:
        assert '{"mail": null}' in text
        assert "postgres://" not in text
        assert "hush" not in text
        assert "Ran on the source guarded, whose database the address is" in text
    assert '{"n": 42}' in own and "Ran on" not in own


def test_a_default_belongs_to_its_session_alone(tmp_path: Path, shops: Shops) -> None:
    _, there = shops

    async def scene(surface: SurfaceUnderTest) -> list[str]:
        first, second = await surface.peer(), await surface.peer()
        set_to = f"set default database to {tcp(there)}"
        return [
            await first.text("query_database", query=set_to),
            await first.text("query_database", query="SELECT n FROM far"),
            await second.text("query_database", query="SELECT n FROM far"),
            await first.text("query_database", query="use database shop"),
            await first.text("query_database", query="SELECT n FROM far"),
        ]

    said, there_now, elsewhere, back, gone = play(tmp_path, shops, scene)
    assert said.startswith("Successfully set default database connection to:\nshop2 (")
    assert "Metadata loaded: 1 tables/views available." in said
    assert '{"n": 42}' in there_now
    assert 'relation "far" does not exist' in elsewhere
    assert back.startswith("Successfully set default database connection to:\nshop (")
    assert 'relation "far" does not exist' in gone


def test_no_number_of_other_sessions_makes_a_default_forgotten(
    tmp_path: Path, shops: Shops
) -> None:
    async def scene(surface: SurfaceUnderTest) -> str:
        first = await surface.peer()
        await first.text("query_database", query="use database shop2")
        for _ in range(1_100):
            other = await surface.peer()
            await other.text("query_database", query="use database shop")
        return await first.text("query_database", query="SELECT n FROM far")

    assert '{"n": 42}' in play(tmp_path, shops, scene)


def test_a_name_in_a_phrase_is_looked_up_only_if_a_source_has_it() -> None:
    async def addresses(host: str, may_look_up: frozenset[str] | None) -> frozenset[str]:
        return (await place_of(f"postgres://{host}/d", may_look_up)).addresses

    own = socket.gethostname().lower()  # a name that needs to be looked up
    assert asyncio.run(addresses(own, None)) == asyncio.run(addresses(own, frozenset({own})))
    assert not asyncio.run(addresses(own, frozenset()))
    assert asyncio.run(addresses("localhost", frozenset()))
    assert asyncio.run(addresses("127.0.0.1", frozenset()))


def test_without_a_session_a_default_belongs_to_the_token_or_is_refused(
    tmp_path: Path, shops: Shops
) -> None:
    _, there = shops
    set_to = f"set default database to {tcp(there)}"

    async def call(surface: SurfaceUnderTest, query: str, bearer: str = "") -> str:
        headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        params = {"name": "query_database", "arguments": {"query": query}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await surface.post(message, headers=headers)
        return msgspec.json.decode(answer.body)["result"]["content"][0]["text"]

    async def with_tokens(surface: SurfaceUnderTest) -> list[str]:
        one, _ = surface.app.tokens.create("one", TokenRights(Scope.READ_ONLY))
        other, _ = surface.app.tokens.create("other", TokenRights(Scope.READ_ONLY))
        return [
            await call(surface, set_to, one),
            await call(surface, "SELECT n FROM far", one),
            await call(surface, "SELECT n FROM far", other),
        ]

    async def without(surface: SurfaceUnderTest) -> str:
        return await call(surface, set_to)

    said, own, foreign = play(tmp_path / "a", shops, with_tokens, auth=True)
    assert said.startswith("Successfully set default")
    assert '{"n": 42}' in own
    assert "sql.failed" in foreign
    refused = play(tmp_path / "b", shops, without)
    assert refused.startswith("argument.invalid: There is no session")
    assert "Mcp-Session-Id" in refused


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgres://203.0.113.9/db", "policy.denied: "),
        ("postgres://u:hush@203.0.113.9/db", "policy.denied: "),
        ("postgres://203.0.113.9/db?hostaddr=127.0.0.1", "source.url: "),
        ("postgres://203.0.113.9/db?service=x", "source.url: "),
        ("postgres://203.0.113.9/db?options=-cx%3Dy", "source.url: "),
        ("postgres://one,two/db", "source.url: "),
        ("postgres:///db", "source.url: "),
        ("postgres://${ENV:HOME}/db", "source.url: "),
    ],
)
def test_other_places_are_refused_and_no_password_is_repeated(
    tmp_path: Path, shops: Shops, url: str, said: str
) -> None:
    async def scene(surface: SurfaceUnderTest) -> str:
        return await (await surface.peer()).text("query_database", query=f"SELECT 1 at {url}")

    text = play(tmp_path, shops, scene)
    assert text.startswith(said)
    assert "hush" not in text


MISPLACED = (
    "Show users at postgres://bob:hush@h/d who left",
    "Using postgres://bob:hush@h/d show the active users",
    "What's in postgres://bob:hush@h/d today, and who's active?",
    "SELECT 1 at postgres://bob:hush hush@h/d",
    "set default database to postgres://bob:hush@h/d please",
    "SELECT * FROM users at postgres://bob:hush@h/d at postgres://203.0.113.9/d",
    "postgresql://bob:hush@h/d",
    "active users of postgresql://h/d?password=hush&user=bob in May",
)
CARRIED = (
    "active users with host=h password=hush dbname=d",
    "which users have the address 'https://bob:hush@example.org'?",
    "active users of mysql://bob:hush@h/d",
)


@pytest.mark.parametrize("mode", ["auto", "nl"])
@pytest.mark.parametrize("query", MISPLACED + CARRIED)
def test_a_password_that_is_in_no_phrase_goes_to_no_model_no_record_and_no_reply(
    tmp_path: Path, shops: Shops, monkeypatch: pytest.MonkeyPatch, query: str, mode: str
) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)

    async def scene(surface: SurfaceUnderTest) -> str:
        return await surface.text("query_database", query=query, mode=mode)

    with scripted(wrote("SELECT 1")) as model:
        language = {"model": model.settings(api_key="${ENV:MODEL_KEY}")}
        text = play(tmp_path, shops, scene, language=language)
        assert model.prompts == []
    if "203.0.113.9" in query:
        assert text.startswith("policy.denied: ")
    else:
        assert text.startswith("argument.invalid: "), text
    assert "hush" not in text
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"hush" not in kept


def test_a_url_in_a_comment_or_a_literal_of_a_statement_is_part_of_it(
    tmp_path: Path, shops: Shops
) -> None:
    async def scene(surface: SurfaceUnderTest) -> list[str]:
        return [
            await surface.text("query_database", query=query)
            for query in (
                "SELECT 'postgres://bob:hush@h/d' AS url",
                "SELECT 1 AS one -- at postgres://bob:hush@h/d",
            )
        ]

    literal, comment = play(tmp_path, shops, scene)
    assert '{"url": "postgres://bob:hush@h/d"}' in literal
    assert '{"one": 1}' in comment
    log = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"hush" not in log


def test_a_server_that_refuses_a_login_or_has_no_such_database_is_asked_once_and_is_ready(
    tmp_path: Path, shops: Shops
) -> None:
    """Servers lock accounts whose password is wrong too often."""
    here, there = shops
    word = quote(PASSWORD, safe="")

    async def scene(surface: SurfaceUnderTest) -> list[tuple[dict[str, Any], int]]:
        found: list[tuple[dict[str, Any], int]] = []
        async with between("127.0.0.1", there.server.port) as proxy:
            hosts.append(f"127.0.0.1:{proxy.port}")
            async with served(tmp_path / "own", here, **_temporary(hosts)) as own:
                for login, database in (
                    ("postgres:wr0ngword", there.database),
                    ("nobody_here:x", there.database),
                    (f"postgres:{word}", "no_such_database"),
                ):
                    before = proxy.accepted
                    url = f"postgres://{login}@127.0.0.1:{proxy.port}/{database}"
                    arguments = {"query": f"SELECT 1 at {url}"}
                    reply = await own.rpc("tools/call", name="query_database", arguments=arguments)
                    found.append((reply, proxy.accepted - before))
        return found

    hosts: list[str] = []
    for reply, attempts in play(tmp_path, shops, scene):
        assert reply["result"]["isError"] is True, reply
        assert reply["result"]["content"][0]["text"].startswith("source.unreachable: ")
        assert attempts <= 2  # libpq asks again without TLS


def _temporary(hosts: list[str]) -> dict[str, Any]:
    return {
        "temporary_sources": {"hosts": hosts},
        "surface": {"postgres": {"source": "shop", "ready_wait_s": 60.0}},
    }


def test_a_host_on_the_operators_list_is_opened_for_the_session_alone(
    tmp_path: Path, shops: Shops
) -> None:
    here, there = shops
    role = f"guest_{there.database}"
    there.ask(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'; GRANT SELECT ON far TO {role}")
    host = f"127.0.0.1:{there.server.port}"

    async def scene(surface: SurfaceUnderTest) -> list[str]:
        peer = await surface.peer()
        texts = [
            await peer.text("query_database", query=f"SELECT n FROM far at {url}")
            for url in (
                f"postgres://{role}@{host}/{there.database}",
                f"postgres://{role}:{quote(PASSWORD, safe='')}@{host}/{there.database}",
                f"postgres://{role}:wr0ngword@{host}/{there.database}",
            )
        ]
        return [*texts, *[entry.source.name for entry in await _sources(surface)]]

    settings = {"temporary_sources": {"hosts": [host]}}
    without, given, wrong, *names = play(tmp_path, (here,), scene, **settings)
    # The server wants a password, and none of ours is sent in its place.
    assert "password" in without
    assert "42" in given
    assert "password" in wrong
    assert names == ["shop"]
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for secret in (PASSWORD, quote(PASSWORD, safe=""), "wr0ngword"):
        assert secret not in f"{without}{given}{wrong}"
        assert secret.encode() not in kept


async def _sources(surface: SurfaceUnderTest) -> Any:
    return surface.app.connections.list_for(READER)


def test_a_source_that_the_caller_may_not_use_is_not_reached_by_a_phrase(
    tmp_path: Path, shops: Shops
) -> None:
    _, there = shops
    few = Actor("tok_few", "few", Scope.READ_ONLY, tags=frozenset({"open"}))

    async def scene(surface: SurfaceUnderTest) -> list[str]:
        peer = Peer(surface.app.surface("postgres"), few)
        await peer.open()
        return [
            await peer.text("query_database", query=f"SELECT n FROM far at {tcp(there)}"),
            await peer.text("query_database", query="SELECT n FROM far", source="shop2"),
            await peer.text("query_database", query="use database shop2"),
        ]

    here, _ = shops
    sources = [
        {"name": "shop", "url": here.url, "tags": ["open"]},
        {"name": "shop2", "url": there.url},
    ]
    hosts = {"hosts": [f"127.0.0.1:{there.server.port}"]}
    settings = {"sources": sources, "temporary_sources": hosts}
    phrase, named, used = play(tmp_path, shops, scene, **settings)
    assert phrase.startswith("policy.denied: That database is a source of this server already")
    assert named.startswith("policy.source: ")
    assert used.startswith("source.unknown: ")


def test_a_token_that_is_bound_to_another_database_uses_that_and_not_the_default(
    tmp_path: Path, shops: Shops
) -> None:
    bound = Actor("tok_bound", "bound", Scope.READ_ONLY, sources=frozenset({"shop2"}))

    async def scene(surface: SurfaceUnderTest) -> list[str]:
        texts: list[str] = []
        for actor in (READER, bound):
            peer = Peer(surface.app.surface("postgres"), actor)
            await peer.open()
            query = "SELECT current_database() AS here"
            texts.append(await peer.text("query_database", query=query))
        return texts

    settings = {"surface": {"postgres": {"source": "shop"}}}
    default, own = play(tmp_path, shops, scene, **settings)
    assert shops[0].database in default
    assert shops[1].database in own
