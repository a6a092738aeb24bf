"""Saved queries over HTTP: who may read and change them, and what two people see of each other.

`ada` is an admin of all sources, `vera` a viewer of all, `pru` an approver of all, `lee` a viewer
of `lite` alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import httpx
import pytest

from support.console_visitor import Stream, Visitor
from support.data_desk import Desk, answer, desk, ended_run
from support.eventually import wait_until
from tidegate.products.console.query_routes import QueryRoutes

OK, DONE, CHANGED, NOT_THERE, NO_ROLE, REFUSED = 200, 204, 409, 404, 403, 400
TEXT = "SELECT id FROM orders WHERE total >= :least"
CHART = {
    "mark": "bar",
    "encoding": {
        "x": {"field": "id", "type": "quantitative"},
        "y": {"field": "total", "type": "quantitative"},
    },
}


class Row(NamedTuple):
    """A route: what is sent, what an owner gets, and what one gets who may not read the query."""

    method: str
    path: str
    body: dict[str, Any] | None
    owner: int
    foreign: int


ROWS = (
    Row("GET", "queries", None, OK, OK),  # those that it may read
    Row(
        *("POST", "queries"),
        {"source": "duck", "name": "mine", "text": "SELECT 1"},
        *(OK, NO_ROLE),
    ),
    Row("GET", "queries/{id}", None, OK, NOT_THERE),
    Row("GET", "queries/{id}?version=1", None, OK, NOT_THERE),
    Row("GET", "queries/{id}/versions", None, OK, NOT_THERE),
    Row("POST", "queries/{id}/open", {}, OK, NOT_THERE),
    Row("POST", "queries/{id}/attach", {"tab": "t", "version": 1}, DONE, NOT_THERE),
    Row("POST", "queries/{id}/ran", {"version": 1}, DONE, NOT_THERE),
    Row("POST", "queries/{id}", {"version": 1, "folder": "x"}, OK, NOT_THERE),
    Row("POST", "queries/{id}/restore", {"version": 2, "restores": 1}, OK, NOT_THERE),
    Row("POST", "queries/{id}/remove", {"version": 3}, DONE, NOT_THERE),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("queries"), ("lite", "duck")) as found:
        yield found


pytestmark = pytest.mark.needs("duckdb")


def save(visitor: Visitor, name: str, source: str = "lite", **more: Any) -> dict[str, Any]:
    body = {"source": source, "name": name, "text": TEXT, **more}
    saved: dict[str, Any] = answer(visitor.post("queries", body))
    return saved


def listed(visitor: Visitor) -> list[str]:
    return [each["name"] for each in answer(visitor.get("queries"))["queries"]]


def send(visitor: Visitor, row: Row, id: str) -> httpx.Response:
    path = row.path.replace("{id}", id)
    return visitor.get(path) if row.method == "GET" else visitor.post(path, row.body)


def test_every_route_has_a_row() -> None:
    routes = QueryRoutes.__new__(QueryRoutes)
    served = {(method, pattern) for method, pattern, _ in routes.routes()}
    assert {(row.method, row.path.partition("?")[0]) for row in ROWS} == served


def test_one_without_a_right_to_the_source_learns_nothing_and_its_owner_may_all(
    place: Desk,
) -> None:
    ada, lee = place.visitor("ada"), place.visitor("lee")
    hidden = save(ada, "of duck", "duck", shared_with="viewer")
    stranger = Visitor(place.address)
    for row in ROWS:
        assert send(stranger, row, hidden["id"]).status_code == 401, row
        response = send(lee, row, hidden["id"])
        assert response.status_code == row.foreign, (row, response.text)
        assert "of duck" not in response.text
        assert TEXT not in response.text
        if row.foreign == NOT_THERE:
            none = send(lee, row, "no-such-id")
            assert (none.status_code, none.content) == (row.foreign, response.content), row
    for row in ROWS:
        response = send(ada, row, hidden["id"])
        assert response.status_code == row.owner, (row, response.text)
    stranger.client.close()


def test_a_text_is_its_owner_s_until_it_is_shared_with_a_role(place: Desk) -> None:
    ada, vera, pru, lee = (place.visitor(name) for name in ("ada", "vera", "pru", "lee"))
    stream = Stream(pru)
    query = save(vera, "of vera", description="each Monday")
    for other in (ada, pru, lee):
        assert "of vera" not in listed(other)
        assert other.get(f"queries/{query['id']}").status_code == NOT_THERE
    shared = answer(vera.post(f"queries/{query['id']}", {"version": 1, "shared_with": "approver"}))
    assert "of vera" in listed(pru)
    assert "of vera" in listed(ada)  # an admin may do what an approver may
    assert "of vera" not in listed(lee)
    assert answer(pru.get(f"queries/{query['id']}"))["content"]["text"] == TEXT
    again = pru.post(f"queries/{query['id']}", {"version": 2, "name": "of pru"})
    assert (again.status_code, again.json()["error"]) == (NO_ROLE, "policy.denied")
    assert "tidegate" not in again.json().get("hint", "")
    changed = ada.post(f"queries/{query['id']}", {"version": shared["version"], "name": "renamed"})
    assert answer(changed)["owner"] == "vera"
    answer(vera.post(f"queries/{query['id']}", {"version": 3, "shared_with": ""}))
    assert "renamed" not in listed(ada)
    wait_until(lambda: {"id": query["id"], "gone": True} in stream.of("query"), "the end")
    assert "renamed" in listed(vera)


def test_two_people_who_write_one_query_lose_nothing_of_each_other(place: Desk) -> None:
    ada, vera = place.visitor("ada"), place.visitor("vera")
    stream = Stream(vera)
    id = save(vera, "of both", shared_with="viewer", folder=" sales / weekly ")["id"]
    assert answer(vera.get(f"queries/{id}"))["folder"] == "sales/weekly"
    assert vera.post(f"queries/{id}/ran", {"version": 1}).status_code == DONE
    answer(ada.post(f"queries/{id}", {"version": 1, "text": "SELECT 2"}))
    wait_until(lambda: {"id": id, "gone": False} in stream.of("query"), "the change")
    lost = vera.post(f"queries/{id}", {"version": 1, "text": "SELECT 3"})
    assert (lost.status_code, lost.json()["error"]) == (CHANGED, "query.changed")
    now = lost.json()["query"]
    assert (now["version"], now["ran"], now["changed_by"]) == (2, 1, "ada")
    assert now["content"] == {
        "version": 2, "by": "ada", "at": now["changed_at"], "text": "SELECT 2",
        "parameters": [], "chart": None,
    }  # fmt: skip
    assert vera.post(f"queries/{id}/restore", {"version": 1, "restores": 1}).status_code == CHANGED
    back = answer(vera.post(f"queries/{id}/restore", {"version": 2, "restores": 1}))
    assert (back["content"]["text"], back["content"]["version"]) == (TEXT, 3)
    versions = answer(ada.get(f"queries/{id}/versions"))["versions"]
    assert [(each["version"], each["by"]) for each in versions] == [
        (3, "vera"),
        (2, "ada"),
        (1, "vera"),
    ]
    assert answer(ada.get(f"queries/{id}?version=2"))["content"]["text"] == "SELECT 2"
    assert ada.get(f"queries/{id}?version=9").status_code == NOT_THERE
    assert vera.post(f"queries/{id}/remove", {"version": 2}).status_code == CHANGED
    assert vera.post(f"queries/{id}/remove", {"version": 3}).status_code == DONE
    wait_until(lambda: {"id": id, "gone": True} in stream.of("query"), "the end")
    assert ada.get(f"queries/{id}").status_code == NOT_THERE


def test_a_query_is_opened_unrun_and_runs_with_the_rights_of_its_reader(place: Desk) -> None:
    ada, vera = place.visitor("ada"), place.visitor("vera")
    id = save(ada, "a change", text="DELETE FROM keyless", shared_with="viewer")["id"]
    opened = answer(vera.post(f"queries/{id}/open", {}))
    tab = opened["tab"]
    assert (tab["text"], tab["title"], tab["source"]) == ("DELETE FROM keyless", "a change", "lite")
    assert answer(vera.get(f"data/runs?tab={tab['id']}")) == {"runs": []}
    assert answer(vera.get("queries"))["tabs"] == {tab["id"]: {"query": id, "version": 1}}
    assert answer(ada.get("queries"))["tabs"] == {}
    assert answer(vera.post(f"queries/{id}/open", {}))["tab"]["id"] == tab["id"]
    body = {"source": "lite", "statement": tab["text"], "tab": tab["id"]}
    run = ended_run(vera, answer(vera.post("data/runs", body))["id"])
    assert (run["state"], run["code"]) == ("failed", "policy.scope")
    with closing(sqlite3.connect(place.directory / "lite.db")) as connection:
        assert connection.execute("SELECT count(*) FROM keyless").fetchone() == (60,)
    body = {"version": 1, "text": "SELECT 1", "chart": CHART}
    answer(ada.post(f"queries/{id}", body))
    answer(ada.post(f"queries/{id}/open", {}))
    (mine,) = [each for each in answer(ada.get("data/tabs"))["tabs"] if each["title"] == "a change"]
    assert (mine["text"], mine["chart"]) == ("SELECT 1", CHART)
    # A tab of another is not marked.
    assert ada.post(f"queries/{id}/attach", {"tab": tab["id"], "version": 1}).status_code == DONE
    assert tab["id"] not in answer(ada.get("queries"))["tabs"]


@pytest.mark.parametrize("source", ["lite", "duck"])
def test_a_parameter_is_bound_as_a_value_of_its_type(place: Desk, source: str) -> None:
    ada = place.visitor("ada")
    parameters = [
        {"name": "least", "type": "decimal", "description": "smallest", "default": "80"},
        {"name": "since", "type": "timestamp"},
    ]
    text = "SELECT id FROM orders WHERE total >= :least AND placed_at >= :since ORDER BY id"
    saved = save(ada, "typed", source, text=text, parameters=parameters, chart={"mark": "bar"})
    content = saved["content"]
    assert [each["type"] for each in content["parameters"]] == ["decimal", "timestamp"]
    assert content["chart"] == {"mark": "bar"}
    types = {each["name"]: each["type"] for each in content["parameters"]}
    body: dict[str, Any] = {"source": source, "statement": text, "types": types}
    for values, found in (
        ({"least": "80", "since": "2026-01-02 10:00:00"}, [["1"], ["2"]]),
        ({"least": "80.5", "since": "2026-01-01"}, [["1"]]),
    ):
        run = ended_run(ada, answer(ada.post("data/runs", {**body, "params": values}))["id"])
        assert run["state"] == "done", run["message"]
        assert answer(ada.get(f"data/runs/{run['id']}/rows"))["rows"] == found
    refused = ada.post("data/runs", {**body, "params": {"least": "80 or more", "since": "x"}})
    assert (refused.status_code, refused.json()["error"]) == (REFUSED, "argument.invalid")
    assert ":least" in refused.json()["message"]
    explained = ada.post("data/explain", {**body, "params": {"least": "1", "since": "2026-01-01"}})
    assert explained.status_code == OK, explained.text


def test_what_cannot_be_kept_is_refused(place: Desk) -> None:
    ada = place.visitor("ada")
    save(ada, "taken")
    twice = [{"name": "a"}, {"name": "a"}]
    for more in (
        {"name": "taken"},
        {"name": " "},
        {"name": "x" * 201},
        {"name": "y", "parameters": twice},
        {"name": "y", "parameters": [{"name": ""}]},
        {"name": "y", "parameters": [{"name": "a", "type": "blob"}]},
        {"name": "y", "shared_with": "everyone"},
        {"name": "y", "chart": {"data": "x" * 20_000}},
        {"name": "y", "text": "x" * 102_401},
    ):
        body = {"source": "lite", "text": TEXT, **more}
        assert ada.post("queries", body).status_code in (400, 422), more
    assert listed(ada).count("taken") == 1
    assert "y" not in listed(ada)
