"""SELECT over the resources of providers: which requests are made, and what they give."""

from __future__ import annotations

import asyncio
import copy
import gzip
import json
import threading
import tracemalloc
import zlib
from pathlib import Path

import pytest

from products.cloud.contract.conftest import Ask
from support.cloud_api import ANIMAL, DETAIL, SERVICE, Farm, Reply, write_farm
from tidegate.engines.registry import engine_of
from tidegate.errors import Code, TidegateError
from tidegate.http_client import unpacking
from tidegate.model.cancellation import Cancellation
from tidegate.model.sources import Source
from tidegate.products.cloud.engine import provider_calls
from tidegate.products.cloud.engine.call_limits import CallCounts, CallRates


async def test_the_method_is_chosen_by_the_parameters_that_are_bound(ask, farm: Farm):
    assert await ask("SELECT name, diary FROM farm.live.animals WHERE id = 3") == [
        ("animal 3", "day 3")
    ]
    assert len(await ask("SELECT name FROM farm.live.animals WHERE field = 'north'")) == 4
    assert len(await ask("SELECT name FROM farm.live.animals")) == 12
    assert farm.paths() == ["/animals/3", "/fields/north/animals", "/animals"]


async def test_an_optional_parameter_is_sent_when_it_is_equated(ask, farm: Farm):
    assert await ask("SELECT name FROM farm.live.fields WHERE min_size = ?", 20) == [
        ("south",), ("east",),
    ]  # fmt: skip
    assert farm.paths() == ["/fields?min_size=20"]


async def test_a_bound_parameter_is_a_column(ask):
    assert await ask("SELECT DISTINCT list FROM farm.live.numbers WHERE \"list\" = '2'") == [("2",)]


async def test_values_have_the_types_of_sqlite(ask):
    assert await ask(
        "SELECT id, weight, is_old, tags, json_extract(tags, '$[1]') FROM farm.live.animals"
        " WHERE id = 8"
    ) == [(8, 204.0, 1, '["a","8"]', "8")]


async def test_an_in_list_makes_one_request_for_each_member(ask, farm: Farm):
    rows = await ask("SELECT id FROM farm.live.animals WHERE id IN (3, 1, 99, 3)")
    assert sorted(rows) == [(1,), (3,)]
    assert sorted(farm.paths()) == ["/animals/1", "/animals/3", "/animals/99"]


async def test_members_of_an_in_list_may_come_from_a_query(ask, farm: Farm):
    rows = await ask(
        "SELECT count(*) FROM farm.live.herd WHERE field IN (SELECT name FROM farm.live.fields)"
    )
    assert rows == [(12,)]
    assert farm.paths()[0] == "/fields"
    assert len(farm.paths()) == 4


async def test_a_join_asks_once_for_each_key(ask, farm: Farm):
    rows = await ask(
        "SELECT f.size, count(*) FROM farm.live.fields f"
        " JOIN farm.live.herd a ON a.field = f.name GROUP BY 1 ORDER BY 1"
    )
    assert rows == [(10, 4), (20, 4), (30, 4)]
    assert sorted(farm.paths()) == [
        "/fields", "/fields/east/animals", "/fields/north/animals", "/fields/south/animals",
    ]  # fmt: skip


async def test_a_join_by_a_function_of_a_column_and_a_chain_of_joins(ask, farm: Farm):
    rows = await ask(
        "SELECT d.diary FROM farm.live.fields f"
        " JOIN farm.live.herd h ON h.field = lower(upper(f.name))"
        " JOIN farm.live.animals d ON d.id = h.id + 0"
        " WHERE f.size = 10 ORDER BY d.id"
    )
    assert rows == [("day 3",), ("day 6",), ("day 9",), ("day 12",)]
    assert len(farm.paths()) == 1 + 1 + 4


async def test_an_outer_join_keeps_rows_without_a_match(ask, farm: Farm):
    farm.animals = {n: each for n, each in farm.animals.items() if each["field"] != "south"}
    rows = await ask(
        "SELECT f.name, count(a.id) FROM farm.live.fields f"
        " LEFT JOIN farm.live.herd a ON a.field = f.name GROUP BY 1 ORDER BY 1"
    )
    assert rows == [("east", 4), ("north", 4), ("south", 0)]


