"""Calls that a connection repeats are recognized by their bytes, and what is known of a statement
is taken for those that differ in plain values. Each reply, each line of the record and of the
history, and what is in the database is that of calls for which everything is found out again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import support.postgres_server as postgres_server
from support.eventually import until
from support.judge_cases import load
from support.repeated_conversation import VARYING, Desk, compare, told, with_other_values
from support.surface_client import modern_meta
from tidegate.model.actors import Scope
from tidegate.protocol.repeated_calls import RepeatedCalls

SHOPS: dict[str, dict[str, Any]] = {
    "plain": {},
    "hidden": {
        "masks": [{"column": "customers.email", "show": "hash"}],
        "filters": [{"table": "orders", "where": "customer_id = 1"}],
    },
    "guarded": {"access": "write", "approval_for": "writes", "approval": "any"},
    "written": {"access": "write", "undo": "keep"},
}
STATEMENTS = (
    "SELECT id, full_name FROM customers WHERE id = 1",
    "SELECT id, full_name FROM customers WHERE id = 2",
    "SELECT id, full_name FROM customers WHERE id = 2",
    "SELECT email FROM customers WHERE email = 'ada@example.org'",
    "SELECT * FROM orders",
    "SELECT '葛飾', \"full_name\", 'a\\b' FROM customers",
    "SELECT nothing FROM customers",
    "SELECT full_name FROM customers WHERE full_name = 'ada lovelace'",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 400) SELECT x FROM n",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 40)"
    " SELECT x, x / 2.0, x * 900719925474099.3, 'a' || x, NULL, x * 300000000000000 FROM n",
    "SELECT id, email, length(email) FROM customers WHERE id < 3",
    "SELECT 9007199254740993 AS n UNION ALL SELECT 1.0",
    "UPDATE customers SET city = 'Oslo' WHERE id = 3",
    "UPDATE customers SET city = 'Rome' WHERE id = 3",
    "DELETE FROM orders",
    "DROP TABLE orders",
    "",
    "SELECT 1; SELECT 2",
    "ATTACH 'x.db' AS x",
    *[case.sql for case in load() if case.dialect == "sqlite" and len(case.sql) < 2_000][::12],
)
TAKES_TASKS = modern_meta("tests", extensions={"io.modelcontextprotocol/tasks": {}})
READ = {"sql": "SELECT id, full_name FROM customers WHERE id = 1"}
WRITE = {"sql": "UPDATE customers SET city = 'Oslo' WHERE id = 3"}


@pytest.mark.parametrize("name", SHOPS)
def test_the_short_way_and_the_whole_one_say_and_record_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async def script(desk: Desk) -> None:
        line = await desk.line(desk.token())
        for sql in STATEMENTS:
            await line.call({"sql": sql})
            await line.call({"sql": with_other_values(sql)})

    recognized = compare(tmp_path, monkeypatch, script, **SHOPS[name])
    assert sum(recognized) > len(STATEMENTS) * 0.9


def test_a_question_and_its_answer_belong_to_the_call_that_was_recognized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(desk: Desk) -> None:
        line = await desk.line(desk.token())
        for number, (action, decision) in enumerate(
            [("decline", ""), ("cancel", ""), ("accept", "deny"), ("accept", "allow once")] * 3
        ):
            update = {"sql": f"UPDATE customers SET city = 'Oslo' WHERE id < {number}"}
            asked = (await line.call(update)).result
            assert asked["resultType"] == "input_required"
            (key,) = asked["inputRequests"]
            answers = {key: {"action": action, "content": {"decision": decision}}}
            given = {"inputResponses": answers, "requestState": asked["requestState"]}
            # The answer is to this statement alone, and once.
            for sql in (READ["sql"], "DELETE FROM orders", update["sql"], update["sql"]):
                await line.call({"sql": sql}, **given)
            await line.call(update, inputResponses=answers)
            await line.call(update)
            await line.call(READ)
        allowed = await line.call({"sql": "SELECT city FROM customers"})
        assert "Oslo" in allowed.text

    recognized = compare(tmp_path, monkeypatch, script, **SHOPS["guarded"])
    assert sum(recognized) >= 22


def test_what_changes_between_two_calls_holds_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses: list[int] = []

    async def script(desk: Desk) -> None:
        line = await desk.line(desk.token())

        async def repeat() -> None:
            for arguments in (READ, WRITE, READ):
                statuses.append((await line.call(arguments)).status)

        await repeat()
        for source in (
            {"access": "write"}, {"access": "none"}, {"access": "write"}, {"access": "read"},
            {"access": "write", "approval_for": "everything", "approval": "any"},
            {"masks": [{"column": "customers.full_name"}]}, {"name": "elsewhere"},
            {"access": "write"},
        ):  # fmt: skip
            desk.write(**source)
            await repeat()
        for rights in (
            {"scope": Scope.READ_ONLY}, {"sources": frozenset({"other"})},
            {"tables": frozenset({"orders"})}, {"scope": Scope.FULL_ACCESS},
        ):  # fmt: skip
            desk.narrow("tests", **rights)
            await repeat()
        desk.app.tokens.revoke("tests")
        await repeat()

    recognized = compare(tmp_path, monkeypatch, script)
    assert sum(recognized) >= 34
    assert statuses[-3:] == [401] * 3


@pytest.mark.parametrize("how", ["the client leaves", "its rights are taken away"])
def test_a_recognized_call_is_cancelled_as_every_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"

    async def script(desk: Desk) -> None:
        line = await desk.line(desk.token())
        for _ in range(4):
            await line.call(READ)
        line.send({"sql": endless})
        sessions = desk.edge.sessions
        await until(lambda: list(sessions.actors()), "the call runs")
        if how == "the client leaves":
            line.leave()
        else:
            sessions.end_actors({actor.id for actor in sessions.actors()}, "revoked")
            await line.read()
        await until(lambda: not list(sessions.actors()), "the call has ended")

    recognized = compare(tmp_path, monkeypatch, script)
    assert recognized[-1]
    assert any("call.cancelled" in line for line in told(tmp_path / "short" / "state"))


def test_two_clients_behind_one_proxy_stay_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(desk: Desk) -> None:
        reader, writer = desk.token("one", Scope.READ_ONLY), desk.token("two")
        first = await desk.line(reader, X_Forwarded_For="198.51.100.1", User_Agent="a")
        second = first.beside(writer, X_Forwarded_For="198.51.100.1", User_Agent="a")
        third = first.beside(writer, X_Forwarded_For="198.51.100.2", User_Agent="b")
        for line in (first, first, second, third, third, third, first, second, second, second):
            await line.call(WRITE)
            await line.call(WRITE)

    proxied = {"trusted_proxies": ["127.0.0.1"]}
    recognized = compare(tmp_path, monkeypatch, script, settings=proxied, access="write")
    assert sum(recognized) >= 8


def test_what_stands_beside_the_statement_is_the_call_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress, trace and level of the log; other tools; arguments that are wrong."""

    async def script(desk: Desk) -> None:
        line = await desk.line(desk.token())
        metas: list[dict[str, Any]] = [
            {}, {"progressToken": 7}, {"progressToken": 1.5}, {"traceparent": "00-a-b-01"},
            {"io.modelcontextprotocol/logLevel": "debug"},
        ]  # fmt: skip
        limits = (1, 2, 0, "1", "x")
        for number, meta in enumerate(metas):
            for place, source in enumerate(("shop", "none", 5, None, ["shop"])):
                # Each pair of the three comes once.
                given = {**READ, "source": source, "max_rows": limits[(number + place) % 5]}
                for _ in range(2):
                    await line.call(given, meta=meta)
        for name in ("schema", "find", "nothing"):
            for words in ("customers", "orders", "", "x"):
                await line.call({"query": words}, name=name)
                await line.call({"table": words}, name=name)

    compare(tmp_path, monkeypatch, script)


