"""The console of a gate of two workers: one of them has it, and a browser reaches it by both."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection

import pytest

from products.console.support.console_place import Place, opened_place
from support.console_visitor import Stream, Visitor
from support.data_desk import answer, ended_run
from support.eventually import wait_until
from support.worker_gate import WorkerGate

MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT i FROM n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with opened_place(tmp_path_factory.mktemp("workers"), "--workers", "2") as found:
        yield found


@contextmanager
def callers_at(place: Place, number: int) -> Generator[None]:
    """While the block runs, new connections are left to that worker: the other has more of them."""
    gate = WorkerGate(place.server, place.state, 2, {"http": int(place.address.split(":")[-1])})
    with ExitStack() as held:
        for _ in range(4):
            held.enter_context(closing(gate.connection_at(3 - number)))
        yield


def visitor(place: Place) -> Visitor:
    found = place.stranger()
    found.sign_in(name="ada", passphrase="correct horse 1")
    return found


@pytest.mark.parametrize("number", [1, 2])
def test_a_page_works_whichever_worker_its_connections_come_to(place: Place, number: int) -> None:
    with callers_at(place, number):
        ada = visitor(place)
        stream = Stream(ada)
        page = ada.client.get("/console")
        assert page.status_code == 200 and "text/html" in page.headers["content-type"]
        begun = answer(ada.post("data/runs", {"source": "towns", "statement": MANY, "tab": "t1"}))
        ended_run(ada, begun["id"])
        found = answer(ada.get(f"data/runs/{begun['id']}/rows?offset=4990&limit=10"))["rows"]
        assert found[-1] == ["5000"]
        wait_until(lambda: stream.events, "the live stream")


def test_what_one_worker_holds_is_seen_by_a_connection_to_the_other(place: Place) -> None:
    with callers_at(place, 1):
        ada = visitor(place)
        begun = answer(ada.post("data/runs", {"source": "towns", "statement": MANY, "tab": "t1"}))
    ada.client.close()
    other = Visitor(place.address)
    place.visitors.append(other)
    other.client.cookies, other.page, other.key = ada.client.cookies, ada.page, ada.key
    with callers_at(place, 2):
        ended_run(other, begun["id"])
        rows = answer(other.get(f"data/runs/{begun['id']}/rows?offset=4990&limit=10"))["rows"]
        assert rows[-1] == ["5000"]


def test_an_address_that_a_client_claims_is_not_taken(place: Place) -> None:
    with callers_at(place, 2):
        connection = HTTPConnection("127.0.0.1", int(place.address.split(":")[-1]))
        with closing(connection):
            connection.request("GET", "/console", headers={"x-tidegate-client": "10.1.1.1"})
            assert connection.getresponse().status == 200
        refused = Visitor(place.address)
        with closing(refused.client):
            body = {"name": "ada", "passphrase": "wrong horse 1"}
            refused.post("sign-in", body, x_tidegate_client="10.9.9.9")
    said = [each for each in place.events() if each.get("name") == "operator.refused"]
    addresses = {str(each) for each in said}
    assert not any("10.9.9.9" in each for each in addresses)
