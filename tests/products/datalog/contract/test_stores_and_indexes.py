"""Key-value stores, full-text and vector indexes on real Datalevin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.datalog import Datalog, Opened
from tidegate.errors import Code, TidegateError
from tidegate.products.datalog.language.judge import judge_operation

DOCUMENTS = {":domain": "docs", ":include-text?": True}
PLACES = {":domain": "places", ":dimensions": 2}


@pytest.fixture
def store(datalog: Datalog, tmp_path: Path) -> Opened:
    store = datalog.open(tmp_path / "store", "write")
    store.ask("open_kv", "kv", create=True)
    return store


def test_ranges_run_forwards_and_backwards_and_are_counted(store: Opened) -> None:
    pairs = [[":put", n, f"v{n}"] for n in range(300)]
    assert store.ask("kv_transact", "kv", create=True, dbi="a", txs=pairs) == ":transacted"
    assert len(store.ask("kv_range", "kv", dbi="a", keyRange=[":all"])) == 200
    assert store.last_items == 300
    assert store.ask("kv_range", "kv", dbi="a", keyRange=["closed", 5, 6]) == [[5, "v5"], [6, "v6"]]
    back = store.ask("kv_range", "kv", dbi="a", keyRange=[":closed-back", 6, 5])
    assert back == [[6, "v6"], [5, "v5"]]
    page = store.ask("kv_range", "kv", dbi="a", keyRange=[":all-back"], limit=2, offset=1)
    assert (page, store.last_items) == ([[298, "v298"], [297, "v297"]], 2)


def test_values_are_read_by_key_and_removed(store: Opened) -> None:
    store.ask("kv_transact", "kv", create=True, dbi="a", txs=[[":put", ":k", {"n": [1, 2.5]}]])
    assert store.ask("kv_get", "kv", dbi="a", key=":k") == {"n": [1, 2.5]}
    assert store.ask("kv_get", "kv", dbi="a", key=":k", returnPair=True) == [":k", {"n": [1, 2.5]}]
    assert store.ask("kv_get", "kv", dbi="a", key=":absent") is None
    store.ask("kv_transact", "kv", dbi="a", txs=[[":del", ":k"]])
    assert store.ask("kv_get", "kv", dbi="a", key=":k") is None


def test_keys_have_a_type_if_one_is_named(store: Opened) -> None:
    typed: dict[str, Any] = {"dbi": "n", "keyType": ":long", "valueType": "string"}
    txs = [[":put", 7, "seven"], [":put", -1, "less"]]
    store.ask("kv_transact", "kv", create=True, txs=txs, **typed)
    assert store.ask("kv_get", "kv", key=7, **typed) == "seven"
    assert store.ask("kv_range", "kv", keyRange=[":all"], **typed) == [[-1, "less"], [7, "seven"]]


def test_a_document_is_replaced_found_and_removed(store: Opened) -> None:
    store.ask("open_search_index", "search_index", options=DOCUMENTS, create=True)

    def ask(operation: str, **arguments: Any) -> Any:
        return store.ask(operation, "search_index", options=DOCUMENTS, **arguments)

    ask("add_document", docRef=1, docText=":) a red fox")
    ask("add_document", docRef=2, docText="a blue sea")
    ask("add_document", docRef=2, docText="a green field")
    assert ask("document_count") == 2
    assert ask("search_documents", query="blue") == []
    assert ask("search_documents", query="green") == [2]
    shown = ask("search_documents", query="fox", opts={":display": ":texts"})
    assert shown == [[1, ":) a red fox"]]
    assert ask("document_indexed", docRef=1) is True
    assert ask("remove_document", docRef=1) is True
    assert ask("document_indexed", docRef=1) is False
    refused = store.refused(
        "search_documents", "search_index", options=DOCUMENTS, query="x", opts={":doc-filter": 1}
    )
    assert refused.code is Code.ARGUMENT_INVALID
    ask("clear_documents")
    assert ask("document_count") == 0


def test_the_nearest_vectors_are_found_again_after_a_reopening(
    datalog: Datalog, store: Opened, tmp_path: Path
) -> None:
    store.ask("open_vector_index", "vector_index", options=PLACES, create=True)
    for name, vector in (("near", [0, 1]), ("far", [9.5, 9])):
        store.ask(
            *("add_vector", "vector_index"), options=PLACES, vectorRef=name, vectorData=vector
        )
    asked: dict[str, Any] = {"options": PLACES, "queryVector": [0, 0.5]}
    assert store.ask("vector_search", "vector_index", **asked) == ["near", "far"]
    wrong = store.refused("vector_search", "vector_index", options=PLACES, queryVector=[1, 2, 3])
    assert wrong.code is Code.SQL_FAILED
    wrong = store.refused("vector_search", "vector_index", options=PLACES, queryVector=["a", 1])
    assert wrong.code is Code.ARGUMENT_INVALID
    store.close()
    again = datalog.open(tmp_path / "store")
    assert again.ask("vector_search", "vector_index", **asked) == ["near", "far"]
    assert again.ask("vector_indexed", "vector_index", options=PLACES, vectorRef="far") is True
    info = again.ask("vector_index_info", "vector_index", options=PLACES)
    assert (info[":size"], info[":dimensions"]) == (2, 2)


def test_the_tables_of_datalevin_itself_are_not_written_as_a_store(people: Opened) -> None:
    before = people.ask("datoms", index="eav")
    error = people.refused("kv_transact", "kv", txs=[[":put", "datalevin/eav", 1, 2]])
    assert error.code is Code.ARGUMENT_INVALID
    assert people.ask("datoms", index="eav") == before


@pytest.mark.parametrize("options", [{}, {":domain": "datalevin"}, {":domain": "note"}])
def test_an_index_that_a_database_keeps_itself_is_not_changed_by_hand(
    datalog: Datalog, tmp_path: Path, options: dict[str, str]
) -> None:
    notes = datalog.open(tmp_path / "notes", "write")
    schema = {":note": {":db/valueType": ":db.type/string", ":db/fulltext": True}}
    notes.ask("open_database", "database", create=True, schema=schema)
    notes.ask("transact", "database", txData=[{":note": "a red fox"}])
    notes.ask("open_search_index", "search_index", options=options, create=True)
    error = notes.refused(
        "add_document", "search_index", options=options, docRef=1, docText="a red dog"
    )
    assert error.code is Code.ARGUMENT_INVALID
    assert notes.ask("fulltext_datoms", "database", query="red") == [[1, ":note", "a red fox"]]
    own = {":domain": "docs"}
    notes.ask("open_search_index", "search_index", options=own, create=True)
    notes.ask("add_document", "search_index", options=own, docRef=1, docText="a red dog")
    assert notes.ask("fulltext_datoms", "database", query="red") == [[1, ":note", "a red fox"]]


def test_a_database_with_vectors_is_opened_again_and_described(
    datalog: Datalog, tmp_path: Path
) -> None:
    made = datalog.open(tmp_path / "near", "write")
    schema = {":at": {":db/valueType": ":db.type/vec"}, ":name": {}}
    made.ask(
        "open_database",
        create=True,
        schema=schema,
        options={":vector-domains": {"at": {":dimensions": 2}}},
    )
    made.ask("transact", txData=[{":name": "a", ":at": [0, 1]}, {":name": "b", ":at": [9, 1]}])
    made.close()
    again = datalog.open(tmp_path / "near", "write")
    again.ask("transact", txData=[{":name": "c", ":at": [8, 1]}])
    near = (
        "[:find ?n ?d :where [(vec-neighbors $ :at [9.0 1.0] {:top 2 :display :refs+dists})"
        " [[?e _ _ ?d]]] [?e :name ?n] :order-by [?d :asc]]"
    )
    assert again.query(near) == [["b", 0.0], ["c", 1.0]]
    columns = [(each.name, each.type) for table in again.catalog().tables for each in table.columns]
    assert columns == [(":at", "vec"), (":name", "any")]


def test_a_result_is_written_in_as_few_bytes_as_json_allows(store: Opened) -> None:
    """The document's limit counts bytes, so a character that is escaped would count too much."""
    planes = ("".join(map(chr, range(at, at + 64))) for at in (0, 0x80, 0x800, 0xE000, 0x1F600))
    value = [{text: [text, 1.5, None, True]} for text in (*planes, "\U0010ffff", "\u2028", "/")]
    store.ask("kv_transact", "kv", create=True, dbi="texts", txs=[[":put", 1, value]])
    assert store.ask("kv_get", "kv", dbi="texts", key=1) == value
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    assert len(store.last_json) == len(plain)


