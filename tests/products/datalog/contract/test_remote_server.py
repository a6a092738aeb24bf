"""A database of a Datalevin server: everything that its client supports, and every fault of a line.

The server is `support/datalevin_server.clj`: Datalevin's wire format and storage with the rules of
its own server, which is in no package. Client, protocol and storage are the library's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from socketserver import BaseRequestHandler
from typing import Any
from urllib.parse import quote

import pytest

from products.datalog.contract.test_surface_session import RULES, Client
from products.datalog.support.datalevin_server import PASSWORD, USERS, DatalevinServer
from support.datalog import PEOPLE, SCHEMA, Datalog, Opened, prepare
from support.surface_client import OWNER, READER, Peer
from support.thread_server import thread_server
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Explain
from tidegate.model.results import Limits
from tidegate.model.statements import Statement

SPELLINGS = (PASSWORD, "s%2Fcr%3At", "s/cr:t", "s%2Fcr")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatalevinServer]:
    prepare()
    server = DatalevinServer(tmp_path_factory.mktemp("server"))
    server.start()
    yield server
    server.remove()


@pytest.fixture
def facts(datalog: Datalog, server: DatalevinServer) -> Opened:
    """Four people in the database `facts`, made by the first that asks."""
    facts = datalog.open(server.url("facts"), "write")
    if "facts" not in server.names():
        facts.ask("open_database", create=True, schema=SCHEMA)
        facts.ask("transact", txData=PEOPLE)
    return facts


@pytest.fixture
def store(datalog: Datalog, server: DatalevinServer) -> Opened:
    """Three keys in the store `store`, made again by each that asks."""
    store = datalog.open(server.url("store"), "write")
    kv: Any = "kv"
    store.ask("open_kv", kv, create=True)
    store.ask("kv_transact", kv, create=True, dbi="a", txs=[["put", n, f"n{n}"] for n in (1, 2, 3)])
    return store


def told(value: object) -> bool:
    """Whether a text has the password in any spelling."""
    return any(spelling in str(value) for spelling in SPELLINGS)


def test_a_server_is_asked_past_the_faults_of_its_planner(facts: Opened) -> None:
    """Rules and joins are answered from its facts, and values are looked for by attribute."""
    rules = "[[(up ?a ?b) [?a :parent ?b]] [(up ?a ?b) (up ?a ?c) (up ?c ?b)]]"
    assert facts.query("[:find ?b :in $ % :where (up 4 ?b)]", rules) == [[1], [2], [3]]
    assert facts.query("[:find ?a :in $ % :where (up ?a _)]", rules) == [[2], [3], [4]]
    joined = "[:find ?b :in $ ?a :where (or-join [?a ?b] [?a :parent ?b])]"
    assert facts.query(joined, 4) == [[3]]
    denied = "[:find ?e :in $ ?p :where [?e :name] (not-join [?e] [?e :parent ?p])]"
    assert facts.query(denied, 1) == [[1]]
    assert [each["e"] for each in facts.ask("search_datoms", v=52)] == [2]
    assert [each["e"] for each in facts.ask("search_datoms", v="tea")] == [1, 2]
    assert facts.ask("count_datoms", v="tea") == 2


def test_a_remote_database_answers_as_a_local_one(facts: Opened) -> None:
    join = "[:find ?n ?m :where [?e :name ?n] [?e :parent ?p] [?p :name ?m]]"
    assert facts.query(join) == [["Ben", "Ada"], ["Cy", "Ben"], ["Di", "Cy"]]
    ancestors = "[:find [?n ...] :in $ % ?a :where [?x :name ?a] (ancestor ?x ?y) [?y :name ?n]]"
    assert sorted(facts.query(ancestors, {"~edn": RULES}, "Ada")) == ["Ben", "Cy", "Di"]
    assert facts.query("[:find (sum ?a) . :where [?e :age ?a]]") == 171
    assert facts.query("[:find ?n . :in $ ?a :where [?e :age ?a] [?e :name ?n]]", 30) == "Cy"
    selector = [":name", {":parent": [":name"]}]
    assert facts.ask("pull", selector=selector, eid=[":name", "Ben"]) == {
        ":name": "Ben",
        ":parent": {":name": "Ada"},
    }
    assert len(facts.ask("pull_many", selector=[":name"], eids=[1, 2])) == 2
    assert facts.ask("entity", eid=[":name", "Di"])[":age"] == 9
    assert [each["v"] for each in facts.ask("datoms", index="ave", c1=":age", limit=2)] == [9, 30]
    assert len(facts.ask("search_datoms", a=":likes", v="tea")) == 2
    assert facts.ask("count_datoms", a=":likes") == 3
    assert facts.ask("fulltext_datoms", query="red") == [[3, ":bio", "sails a red boat"]]
    assert facts.table(Explain(Statement("[:find ?n :where [?e :name ?n]]")))[1]
    assert any(column.name == ":bio" for each in facts.catalog().tables for column in each.columns)


def test_a_change_is_seen_by_another_client_at_once(
    datalog: Datalog, facts: Opened, server: DatalevinServer
) -> None:
    guest = datalog.open(server.url("facts", "guest", "guest word"))
    before = guest.ask("count_datoms", a=":note")
    report = facts.ask("transact", txData=[{":note": "one"}, {":note": "two"}])
    assert [each["v"] for each in report["tx-data"]] == ["one", "two"]
    assert guest.ask("count_datoms", a=":note") == before + 2
    facts.ask("transact", txData=[{":note": str(n)} for n in range(3_000)])  # in parts
    assert guest.ask("count_datoms", a=":note") == before + 3_002
    assert len(guest.query("[:find ?v :where [_ :note ?v]]")) == 200


def test_a_remote_store_has_keys_texts_and_vectors(store: Opened) -> None:
    kv: Any = "kv"
    assert store.ask("kv_get", kv, dbi="a", key=2) == "n2"
    assert store.ask("kv_range", kv, dbi="a", keyRange=[":all-back"], limit=2) == [
        [3, "n3"],
        [2, "n2"],
    ]
    assert store.refused("kv_get", kv, dbi="none", key=1).details["absent"] == "dbi"
    search: Any = "search_index"
    store.ask("open_search_index", search, create=True)
    store.ask("add_document", search, docRef="a", docText="a red boat")
    assert store.ask("search_documents", search, query="red") == ["a"]
    assert store.ask("document_count", search) == 1
    assert store.ask("document_indexed", search, docRef="a") is True
    store.ask("remove_document", search, docRef="a")
    assert store.ask("document_count", search) == 0
    vectors: dict[str, Any] = {"kind": "vector_index", "options": {":dimensions": 2}}
    store.ask("open_vector_index", create=True, **vectors)
    store.ask("add_vector", vectorRef="near", vectorData=[1, 0], **vectors)
    store.ask("add_vector", vectorRef="far", vectorData=[0, 9], **vectors)
    assert store.ask("vector_search", queryVector=[1, 0.1], **vectors) == ["near", "far"]
    assert store.ask("vector_indexed", vectorRef="far", **vectors) is True
    assert store.ask("vector_index_info", **vectors)[":dimensions"] == 2


def test_a_read_makes_nothing_on_a_server(
    datalog: Datalog, facts: Opened, server: DatalevinServer
) -> None:
    before, digest = server.names(), server.digest("facts")
    absent = datalog.open(server.url("absent"))
    kv: Any = "kv"
    assert absent.refused("open_database").details["absent"] == "database"
    assert absent.refused("open_kv", kv).details["absent"] == "database"
    assert absent.refused("query", query="[:find ?e :where [?e]]").code is Code.POLICY_READ_ONLY
    guest = datalog.open(server.url("absent", "guest", "guest word"))
    assert "permission" in guest.refused("open_database").message.lower()
    for kind in ("search_index", "vector_index"):
        options: dict[str, Any] = {":domain": "new"}
        if kind == "vector_index":
            options[":dimensions"] = 2
        error = facts.refused(f"open_{kind}", kind, options=options)
        assert error.details["absent"] == kind
    reader = datalog.open(server.url("facts"))
    assert reader.refused("transact", txData=[{":note": "x"}]).code is Code.POLICY_READ_ONLY
    for query in (
        '[:find ?x :where [(slurp "/etc/hostname") ?x]]',
        '[:find ?x :in $ :where [_ :name] [(slurp "/etc/hostname") ?x]]',
    ):
        assert reader.refused("query", query=query).code is Code.SQL_FUNCTION
    limited = datalog.open(server.url("facts", "guest", "guest word"), "write")
    assert "permission" in limited.refused("transact", txData=[{":note": "x"}]).message.lower()
    assert (server.names(), server.digest("facts")) == (before, digest)


def test_a_wrong_password_is_said_and_no_password_is_in_a_text(
    datalog: Datalog, server: DatalevinServer
) -> None:
    wrong = datalog.open(server.url("facts", password=f"{PASSWORD}x"))
    error = wrong.refused("query", query="[:find ?e :where [?e :name]]")
    assert error.code is Code.SOURCE_UNREACHABLE
    assert "login" in error.message and f"127.0.0.1:{server.port}" in error.message
    assert not told(f"{error.message} {error.hint} {error.details}")
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(told(each.decode(errors="replace")) for each in commands)


def test_a_changed_password_is_read_again_from_where_the_url_refers_to(
    datalog: Datalog, facts: Opened, server: DatalevinServer, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text(PASSWORD)
    rotated = datalog.open(f"dtlv://ann:${{FILE:{file}}}@127.0.0.1:{server.port}/facts", "write")
    asked = "[:find (count ?e) . :where [?e :name]]"
    users = server.root / "users.edn"
    try:
        assert rotated.query(asked) == 4
        server.stop()
        users.write_text(USERS.replace(PASSWORD, "second: one"))
        server.start()
        error = rotated.refused("query", query=asked)
        assert error.code is Code.SOURCE_UNREACHABLE and error.details["cause"] == "account"
        file.write_text("second: one\n")
        assert rotated.query(asked) == 4
        server.stop()
        users.write_text(USERS.replace(PASSWORD, "third"))
        server.start()
        error = rotated.refused("transact", txData=[{":rotated": 1}])
        assert error.details["cause"] == "account" and "second: one" not in str(error)
        file.write_text("third")
        rotated.ask("transact", txData=[{":rotated": 2}])
        assert rotated.ask("count_datoms", a=":rotated") == 1
    finally:
        server.stop()
        users.write_text(USERS)
        server.start()


def test_a_server_that_goes_away_is_named_and_used_again_when_it_is_back(
    datalog: Datalog, facts: Opened, server: DatalevinServer
) -> None:
    def count() -> int:
        return facts.ask("count_datoms", a=":batch")

    before, digest = count(), server.digest("facts")
    server.stop()
    error = facts.refused("query", query="[:find ?e :where [?e :name]]")
    assert error.code is Code.SOURCE_UNREACHABLE
    assert f"127.0.0.1:{server.port}" in error.message and not told(error.message)
    assert facts.refused("transact", txData=[{":batch": 1}]).code in (
        Code.SOURCE_UNREACHABLE,
        Code.SQL_OUTCOME,
    )
    with pytest.raises(TidegateError) as caught:
        datalog.open(server.url("facts"))
    assert caught.value.code is Code.SOURCE_UNREACHABLE
    assert server.digest("facts") == digest
    server.start()
    assert count() == before
    facts.ask("transact", txData=[{":batch": 1}])
    assert count() == before + 1


def test_a_change_whose_server_is_lost_is_of_unknown_outcome_and_whole_or_absent(
    facts: Opened, datalog: Datalog, server: DatalevinServer
) -> None:
    many = 20_000
    for delay in (0.05, 0.4):
        before = facts.ask("count_datoms", a=":batch")

        async def lost(delay: float = delay) -> None:
            asyncio.get_running_loop().call_later(delay, server.stop)

        datalog.run(lost())
        error = facts.refused("transact", txData=[{":batch": n} for n in range(many)])
        datalog.run(asyncio.sleep(delay))
        assert error.code in (Code.SQL_OUTCOME, Code.SOURCE_UNREACHABLE)
        server.start()
        after = facts.ask("count_datoms", a=":batch")
        assert after - before in (0, many)


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 400 No\r\n\r\n", bytes(64), b"\x02\x7f" * 99])
def test_a_server_that_hangs_or_speaks_another_protocol_is_an_error_in_time(
    facts: Opened, datalog: Datalog, says: bytes
) -> None:
    class Strange(BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(says)
            while self.request.recv(1_024):
                pass

    with thread_server(Strange) as port:
        strange = datalog.open(f"dtlv://ann:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/facts")
        text = "[:find ?e :where [?e :name]]"
        error = strange.refused("query", query=text, limits=Limits(timeout_s=3))
        assert error.code in (Code.LIMIT_TIME, Code.SOURCE_UNREACHABLE, Code.SQL_FAILED)
        assert "\n" not in error.message and not told(error.message)
    assert facts.query("[:find (count ?e) . :where [?e :name]]") == 4


@pytest.mark.usefixtures("store")
def test_a_caller_opens_a_uri_and_its_password_is_kept_nowhere(
    datalog: Datalog, facts: Opened, server: DatalevinServer, tmp_path: Path
) -> None:
    saved = SourceSettings(name="remote", url=f"dtlv://ann@127.0.0.1:{server.port}/saved")
    app = App.open(Config(state=str(tmp_path / "state"), sources=(saved,)))
    uri = server.url("facts")
    try:
        call = Client(datalog, Peer(app.surface("datalog"), OWNER, "2025-06-18"))
        opened = call.reply("open_database", uri=uri)
        assert (opened["target"], opened["remote"]) == (
            f"dtlv://ann@127.0.0.1:{server.port}/facts",
            True,
        )
        text = "[:find ?n . :where [?e :age 30] [?e :name ?n]]"
        assert call("query", database=opened["database"], query=text) == "Cy"
        kv = call("open_kv", uri=server.url("store"))["kv"]
        assert call("kv_get", kv=kv, dbi="a", key=1) == "n1"
        replies = [
            call.reply("open_database", uri=server.url("facts", password=f"{PASSWORD}x")),
            call.reply("open_database", uri=uri.replace("dtlv", "http")),
            call.reply("open_database", uri=f"{uri}?store=kv"),
            call.reply("open_database", uri=uri.replace("facts", "Facts")),
            call.reply("open_database", uri=uri.replace("127.0.0.1", "127.0.0.1@127.0.0.2")),
            call.reply("open_database", uri=server.url("saved")),
            call.reply("open_database", uri=uri, clientOpts={":runtime-opts": PASSWORD}),
        ]
        assert all("error" in each for each in replies), replies
        assert replies[5]["code"] == ":policy-denied"
        assert not told(json.dumps([opened, *replies]))
        reader = Client(datalog, Peer(app.surface("datalog"), READER, "2025-06-18"))
        names = server.names()
        assert reader.code("open_database", uri=server.url("new")) == ":absent"
        assert server.names() == names
    finally:
        datalog.run(app.close())
    kept = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert kept
    assert not any(told(path.read_bytes().decode(errors="replace")) for path in kept)