async def test_an_absent_row_asks_for_nothing_more(ask, farm: Farm):
    """While keys are fetched the row looks absent: what hangs on that must not be asked for."""
    rows = await ask(
        "SELECT d.diary FROM farm.live.fields f"
        " LEFT JOIN farm.live.herd h ON h.field = f.name"
        " JOIN farm.live.animals d ON d.id = coalesce(h.id, 77)"
    )
    assert len(rows) == 12
    assert "/animals/77" not in farm.paths()


async def test_common_table_expressions_windows_unions_and_subqueries(ask, farm: Farm):
    rows = await ask(
        "WITH big AS (SELECT * FROM farm.live.animals WHERE weight > 100)"
        " SELECT name, rank() OVER (PARTITION BY field ORDER BY weight DESC) AS place FROM big"
        " WHERE id IN (SELECT animal FROM farm.live.visits)"
        " UNION ALL SELECT name, 0 FROM farm.live.fields WHERE size > 20"
        " EXCEPT SELECT 'animal 5', 3 ORDER BY 1, 2"
    )
    assert rows[0] == ("animal 10", 1)
    assert ("east", 0) in rows
    assert len(rows) == 9
    assert len(farm.paths()) == 2 + 12  # an IN list binds the parameter of the method `get`


async def test_a_recursive_query_follows_the_api(ask, farm: Farm):
    rows = await ask(
        "WITH RECURSIVE walk(id, step) AS (SELECT 2, 0 UNION ALL"
        " SELECT a.id * 2, w.step + 1 FROM walk w JOIN farm.live.animals a ON a.id = w.id"
        " WHERE a.diary IS NOT NULL AND w.step < 5)"
        " SELECT id FROM walk ORDER BY step"
    )
    assert rows == [(2,), (4,), (8,), (16,)]
    assert farm.paths() == ["/animals/2", "/animals/4", "/animals/8", "/animals/16"]


async def test_a_list_that_has_all_is_fetched_once_for_a_join_and_looked_up(ask, farm: Farm):
    rows = await ask(
        "SELECT a.name, sum(v.cost) FROM farm.live.visits v"
        " JOIN farm.live.animals a ON a.id = v.animal GROUP BY 1 ORDER BY 2 LIMIT 1"
    )
    assert rows == [("animal 1", 18.0)]
    assert sorted(farm.paths()) == ["/animals", "/visits"]


async def test_a_resource_is_fetched_once_however_often_it_is_named(ask, farm: Farm):
    rows = await ask(
        "SELECT count(*) FROM farm.live.animals a, farm.live.animals b, farm.live.fields"
    )
    assert rows == [(432,)]
    assert sorted(farm.paths()) == ["/animals", "/fields"]


async def test_columns_are_in_the_order_of_the_statement_and_names_may_be_qualified(ask):
    rows = await ask(
        "SELECT farm.live.fields.size, fields.name FROM farm.live.fields ORDER BY 1 LIMIT 1"
    )
    assert rows == [(10, "north")]
    assert [each.name for each in ask.cursor.columns] == ["size", "name"]


async def test_a_view_of_a_document_gets_its_parameters_from_outside(ask, farm: Farm):
    assert await ask("SHOW METHODS IN farm.live.heavy_animals") == [
        ("feed", "id", "EXEC"),
        ("__view__", "field", "SELECT"),
    ]
    names = ["field", "name", "first_tag"]
    assert [row[0] for row in await ask("DESCRIBE farm.live.heavy_animals")] == names
    described = await ask("DESCRIBE METHOD EXTENDED farm.live.heavy_animals.__view__")
    assert [(row[0], row[2]) for row in described] == [
        ("field", "input_required"),
        *((name, "output") for name in names),
    ]
    rows = await ask("SELECT * FROM farm.live.heavy_animals WHERE field = 'east' ORDER BY name")
    assert rows[0] == ("east", "animal 11", "a")
    assert farm.paths() == ["/fields/east/animals"]
    rows = await ask(
        "SELECT count(*) FROM farm.live.fields f"
        " JOIN farm.live.heavy_animals h ON h.field = f.name WHERE f.size < 30"
    )
    assert rows == [(6,)]
    assert "/fields/%3Cfield%3E/animals" not in farm.paths()