def test_an_entry_of_a_list_is_refused_where_the_request_is_judged(store: Opened) -> None:
    """Datalevin keeps only the last value of a list in a table that is not made for lists."""
    for form in ("put-list", "del-list"):
        with pytest.raises(TidegateError, match=":del, :put") as caught:
            judge_operation("kv_transact", {"dbi": "a", "txs": [[form, 1, ["x", "y"]]]})
        assert caught.value.code is Code.DATALOG_UNKNOWN
        refused = store.refused("kv_transact", "kv", dbi="a", txs=[[form, 1, ["x", "y"]]])
        assert refused.code is Code.ARGUMENT_INVALID
    assert store.refused("kv_get", "kv", dbi="a", key=1).details["absent"] == "dbi"


DOMAINS: list[dict[str, Any]] = [
    # Options for all domains, and for those of the attribute, in each combination.
    {":vector-opts": {":dimensions": 2}},
    {":vector-opts": {":dimensions": 2}, ":vector-domains": {"other": {":dimensions": 2}}},
    {":vector-opts": {":dimensions": 2}, ":vector-domains": {"at": {":dimensions": 2}}},
    {":vector-domains": {"other": {":dimensions": 2}}},
    {":vector-domains": {"other": {":dimensions": 2}, "at": {":dimensions": 2}}},
]


