"""A call that only reads makes nothing, changes nothing and runs no code of a caller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.datalog import Datalog, Opened
from tidegate.errors import Code, TidegateError
from tidegate.model.statements import Effect


def contents(source: Opened) -> Any:
    """All that a database and its store hold."""
    named: dict[str, Any] = {"keyType": ":attr"}
    return (
        source.ask("datoms", index="eav", items=100_000),
        [
            (table.name, [(each.name, each.type) for each in table.columns])
            for table in source.catalog().tables
        ],
        source.ask("kv_range", "kv", dbi="datalevin/opts", keyRange=[":all"], **named),
        source.ask("kv_range", "kv", dbi="datalevin/schema", keyRange=[":all"], **named),
    )


@pytest.mark.parametrize("operation", ["open_database", "open_kv"])
def test_an_absent_directory_is_not_made(datalog: Datalog, tmp_path: Path, operation: str) -> None:
    with pytest.raises(TidegateError) as caught:
        datalog.open(tmp_path / "absent")
    assert caught.value.details["absent"] == "directory"
    writable = datalog.open(tmp_path / "absent", "write")
    kind: Any = "kv" if operation == "open_kv" else "database"
    assert writable.refused(operation, kind).code is Code.POLICY_READ_ONLY
    assert list(tmp_path.iterdir()) == []


def test_other_files_are_not_made_a_database(datalog: Datalog, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(TidegateError) as caught:
        datalog.open(tmp_path, "write")
    assert caught.value.code is Code.SOURCE_UNREACHABLE
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_another_version_is_refused_and_not_rewritten(
    datalog: Datalog, people: Opened, tmp_path: Path
) -> None:
    people.close()
    version = tmp_path / "people" / "VERSION"
    data = (tmp_path / "people" / "data.mdb").read_bytes()
    version.write_text("0.9.22")
    for access in ("read", "write"):
        with pytest.raises(TidegateError) as caught:
            datalog.open(tmp_path / "people", access)
        assert "0.9.22" in caught.value.message
        assert "1.2.8" in caught.value.message
    assert version.read_text() == "0.9.22"
    assert (tmp_path / "people" / "data.mdb").read_bytes() == data


def test_reads_change_nothing_that_a_database_holds(people: Opened, tmp_path: Path) -> None:
    before = contents(people)
    files = {path.name for path in (tmp_path / "people").iterdir()}
    read: dict[str, Any] = {"effect": Effect.READ}
    refusals: list[tuple[str, Any, dict[str, Any]]] = [
        ("transact", "database", {"txData": [{":name": "Eve"}]}),
        ("kv_transact", "kv", {"dbi": "new", "txs": [[":put", 1, 2]]}),
        ("open_database", "database", {"create": True, "schema": {":new": {}}}),
        ("open_database", "database", {"options": {":closed-schema?": True}}),
        ("open_database", "database", {"options": {":temp?": True}}),
        ("open_kv", "kv", {"options": {":flags": [":nosync"]}}),
        ("open_kv", "kv", {"options": {":mapsize": 1}}),
        ("kv_get", "kv", {"dbi": "new", "key": 1}),
        ("kv_range", "kv", {"dbi": "new", "keyRange": [":all"]}),
        ("open_search_index", "search_index", {"options": {":domain": "new"}}),
        ("open_search_index", "search_index", {"options": {":analyzer": {"~edn": "slurp"}}}),
        ("open_vector_index", "vector_index", {"options": {":dimensions": 2}}),
        ("add_document", "search_index", {"docRef": 1, "docText": "x"}),
        ("clear_documents", "search_index", {}),
    ]
    for operation, kind, arguments in refusals:
        error = people.refused(operation, kind, **read, **arguments)
        assert error.code in (Code.POLICY_READ_ONLY, Code.ARGUMENT_INVALID), (operation, arguments)
    assert contents(people) == before
    assert {path.name for path in (tmp_path / "people").iterdir()} == files


def test_a_store_is_not_made_a_database(datalog: Datalog, tmp_path: Path) -> None:
    store = datalog.open(tmp_path / "store", "write")
    store.ask("open_kv", "kv", create=True)
    store.ask("kv_transact", "kv", create=True, dbi="a", txs=[[":put", 1, 2]])
    assert store.catalog().tables == ()
    assert store.refused("open_database").details["absent"] == "database"
    assert store.refused("query", query="[:find ?e :where [?e]]").details["absent"] == "database"
    assert store.refused("kv_get", "kv", dbi="datalevin/eav", key=1).details["absent"] == "dbi"
    assert store.ask("kv_get", "kv", dbi="a", key=1) == 2


def test_no_function_that_a_caller_names_runs(people: Opened, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    write = f'(spit "{trace}" "x")'
    before = people.ask("datoms", index="eav")
    queries: list[tuple[str, list[Any]]] = [
        (f"[:find ?x :where [?e :name] [{write} ?x]]", []),
        (f'[:find ?x :where [?e :name] [(clojure.core/spit "{trace}" "x") ?x]]', []),
        ('[:find ?x :where [?e :name] [(clojure.java.shell/sh "id") ?x]]', []),
        (f"[:find ?x :where [?e :name] [(load-string {write!r}) ?x]]".replace("'", '\\"'), []),
        ("[:find ?x :where [?e :name ?n] [(.getClass ?n) ?x]]", []),
        ("[:find (clojure.core/pr-str ?n) :where [?e :name ?n]]", []),
        (
            "[:find (aggregate ?f ?n) :in $ ?f :where [?e :name ?n]]",
            [{"~edn": "clojure.core/pr-str"}],
        ),
        (
            f'[:find ?x :in $ ?f :where [?e :name] [(?f "{trace}" "x") ?x]]',
            [{"~edn": "clojure.core/spit"}],
        ),
        ("[:find ?x :in $ % :where (r ?x)]", [{"~edn": f"[[(r ?x) [?e :name] [{write} ?x]]]"}]),
        (f'[:find ?x :where [?e :name] [(apply spit ["{trace}" "x"]) ?x]]', []),
        ("[:find ?x :where [?e :name] [(datalevin.core/transact! $ []) ?x]]", []),
    ]
    for text, inputs in queries:
        error = people.refused("query", query=text, inputs=inputs)
        assert error.code in (Code.SQL_FUNCTION, Code.SQL_FAILED, Code.ARGUMENT_INVALID), text
    selector = "[(:name :xform clojure.core/slurp)]"
    assert people.refused("pull", selector=selector, eid=1).code is Code.SQL_FUNCTION
    text = f"[:find (pull ?e {selector}) :where [?e :name]]"
    assert people.refused("query", query=text).code is Code.SQL_FUNCTION
    for forms in (
        [[":db.fn/call", {"~edn": "clojure.core/spit"}, str(trace), "x"]],
        [{":db/ident": ":f", ":db/fn": {"~edn": "(fn [db] [])"}}],
        [[":db/add", 1, ":db/fn", "x"]],
        [[":f", 1]],
    ):
        assert people.refused("transact", txData=forms).code is Code.SQL_FUNCTION, forms
    assert people.ask("pull", selector="[(:name :xform count)]", eid=1) == {":name": 3}
    assert not trace.exists()
    assert people.ask("datoms", index="eav") == before
