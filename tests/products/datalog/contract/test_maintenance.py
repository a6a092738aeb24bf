"""Copies and dumps of a directory with all that Datalevin keeps in one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.datalog import Datalog, Opened

SCHEMA = {
    ":name": {
        ":db/valueType": ":db.type/string",
        ":db/unique": ":db.unique/identity",
        ":db/fulltext": True,
        ":db.fulltext/autoDomain": True,
    },
    ":at": {":db/valueType": ":db.type/vec"},
    ":file": {":db/valueType": ":db.type/idoc"},
    ":knows": {":db/valueType": ":db.type/ref", ":db/cardinality": ":db.cardinality/many"},
}
OPTIONS = {":vector-opts": {":dimensions": 2}}
FACTS = [
    {":db/id": -1, ":name": "red fox", ":at": [0, 1], ":knows": [-2]},
    {":db/id": -2, ":name": "red sea", ":at": [9, 1], ":file": {":a": "b"}},
]


def copied(whole: Opened, datalog: Datalog, to: Path) -> None:
    whole.ask("copy", "kv", path=str(to), compact=True)


def loaded(whole: Opened, datalog: Datalog, to: Path) -> None:
    dump = to.with_suffix(".edn")
    assert whole.ask("dump", "kv", path=str(dump)) == dump.stat().st_size
    datalog.open(to, "write").ask("load", "kv", path=str(dump))


@pytest.mark.parametrize("again", [copied, loaded])
def test_words_vectors_documents_and_tables_are_found_in_what_was_copied_or_loaded(
    datalog: Datalog, tmp_path: Path, again: Callable[[Opened, Datalog, Path], None]
) -> None:
    whole = datalog.open(tmp_path / "whole", "write")
    whole.ask("open_database", create=True, schema=SCHEMA, options=OPTIONS)
    whole.ask("transact", txData=FACTS)
    whole.ask("kv_transact", "kv", create=True, dbi="plain", txs=[[":put", 1, {"x": [1.5]}]])
    again(whole, datalog, tmp_path / "again")
    whole.ask("transact", txData=[{":name": "red dog", ":at": [1, 1]}])  # it is still in use
    other = datalog.open(tmp_path / "again", "write")
    assert found(other) == {
        "names": ["red fox", "red sea"],
        "words": ["red fox"],
        "vectors": ["red sea"],
        "documents": ["red sea"],
        "known": ["red sea"],
        "entry": {"x": [1.5]},
    }
    other.ask("transact", txData=[{":name": "red owl", ":at": [50, 1]}])
    assert found(other)["names"] == ["red fox", "red owl", "red sea"]
    assert found(other)["vectors"] == ["red sea"]


def found(source: Opened) -> dict[str, Any]:
    """What each kind of index of the database answers."""
    name = "[?e :name ?n]"
    return {
        "names": sorted(source.query(f"[:find [?n ...] :where {name}]")),
        "words": source.query(
            f'[:find [?n ...] :where [(fulltext $ :name "fox") [[?e]]] {name}]',
        ),
        "vectors": source.query(
            f"[:find [?n ...] :where [(vec-neighbors $ :at [9.0 1.0] {{:top 1}}) [[?e]]] {name}]"
        ),
        "documents": source.query(
            f'[:find [?n ...] :where [(idoc-match $ :file {{:a "b"}}) [[?e]]] {name}]'
        ),
        "known": source.query(f"[:find [?n ...] :where [_ :knows ?e] {name}]"),
        "entry": source.ask("kv_get", "kv", dbi="plain", key=1),
    }
