"""INSERT, UPDATE, REPLACE, DELETE and EXEC: which requests are sent, and what is said of them."""

from __future__ import annotations

import threading

import pytest
from msgspec import structs

from support.cloud_api import Farm, Reply
from support.permits import permit_for
from tidegate.engines.registry import language_of, open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Query
from tidegate.model.statements import Statement


def changed(farm: Farm) -> list[str]:
    return [f"{verb} {path}" for verb, path, _ in farm.asked if verb != "GET"]


async def test_an_insert_sends_its_columns_and_returns_what_was_made(ask, farm: Farm):
    rows = await ask(
        "INSERT INTO farm.live.animals(field, data__name, data__weight, data__tags)"
        " VALUES ('west', 'Bess', 410.5, '[\"new\"]') RETURNING id, upper(name) AS shouted"
    )
    assert rows == [(13, "BESS")]
    assert [each.name for each in ask.cursor.columns] == ["id", "shouted"]
    assert ask.cursor.affected == 1
    assert farm.animals[13] == {
        "id": 13, "field": "west", "name": "Bess", "weight": 410.5, "tags": ["new"],
    }  # fmt: skip


async def test_what_returning_cannot_give_does_not_hide_that_the_change_took_effect(
    ask, farm: Farm
):
    forever = (
        "(WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c)"
    )
    for number, (returning, said) in enumerate(
        (
            (forever, "more than 2 s"),
            ("regexp_like(name, '(a|a)*b')", "pattern is not used"),
            ("instr(hex(zeroblob(8000000)), hex(zeroblob(4000000)) || '1')", "too big"),
            (f"name LIKE '{'%a' * 200}'", "pattern too complex"),
        ),
        start=1,
    ):
        error = await ask.refusal(
            "INSERT INTO farm.live.animals(field, data__name)"
            f" VALUES ('west', 'Bess') RETURNING {returning}"
        )
        assert error.code is Code.SQL_FAILED
        assert "The change took effect" in error.message
        assert said in error.message
        assert len(farm.animals) == 12 + number


async def test_an_insert_of_a_query_sends_one_request_for_each_row(ask, farm: Farm):
    await ask(
        "INSERT INTO farm.live.animals(field, data__name)"
        " SELECT name, 'calf of ' || name FROM farm.live.fields WHERE size > 10"
    )
    assert ask.cursor.affected == 2
    assert changed(farm) == ["POST /fields/south/animals", "POST /fields/east/animals"]
    assert farm.animals[14]["name"] == "calf of east"


async def test_an_update_sends_what_is_set_to_what_the_condition_names(ask, farm: Farm):
    await ask("UPDATE farm.live.animals SET data__name = ?, data__is_old = true WHERE id = 4", "Io")
    assert farm.asked == [("PATCH", "/animals/4", {"name": "Io", "is_old": True})]
    assert farm.animals[4]["field"] == "south"


async def test_replace_sends_a_put(ask, farm: Farm):
    await ask("REPLACE farm.live.animals SET data__name = 'only' WHERE id = 4")
    assert farm.animals[4] == {"id": 4, "name": "only"}


async def test_a_delete_of_a_list_sends_one_request_for_each_member(ask, farm: Farm):
    await ask("DELETE FROM farm.live.animals WHERE id IN (2, 5, 2)")
    assert changed(farm) == ["DELETE /animals/2", "DELETE /animals/5"]
    assert ask.cursor.affected == 2
    await ask(
        "DELETE FROM farm.live.animals WHERE id IN (SELECT id FROM farm.live.herd"
        " WHERE field = 'north')"
    )
    assert sorted(farm.animals) == [1, 4, 7, 8, 10, 11]


async def test_a_list_that_fails_midway_says_what_was_done(ask, farm: Farm):
    farm.special["/animals/3"] = lambda _: Reply(409, {"message": "in use"})
    error = await ask.refusal("DELETE FROM farm.live.animals WHERE id IN (1, 3, 5, 6)")
    assert "in use" in error.message
    assert error.message.endswith(
        " Of 4 requests 1 were done (DELETE https://api.farm.example/animals/1), this one failed"
        " (DELETE https://api.farm.example/animals/3), and 2 were not sent (DELETE"
        " https://api.farm.example/animals/5, DELETE https://api.farm.example/animals/6)."
    )
    assert error.details["http_status"] == 409
    assert error.details["done"] == ["DELETE https://api.farm.example/animals/1"]
    assert error.details["failed"] == "DELETE https://api.farm.example/animals/3"
    assert error.details["not_sent_count"] == 2
    assert sorted(farm.animals) == [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]


