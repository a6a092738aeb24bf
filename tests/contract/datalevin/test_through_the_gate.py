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
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.datalog import DatalogOperation, DatalogRequest, DatalogTarget
from tidegate.model.replies import HistoryFound
from tidegate.model.requests import Browse, Call, Query, Request, SearchHistory
from tidegate.model.results import Limits
from tidegate.model.sources import Mask, Source
from tidegate.model.statements import Statement

READER = Actor("reader", "reader", Scope.READ_ONLY)
WRITER = Actor("writer", "writer", Scope.READ_WRITE)

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