def test_an_address_that_sends_too_much_is_refused_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(desk: Desk) -> None:
        line = await desk.line(desk.token())
        statuses = [(await line.call(READ)).status for _ in range(8)]
        assert statuses == [200] * 5 + [429] * 3

    rate = {"request_rate": {"per_minute": 1, "burst": 5}}
    compare(tmp_path, monkeypatch, script, settings=rate)


def test_nothing_is_learned_of_a_client_whose_heads_are_read_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[bytes] = []
    learn = RepeatedCalls.learn

    def counted(self: RepeatedCalls, frame: bytes, call: Any) -> None:
        learned.append(frame)
        learn(self, frame, call)

    monkeypatch.setattr(RepeatedCalls, "learn", counted)

    async def script(desk: Desk) -> None:
        line = await desk.line(desk.token())
        for _ in range(4):
            await line.call(READ, apart=True)
        assert learned == []
        for _ in range(4):
            await line.call(READ)
        learned.clear()

    assert sum(compare(tmp_path, monkeypatch, script)) == 1


def test_budgets_are_told_used_up_and_raised_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    async def script(desk: Desk) -> None:
        token = desk.token()
        desk.set_budget(10, token="tests")
        desk.set_budget(6, "rows", token="tests", source="shop")
        line = await desk.line(token)

        async def repeat(most: int, limit: int = 2) -> None:
            for number in range(most):
                sql = f"SELECT id, full_name FROM customers WHERE id > {number} LIMIT {limit}"
                said.append((await line.call({"sql": sql})).text)

        await repeat(5)
        desk.set_budget(40, "rows", token="tests", source="shop")
        await repeat(2)
        desk.set_budget(40, token="tests")
        await repeat(4, 100)
        desk.set_budget(1, "bytes", source="shop")
        await repeat(3)

    assert sum(compare(tmp_path, monkeypatch, script)) == len(said) / 2 - 2
    for words in ("left of the budget of", "is used up"):
        assert any(words in each for each in said), words