async def test_a_method_that_changes_is_not_used_by_a_query(ask, farm: Farm):
    error = await ask.refusal("SELECT * FROM farm.live.poked WHERE id = 1")
    assert error.message.startswith("A SELECT from farm.live.poked would send PUT, which changes")
    assert error.hint.startswith("EXEC farm.live.poked.poke calls it")
    assert farm.asked == []


async def test_a_row_of_an_open_schema_has_the_columns_that_are_named(ask):
    assert await ask("SELECT Alpha, json_extract(beta, '$.x[1]') FROM farm.live.anything") == [
        (1, 2)
    ]


async def test_a_row_of_an_open_schema_is_there_as_a_whole_without_names(ask, farm: Farm):
    whole = '{"Alpha":1,"beta":{"x":[1,2]}}'
    assert await ask("SELECT * FROM farm.live.anything") == [(whole,)]
    assert [each.name for each in ask.cursor.columns] == ["_"]
    assert await ask("SELECT _, Alpha FROM farm.live.anything") == [(whole, 1)]
    assert await ask("SELECT count(*) FROM farm.live.anything") == [(1,)]
    farm.special["/open"] = lambda _: Reply(200, ["a", {"b": None}])
    assert await ask("SELECT * FROM farm.live.anything") == [("a",), ('{"b":null}',)]


async def test_missing_parameters_are_named_and_nothing_is_sent(ask, farm: Farm):
    error = await ask.refusal("SELECT name FROM farm.live.herd")
    assert error.code is Code.ARGUMENT_INVALID
    assert error.message.startswith("cannot find matching operation, possible causes include")
    assert "SHOW METHODS IN farm.live.herd" in error.message
    assert "list(field)" in error.hint
    assert farm.asked == []


async def test_a_parameter_that_the_method_lacks_is_refused(ask, farm: Farm):
    farm.reset()
    error = await ask.refusal("SELECT name FROM farm.live.fields WHERE mni_size = 3")
    assert "mni_size" in error.message
    assert farm.asked == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT name FROM farm.live.fields WHERE min_size > 10",
        "SELECT name FROM farm.live.fields WHERE min_size <> 10",
        "SELECT name FROM farm.live.fields WHERE min_size LIKE '1%'",
        "SELECT name FROM farm.live.fields WHERE min_size IS NULL",
        "SELECT name FROM farm.live.fields WHERE min_size = 10 OR size = 30",
        "SELECT name FROM farm.live.fields WHERE abs(min_size) = 10",
        "SELECT name FROM farm.live.fields ORDER BY min_size",
        "SELECT name, min_size FROM farm.live.fields",
        "SELECT f.name FROM farm.live.visits v LEFT JOIN farm.live.fields f ON f.min_size < v.cost",
        "SELECT a.name FROM farm.live.fields a FULL JOIN farm.live.fields b ON a.name = b.name"
        " AND a.min_size = 10 AND b.min_size = 10",
    ],
)
async def test_a_parameter_that_is_read_and_not_bound_is_no_empty_column(ask, farm: Farm, text):
    """Its value would be NULL in every row, and the result empty or wrong without a word."""
    for statement in (text, f"EXPLAIN {text}"):
        error = await ask.refusal(statement)
        assert error.code is Code.ARGUMENT_INVALID
        assert error.message.startswith("min_size is a parameter of farm.live.fields")
        assert "Bind min_size by = or IN" in error.hint
    assert [path for path in farm.paths() if path.startswith("/fields")] == []


