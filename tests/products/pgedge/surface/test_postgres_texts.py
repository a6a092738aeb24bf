"""Questions without a model, embeddings and prompts of the surface `postgres`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from support.eventually import until
from support.postgres_server import PASSWORD
from support.postgres_surface import PostgresShop, SurfaceUnderTest, served
from support.tcp_proxy import between
from tidegate.errors import Code, TidegateError

ResultT = TypeVar("ResultT")


@pytest.fixture(scope="module")
def shop() -> Iterator[PostgresShop]:
    shop = PostgresShop.lasting()
    yield shop
    shop.drop()


def play(
    directory: Path,
    shop: PostgresShop,
    scene: Callable[[SurfaceUnderTest], Awaitable[ResultT]],
    **settings: Any,
) -> ResultT:
    async def run() -> ResultT:
        async with served(directory, shop, **settings) as surface:
            return await scene(surface)

    return asyncio.run(run())


def test_without_a_model_a_question_is_answered_with_what_its_statement_needs(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> str:
        return await surface.text("query_database", query="Show me all active users")

    text = play(tmp_path, shop, scene)
    assert text.startswith("Natural Language Query: Show me all active users\n")
    assert "No SQL was generated: " in text
    assert "users(" in text
    assert "Rules:\n- " in text


@pytest.mark.parametrize("question", ["الطلبات المفتوحة", "מי המשתמשים הפעילים?", "誰が有効ですか"])
def test_questions_in_other_scripts_come_through_whole(
    tmp_path: Path, shop: PostgresShop, question: str
) -> None:
    async def scene(surface: SurfaceUnderTest) -> str:
        return await surface.text("query_database", query=question)

    assert play(tmp_path, shop, scene).startswith(f"Natural Language Query: {question}\n")


def test_a_question_of_a_megabyte_is_refused_with_its_limit(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> str:
        peer = await surface.peer()
        return await peer.text("query_database", query="who " * 262_144, mode="nl")

    assert "the limit is" in play(tmp_path, shop, scene)


NOTES = """
CREATE TABLE notes (id integer PRIMARY KEY, title text, body text);
INSERT INTO notes VALUES
  (1, 'Shoes', 'Blue shoes for the garden and for long walks in the rain'),
  (2, 'Hats', 'A straw hat against the sun'),
  (3, 'Boots', 'Rubber boots keep feet dry in the rain');