def test_a_recognized_call_becomes_a_task_and_is_answered_by_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    became: list[str] = []

    async def script(desk: Desk) -> None:
        token = desk.token()
        line, other = await desk.line(token), await desk.line(token)
        for number in range(6):
            update = {"sql": f"UPDATE customers SET city = 'Oslo' WHERE id = {number}"}
            created = (await line.call(update, meta=TAKES_TASKS)).result
            assert created["resultType"] == "task"
            (question,) = desk.app.approvals.list()
            answer = "denied" if number % 3 == 1 else "allowed"
            desk.app.approvals.resolve(question.id, answer, "cli:ann")
            ended = await other.until_ended(created["taskId"], TAKES_TASKS)
            became.append(ended.result["status"])

    guarded: dict[str, Any] = SHOPS["guarded"] | {"approval": "inbox"}
    recognized = compare(tmp_path, monkeypatch, script, **guarded)
    assert sum(recognized) == 4
    assert became == 12 * ["completed"]


def test_what_changes_in_the_database_holds_for_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    async def script(desk: Desk) -> None:
        line = await desk.line(desk.token())
        for shown in ("full_name", "email", "city || 'x'", "nowhere", "email"):
            with closing(sqlite3.connect(desk.shop)) as shop:
                shop.execute("DROP VIEW IF EXISTS shown")
                shop.execute(f"CREATE VIEW shown AS SELECT id, {shown} AS who FROM customers")
            for sql in ("SELECT who FROM shown WHERE id = 1", "SELECT * FROM shown WHERE id = 2"):
                for text in (sql, with_other_values(sql), sql):
                    said.append((await line.call({"sql": text})).text)

    recognized = compare(tmp_path, monkeypatch, script, **SHOPS["hidden"])
    assert sum(recognized) == len(said) / 2 - 2
    assert not any("ada@example.org" in each for each in said)


@pytest.mark.skipif(not postgres_server.available(), reason="PostgreSQL is not installed")
def test_on_postgresql_a_plan_limit_sees_the_values_and_what_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    server = postgres_server.shared(sorted(postgres_server.available())[-1])
    made: list[str] = []

    async def script(desk: Desk) -> None:
        name = server.new_database()
        made.append(name)
        for text in (
            "CREATE TABLE big AS SELECT n AS id, n % 7 AS kind FROM generate_series(1, 9000) n",
            "CREATE TABLE small AS SELECT * FROM big WHERE id < 5",
            "CREATE VIEW shown AS SELECT id FROM small",
            "CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 2 * n'",
            "ANALYZE",
        ):
            server.ask(text, name)
        desk.write(
            url=server.url(name), max_plan_rows=2_000, functions=["public.twice"], access="write"
        )
        line = await desk.line(desk.token())

        async def repeat() -> None:
            for sql in (
                *(f"SELECT id FROM big WHERE id > {most}" for most in (8_990, 5, 8_991)),
                *(f"SELECT id FROM shown WHERE id < {most}" for most in (1, 2)),
                *(f"SELECT twice(id) FROM small WHERE id < {most}" for most in (1, 2)),
                *(f"UPDATE big SET kind = 1 WHERE id > {most}" for most in (8_990, 5, 8_991)),
            ):
                said.append(VARYING.sub("#", (await line.call({"sql": sql})).text))

        await repeat()
        for text in (
            "CREATE OR REPLACE VIEW shown AS SELECT id FROM big",
            "CREATE SCHEMA other",
            "CREATE TABLE other.small AS SELECT * FROM big",
            f'ALTER DATABASE "{name}" SET search_path = other, public',
            "CREATE OR REPLACE FUNCTION twice(n int) RETURNS int LANGUAGE plpgsql VOLATILE"
            " AS 'BEGIN INSERT INTO big VALUES (n); RETURN n; END'",
        ):
            server.ask(text, name)
        await repeat()

    recognized = compare(tmp_path, monkeypatch, script)
    for name in made:
        server.drop_database(name)
    assert sum(recognized) > 15
    limited = ["max_plan_rows" in each for each in said]
    assert limited == 4 * [False, True, *6 * [False], True, False]
    assert ["sql.function_refused" in each for each in said[5:20:10]] == [False, True]
