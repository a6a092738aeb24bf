"""Questions in plain language at `/mcp/v1`, answered with the statements of a scripted model."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from products.pgedge.support.scripted_model import KEY, Fault, ScriptedModel, scripted, wrote
from support.postgres_surface import PostgresShop, SurfaceUnderTest, served
from tidegate.edges.http.edge import HttpEdge
from tidegate.edges.listening import bind
from wire.conversations import python_sdk, typescript_sdk

Talk = Callable[[int, dict[str, Any]], dict[str, Any]]

QUESTION = "How many users are active?"
COUNT = "SELECT count(*) AS active FROM users WHERE status = 'active'"
WIDE = "SELECT i, repeat('x', 200) AS pad FROM generate_series(1, 4000) AS i"
BROKEN = "SELECT i, repeat('x', 200) AS pad, 1 / (3000 - i) AS n FROM generate_series(1, 4000) AS i"


@pytest.fixture(scope="module")
def shop() -> Iterator[PostgresShop]:
    shop = PostgresShop.lasting()
    yield shop
    shop.drop()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)


def play(
    directory: Path,
    shop: PostgresShop,
    model: ScriptedModel,
    scene: Callable[[SurfaceUnderTest], Awaitable[Any]],
    language: dict[str, Any] | None = None,
    sources: list[dict[str, Any]] | None = None,
    **more: Any,
) -> Any:
    async def run() -> Any:
        own = language or {}
        settings = {"model": model.settings(api_key="${ENV:MODEL_KEY}", **more), **own}
        saved = {} if sources is None else {"sources": sources}
        async with served(directory, shop, language=settings, **saved) as surface:
            return await scene(surface)

    return asyncio.run(run())


def asked(question: str = QUESTION, **arguments: Any) -> Callable[[SurfaceUnderTest], Any]:
    """A scene: one question, and the result of its call."""

    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        given = {"query": question, **arguments}
        return (await surface.rpc("tools/call", name="query_database", arguments=given))["result"]

    return scene


def over_http(question: str, **arguments: Any) -> Callable[[SurfaceUnderTest], Any]:
    """A scene on a socket: the head of the answer, and its whole body."""

    async def scene(surface: SurfaceUnderTest) -> tuple[bytes, bytes]:
        listener = bind("127.0.0.1", 0)
        edge = HttpEdge(surface.http, listener)
        await edge.start()
        reader, writer = await asyncio.open_connection(*listener.getsockname()[:2])
        params = {"name": "query_database", "arguments": {"query": question, **arguments}}
        body = msgspec.json.encode(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        )
        head = f"POST /mcp/v1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        try:
            answered = (await reader.readuntil(b"\r\n\r\n")).lower()
            received = b""
            if b"chunked" in answered:
                while size := int(await reader.readuntil(b"\r\n"), 16):
                    received += await reader.readexactly(size)
                    await reader.readexactly(2)
            else:
                length = answered.partition(b"content-length: ")[2].partition(b"\r\n")[0]
                received = await reader.readexactly(int(length))
            return answered, received
        finally:
            writer.close()
            await edge.stop(0)

    return scene


def text_of(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


def test_a_question_is_answered_as_the_document_shows(tmp_path: Path, shop: PostgresShop) -> None:
    with scripted(wrote(COUNT, ["Active means the status 'active'."])) as model:
        result = play(tmp_path, shop, model, asked())
    assert set(result) == {"content"}
    head, _, rest = text_of(result).partition("\n\nResults:\n")
    assert head == f"Natural Language Query: {QUESTION}\n\nGenerated SQL:\n{COUNT}"
    rows, _, after = rest.partition("\n]")
    assert msgspec.json.decode(rows + "\n]") == [{"active": 10}]
    assert after.startswith("\n\n1 row\n")
    assert "Assumed: Active means the status 'active'." in after
    assert "Answer: a-" in after


def test_a_question_continues_an_answer_of_its_caller(tmp_path: Path, shop: PostgresShop) -> None:
    async def scene(surface: SurfaceUnderTest) -> tuple[dict[str, Any], str]:
        first = await asked()(surface)
        handle = text_of(first).rpartition("Answer: ")[2].strip()
        await asked("And how many are gone?", previous=handle)(surface)
        return await asked("And those?", previous="a-0123456789abcdef")(surface), handle

    with scripted(wrote(COUNT)) as model:
        unknown, handle = play(tmp_path, shop, model, scene)
    assert handle.startswith("a-")
    assert len(model.prompts) == 2
    assert f"The question before was: {QUESTION}\nanswered by: {COUNT}" in model.prompts[1].text
    assert unknown["isError"] is True
    assert "answer.unknown" in text_of(unknown)


def test_the_rows_of_a_question_are_sent_while_they_are_fetched(
    tmp_path: Path, shop: PostgresShop
) -> None:
    with scripted(wrote(WIDE, ["All of them."])) as model:
        head, body = play(tmp_path, shop, model, over_http("Show everything", limit=4_000))
    assert b"transfer-encoding: chunked" in head
    text = text_of(msgspec.json.decode(body)["result"])
    assert text.startswith("Natural Language Query: Show everything\n\nGenerated SQL:\nSELECT i,")
    rows = text.partition("Results:\n")[2].rpartition("\n]")[0] + "\n]"
    assert [row["i"] for row in msgspec.json.decode(rows)] == list(range(1, 4_001))
    assert "\n4000 rows\nAssumed: All of them." in text


def test_what_fails_after_rows_have_left_is_not_tried_again(
    tmp_path: Path, shop: PostgresShop
) -> None:
    with scripted(wrote(BROKEN), wrote(COUNT)) as model:
        _, body = play(tmp_path, shop, model, over_http("Show everything", limit=4_000))
        prompts = len(model.prompts)
    result = msgspec.json.decode(body)["result"]
    assert result["isError"] is True
    assert "division by zero" in text_of(result)
    assert COUNT not in text_of(result)
    assert prompts == 1


def test_what_fails_before_any_row_has_left_is_repaired(tmp_path: Path, shop: PostgresShop) -> None:
    wrong = "SELECT count(*) AS active FROM users WHERE state = 'active'"
    with scripted(wrote(wrong), wrote(COUNT)) as model:
        result = play(tmp_path, shop, model, asked())
        repair = model.prompts[1].last
    assert f"Generated SQL:\n{COUNT}\n" in text_of(result)
    assert "status" in repair


NONE = "SELECT count(*) AS users FROM users WHERE status = 'actve'"


@pytest.mark.parametrize("sql", [NONE, "SELECT id FROM users WHERE status = 'actve'"])
def test_an_answer_of_nothing_names_the_values_that_are_near(
    tmp_path: Path, shop: PostgresShop, sql: str
) -> None:
    async def scene(surface: SurfaceUnderTest) -> list[str]:
        peer = await surface.peer()  # its results are sent whole, others as they come
        texts: list[str] = []
        for _ in range(20):  # values are sampled in the background
            whole = await peer.text("query_database", query=QUESTION)
            sent = text_of(await asked()(surface))
            texts = [whole, sent]
            if all("has no" in text for text in texts):
                break
        return texts

    with scripted(wrote(sql)) as model:
        for text in play(tmp_path, shop, model, scene):
            assert "Check no_rows: users.status has no 'actve', but 'active'" in text


def test_a_statement_that_costs_too_much_is_shown_with_its_plan_and_not_run(
    tmp_path: Path, shop: PostgresShop
) -> None:
    slow = "SELECT count(*) AS n FROM users AS a, users AS b, users AS c"

    async def scene(surface: SurfaceUnderTest) -> list[dict[str, Any]]:
        peer = await surface.peer()
        whole = await peer.call("query_database", query=QUESTION)
        return [await asked()(surface), whole["result"]]

    with scripted(wrote(slow)) as model:
        results = play(tmp_path, shop, model, scene, language={"max_cost": 1.0})
    for result in results:
        text = text_of(result)
        assert result["isError"] is True
        assert text.startswith(f"Natural Language Query: {QUESTION}\n\nGenerated SQL:\n{slow}\n")
        assert "\nNot run: question.costly: The plan costs " in text
        assert "\nPlan:\nAggregate" in text
        assert "Results:" not in text
    assert results[1]["structuredContent"]["sql"] == slow


def test_a_question_on_tables_with_hidden_rows_and_columns_is_answered_as_its_caller_sees_them(
    tmp_path: Path, shop: PostgresShop
) -> None:
    """The plan of such a statement is not shown, and is not asked for again."""
    source = {
        "name": "shop",
        "url": shop.url,
        "masks": [{"column": "users.email", "show": "nothing"}],
        "filters": [{"table": "users", "where": "id <= 4"}],
    }
    sql = "SELECT count(*) AS n, max(email) AS mail FROM users"

    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        return await asked()(surface)

    with scripted(wrote(sql)) as model:
        result = play(tmp_path, shop, model, scene, sources=[source])
        prompts = len(model.prompts)
    assert '{"n": 4, "mail": null}' in text_of(result)
    assert prompts == 1


def test_an_answer_says_what_left_the_machine_and_what_may_be_wrong_with_it(
    tmp_path: Path, shop: PostgresShop
) -> None:
    guessed = "SELECT count(o.id) AS n FROM orders AS o JOIN users AS u ON u.id = o.id"

    async def scene(surface: SurfaceUnderTest) -> list[dict[str, Any]]:
        peer = await surface.peer()
        whole = await peer.call("query_database", query=QUESTION)
        return [await asked()(surface), whole["result"]]

    with scripted(wrote(guessed)) as model:
        in_text, whole = play(tmp_path, shop, model, scene)
        sent = len(model.prompts[1].text)
        host = model.settings()["base_url"].partition("//")[2].partition("/")[0]
    for result in (in_text, whole):
        assert f" at {host}: " in text_of(result)
        assert " bytes with comments of the schema, in 1 request" in text_of(result)
        assert "Joined without a declared key: " in text_of(result)
    data = whole["structuredContent"]
    assert [join["declared"] for join in data["joins"]] == [False]
    assert data["sent"]["bytes"] >= sent
    assert (data["sent"]["host"], data["sent"]["share"]) == (host, "comments")
    assert data["sent"]["requests"] == 1
    assert data["handle"].startswith("a-")


def test_limit_and_offset_hold_for_a_question_as_for_a_statement(
    tmp_path: Path, shop: PostgresShop
) -> None:
    with scripted(wrote("SELECT id FROM users ORDER BY id")) as model:
        result = play(tmp_path, shop, model, asked("Which users are there?", limit=2, offset=3))
    assert '{"id": 4},\n{"id": 5}\n]' in text_of(result)
    assert "2 rows from row 4 on\nMore rows are available: use offset=5" in text_of(result)


WRITES = (
    "DELETE FROM users",
    "SELECT 1; DELETE FROM users",
    "WITH gone AS (DELETE FROM users RETURNING id) SELECT * FROM gone",
    "SELECT setval('users_id_seq', 1)",
    "COPY users TO PROGRAM 'cat'",
    "COMMIT",
)


@pytest.mark.parametrize("sql", WRITES)
def test_whatever_a_model_writes_the_data_stays_as_it_was(
    tmp_path: Path, shop: PostgresShop, sql: str
) -> None:
    state = "SELECT count(*), min(status), (SELECT last_value FROM users_id_seq) FROM users"
    before = shop.ask(state)
    with scripted(wrote(sql)) as model:
        result = play(tmp_path, shop, model, asked())
    assert result["isError"] is True
    assert text_of(result).partition(":")[0].partition(".")[0] in ("policy", "sql", "question")
    assert shop.ask(state) == before


FAULTS: dict[str, tuple[Fault | str, str]] = {
    "500": (Fault("status", 500, text=f"no luck with {KEY}"), "provider.failed"),
    "429": (Fault("status", 429), "provider.rate_limited"),
    "429 and when": (Fault("status", 429, {"Retry-After": "7200"}), "provider.rate_limited"),
    "401": (Fault("status", 401, text=f"bad key {KEY}"), "provider.refused"),
    "HTML": (Fault("html"), "provider.invalid_reply"),
    "cut off": (Fault("cut"), "provider.cut_off"),
    "endless": (Fault("endless"), "provider.too_large"),
    "prose": ("I would rather talk about the weather.", ""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_that_fails_has_a_code_of_its_own_and_no_key_is_shown(
    tmp_path: Path, shop: PostgresShop, fault: str
) -> None:
    reply, code = FAULTS[fault]
    with scripted(reply) as model:
        result = play(tmp_path, shop, model, asked())
    said = text_of(result)
    assert result["isError"] is True
    assert said.startswith(code)
    assert KEY not in said
    logged = b"".join(
        path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()
    )
    assert KEY.encode() not in logged


def test_a_model_server_that_is_down_or_slow_has_a_code(tmp_path: Path, shop: PostgresShop) -> None:
    with scripted("") as gone:
        pass
    said = text_of(play(tmp_path / "a", shop, gone, asked()))
    assert said.startswith("provider.unreachable")
    with scripted(Fault("hang")) as slow:
        said = text_of(play(tmp_path / "b", shop, slow, asked(), timeout_s=0.05))
    assert said.startswith("provider.timeout")


def test_a_question_that_is_empty_or_a_megabyte_long_asks_no_model(
    tmp_path: Path, shop: PostgresShop
) -> None:
    with scripted(wrote(COUNT)) as model:
        _, body = play(tmp_path / "a", shop, model, over_http("why " * 262_144))
        empty = play(tmp_path / "b", shop, model, asked(" \n", mode="nl"))
        assert model.prompts == []
    long = msgspec.json.decode(body)["result"]
    assert long["isError"] and empty["isError"]
    assert text_of(long).startswith("question.too_long")


def test_a_question_from_right_to_left_reaches_the_model_whole(
    tmp_path: Path, shop: PostgresShop
) -> None:
    question = "כמה משתמשים פעילים יש?"
    with scripted(wrote(COUNT)) as model:
        result = play(tmp_path, shop, model, asked(question))
        assert question in model.prompts[0].text
    assert text_of(result).startswith(f"Natural Language Query: {question}\n")


@pytest.mark.parametrize("client", [1, 2])
@pytest.mark.parametrize("talk", [python_sdk, typescript_sdk])
def test_an_official_client_lends_its_model_and_its_user_chooses_a_reading(
    tmp_path: Path, shop: PostgresShop, talk: Talk, client: int
) -> None:
    readings = ["users that are active", "users that have gone"]
    settings = {"sources": [{"name": "shop", "url": shop.url}], "language": {"sampling": True}}
    command = [sys.executable, "-m", "tidegate", "serve", "--surface", "postgres"]
    command += ["--config", msgspec.json.encode(settings).decode()]
    command += ["--state", str(tmp_path / "state")]
    config = {
        "command": command,
        "calls": [["query_database", {"query": "How many users of that kind are there?"}]],
        "sampled": [msgspec.json.encode({"readings": readings}).decode(), wrote(COUNT)],
        "answer": {"action": "accept", "content": {"reading": readings[0]}},
    }
    report = talk(client, config | ({"mode": "auto"} if client == 2 else {}))
    (result,) = report["results"]
    assert not result["is_error"], result
    assert f"Generated SQL:\n{COUNT}\n" in result["text"]
    assert '{"active": 10}' in result["text"]
    assert all("What is meant by" in message for message in report["asked"])