"""


def test_a_search_finds_rows_by_words_and_says_so(tmp_path: Path) -> None:
    notes = PostgresShop.new(NOTES)

    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        peer = await surface.peer()
        wanted = {"table_name": "notes", "query_text": "blue shoes", "top_n": 2}
        return await peer.result("similarity_search", **wanted)

    result = play(tmp_path, notes, scene, embeddings={"provider": "none"})
    text = result["content"][0]["text"]
    assert text.startswith("Similarity Search Results\n====")
    assert "\nMode: lexical\n" in text
    assert 'Source: public.notes.body {"id":1} (chunk 1)' in text
    assert "Blue shoes for the garden" in text
    assert "\nTotal: " in text
    assert result["structuredContent"]["rows"][0]["key"] == {"id": 1}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"table_name": "nope", "query_text": "x"}, "source.unknown_table: "),
        ({"table_name": "users", "query_text": " "}, "argument.invalid: "),
        ({"table_name": "users", "query_text": "x", "top_n": -1}, "argument.invalid: "),
        ({"table_name": "users", "query_text": "x", "chunk_size_tokens": -1}, "argument.invalid: "),
        (
            {"table_name": "users", "query_text": "x", "filter": [{"column": "a; --"}]},
            "argument.invalid: ",
        ),
    ],
)
def test_a_search_that_cannot_be_is_a_clear_error(
    tmp_path: Path, shop: PostgresShop, arguments: dict[str, Any], said: str
) -> None:
    async def scene(surface: SurfaceUnderTest) -> str:
        return await (await surface.peer()).text("similarity_search", **arguments)

    assert play(tmp_path, shop, scene).startswith(said)


def test_an_embedding_is_shown_with_who_made_it(tmp_path: Path, shop: PostgresShop) -> None:
    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        return await (await surface.peer()).result("generate_embedding", text="blue shoes")

    settings = {"embeddings": {"provider": "hash-test", "dimensions": 8}}
    result = play(tmp_path, shop, scene, **settings)
    text = result["content"][0]["text"]
    assert text.startswith("Embedding Generated Successfully\n====")
    assert "\nDimensions: 8\n" in text
    assert "\nText Length: 10 characters\n" in text
    assert len(result["structuredContent"]["vector"]) == 8


def test_an_embedding_needs_no_database(tmp_path: Path) -> None:
    async def run() -> str:
        sources = [{"name": "shop", "url": "postgresql://nobody@127.0.0.1:1/none"}]
        settings = {"embeddings": {"provider": "hash-test", "dimensions": 8}}
        async with served(tmp_path, sources=sources, **settings) as surface:
            return await surface.text("generate_embedding", text="blue shoes")

    assert asyncio.run(run()).startswith("Embedding Generated Successfully")


def test_a_database_that_cannot_be_reached_is_not_ready_and_lists_work(tmp_path: Path) -> None:
    async def run() -> list[dict[str, Any]]:
        sources = [{"name": "shop", "url": "postgresql://nobody@127.0.0.1:1/none"}]
        own = {"postgres": {"ready_wait_s": 0.0}}
        async with served(tmp_path, sources=sources, surface=own) as surface:
            return [
                await surface.rpc(
                    "tools/call", name="query_database", arguments={"query": "SELECT 1"}
                ),
                await surface.rpc("resources/read", uri="pg://system_info"),
                await surface.rpc("tools/list"),
                await surface.rpc("resources/list"),
                await surface.rpc("prompts/list"),
                await surface.rpc("tools/call", name="read_resource", arguments={"list": True}),
            ]

    query, resource, *others = asyncio.run(run())
    for reply in (query, resource):
        assert reply["error"]["code"] == -32001
        assert reply["error"]["message"] == "Database not ready"
    assert all("result" in reply for reply in others)


def test_a_source_whose_login_is_refused_is_an_error_and_not_an_unready_database(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def run(detail: str) -> list[dict[str, Any]]:
        port = shop.server.port
        urls = [
            f"postgresql://nobody_here@127.0.0.1:{port}/{shop.database}",
            shop.server.url("no_such_database"),
        ]
        sources = [{"name": f"s{n}", "url": url} for n, url in enumerate(urls)]
        own = {"postgres": {"ready_wait_s": 60.0, "error_detail": detail}}
        async with served(tmp_path / detail, sources=sources, surface=own) as surface:
            arguments = [{"query": "SELECT 1", "source": each["name"]} for each in sources]
            return [
                await surface.rpc("tools/call", name="query_database", arguments=each)
                for each in arguments
            ]

    for detail in ("development", "production"):
        for reply in asyncio.run(run(detail)):
            result = reply["result"]
            assert result["isError"] is True
            text = result["content"][0]["text"]
            assert text.startswith("source.unreachable: ")
            assert ("no_such_database" in text or "login" in text) is (detail == "development")


def test_a_database_that_comes_up_in_time_is_waited_for(
    tmp_path: Path, shop: PostgresShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGTEST_PASSWORD", PASSWORD)

    async def run() -> str:
        async with between("127.0.0.1", shop.server.port) as proxy:
            proxy.refusing = True
            url = shop.server.tcp_url(shop.database, port=proxy.port)
            sources = [{"name": "shop", "url": url}]
            own = {"postgres": {"ready_wait_s": 60.0}}
            async with served(tmp_path, sources=sources, surface=own) as surface:
                call = asyncio.ensure_future(
                    surface.text("query_database", query="SELECT 1 AS one")
                )
                await until(lambda: proxy.accepted > 1, "a second attempt")
                proxy.refusing = False
                return await call

    assert '{"one": 1}' in asyncio.run(run())


def test_prompts_are_listed_by_name_and_filled_in(tmp_path: Path, shop: PostgresShop) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "compare.toml").write_text(
        'description = "Compare"\ntext = "Compare {table} with {other}."\n'
        '[[arguments]]\nname = "table"\nrequired = true\n[[arguments]]\nname = "other"\n'
    )

    async def scene(surface: SurfaceUnderTest) -> list[dict[str, Any]]:
        arguments = {"table": "{other} orders"}
        return [
            await surface.rpc("prompts/list"),
            await surface.rpc("prompts/get", name="compare", arguments=arguments),
            await surface.rpc("prompts/get", name="compare"),
            await surface.rpc(
                "completion/complete",
                ref={"type": "ref/prompt", "name": "compare"},
                argument={"name": "table", "value": "us"},
            ),
        ]

    own = {"postgres": {"prompts": str(folder)}}
    listed, filled, missing, completed = play(tmp_path, shop, scene, surface=own)
    assert [each["name"] for each in listed["result"]["prompts"]] == [
        "compare",
        "design-schema",
        "diagnose-query-issue",
        "explore-database",
        "setup-semantic-search",
    ]
    (message,) = filled["result"]["messages"]
    assert message["content"]["text"] == "Compare {other} orders with ."
    assert missing["error"]["code"] == -32602
    assert completed["result"]["completion"]["values"] == ["users"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bad name.toml", 'text = "x"', "cannot name a prompt"),
        ("a.toml", "text = ", "cannot be read"),
        ("a.toml", 'txt = "x"', "is wrong"),
        ("a.toml", 'text = "{other}"', "uses `{other}`"),
    ],
)
def test_a_prompt_file_that_is_none_is_named(
    tmp_path: Path, shop: PostgresShop, name: str, content: str, said: str
) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / name).write_text(content)

    async def scene(surface: SurfaceUnderTest) -> None:
        raise AssertionError("it was served")

    with pytest.raises(TidegateError) as refused:
        play(tmp_path, shop, scene, surface={"postgres": {"prompts": str(folder)}})
    assert refused.value.code is Code.CONFIG_INVALID
    assert said in refused.value.message


@pytest.mark.needs("duckdb")
def test_words_alone_are_distinguished_from_questions_by_the_tables_and_the_dialect_of_the_source(
    tmp_path: Path,
) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE customers (id INTEGER, name VARCHAR)")
        connection.execute("INSERT INTO customers VALUES (1, 'Ada')")

    async def run() -> dict[str, str]:
        sources = [{"name": "shop", "url": f"duckdb:///{tmp_path / 'shop.duckdb'}"}]
        async with served(tmp_path, sources=sources) as surface:
            return {
                query: await surface.text("query_database", query=query)
                for query in (
                    "DESCRIBE customers",
                    "SHOW TABLES",
                    "select name from customers",
                    "FROM customers",
                    "select customers",
                    "Show me each customer's name",
                    "describe what the customers buy",
                )
            }

    texts = asyncio.run(run())
    statements = [query for query, text in texts.items() if text.startswith("SQL Query:\n")]
    questions = [query for query, text in texts.items() if text.startswith("Natural Language")]
    assert statements == list(texts)[:4], texts
    assert questions == list(texts)[4:], texts