@pytest.mark.parametrize("options", DOMAINS)
def test_vectors_are_kept_in_their_domains_and_their_own(
    datalog: Datalog, tmp_path: Path, options: dict[str, Any]
) -> None:
    vectors = datalog.open(tmp_path / "vectors", "write")
    attribute = {":db/valueType": ":db.type/vec", ":db.vec/domains": ["other"]}
    vectors.ask("open_database", create=True, options=options, schema={":at": attribute})
    vectors.ask("transact", txData=[{":name": "near", ":at": [1.0, 0.0]}])
    # One more such attribute, of a database that is there.
    vectors.ask("open_database", create=True, schema={":place/at": attribute})
    vectors.ask("transact", txData=[{":name": "far", ":at": [9.0, 9.0], ":place/at": [5.0, 5.0]}])
    vectors.close()
    again = datalog.open(tmp_path / "vectors")
    for near in (":at", '{:domains ["other"] :top 1}', '{:domains ["at"] :top 1}'):
        asked = f"$ {near} [1.0 0.1]" if near == ":at" else f"$ [1.0 0.1] {near}"
        found = again.query(
            f"[:find [?n ...] :where [(vec-neighbors {asked}) [[?e]]] [?e :name ?n]]"
        )
        assert "near" in found
    found = again.query(
        "[:find [?n ...] :where [(vec-neighbors $ :place/at [5 5]) [[?e]]] [?e :name ?n]]"
    )
    assert found == ["far"]


def test_a_vector_attribute_without_its_options_is_refused_and_nothing_is_made(
    datalog: Datalog, tmp_path: Path
) -> None:
    vectors = datalog.open(tmp_path / "vectors", "write")
    plain = {":db/valueType": ":db.type/vec"}
    incomplete: list[dict[str, Any]] = [
        {},
        {":vector-opts": {":metric-type": ":cosine"}},
        {":vector-domains": {"another": {":dimensions": 2}}},
    ]
    for attribute in (plain, {**plain, ":db.vec/domains": ["other"]}):
        for options in incomplete:
            error = vectors.refused(
                "open_database", create=True, options=options, schema={":at": attribute}
            )
            assert error.code is Code.ARGUMENT_INVALID, options
            assert ":vector-opts" in error.message
    assert not (tmp_path / "vectors" / "data.mdb").exists()
