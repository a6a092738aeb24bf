"""Values as clients send them, beyond the limits of types, in circles and in entries of stores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from support.datalog import Datalog, Opened
from tidegate.errors import Code, TidegateError
from tidegate.products.datalog.engine.errors import Fault, translate
from tidegate.products.datalog.language.judge import judge_operation
from tidegate.products.datalog.language.query import judge_query
from tidegate.products.datalog.language.reader import read

SCHEMA: dict[str, Any] = {
    ":age": {":db/valueType": ":db.type/long"},
    ":name": {":db/valueType": ":db.type/string"},
    ":part": {
        ":db/valueType": ":db.type/ref",
        ":db/isComponent": True,
        ":db/cardinality": ":db.cardinality/many",
    },
}
BIG = 99999999999999999999
LONG = "x" * 600


@pytest.fixture
def facts(datalog: Datalog, tmp_path: Path) -> Opened:
    source = datalog.open(tmp_path / "facts", "write")
    source.ask("open_database", create=True, schema=SCHEMA)
    source.ask(
        "transact",
        txData=[
            {":db/id": 1, ":age": 5, ":free": 5, ":name": f"{LONG}a"},
            {":db/id": 2, ":free": {"~bigint": str(BIG)}, ":name": f"{LONG}b"},
        ],
    )
    return source


def found(facts: Opened, **given: Any) -> list[tuple[int, str]]:
    shown = facts.ask("search_datoms", **given)
    assert facts.ask("count_datoms", **given) == len(shown)
    return [(each["e"], each["a"]) for each in shown]


def test_an_integer_beyond_64_bits_breaks_no_search(facts: Opened) -> None:
    assert found(facts, v=5) == [(1, ":age"), (1, ":free")]
    assert found(facts, v=BIG) == [(2, ":free")]
    assert found(facts, a=":free", v=BIG) == [(2, ":free")]
    assert found(facts, a=":age", v=BIG) == []
    assert found(facts, v="5") == [(1, ":age")]
    error = facts.refused("query", query="[:find ?e :where [?e _ 5]]", inputs=[])
    assert "beyond 64 bits" in error.message
    assert error.hint and "Name the attribute" in error.hint


def test_a_value_that_would_be_cut_is_not_stored(datalog: Datalog, tmp_path: Path) -> None:
    """Datalevin keeps 1 for 1.5, and true for whatever is no boolean."""
    kinds = ("long", "bigint", "double", "boolean", "string", "ref")
    source = datalog.open(tmp_path / "typed", "write")
    schema = {f":{kind}": {":db/valueType": f":db.type/{kind}"} for kind in kinds}
    schema[":longs"] = {":db/valueType": ":db.type/long", ":db/cardinality": ":db.cardinality/many"}
    source.ask("open_database", create=True, schema=schema)
    source.ask("transact", txData=[{":db/id": 1, ":long": 1, ":boolean": False}])

    def kept() -> list[Any]:
        return [(each["e"], each["a"], each["v"]) for each in source.ask("search_datoms")]

    before = kept()
    for form in (
        {":db/id": 1, ":long": 1.5}, {":db/id": 1, ":bigint": 2.5}, {":db/id": 1, ":boolean": 0},
        {":db/id": 1, ":boolean": "no"}, {":db/id": 1, ":long": True},
        {":db/id": 1, ":double": "x"}, {":db/id": 1, ":long": 1e30},
        {":db/id": 1, ":longs": [3, 4.5]}, [":db/add", 1, ":long", 2.7],
        [":db/retract", 1, ":long", 1.5], [":db/cas", 1, ":long", 1, 2.5],
        {":db/id": 1, ":ref": {":long": 7.5}}, {":db/id": 1, ":_ref": [{":long": 8.5}]},
    ):  # fmt: skip
        error = source.refused("transact", txData=[form])
        assert "is no value of :" in error.message, (form, error.message)
        assert kept() == before, form
    source.ask(
        "transact",
        txData=[
            {":db/id": 1, ":long": 2.0, ":boolean": "true", ":double": "1.5", ":longs": ["3", 4]},
            {":db/id": 2, ":string": "1.5", ":ref": {":db/id": 9, ":long": "7"}},
        ],
    )
    found = source.ask("query", query="[:find ?e ?a ?v :where [?e ?a ?v]]", inputs=[])
    assert [1, ":long", 2] in found
    assert [1, ":boolean", True] in found
    assert [1, ":double", 1.5] in found
    assert [1, ":longs", 3] in found
    assert [9, ":long", 7] in found
    assert [2, ":string", "1.5"] in found


def test_texts_that_differ_after_their_beginning_are_told_apart(facts: Opened) -> None:
    assert found(facts, a=":name", v=f"{LONG}b") == [(2, ":name")]
    assert found(facts, v=f"{LONG}a") == [(1, ":name")]
    assert found(facts, a=":name", v=LONG) == []


@pytest.mark.parametrize(
    "form", [[":db/retractEntity", 10], [":db.fn/retractAttribute", 10, ":part"]]
)
def test_parts_in_a_circle_are_retracted(facts: Opened, form: list[Any]) -> None:
    parts = [
        {":db/id": 10, ":age": 1, ":part": [11, 12]},
        {":db/id": 11, ":age": 2, ":part": [10]},
        {":db/id": 12, ":age": 3},
        {":db/id": 13, ":age": 4, ":part": [10]},
    ]
    facts.ask("transact", txData=parts)
    facts.ask("transact", txData=[form])
    left = {(each["e"], each["a"]) for each in facts.ask("datoms", index="eav")}
    assert {each for each in left if each[0] >= 10} == {(13, ":age")}


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ([":closed", 1], "has two keys, and 1 are given"),
        ([":at-least"], "has one key, and 0 are given"),
        ([":all", 1], "has no key, and 1 are given"),
        ([":open-closed-back", 1, None], "as null"),
        ([":between", 1, 2], "begins with one of :all"),
        ([], "begins with one of :all"),
    ],
)
def test_a_range_without_its_bounds_is_refused(wanted: list[Any], why: str) -> None:
    with pytest.raises(TidegateError) as caught:
        judge_operation("kv_range", {"dbi": "a", "keyRange": wanted})
    assert why in caught.value.message


@pytest.mark.parametrize(
    "entry",
    [
        [":put", "a", 1, 2, ":lnog"],
        [":put", "a", 1, 2, ":long", ":nothing"],
        [":put", "a", 1, 2, ":long", ":string", ":append"],
        [":put", "a", 1],
        [":del", "a"],
        [":del", "a", 1, ":lnog"],
        [":del", "a", 1, {"~i64": "1"}],
    ],
)
def test_an_entry_with_what_is_no_type_or_value_is_refused(entry: list[Any]) -> None:
    with pytest.raises(TidegateError) as caught:
        judge_operation("kv_transact", {"txs": [entry]})
    assert caught.value.code is Code.DATALOG_UNKNOWN


def test_a_map_may_be_what_is_searched_for() -> None:
    for clause in (
        '[(idoc-match $ :doc {:status "active"}) [[?e]]]',
        '[(idoc-match $ :doc {:age (> 21)} {:domains ["d"]}) [[?e]]]',
        '[(fulltext $ :bio {:phrase "red fox"}) [[?e]]]',
        '[(fulltext $ {:phrase "red fox"} {:top 3}) [[?e]]]',
    ):
        judge_query(read(f"[:find ?e :where {clause}]"))
    for clause in (
        '[(fulltext $ "red" {:analyzer 1}) [[?e]]]',
        "[(idoc-match $ :doc {:age (slurp 1)}) [[?e]]]",
    ):
        with pytest.raises(TidegateError):
            judge_query(read(f"[:find ?e :where {clause}]"))


@pytest.mark.parametrize(
    ("message", "said", "hint"),
    [
        ("Fail to transact to LMDB: #error {", "could not be read or written", "disk has room"),
        ('Fail to transact to LMDB: #error {\n :cause "MDB_MAP_FULL"', "as large as", ":mapsize"),
        ("Fail to put: MDB_BAD_VALSIZE", "no key of more than 511 bytes", "shorter key"),
        ("LMDB: Permission denied", "may not be written", "Let this user write"),
        ("LMDB: No space left on device", "no room left", "Make room"),
    ],
)
def test_faults_of_the_storage_are_told_in_words(message: str, said: str, hint: str) -> None:
    error = translate(Fault(":tool-error", message), "/data/app", is_remote=False)
    assert "/data/app" in error.message
    assert said in error.message
    assert error.hint and hint in error.hint
    assert "#error" not in error.message and "LMDB" not in error.message


@pytest.mark.parametrize("name", ["data.mdb", "lock.mdb", "VERSION", "other.vec"])
@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_a_link_in_a_directory_leads_nowhere(
    datalog: Datalog, tmp_path: Path, name: str, kind: str
) -> None:
    made = datalog.make(tmp_path / "facts")
    made.close()
    (tmp_path / "facts" / "other.vec").touch()
    outside = tmp_path / "outside"
    os.rename(tmp_path / "facts" / name, outside)
    before = outside.read_bytes()
    if kind == "symbolic":
        (tmp_path / "facts" / name).symlink_to(outside)
    else:
        os.link(outside, tmp_path / "facts" / name)
    with pytest.raises(TidegateError) as caught:
        datalog.open(tmp_path / "facts", "write")
    assert caught.value.code is Code.SOURCE_UNREACHABLE
    assert name in caught.value.message
    assert outside.read_bytes() == before


def test_a_link_that_comes_later_is_seen_at_the_next_call(datalog: Datalog, tmp_path: Path) -> None:
    facts = datalog.make(tmp_path / "facts")
    os.link(tmp_path / "facts" / "data.mdb", tmp_path / "second")
    error = facts.refused("query", query="[:find ?e :where [?e :name]]", inputs=[])
    assert error.code is Code.SOURCE_UNREACHABLE
    (tmp_path / "second").unlink()
    assert len(facts.query("[:find ?e :where [?e :name]]")) == 4