@pytest.mark.parametrize("before", [0, 56, 57, 58, 63, 64, 200])
async def test_a_join_reads_each_column_from_the_method_that_has_it_however_many_there_are(
    tmp_path: Path, farm: Farm, before: int
):
    """SQLite's planner says of all columns from the 64th on only that one of them is read."""
    service = copy.deepcopy(SERVICE)
    more = {f"more_{number}": {"type": "string"} for number in range(before)}
    paths = service["paths"]
    listed = paths["/animals"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    one = paths["/animals/{id}"]["get"]["responses"]["200"]["content"]["application/json"]
    listed["properties"]["items"]["items"]["properties"] = {**more, **ANIMAL["properties"]}
    one["schema"]["properties"] = {**more, **DETAIL["properties"]}
    folder = write_farm(tmp_path)
    (folder / "src/farm/v00.00.00000/services/live.yaml").write_text(json.dumps(service))
    url = f"cloud://{folder}"
    ask = Ask(Source("c", "c", url, *engine_of(url), access="write", options=farm.options))
    join = "FROM farm.live.visits v JOIN farm.live.animals a ON a.id = v.animal"
    days = await ask(f"SELECT DISTINCT a.diary {join} ORDER BY a.id")
    assert days == [(f"day {number}",) for number in range(1, 13)]
    farm.reset()
    names = await ask(f"SELECT DISTINCT a.name {join} ORDER BY a.id")
    assert names == [(f"animal {number}",) for number in range(1, 13)]
    assert sorted(farm.paths()) == ["/animals", "/visits"]


async def test_a_column_named_as_a_word_of_sql_is_told_how_to_be_named(tmp_path: Path, farm: Farm):
    service = copy.deepcopy(SERVICE)
    listed = service["paths"]["/animals"]["get"]["responses"]["200"]["content"]
    schema = listed["application/json"]["schema"]["properties"]["items"]["items"]
    words = ("commit", "group", "order", "values")
    named = {word: {"type": "string"} for word in words}
    schema["properties"] = {**ANIMAL["properties"], **named}
    folder = write_farm(tmp_path)
    (folder / "src/farm/v00.00.00000/services/live.yaml").write_text(json.dumps(service))
    url = f"cloud://{folder}"
    ask = Ask(Source("c", "c", url, *engine_of(url), options=farm.options))
    row = dict.fromkeys(words, "x")
    farm.special["/animals"] = lambda _: Reply(200, {"items": [{"id": 1, **row}]})
    animals = "farm.live.animals"
    for word in words:
        for text, rows in (
            (f"SELECT {{}} FROM {animals}", [("x",)]),
            (f"SELECT id FROM {animals} a WHERE {{}} = 'x'", [(1,)]),
            (f"SELECT id FROM {animals} ORDER BY {{}}", [(1,)]),
        ):
            error = await ask.refusal(text.format(word))
            assert f'write it in quotes, "{word}"' in (error.hint or ""), text
            assert await ask(text.format(f'"{word}"')) == rows
    error = await ask.refusal("SELECT table FROM farm.live.animals")
    assert "write it in quotes" not in (error.hint or "")


async def test_null_asks_for_nothing(ask, farm: Farm):
    assert await ask("SELECT name FROM farm.live.herd WHERE field = ?", None) == []
    assert farm.asked == []


async def test_a_status_of_404_is_no_row(ask):
    assert await ask("SELECT name FROM farm.live.animals WHERE id = 99") == []


async def test_unknown_names_say_what_is_near(ask):
    assert "`farm`" in (await ask.refusal("SELECT 1 FROM frm.live.fields")).hint
    assert "`fields`" in (await ask.refusal("SELECT 1 FROM farm.live.feilds")).hint
    assert "no such column" in (await ask.refusal("SELECT colour FROM farm.live.fields")).message
    assert "provider.service.resource" in (await ask.refusal("SELECT 1 FROM fields")).hint


async def test_a_cast_in_postgresqls_spelling_gets_the_one_that_is_read(ask, farm: Farm):
    error = await ask.refusal("SELECT name::text FROM farm.live.fields")
    assert "CAST(value AS type)" in error.hint
    assert farm.asked == []


async def test_the_functions_that_are_added(ask):
    assert await ask(
        "SELECT split_part('a/b/c', '/', 2), split_part('a/b', '/', -1), split_part('a', '/', 5),"
        " regexp_like('abc', 'b.'), regexp_substr('abc', 'b.'), regexp_replace('abc', '[ab]', 'x'),"
        """ json_equal('{"a":1,"b":2}', '{"b":2,"a":1}'), 'abc' REGEXP '^b'"""
    ) == [("b", "b", "", 1, "bc", "xxc", 1, 0)]
    policy = '{"Statement": {"Action": ["s3:b", "s3:a"], "Effect": "Allow"}}'
    alike = '{"Statement": [{"Effect": "Allow", "Action": ["s3:a", "s3:b"]}]}'
    assert await ask("SELECT aws_policy_equal(?, ?), split_part(NULL, '/', 1)", policy, alike) == [
        (1, None)
    ]


async def test_patterns_that_could_take_for_ever_are_refused_or_answered_at_once(ask, farm: Farm):
    text = "a" * 60
    for call in (
        "regexp_like(?, '^(a|a)*b')",
        "regexp_substr(?, '(?:a|a)+b')",
        "? REGEXP '.*.*.*.*.*b'",
        "regexp_replace(?, '(aa?)*b', '')",
    ):
        assert "pattern is not used" in (await ask.refusal(f"SELECT {call}", text)).message
    error = await ask.refusal("SELECT regexp_replace(?, 'a', ?)", "a" * 60_000, "b" * 60_000)
    assert "16,777,216 characters" in error.message
    assert await ask(f"SHOW PROVIDERS LIKE '{'%_' * 60}'") == []
    assert [row[0] for row in await ask("SHOW PROVIDERS LIKE '%A%R_'")] == ["farm"]
    assert farm.asked == []


async def test_what_is_shown_can_be_narrowed_by_its_columns(ask, farm: Farm):
    methods = "SHOW METHODS IN farm.live.animals"
    shown = await ask(f"{methods} WHERE sqlverb = 'SELECT'")
    assert [name for name, *_ in shown] == ["get", "list", "list_by_field"]
    shown = await ask(f"{methods} LIKE '%t%' WHERE SQLVerb <> 'SELECT' AND RequiredParams = 'id'")
    assert [name for name, *_ in shown] == ["delete"]
    error = await ask.refusal(f"{methods} WHERE verb = 'SELECT'")
    assert "MethodName, RequiredParams, SQLVerb" in error.hint
    assert farm.asked == []


async def test_pages_are_followed_and_counted(ask, farm: Farm):
    rows = await ask("SELECT count(*), max(n) FROM farm.live.numbers WHERE list = '7'")
    assert rows == [(14, 71)]
    assert farm.paths()[1] == "/pages/7?page=2"
    assert (ask.cursor.upstream.calls, ask.cursor.upstream.pages) == (7, 7)
    assert ask.cursor.truncations == ()


async def test_a_limit_ends_the_pages(ask, farm: Farm):
    assert len(await ask("SELECT n FROM farm.live.numbers WHERE list = '500' LIMIT 3")) == 3
    assert len(farm.paths()) < 20


async def test_a_limit_of_pages_leaves_a_record(opened, farm: Farm):
    ask = opened(page_limit="3")
    assert await ask("SELECT count(*) FROM farm.live.numbers WHERE list = '9'") == [(6,)]
    (cut,) = ask.cursor.truncations
    assert (cut.kind, cut.limit, cut.returned) == ("pages", 3, 3)
    assert ask.cursor.upstream.pages == 3
    assert len([path for path in farm.paths() if path.startswith("/pages/9")]) == 3


@pytest.mark.parametrize(
    "said", [{"has_more": True}, {"IsTruncated": True}, {"result_info": {"page": 1, "pages": 2}}]
)
async def test_a_list_that_goes_on_and_cannot_be_followed_leaves_a_record(
    ask, farm: Farm, said: dict[str, object]
):
    farm.special["/animals"] = lambda _: Reply(200, {"items": [{"id": 1, "field": "east"}], **said})
    assert await ask("SELECT id FROM farm.live.animals") == [(1,)]
    (cut,) = ask.cursor.truncations
    assert (cut.kind, cut.limit, cut.returned) == ("pages", 1, 1)
    error = await ask.refusal(
        "INSERT INTO farm.live.animals(field, data__name) SELECT field, 'twin'"
        " FROM farm.live.animals"
    )
    assert "was cut at 1 pages" in error.message
    assert farm.paths("POST") == []


async def test_a_page_that_fails_is_an_error_and_not_a_short_result(ask, farm: Farm):
    farm.special["/pages/5?page=3"] = lambda _: Reply(500, {"message": "broken"})
    error = await ask.refusal("SELECT n FROM farm.live.numbers WHERE list = '5'")
    assert error.code is Code.PROVIDER_FAILED
    assert error.details["http_status"] == 500
    assert error.details["retryable"] is True
    assert "broken" in error.message


async def test_a_page_behind_the_first_that_is_not_there_is_no_end_of_the_list(ask, farm: Farm):
    farm.special["/pages/5?page=3"] = lambda _: Reply(404, {"message": "the token is too old"})
    error = await ask.refusal("SELECT count(*) FROM farm.live.numbers WHERE list = '5'")
    assert error.details["http_status"] == 404
    assert "the token is too old" in error.message


@pytest.mark.parametrize("back_to", [1, 2, 3, 4])
async def test_pages_that_lead_back_are_refused(ask, farm: Farm, back_to: int):
    again = Reply(200, {"items": [], "next": str(back_to)})
    farm.special["/pages/9?page=4"] = lambda _: again
    farm.special["/pages/9?page=1"] = lambda _: Reply(200, {"items": [], "next": "2"})
    error = await ask.refusal("SELECT n FROM farm.live.numbers WHERE list = '9'")
    assert error.code is Code.PROVIDER_REPLY
    assert len(farm.paths()) <= 5


async def test_a_read_is_tried_again_after_a_failure_that_may_pass(ask, farm: Farm):
    farm.special["/fields"] = lambda count: (
        Reply(503, {"message": "later"}, Retry_After="0.01")
        if count < 3
        else Reply(200, {"items": [{"name": "late", "size": 1}]})
    )
    assert await ask("SELECT name FROM farm.live.fields") == [("late",)]
    assert ask.cursor.upstream.retries == 2


async def test_a_reply_that_is_too_large_is_not_asked_for_again(
    ask, farm: Farm, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(provider_calls, "MOST_REPLY_BYTES", 100)
    error = await ask.refusal("SELECT name FROM farm.live.animals")
    assert error.code is Code.PROVIDER_TOO_LARGE
    assert farm.paths() == ["/animals"]


async def test_a_packed_reply_that_is_too_large_is_refused_before_it_is_kept(
    ask, farm: Farm, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(provider_calls, "MOST_REPLY_BYTES", 30_000_000)
    monkeypatch.setattr(unpacking, "_KEPT_UNCOUNTED", 100_000)
    bomb = gzip.compress(b" " * 40_000_000)

    def answer(_: int) -> Reply:
        tracemalloc.reset_peak()  # what the documents took does not count
        return Reply(200, bomb, Content_Encoding="gzip")

    farm.special["/animals"] = answer
    tracemalloc.start()
    try:
        error = await ask.refusal("SELECT name FROM farm.live.animals")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.code is Code.PROVIDER_TOO_LARGE
    assert most < 10_000_000


ANIMALS = json.dumps({"items": [{"id": 1, "name": "a"}, {"id": 2, "name": "b" * 300_000}]}).encode()


@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress(ANIMALS),
        zlib.compress(ANIMALS),
        gzip.compress(ANIMALS[:50]) + gzip.compress(ANIMALS[50:]),
        gzip.compress(ANIMALS) + bytes(100),
        gzip.compress(ANIMALS, compresslevel=0),
    ],
    ids=["gzip", "zlib", "two members", "padded", "large"],
)
async def test_a_packed_reply_is_read_whole(ask, farm: Farm, packed: bytes):
    coding = "deflate" if packed[:1] == b"x" else "gzip"
    farm.special["/animals"] = lambda _: Reply(200, packed, Content_Encoding=coding)
    rows = await ask("SELECT id, length(name) FROM farm.live.animals")
    assert rows == [(1, 1), (2, 300_000)]


@pytest.mark.parametrize("end", [-1, -8, -20, 40, 5])
async def test_a_packed_reply_without_its_end_is_an_error(ask, farm: Farm, end: int):
    packed = gzip.compress(ANIMALS)[:end]
    farm.special["/animals"] = lambda _: Reply(200, packed, Content_Encoding="gzip")
    error = await ask.refusal("SELECT id FROM farm.live.animals")
    assert error.code is Code.PROVIDER_REPLY
    assert "packed its reply wrongly" in error.message


async def test_a_refusal_is_not_tried_again(ask, farm: Farm):
    farm.special["/fields"] = lambda _: Reply(403, {"message": "not you"})
    error = await ask.refusal("SELECT name FROM farm.live.fields")
    assert error.details["http_status"] == 403
    assert error.details["retryable"] is False
    assert farm.paths() == ["/fields"]


async def test_a_redirect_is_not_followed(ask, farm: Farm):
    farm.special["/fields"] = lambda _: Reply(302, None, Location=f"{farm.url}/animals")
    assert (await ask.refusal("SELECT name FROM farm.live.fields")).code is Code.HOST_REFUSED
    assert farm.paths() == ["/fields"]


async def test_one_member_that_fails_fails_the_statement(ask, farm: Farm):
    farm.special["/animals/2"] = lambda _: Reply(400, {"message": "no"})
    error = await ask.refusal("SELECT name FROM farm.live.animals WHERE id IN (1, 2, 3)")
    assert error.details["http_status"] == 400


async def test_a_statement_with_too_many_calls_is_refused_before_the_first(opened, farm: Farm):
    ask = opened(max_calls="2")
    error = await ask.refusal("SELECT name FROM farm.live.animals WHERE id IN (1, 2, 3)")
    assert error.code is Code.LIMIT_RATE
    assert "max_calls" in error.message
    assert farm.asked == []
    error = await ask.refusal(
        "SELECT h.name FROM farm.live.fields f JOIN farm.live.herd h ON h.field = f.name"
    )
    assert "max_calls" in error.message
    assert len(farm.asked) < 3


async def test_a_caller_has_so_many_calls_in_a_minute(farm: Farm):
    rates = CallRates(5)
    first = CallCounts(100, rates.of("ann"))
    first.take(3)
    with pytest.raises(TidegateError) as caught:
        CallCounts(100, rates.of("ann")).check(3)
    assert caught.value.code is Code.LIMIT_RATE
    assert caught.value.retry_after_s is not None
    assert "max_calls_per_minute" in caught.value.message
    CallCounts(100, rates.of("bob")).take(5)
    assert CallRates(0).of("ann") is None


async def test_the_calls_of_a_minute_are_bounded_before_the_first(opened, farm: Farm):
    ask = opened(max_calls_per_minute="2")
    error = await ask.refusal("SELECT name FROM farm.live.animals WHERE id IN (1, 2, 3)")
    assert error.code is Code.LIMIT_RATE
    assert farm.asked == []
    assert len(await ask("SELECT name FROM farm.live.animals WHERE id IN (1, 2)")) == 2


async def test_an_unreachable_provider_is_named(opened):
    ask = opened(settings='{"endpoints": {"https://api.farm.example": "http://127.0.0.1:9"}}')
    error = await ask.refusal("SELECT name FROM farm.live.animals WHERE id = 1")
    assert error.code is Code.PROVIDER_UNREACHABLE
    assert error.message.startswith("api.farm.example at 127.0.0.1:9 cannot be reached: ")


async def test_as_many_requests_run_at_once_as_are_allowed(opened, farm: Farm):
    together = threading.Barrier(4, timeout=20)

    def meet(_: int) -> Reply:
        together.wait()
        return Reply(200, {"items": []})

    for number in range(12):
        farm.special[f"/fields/f{number}/animals"] = meet
    names = ", ".join(f"'f{number}'" for number in range(12))
    ask = opened(concurrency="4")
    assert await ask(f"SELECT count(*) FROM farm.live.herd WHERE field IN ({names})") == [(0,)]
    assert farm.most_at_once == 4


async def test_a_caller_that_goes_away_ends_its_requests(ask, farm: Farm):
    cancellation, over = Cancellation(), threading.Event()
    loop = asyncio.get_running_loop()

    def late(_: int) -> Reply:
        loop.call_soon_threadsafe(cancellation.cancel, "disconnected")
        over.wait(20)
        return Reply(200, {"items": []})

    farm.special["/fields"] = late
    with pytest.raises(TidegateError) as caught:
        await ask("SELECT name FROM farm.live.fields", cancellation=cancellation)
    over.set()
    assert caught.value.code is Code.CALL_CANCELLED


async def test_an_answer_that_names_a_long_wait_is_not_retried_and_says_it(ask, farm: Farm):
    farm.special["/fields"] = lambda _: Reply(429, None, Retry_After="3600")
    error = await ask.refusal("SELECT name FROM farm.live.fields")
    assert (error.code, error.retry_after_s) == (Code.PROVIDER_RATE, 3600)
    assert error.hint == "Retry in 3,600 s, as the provider asks."
    assert len(farm.asked) == 1


async def test_a_time_limit_ends_a_statement_that_waits(ask, farm: Farm):
    farm.special["/fields"] = lambda _: Reply(503, None, Retry_After="9")
    error = await ask.refusal("SELECT name FROM farm.live.fields", timeout_s=0.2)
    assert error.code is Code.LIMIT_TIME
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    assert (await ask.refusal(endless, timeout_s=0.2)).code is Code.LIMIT_TIME


async def test_a_query_is_described_without_a_request(ask, farm: Farm):
    assert await ask.prepared(
        "SELECT a.id, a.name, f.size * 2 AS twice FROM farm.live.fields f"
        " JOIN farm.live.herd a ON a.field = f.name WHERE f.min_size = ?"
    ) == [("id", "integer"), ("name", "text"), ("twice", "other")]
    assert [name for name, _ in await ask.prepared("SHOW METHODS IN farm.live.herd")] == [
        "MethodName", "RequiredParams", "SQLVerb",
    ]  # fmt: skip
    assert farm.asked == []


async def test_values_cannot_fill_the_memory_or_hold_a_thread(ask, farm: Farm):
    large = "hex(zeroblob(8000000))"
    assert await ask(f"SELECT length({large})") == [(16_000_000,)]
    for text in (
        f"SELECT {', '.join([large] * 100)}",
        f"SELECT instr({large}, {large} || '1')",
        f"SELECT {large} LIKE '{'%a' * 200}'",
        "SELECT zeroblob(60000000)",
    ):
        error = await ask.refusal(text)
        assert "too big" in error.message or "too complex" in error.message
    rows = await ask(f"SELECT {large} FROM json_each('[1, 2, 3, 4, 5]')")
    assert [len(row[0]) for row in rows] == [16_000_000] * 5


async def test_the_number_of_a_parameter_is_bounded(ask, farm: Farm):
    for mark in ("?0", "?32767", "?99999999999", "?" + "9" * 5_000):
        with pytest.raises(TidegateError, match=r"\?1 to \?32766"):
            await ask.prepared(f"SELECT {mark}")
        assert "?1 to ?32766" in (await ask.refusal(f"SELECT {mark}", 7)).message
    assert await ask("SELECT ?2, ?, ?1", 7, 8, 9) == [(8, 9, 7)]
    assert farm.asked == []


async def test_the_catalog_has_the_resources_of_the_service_that_is_asked_for(ask, farm: Farm):
    catalog = await ask.tables("farm.live")
    assert catalog.schemas == ("farm.live",)
    tables = {each.name: each for each in catalog.tables}
    assert [each.name for each in tables["fields"].columns] == ["name", "size"]
    assert tables["heavy_animals"].kind == "view"
    assert (await ask.tables("")).tables == ()
    assert farm.asked == []


async def test_a_mapped_server_may_call_the_next_page_by_its_own_address(ask, farm: Farm):
    one, two = ({"items": [{"name": name, "size": 1}]} for name in ("a", "b"))
    link = f'<{farm.url}/fields?min_size=2>; rel="next"'
    farm.special["/fields?min_size=1"] = lambda _: Reply(200, one, Link=link)
    farm.special["/fields?min_size=2"] = lambda _: Reply(200, two)
    assert await ask("SELECT name FROM farm.live.fields WHERE min_size = 1") == [("a",), ("b",)]
    assert farm.paths() == ["/fields?min_size=1", "/fields?min_size=2"]


async def test_a_next_page_without_an_address_is_an_error(ask, farm: Farm):
    farm.special["/fields"] = lambda _: Reply(200, {"items": []}, Link='<http://[>; rel="next"')
    error = await ask.refusal("SELECT name FROM farm.live.fields")
    assert error.code is Code.PROVIDER_REPLY
    assert "api.farm.example" in error.message
