"""Who may do what on the Data page: a row for every route, a column for every role.

`lee` views `lite` alone; every route is asked of a source that it may view and of one that it may
not. A route without a row here fails the first test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from support.console_visitor import Visitor
from support.data_desk import Desk, answer, desk
from support.eventually import wait_until
from tidegate.products.console.data_page import DataPage
from tidegate.products.console.edit_routes import EditRoutes
from tidegate.products.console.import_routes import ImportRoutes

pytestmark = pytest.mark.needs("duckdb")

OK, NO_ROLE, NOT_THERE, GONE = 200, 403, 404, 410
DONE, NOTHING_STAGED, UNCHECKED = 204, 400, 400
SELECT = "SELECT id FROM orders"


class Row(NamedTuple):
    """A route: what is sent, what one who may view the source gets, and what one gets who may not.
    `{source}`, `{tab}` and `{run}` are filled in."""

    method: str
    path: str
    body: dict[str, Any] | None
    may: int
    foreign: int
    reader: int = 0
    """What one gets who may only view it, if that is another answer."""


PLACE = {"source": "{source}"}
TABLE = {**PLACE, "table": "orders"}
TEXT = {**PLACE, "statement": SELECT}
PAIRS = [{"place": 0, "column": "none"}]
FORM = {"name": "made", "columns": [{"name": "id", "type": "INTEGER"}]}
ROWS = (
    Row("GET", "sources", None, OK, OK),  # of those that it may view
    Row("GET", "schemas?source={source}", None, OK, NO_ROLE),
    Row("GET", "tables?source={source}", None, OK, NO_ROLE),
    Row("GET", "search?q=orders", None, OK, OK),  # the same
    Row("GET", "table?source={source}&table=orders", None, OK, NO_ROLE),
    Row("POST", "diagram", PLACE, OK, NO_ROLE),
    Row("GET", "form?source={source}&table=orders", None, OK, NO_ROLE),
    Row("POST", "form-plan", {**PLACE, "form": FORM}, OK, NO_ROLE),
    Row("GET", "server?source={source}", None, OK, NO_ROLE),
    Row("POST", "server/cancel", {**PLACE, "session": "1", "started": "x"}, 400, NO_ROLE, 403),
    Row("POST", "rows", TABLE, OK, NO_ROLE),
    Row("POST", "count", TABLE, OK, NO_ROLE),
    Row("POST", "columns", TABLE, OK, NO_ROLE),
    Row("POST", "cell", {**TABLE, "key": {"id": "1"}, "column": "total"}, OK, NO_ROLE),
    Row("GET", "tabs", None, OK, OK),  # one's own
    Row("POST", "tabs", {**PLACE, "kind": "query"}, OK, NO_ROLE),
    Row("POST", "tabs/{tab}", {"version": 1, "title": "x"}, OK, NOT_THERE),
    Row("GET", "edits/columns?source={source}&table=orders", None, OK, NO_ROLE),
    Row("GET", "runs/{run}/edits", None, OK, GONE),
    Row("GET", "tabs/{tab}/edits", None, OK, NOT_THERE),
    Row("POST", "tabs/{tab}/edits", {"version": 0}, OK, NOT_THERE),
    Row("GET", "tabs/{tab}/edits/sql", None, NOTHING_STAGED, NOT_THERE),
    Row("POST", "tabs/{tab}/edits/submit", {"version": 1}, NOTHING_STAGED, NOT_THERE),
    Row("GET", "tabs/{tab}/edits/result", None, OK, NOT_THERE),
    Row("POST", "tabs/{tab}/edits/cancel", {}, OK, NOT_THERE),
    Row("POST", "imports", {"name": "x.csv", "size": 4}, OK, OK),  # one's own
    Row("POST", "imports/{import}/part", {"at": 4, "data": "Mgo="}, OK, GONE),
    Row("GET", "imports/{import}", None, OK, GONE),
    Row("POST", "imports/{import}/read", {"header": True}, OK, GONE),
    Row("GET", "imports/{import}/form?source={source}", None, OK, GONE),
    Row("POST", "imports/{import}/check", {**TABLE, "columns": PAIRS}, UNCHECKED, GONE),
    Row("POST", "imports/{import}/submit", {}, UNCHECKED, GONE),
    Row("POST", "imports/{import}/cancel", {}, OK, GONE),
    Row("POST", "imports/{import}/close", {}, DONE, GONE),
    Row("POST", "tabs/{tab}/focus", {}, OK, NOT_THERE),
    Row("POST", "tabs/{tab}/close", {}, DONE, NOT_THERE),
    Row("POST", "tabs/reopen", {}, OK, NOT_THERE),
    Row("POST", "judge", TEXT, OK, NO_ROLE),
    Row("POST", "complete", {**TEXT, "at": 7}, OK, NO_ROLE),
    Row("POST", "format", TEXT, OK, NO_ROLE),
    Row("POST", "explain", TEXT, OK, NO_ROLE),
    Row("GET", "runs?tab=t", None, OK, OK),  # one's own
    Row("POST", "runs", TEXT, OK, NO_ROLE),
    Row("GET", "runs/{run}", None, OK, GONE),
    Row("GET", "runs/{run}/rows", None, OK, GONE),
    Row("GET", "runs/{run}/cell?row=0&column=0", None, OK, GONE),
    Row("POST", "runs/{run}/chart", {}, OK, GONE),
    Row("POST", "runs/{run}/cancel", {}, OK, GONE),
    Row("POST", "runs/{run}/close", {}, DONE, GONE),
    Row("POST", "blocks", PLACE, OK, NO_ROLE),
    Row("POST", "blocks/{block}", {**PLACE, "action": "rollback"}, OK, NO_ROLE),
    Row("POST", "export-ticket", {**TABLE, "format": "csv"}, OK, NO_ROLE),
    Row("GET", "export?ticket={ticket}", None, OK, NO_ROLE),
    Row("GET", "history?source={source}", None, OK, NO_ROLE),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("rights"), ("lite", "duck")) as found:
        yield found


def pattern_of(row: Row) -> tuple[str, str]:
    path = row.path.partition("?")[0]
    for name in ("{tab}", "{run}", "{block}", "{import}"):
        path = path.replace(name, "{id}")
    return row.method, path


def served() -> set[tuple[str, str]]:
    """The routes that the page serves."""
    page = DataPage.__new__(DataPage)
    edits = EditRoutes.__new__(EditRoutes)
    imports = ImportRoutes.__new__(ImportRoutes)
    found: set[tuple[str, str]] = set()
    for router in (
        page.routes(lambda answer: answer, lambda answer: answer),  # type: ignore[arg-type, return-value]
        edits.routes(lambda answer: answer),  # type: ignore[arg-type, return-value]
        imports.routes(lambda answer: answer),  # type: ignore[arg-type, return-value]
    ):
        for path in router.paths:
            for method in (router.allowed(path) or b"").decode().split(", "):
                found.add((method, path.removeprefix("/console/api/data/")))
    return found


def test_every_route_has_a_row() -> None:
    assert {pattern_of(row) for row in ROWS} == served()


def filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: filled(each, names) for key, each in value.items()}
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace("{" + name + "}", text)
    return value


def prepared(visitor: Visitor, source: str) -> dict[str, str]:
    """What the rows name: a tab, a run that has ended, a ticket."""
    tab = answer(visitor.post("data/tabs", {"source": source, "kind": "query"}))["id"]
    run = answer(visitor.post("data/runs", {"source": source, "statement": SELECT, "tab": "t"}))
    wait_until(
        lambda: answer(visitor.get(f"data/runs/{run['id']}"))["ended_at"] is not None, "the end"
    )
    body = {"source": source, "table": "orders", "format": "csv"}
    ticket = answer(visitor.post("data/export-ticket", body))["ticket"]
    begun = visitor.post("data/blocks", {"source": source})
    block = answer(begun)["id"] if begun.status_code == 200 else "none"  # DuckDB has none
    file = answer(visitor.post("data/imports", {"name": "x.csv", "size": 6}))["id"]
    answer(visitor.post(f"data/imports/{file}/part", {"at": 0, "data": "aWQKMQ=="}))
    names = {"source": source, "tab": tab, "run": run["id"], "ticket": ticket}
    return {**names, "block": block, "import": file}


def send(visitor: Visitor, row: Row, names: dict[str, str]) -> httpx.Response:
    path = f"data/{filled(row.path, names)}"
    if row.method == "GET":
        return visitor.get(path)
    return visitor.post(path, filled(row.body, names))


@pytest.mark.parametrize("name", ["ada", "pru", "vera", "lee"])
def test_whoever_may_view_a_source_may_do_on_it_what_reads(place: Desk, name: str) -> None:
    visitor = place.visitor(name)
    names = prepared(visitor, "lite")
    for row in ROWS:
        response = send(visitor, row, names)
        expected = row.reader if row.reader and name != "ada" else row.may
        assert response.status_code == expected, (name, row, response.text)


def test_one_without_a_role_on_a_source_gets_nothing_of_it(place: Desk) -> None:
    ada, lee = place.visitor("ada"), place.visitor("lee")
    names = prepared(ada, "duck")
    for row in ROWS:
        response = send(lee, row, names)
        assert response.status_code == row.foreign, (row, response.text)
        assert "duck" not in response.text, row


def test_one_who_is_signed_out_gets_nothing(place: Desk) -> None:
    names = prepared(place.visitor("ada"), "lite")
    stranger = Visitor(place.address)
    for row in ROWS:
        assert send(stranger, row, names).status_code == 401, row
    stranger.client.close()


def test_a_role_that_is_taken_away_ends_what_runs_and_what_is_held(place: Desk) -> None:
    place.add_operator("max", "--role", "viewer")
    visitor = place.visitor("max")
    names = prepared(visitor, "duck")
    consent = ["--passphrase-file", str(place.directory / "consent")]
    words = ["operator", "roles", "max", "--role", "viewer", "--source", "lite", *consent]
    changed = place.run(*words)
    assert changed.status == 0, changed.err
    for row in ROWS:
        response = send(visitor, row, names)
        assert response.status_code == row.foreign, (row, response.text)