async def test_a_change_is_never_sent_twice(ask, farm: Farm):
    farm.special["/animals/3"] = lambda _: Reply(503, {"message": "later"}, Retry_After="0")
    error = await ask.refusal("UPDATE farm.live.animals SET data__name = 'x' WHERE id = 3")
    assert error.details["retryable"] is True
    assert changed(farm) == ["PATCH /animals/3"]


async def test_a_failure_that_leaves_the_outcome_open_is_not_to_be_repeated(ask, farm: Farm):
    farm.special["/animals/3"] = lambda _: Reply(504, {"message": "too late"})
    error = await ask.refusal("DELETE FROM farm.live.animals WHERE id = 3")
    assert "It may have taken effect" in error.message
    assert error.details["retryable"] is False
    assert "before you send it again" in str(error.hint)
    assert changed(farm) == ["DELETE /animals/3"]


async def test_a_connection_that_breaks_leaves_the_outcome_unknown(ask, farm: Farm):
    farm.special["/animals/3"] = lambda _: None
    error = await ask.refusal("DELETE FROM farm.live.animals WHERE id IN (2, 3, 4)")
    assert error.code is Code.SQL_OUTCOME
    assert error.details["done_count"] == 1
    assert error.details["not_sent_count"] == 1
    assert changed(farm) == ["DELETE /animals/2", "DELETE /animals/3"]


async def test_a_time_limit_while_a_change_is_under_way_leaves_its_outcome_unknown(ask, farm: Farm):
    over = threading.Event()

    def late(_: int) -> Reply:
        over.wait(20)
        return Reply(204)

    farm.special["/animals/3"] = late
    error = await ask.refusal("DELETE FROM farm.live.animals WHERE id IN (2, 3, 4)", timeout_s=1)
    over.set()
    assert error.code is Code.SQL_OUTCOME
    assert "1 were not sent (DELETE https://api.farm.example/animals/4)" in error.message
    assert error.details["done"] == ["DELETE https://api.farm.example/animals/2"]
    assert error.details["not_sent_count"] == 1
    assert changed(farm) == ["DELETE /animals/2", "DELETE /animals/3"]


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE farm.live.animals SET data__name = 'x' WHERE id = 3 RETURNING *",
        "EXEC farm.live.animals.update @id = 3, @data__name = 'x'",
    ],
)
async def test_what_a_change_gives_has_the_columns_in_the_order_of_the_document(ask, text):
    await ask(text)
    names = [each.name for each in ask.cursor.columns]
    assert names[:6] == ["id", "name", "field", "weight", "is_old", "tags"]


async def test_exec_calls_any_method(ask, farm: Farm):
    rows = await ask("EXEC farm.live.animals.feed @id = 7, @@json = '{\"grams\": 100}'")
    assert rows == [(107,)]
    assert [each.name for each in ask.cursor.columns] == ["fed"]
    assert farm.asked == [("POST", "/animals/7/feed", {"grams": 100})]
    error = await ask.refusal("EXEC farm.live.animals.feed @@json = '{}'")
    assert "lacks the parameters id" in error.message
    assert len(farm.asked) == 1


async def test_what_cannot_be_sent_whole_sends_nothing(ask, farm: Farm):
    for text, said in (
        ("DELETE FROM farm.live.animals", "cannot find matching operation"),
        ("DELETE FROM farm.live.animals WHERE id = 1 OR id = 2", "no condition of a change"),
        ("DELETE FROM farm.live.animals WHERE id = 5 OR 1 = 1", "no condition of a change"),
        ("DELETE FROM farm.live.animals WHERE NOT id = 5", "no condition of a change"),
        ("DELETE FROM farm.live.animals WHERE id BETWEEN 1 AND 2", "no condition of a change"),
        ("DELETE FROM farm.live.animals WHERE id NOT IN (1)", "no condition of a change"),
        ("DELETE FROM farm.live.animals WHERE id > 1", "no condition of a change"),
        ("DELETE FROM farm.live.animals WHERE id = 1 AND id = 2", "given twice"),
        ("DELETE FROM farm.live.animals WHERE id = 1 AND colour = 'x'", "no parameter colour"),
        (
            "UPDATE farm.live.animals SET data__name = 'x', data__hue = 'y' WHERE id = 1",
            "no parameter data__hue",
        ),
        ("INSERT INTO farm.live.animals VALUES (1)", "names its columns"),
        ("INSERT INTO farm.live.animals(field, data__name) VALUES ('x')", "1 values"),
        ("INSERT INTO farm.live.animals(field) VALUES ('a'), ('b')", "cannot find matching"),
        (
            "INSERT INTO farm.live.animals(field, data__name) VALUES ('a', 'b'), ('.', 'c')",
            "must not be empty",
        ),
        (
            "INSERT INTO farm.live.animals(field, data__name) VALUES ('a', 'b') RETURNING colour",
            "nothing was sent: RETURNING failed",
        ),
        ("INSERT INTO farm.live.fields(name) VALUES ('a')", "cannot find matching operation"),
        ("DELETE /*+ AWAIT */ FROM farm.live.animals WHERE id = 1", "AWAIT"),
        ("/*+ AWAIT */ DELETE FROM farm.live.animals WHERE id = 1", "AWAIT"),
    ):
        error = await ask.refusal(text)
        assert said in f"{error.message} {error.hint}", (text, error.message)
    assert farm.asked == []
    assert len(farm.animals) == 12


