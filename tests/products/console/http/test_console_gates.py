"""The console of two gates on one state: where a page is answered, and what two pages of a person
do at two gates at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from products.console.support.round_robin import RoundRobin, round_robin
from support.console_visitor import Visitor
from support.data_desk import answer, ended_run
from support.eventually import wait_until

MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT i FROM n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoundRobin]:
    with round_robin("gates", tmp_path_factory.mktemp("gates")) as found:
        yield found


def home_of(visitor: Visitor) -> str:
    """The id of the gate that answers a browser."""
    (found,) = [each.value for each in visitor.client.cookies.jar if each.name.endswith("_gate")]
    assert found is not None
    return found


def test_a_browser_is_answered_by_one_gate_and_sent_on_by_the_other(place: RoundRobin) -> None:
    with place.visitor() as ada:
        home = home_of(ada)
        begun = answer(ada.post("data/runs", {"source": "shop", "statement": MANY, "tab": "t"}))
        ended_run(ada, begun["id"])
        for offset in range(0, 5_000, 500):
            path = f"data/runs/{begun['id']}/rows?offset={offset}&limit=1"
            assert answer(ada.get(path))["rows"] == [[str(offset + 1)]]
        assert len(answer(ada.get("data/runs?tab=t"))["runs"]) == 1
        made = answer(ada.post("data/export-ticket", {"run": begun["id"], "format": "csv"}))
        saved = ada.get(f"data/export?ticket={made['ticket']}", x_tidegate_page=None)
        assert saved.status_code == 200 and len(saved.text.splitlines()) == 5_001
        assert home_of(ada) == home
        ada.client.follow_redirects = False
        found = [ada.get("now?range=hour") for _ in range(8)]
        assert {each.status_code for each in found} == {200, 307}
        sent = next(each for each in found if each.is_redirect)
        assert sent.headers["location"] == "?range=hour&hops=1"
        assert sent.headers["cache-control"] == "no-store"


def test_a_page_that_is_never_brought_to_its_gate_says_so_and_moves_when_it_is_loaded(
    place: RoundRobin,
) -> None:
    with place.visitor(1) as ada:
        ada.client.base_url = f"http://127.0.0.1:{place.pair.port(2)}"
        refused = ada.get("access")
        assert refused.status_code == 421 and refused.headers["retry-after"] == "1"
        assert f"The gate {place.pair.gate_id(1)} has this page" in refused.json()["message"]
        assert ada.post("sources/try", {"name": "x"}).status_code == 421
        assert ada.resume().status_code == 200
        assert home_of(ada) == place.pair.gate_id(2)
        assert answer(ada.get("access"))["sessions"]


def test_a_session_ends_wherever_that_is_asked_for(place: RoundRobin) -> None:
    with place.visitor(1) as ada, place.visitor(1) as other:
        ada.client.base_url = f"http://127.0.0.1:{place.pair.port(2)}"
        ada.client.follow_redirects = False
        assert ada.post("sign-out", {"everywhere": True}).status_code == 204
        wait_until(lambda: other.get("access").status_code == 401, "the end of the other session")


def test_a_cookie_that_names_no_gate_that_serves_is_replaced(place: RoundRobin) -> None:
    with place.visitor(1) as ada:
        (cookie,) = [each for each in ada.client.cookies.jar if each.name.endswith("_gate")]
        for value in ("0123456789abcdef", "x", "../..", '"'):
            ada.client.cookies.set(cookie.name, value, domain=cookie.domain, path=cookie.path)
            found = ada.get("access")
            assert found.status_code == 200 and not found.history
            assert place.pair.gate_id(1) in found.headers["set-cookie"]
            ada.client.cookies.delete(cookie.name, domain=cookie.domain, path=cookie.path)


def test_edits_that_one_gate_makes_are_not_sent_again_at_the_other(place: RoundRobin) -> None:
    with place.visitor(1) as one, place.visitor(2) as two:
        tab = answer(one.post("data/tabs", {"source": "data", "kind": "table", "table": "notes"}))
        edits = f"data/tabs/{tab['id']}/edits"
        new = {"id": "n1", "kind": "insert", "cells": {"id": {"text": "9"}, "body": {"text": "x"}}}
        staged = answer(one.post(edits, {"version": 0, "put": [new]}))
        answer(one.post(f"{edits}/submit", {"version": staged["version"]}))

        def asked() -> str | None:
            found: str | None = answer(one.get(f"{edits}/result"))["approval"]
            return found

        question = wait_until(asked, "the question")
        here = place.pair.gate_id(1)
        found = answer(two.get(edits))
        assert found["result"]["state"] == "running" and found["result"]["ended_at"] is None
        assert f"The gate {here} makes these edits" in found["result"]["message"]
        for path, body in (
            (edits, {"version": found["version"], "put": [{**new, "id": "n2"}]}),
            (f"{edits}/submit", {"version": found["version"]}),
            (f"{edits}/cancel", {}),
        ):
            refused = two.post(path, body)
            assert refused.status_code >= 400 and f"gate {here}" in refused.json()["message"]
        assert place.ask("SELECT count(*) FROM notes WHERE id = 9") == [(0,)]
        digest = answer(two.get(f"inbox/{question}"))["digest"]
        answer(two.post(f"inbox/{question}/allow", {"digest": digest}))

        def ended() -> bool:
            return answer(one.get(f"{edits}/result"))["state"] == "done"

        wait_until(ended, "the edits to be made")
        after = answer(two.get(edits))
        assert after["result"] is None and after["rows"] == []
        assert place.ask("SELECT body FROM notes WHERE id = 9") == [("x",)]
