"""A Datalog source behind the gate: scopes, limits, approval, audit and history as for any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from support.datalog import Datalog, Opened
from support.surface_gateway import SqliteGate
from tidegate.approvals.approvals import ApprovalNeeded
from tidegate.approvals.render import describe
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.replies import HistoryFound
from tidegate.model.requests import Browse, Call, Query, Request, SearchHistory
from tidegate.model.results import Limits
from tidegate.model.source_settings import Mask
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.products.datalog.requests import DatalogOperation, DatalogRequest, DatalogTarget

READER = Actor("reader", "reader", Scope.READ_ONLY)
WRITER = Actor("writer", "writer", Scope.READ_WRITE)

DATABASE = DatalogTarget("database")
NAMES = "[:find ?n :where [?e :name ?n]]"


class Asked:
    """One gate over a database of four people, asked on the loop of the worker."""

    def __init__(self, datalog: Datalog, directory: Path, source: Source) -> None:
        directory.mkdir()
        self._datalog = datalog
        self._gate = SqliteGate(directory, source)
        self.directory = directory

    def __call__(self, request: Request, actor: Actor = READER) -> Any:
        async def work() -> Any:
            async with self._gate.opened():
                return await self._gate.handle(Call(actor, "core", "test", request, "facts"))

        return self._datalog.run(work()).payload

    def refused(self, request: Request, actor: Actor = READER) -> TidegateError:
        with pytest.raises(TidegateError) as caught:
            self(request, actor)
        return caught.value

    def tried(self, *, target: DatalogTarget = DATABASE, **change: Any) -> str:
        """What the person who is asked about a change reads of its dry run."""
        error = self.refused(DatalogRequest(target=target, text="a change", **change), WRITER)
        assert isinstance(error, ApprovalNeeded)
        lines = describe(error.question).splitlines()
        return "\n".join(lines[[line[:8] for line in lines].index("Dry run:") :])

    def records(self) -> str:
        """All that the audit log says."""
        return "".join(
            path.read_text() for path in self.directory.rglob("*.jsonl") if path.is_file()
        )


@pytest.fixture
def facts(people: Opened, tmp_path: Path) -> Source:
    people.close()
    return structs.replace(people.source, id="1", name="facts", access="write")


def added(name: str) -> DatalogRequest:
    return DatalogRequest(
        operation=DatalogOperation.TRANSACT,
        target=DatalogTarget("database"),
        arguments={"txData": [{":name": name}]},
        text=f"transact {name}",
    )


def test_a_query_is_a_page_and_its_limit_leaves_a_note(
    datalog: Datalog, facts: Source, tmp_path: Path
) -> None:
    ask = Asked(datalog, tmp_path / "state", facts)
    page = ask(Query(Statement(NAMES), limits=Limits(max_rows=3)))
    assert json.loads(page.rows) == [["Ada"], ["Ben"], ["Cy"]]
    assert [(cut.kind, cut.limit) for cut in page.truncations] == [("rows", 3)]
    assert ask(Browse(aspect="catalog")).tables[0].columns[0].name == ":age"
    found = ask(SearchHistory(words="find"))
    assert isinstance(found, HistoryFound)
    assert found.entries[0].text == NAMES


def test_a_change_needs_the_scope_and_a_person_where_the_source_says_so(
    datalog: Datalog, facts: Source, tmp_path: Path
) -> None:
    ask = Asked(datalog, tmp_path / "state", facts)
    assert ask.refused(added("Eve")).code is Code.POLICY_SCOPE
    read = structs.replace(facts, access="read")
    closed = Asked(datalog, tmp_path / "closed", read)
    assert closed.refused(added("Eve"), WRITER).code is Code.POLICY_READ_ONLY
    careful = structs.replace(facts, approval_for="writes")
    error = Asked(datalog, tmp_path / "careful", careful).refused(added("Eve"), WRITER)
    assert isinstance(error, ApprovalNeeded)
    assert len(json.loads(ask(Query(Statement(NAMES))).rows)) == 4
    document = ask(added("Eve"), WRITER)
    assert json.loads(document.json)["tx-data"][0]["v"] == "Eve"
    assert len(json.loads(ask(Query(Statement(NAMES))).rows)) == 5


def test_a_person_is_shown_the_facts_of_a_change_and_a_refusal_leaves_all_as_it_was(
    datalog: Datalog, facts: Source, tmp_path: Path
) -> None:
    before = _content(datalog, facts)
    ask = Asked(datalog, tmp_path / "state", structs.replace(facts, approval_for="writes"))
    report = ask.tried(
        operation=DatalogOperation.TRANSACT,
        arguments={
            "txData": [{":name": "Ada", ":age": 81, ":nmae": "x"}, [":db/retractEntity", 4]]
        },
    )
    assert report.splitlines() == [
        "Dry run:   facts: 2 would be added and 4 removed; nothing was stored.",
        "  | entity 1, attribute :age, value 80 (deleted)",
        "  | entity 1, attribute :age, value 81 (added)",
        "  | entity 1, attribute :nmae, value x (added)",
        "  | entity 4, attribute :parent, value 3 (deleted)",
        "  | entity 4, attribute :age, value 9 (deleted)",
        "  | entity 4, attribute :name, value Di (deleted)",
        "  | It makes attributes that are not there yet: :nmae",
    ]
    many = [{":name": f"n{number}"} for number in range(30)]
    long = ask.tried(operation=DatalogOperation.TRANSACT, arguments={"txData": many})
    assert "facts: 30 would be added" in long and long.endswith("... and 10 more")
    too_long = ask.tried(operation=DatalogOperation.TRANSACT, arguments={"txData": many * 34})
    assert too_long == "Dry run:   none: it has 1,020 entries, and at most 1,000 are tried."
    assert _content(datalog, facts) == before


def test_a_person_is_shown_what_keys_hold_before_they_are_written(
    datalog: Datalog, tmp_path: Path
) -> None:
    store = datalog.open(tmp_path / "store", "write")
    store.ask("open_kv", "kv", create=True)
    store.ask("kv_transact", "kv", create=True, dbi="a", txs=[[":put", "x", 1], [":put", "y", 2]])
    options = {":domain": "d"}
    store.ask("open_search_index", "search_index", create=True, options=options)
    store.ask("add_document", "search_index", options=options, docRef=1, docText="a red fox")
    source = structs.replace(store.source, id="1", access="write", approval_for="writes")
    store.close()
    ask = Asked(datalog, tmp_path / "state", source)
    changed = ask.tried(
        operation=DatalogOperation.KV_TRANSACT,
        target=DatalogTarget("kv"),
        arguments={"dbi": "a", "txs": [[":put", "x", {"n": 5}], [":del", "y"], [":put", "z", 3]]},
        create=True,
    )
    assert changed.splitlines() == [
        "Dry run:   entries: 2 would be added and 1 removed; nothing was stored.",
        '  | table a, key x, value 1 -> {"n":5}',
        "  | table a, key y, value 2 (deleted)",
        "  | table a, key z, value 3 (added)",
    ]
    fresh = ask.tried(
        operation=DatalogOperation.KV_TRANSACT,
        target=DatalogTarget("kv"),
        arguments={"dbi": "new", "txs": [[":put", "x", 1]]},
        create=True,
    )
    assert "key x, value 1 (added)" in fresh
    words = DatalogTarget("search_index", options)
    for operation, arguments, said in (
        (DatalogOperation.ADD_DOCUMENT, {"docRef": 1, "docText": "x"}, "It replaces the document"),
        (DatalogOperation.REMOVE_DOCUMENT, {"docRef": 2}, "There is no such document."),
        (DatalogOperation.CLEAR_DOCUMENTS, {}, "0 would be added and 1 removed"),
    ):
        assert said in ask.tried(operation=operation, target=words, arguments=arguments)
    again = datalog.open(tmp_path / "store")
    assert again.ask("kv_range", "kv", dbi="a", keyRange=[":all"]) == [["x", 1], ["y", 2]]
    assert again.refused("kv_range", "kv", dbi="new", keyRange=[":all"]).details["absent"] == "dbi"
    assert again.ask("document_count", "search_index", options=options) == 1


def _content(datalog: Datalog, source: Source) -> Any:
    """All facts, and the attributes, as a new reader sees them."""
    reader = datalog.open(source.url)
    found = reader.ask("datoms", index="eav"), reader.catalog().tables
    reader.close()
    return found


def test_what_runs_code_is_refused_before_anything_is_started(
    datalog: Datalog, facts: Source, tmp_path: Path
) -> None:
    ask = Asked(datalog, tmp_path / "state", facts)
    text = '[:find ?x :where [?e :name] [(slurp "/etc/passwd") ?x]]'
    error = ask.refused(Query(Statement(text)))
    assert error.code is Code.DATALOG_FUNCTION
    assert ask.refused(Query(Statement("SELECT 1"))).code is Code.DATALOG_UNREADABLE


def test_a_hidden_attribute_is_not_shown(datalog: Datalog, facts: Source, tmp_path: Path) -> None:
    masked = structs.replace(facts, masks=(Mask("age.age"),))
    ask = Asked(datalog, tmp_path / "state", masked)
    error = ask.refused(Query(Statement("[:find ?a :where [?e :age ?a]]")))
    assert error.code is Code.POLICY_MASKED


def test_no_table_behind_a_database_shows_what_is_hidden_or_is_written_by_hand(
    datalog: Datalog, tmp_path: Path
) -> None:
    """Each table that Datalevin makes for attributes, their words, documents and vectors."""
    text = {":db/valueType": ":db.type/string", ":db/fulltext": True}
    schema = {
        ":person/name": {":db/valueType": ":db.type/string"},
        ":person/code": text,
        ":person/alias": {**text, ":db.fulltext/autoDomain": True},
        ":person/note": {**text, ":db.fulltext/domains": ["notes"]},
        ":person/face": {":db/valueType": ":db.type/vec"},
        ":person/file": {":db/valueType": ":db.type/idoc"},
    }
    made = datalog.open(tmp_path / "hidden", "write")
    options = {":vector-opts": {":dimensions": 2}}
    made.ask("open_database", create=True, schema=schema, options=options)
    hidden = {
        ":person/code": "zeppelin",
        ":person/alias": "zeppelin",
        ":person/note": "zeppelin",
        ":person/face": [1, 0],
        ":person/file": {":word": "zeppelin"},
    }
    made.ask("transact", txData=[{":person/name": "Ann", **hidden}])
    tables = sorted(made.ask("stat", "kv")["tables"])
    indexes = {name.rpartition("/")[2] for name in tables if not name.startswith("datalevin/")}
    assert {"terms", "docs", "vec-refs", "doc-ref", "doc-index", "path-dict"} <= indexes
    before = made.ask("datoms", index="eav")
    wrong = [
        name
        for name in tables
        for txs in ([["put", "zeppelin", "x"]], [["del", "zeppelin"]])
        if made.refused("kv_transact", "kv", dbi=name, txs=txs).code is not Code.ARGUMENT_INVALID
    ]
    assert not wrong
    source = structs.replace(
        made.source,
        id="1",
        name="facts",
        masks=tuple(Mask(name[1:].replace("/", ".")) for name in hidden),
    )
    made.close()
    ask = Asked(datalog, tmp_path / "state", source)
    store = DatalogTarget("kv")

    def code(operation: str, **arguments: Any) -> Code:
        request = DatalogRequest(
            operation=DatalogOperation(operation), target=store, arguments=arguments
        )
        return ask.refused(request, WRITER).code

    for name in tables:
        assert code("kv_range", dbi=name, keyRange=[":all"]) is Code.POLICY_MASKED, name
        assert code("kv_get", dbi=name, key="zeppelin", keyType=":string") is Code.POLICY_MASKED
        assert code("kv_transact", dbi=name, txs=[["put", 1, 2]]) is Code.POLICY_DENIED, name
        assert code("kv_transact", txs=[["del", name, 1]]) is Code.POLICY_DENIED, name
    again = datalog.open(tmp_path / "hidden")
    assert again.ask("datoms", index="eav") == before