async def test_too_many_calls_are_refused_before_the_first(opened, farm: Farm):
    error = await opened(max_calls="2").refusal(
        "DELETE FROM farm.live.animals WHERE id IN (1, 2, 3)"
    )
    assert error.code is Code.LIMIT_RATE
    assert farm.asked == []


async def test_a_source_that_is_only_read_changes_nothing(ask, farm: Farm):
    ask.source = structs.replace(ask.source, access="read")
    error = await ask.refusal("DELETE FROM farm.live.animals WHERE id = 1")
    assert error.code is Code.POLICY_READ_ONLY
    assert farm.asked == []


async def test_explain_names_requests_and_sends_none(ask, farm: Farm):
    rows = await ask(
        "EXPLAIN SELECT * FROM farm.live.fields f JOIN farm.live.herd h ON h.field = f.name"
        " JOIN farm.live.animals a ON a.id IN (1, 2)"
    )
    by_method = {row[0]: row for row in rows}
    assert by_method["farm.live.herd"][1:5] == (
        "list",
        "GET https://api.farm.example/fields/{field}/animals",
        "field",
        "one for each key from another table",
    )
    assert by_method["farm.live.fields"][4] == "1"
    assert by_method["farm.live.animals"][4] == "2: one for each member of id"
    rows = await ask("EXPLAIN DELETE FROM farm.live.animals WHERE id IN (1, 2)")
    assert [row[2] for row in rows] == [
        "DELETE https://api.farm.example/animals/1",
        "DELETE https://api.farm.example/animals/2",
    ]
    rows = await ask(
        "EXPLAIN INSERT INTO farm.live.animals(field, data__name)"
        " SELECT name, name FROM farm.live.fields"
    )
    assert rows[0][4] == "one for each row of its query"
    error = await ask.refusal("EXPLAIN SELECT * FROM farm.live.herd")
    assert "cannot find matching operation" in error.message
    assert farm.asked == []


async def test_a_change_without_a_required_parameter_names_what_it_lacks(ask, farm: Farm):
    error = await ask.refusal("UPDATE farm.live.animals SET data__name = 'x' WHERE name = 'y'")
    assert error.hint == (
        "UPDATE has these methods: update(id, data__name). Of these update lacks id."
    )
    assert changed(farm) == []


async def test_a_number_beyond_64_bits_is_never_sent_rounded(ask, farm: Farm):
    huge = "99999999999999999999999999"
    for statement in (
        f"SELECT * FROM farm.live.herd WHERE field = {huge}",
        f"DELETE FROM farm.live.animals WHERE id = {huge}",
    ):
        error = await ask.refusal(statement)
        assert error.code is Code.ARGUMENT_INVALID
        assert "beyond 64 bits" in error.message
    assert farm.asked == []
    assert await ask(f"SELECT name FROM farm.live.herd WHERE field = '{huge}'") == []
    assert farm.paths() == [f"/fields/{huge}/animals"]


async def test_requests_that_are_not_those_of_the_approval_are_not_sent(ask, farm: Farm):
    query = Query(Statement("DELETE FROM farm.live.animals WHERE id = abs(random() % 9) + 1"))
    effect = language_of(ask.source).classify(query, ask.source).effect
    permit = structs.replace(permit_for(ask.source, query, effect), plan="of other requests")
    engine = await open_engine(ask.source)
    try:
        for run in (engine.run, engine.dry_run):
            with pytest.raises(TidegateError, match="Nothing was sent") as caught:
                await run(permit, Cancellation())
            assert caught.value.code is Code.POLICY_DENIED
    finally:
        await engine.close()
    assert farm.asked == []
    assert len(farm.animals) == 12
