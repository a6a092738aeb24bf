"""Now over HTTP: who sees which calls and figures, who may end a call, and that it ends."""

from __future__ import annotations

import json
import re
import resource
import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.audit_records import records
from support.command_line import Ended, Serving, serving, tidegate
from support.console_visitor import Stream, Visitor
from support.engine_cases import DUCKDB, MYSQL, POSTGRES, SQLITE
from support.eventually import wait_until
from support.free_ports import claim_port
from wire.wires import MODERN, HttpPeer, Outcome

PASSPHRASE = "correct horse 1"
RUNAWAY = SQLITE.runaway


class Running:
    """A call of an agent on a thread."""

    def __init__(self, peer: HttpPeer, sql: str, source: str) -> None:
        self.outcome: Outcome | None = None
        arguments = {"sql": sql, "source": source}
        self._thread = threading.Thread(
            target=lambda: setattr(self, "outcome", peer.call("query", arguments)), daemon=True
        )
        self._thread.start()

    def ended(self) -> dict[str, Any]:
        """The result, once there is one."""
        self._thread.join()
        assert self.outcome is not None
        return self.outcome.result


class Place:
    """A server with a console before some sources. The operator ada is an admin of all."""

    def __init__(self, folder: Path, sources: dict[str, Any], **settings: Any) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.settings = folder / "tidegate.json"
        self.passphrase = folder / "passphrase"
        self.passphrase.write_text(PASSPHRASE + "\n")
        self.visitors: list[Visitor] = []
        self.server: Serving
        self.address = ""
        self.numbers = iter(range(1_000))
        listed = [{"name": name, **fields} for name, fields in sources.items()]
        limits = {"timeout_s": 200.0}
        written = {
            "sources": listed, "console": {"enabled": True}, "limits": limits, **settings,
        }  # fmt: skip
        self.settings.write_text(json.dumps(written))
        words = ["passphrase", "set", "--new-passphrase-file", str(self.passphrase)]
        assert self.run(*words).status == 0
        self.add_operator("ada")

    @property
    def agreed(self) -> list[str]:
        return ["--passphrase-file", str(self.passphrase)]

    def run(self, *words: str) -> Ended:
        return tidegate(*words, state=self.state)

    def add_operator(self, name: str, *flags: str) -> None:
        words = ["operator", "add", name, "--new-passphrase-file", str(self.passphrase), *flags]
        words += ["--config", str(self.settings), *self.agreed]
        ended = self.run(*words)
        assert ended.status == 0, ended.err

    @contextmanager
    def serving(self) -> Generator[None]:
        words = ["serve", "--http", "127.0.0.1:0", "--config", str(self.settings)]
        with serving(words, self.state) as self.server:
            line = self.server.until("the console is at")
            found = re.search(r"http://[^/]+", line)
            assert found
            self.address = found[0]
            yield
        for visitor in self.visitors:
            visitor.client.close()
        self.visitors.clear()

    def visitor(self, name: str = "ada") -> Visitor:
        visitor = Visitor(self.address)
        visitor.sign_in(name=name, passphrase=PASSPHRASE)
        self.visitors.append(visitor)
        return visitor

    def agent(self, *flags: str) -> HttpPeer:
        name = f"agent{next(self.numbers)}"
        ended = self.run("token", "create", name, "--scope", "fullAccess", *flags, *self.agreed)
        assert ended.status == 0, ended.err
        peer = HttpPeer(int(self.address.rpartition(":")[2]), MODERN, capabilities={})
        peer.token = ended.out.strip()
        return peer

    def events(self, name: str) -> list[dict[str, Any]]:
        return [each for each in records(self.state) if each.get("name") == name]


def calls(visitor: Visitor) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = visitor.get("now").json()["calls"]
    return found


def running(visitor: Visitor, count: int = 1, state: str = "running") -> list[dict[str, Any]]:
    """The calls, when there are so many in this state."""

    def look() -> list[dict[str, Any]] | None:
        found = [each for each in calls(visitor) if each["state"] == state]
        return found if len(found) == count else None

    found = wait_until(look, f"{count} calls are {state}")
    assert found is not None
    return found


def cancel(visitor: Visitor, call: dict[str, Any]) -> Any:
    return visitor.post(f"now/calls/{call['id']}/cancel")


def sqlite_source(folder: Path, name: str = "towns", **fields: Any) -> dict[str, Any]:
    with closing(sqlite3.connect(folder / f"{name}.db")) as connection, connection:
        connection.execute("CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO towns VALUES (1, 'Köln'), (2, 'Lemberg')")
    return {"url": f"sqlite:///{folder}/{name}.db", **fields}


Make = Callable[..., Any]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    @contextmanager
    def make(sources: dict[str, Any] | None = None, **settings: Any) -> Generator[Place]:
        place = Place(tmp_path, sources or {"towns": sqlite_source(tmp_path)}, **settings)
        with place.serving():
            yield place

    return make


# Cancel ends the statement in the database


def test_cancel_ends_a_query_in_sqlite_and_is_on_record(make: Make) -> None:
    with make() as place:
        ada, agent = place.visitor(), place.agent()
        call = Running(agent, RUNAWAY, "towns")
        (shown,) = running(ada)
        assert (shown["source"]["name"], shown["may_cancel"]) == ("towns", True)
        assert "RECURSIVE" in shown["statement"] and shown["actor_name"] == "agent0"
        answer = cancel(ada, shown)
        assert answer.json() == {"id": shown["id"], "state": "cancelling"}
        result = call.ended()
        assert result["isError"] and "An operator cancelled the call" in json.dumps(result)
        assert calls(ada) == []
        # No reader holds the file any more.
        with closing(sqlite3.connect(place.folder / "towns.db")) as connection:
            connection.execute("BEGIN EXCLUSIVE")
        (event,) = place.events("call.cancelled")
        assert (event["actor"], event["details"]["call"]) == ("operator:ada", shown["id"])
        assert event["details"]["source"] == "towns"
        (outcome,) = [
            each
            for each in records(place.state)
            if each.get("call_id") == shown["id"] and each.get("phase") == "outcome"
        ]
        assert outcome["code"] == "call.cancelled"
        assert agent.call("query", {"sql": "SELECT 1", "source": "towns"}).result


@pytest.mark.skipif(not postgres_server.available(), reason="needs a PostgreSQL server")
def test_cancel_ends_a_query_in_postgresql(make: Make) -> None:
    server = postgres_server.shared()
    with make({"shop": {"url": server.url()}}) as place:
        ada = place.visitor()
        call = Running(place.agent(), POSTGRES.runaway, "shop")
        (shown,) = running(ada)
        busy = (
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active'"
            " AND query LIKE '%100000000000%' AND pid <> pg_backend_pid()"
        )
        assert wait_until(lambda: server.ask(busy)[0][0], "the server runs it") == 1
        assert cancel(ada, shown).status_code == 200
        assert call.ended()["isError"]
        wait_until(lambda: server.ask(busy)[0][0] == 0, "the server has ended it")
        (source,) = ada.get("now").json()["sources"]
        assert (source["name"], source["running"]) == ("shop", 0)
        assert source["connections"] >= 1


@pytest.mark.skipif(not mysql_server.available(), reason="needs a MariaDB server")
@pytest.mark.needs("mysql")
def test_cancel_ends_a_query_in_mariadb(make: Make) -> None:
    server = mysql_server.shared()
    database = server.new_database()
    with make({"shop": {"url": server.url(database)}}) as place:
        ada = place.visitor()
        call = Running(place.agent(), MYSQL.runaway, "shop")
        (shown,) = running(ada)
        busy = (
            "SELECT count(*) FROM information_schema.processlist WHERE command = 'Query'"
            " AND info LIKE '%seq_1_to_10000000%' AND id <> connection_id()"
        )
        assert wait_until(lambda: server.script(busy)[0][0], "the server runs it") == 1
        assert cancel(ada, shown).status_code == 200
        assert call.ended()["isError"]
        wait_until(lambda: server.script(busy)[0][0] == 0, "the server has ended it")
    server.drop_database(database)


@pytest.mark.needs("duckdb")
def test_cancel_ends_a_query_in_duckdb(make: Make, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with closing(duckdb.connect(str(tmp_path / "shop.duckdb"))) as connection:
        connection.execute("CREATE TABLE towns (id INTEGER)")
    with make({"shop": {"url": f"duckdb:///{tmp_path}/shop.duckdb"}}) as place:
        ada, agent = place.visitor(), place.agent()
        call = Running(agent, DUCKDB.runaway, "shop")
        (shown,) = running(ada)
        assert cancel(ada, shown).status_code == 200
        assert call.ended()["isError"]
        assert agent.call("query", {"sql": "SELECT 1", "source": "shop"}).result
        (source,) = ada.get("now").json()["sources"]
        assert source["running"] == 0


def test_a_call_that_waits_for_a_person_can_be_cancelled(make: Make, tmp_path: Path) -> None:
    source = sqlite_source(tmp_path, access="write", approval_for="writes")
    with make({"towns": source}, approvals={"wait_s": 200.0}) as place:
        ada = place.visitor()
        call = Running(place.agent(), "DELETE FROM towns WHERE id = 1", "towns")
        (shown,) = running(ada, state="waiting")
        cancel(ada, shown)
        result = call.ended()
        assert result["isError"] and "An operator cancelled" in json.dumps(result)
        with closing(sqlite3.connect(tmp_path / "towns.db")) as connection:
            assert connection.execute("SELECT count(*) FROM towns").fetchone() == (2,)


def test_calls_that_wait_for_others_of_their_caller_are_queued_and_can_be_cancelled(
    make: Make,
) -> None:
    with make() as place:
        ada, agents = place.visitor(), place.agent()

        def peer() -> HttpPeer:
            other = HttpPeer(agents.port, MODERN, capabilities={})
            other.token = agents.token
            return other

        started = [Running(peer(), RUNAWAY, "towns") for _ in range(8)]
        queued = wait_until(
            lambda: [each for each in calls(ada) if each["state"] == "queued"], "some are queued"
        )
        cancel(ada, queued[0])
        wait_until(lambda: len(calls(ada)) == 7, "that one has ended")

        def end_all() -> bool:
            for each in calls(ada):
                cancel(ada, each)
            return not calls(ada)

        wait_until(end_all, "all have ended")
        assert all(each.ended()["isError"] for each in started)


# Who may see and end what


@pytest.mark.parametrize(
    ("role", "source", "sees", "may"),
    [
        (None, None, True, True),
        ("viewer", None, True, False),
        ("approver", None, True, True),
        ("viewer", "towns", True, False),
        ("approver", "towns", True, True),
        ("admin", "towns", True, True),
        ("viewer", "other", False, False),
        ("approver", "other", False, False),
        ("admin", "other", False, False),
    ],
)
def test_roles_decide_who_sees_and_ends_a_call(
    make: Make, tmp_path: Path, role: str | None, source: str | None, *, sees: bool, may: bool
) -> None:
    sources = {name: sqlite_source(tmp_path, name) for name in ("towns", "other")}
    with make(sources) as place:
        ada = eve = place.visitor()
        if role is not None:
            where = [] if source is None else ["--source", source]
            place.add_operator("eve", "--role", role, *where)
            eve = place.visitor("eve")
        call = Running(place.agent(), RUNAWAY, "towns")
        (shown,) = running(ada)
        seen = calls(eve)
        assert [each["id"] for each in seen] == ([shown["id"]] if sees else [])
        assert [each["may_cancel"] for each in seen] == ([may] if sees else [])
        answer = cancel(eve, shown)
        if may:
            assert answer.status_code == 200
        else:
            assert answer.status_code == (403 if sees else 400), answer.text
            assert running(ada)[0]["id"] == shown["id"]
            assert not place.events("call.cancelled")
            cancel(ada, shown)
        assert call.ended()["isError"]


def test_a_viewer_ends_the_calls_of_its_own_tokens(make: Make) -> None:
    with make() as place:
        place.add_operator("eve", "--role", "viewer", "--source", "towns")
        eve = place.visitor("eve")
        own = Running(place.agent("--owner", "eve"), RUNAWAY, "towns")
        other = Running(place.agent(), RUNAWAY, "towns")
        seen = {each["own"]: each for each in running(eve, 2)}
        assert seen[True]["may_cancel"] and not seen[False]["may_cancel"]
        assert cancel(eve, seen[False]).status_code == 403
        assert cancel(eve, seen[True]).status_code == 200
        assert own.ended()["isError"]
        cancel(place.visitor(), seen[False])
        assert other.ended()["isError"]


def test_where_columns_are_hidden_only_approvers_read_statements(
    make: Make, tmp_path: Path
) -> None:
    source = sqlite_source(tmp_path, masks=[{"column": "towns.name", "show": "nothing"}])
    with make({"towns": source}) as place:
        place.add_operator("eve", "--role", "viewer", "--source", "towns")
        ada, eve = place.visitor(), place.visitor("eve")
        call = Running(place.agent(), RUNAWAY, "towns")
        (shown,) = running(ada)
        assert "RECURSIVE" in shown["statement"]
        (seen,) = calls(eve)
        assert (seen["statement"], seen["withheld"]) == ("", True)
        cancel(ada, shown)
        call.ended()


def test_a_statement_is_shown_as_in_the_records_without_secrets(make: Make) -> None:
    with make() as place:
        ada = place.visitor()
        secret = "Tr0ub4dor"
        call = Running(
            place.agent(),
            RUNAWAY.replace("count(*)", f"'password={secret}'") + " LIMIT -1",
            "towns",
        )

        def shown() -> list[dict[str, Any]]:
            return calls(ada)

        found = wait_until(shown, "the call")
        assert secret not in json.dumps(found)
        cancel(ada, found[0])
        call.ended()


def test_requests_without_a_session_or_the_pages_header_are_refused(make: Make) -> None:
    with make() as place:
        ada = place.visitor()
        call = Running(place.agent(), RUNAWAY, "towns")
        (shown,) = running(ada)
        stranger = Visitor(place.address)
        place.visitors.append(stranger)
        assert stranger.get("now").status_code == 401
        assert cancel(stranger, shown).status_code == 401
        for changes in ({"x_tidegate_page": None}, {"origin": "http://127.0.0.1:1"},
                        {"sec_fetch_site": "cross-site"}):  # fmt: skip
            answer = ada.post(f"now/calls/{shown['id']}/cancel", **changes)
            assert answer.status_code in (401, 403)
        assert ada.post(f"now/calls/{shown['id']}/cancel", {"force": True}).status_code == 400
        assert ada.get("now?range=week").status_code == 400
        assert running(ada)[0]["id"] == shown["id"]
        cancel(ada, shown)
        call.ended()
        assert cancel(ada, shown).status_code == 400


# Live


def test_calls_under_way_are_live_for_pages_that_show_them(make: Make) -> None:
    with make() as place:
        ada, other = place.visitor(), place.visitor()
        watching, idle = Stream(ada), Stream(other)
        wait_until(lambda: watching.of("hello") and idle.of("hello"), "the streams")
        ada.get("now")
        call = Running(place.agent(), RUNAWAY, "towns")
        wait_until(lambda: any(each["calls"] for each in watching.of("now")), "the call")
        (shown,) = watching.of("now")[-1]["calls"]
        cancel(ada, shown)
        call.ended()
        wait_until(lambda: watching.of("now")[-1]["calls"] == [], "its end")
        assert idle.of("now") == []


def test_a_stream_has_no_calls_on_other_sources(make: Make, tmp_path: Path) -> None:
    sources = {name: sqlite_source(tmp_path, name) for name in ("towns", "other")}
    with make(sources) as place:
        place.add_operator("eve", "--role", "admin", "--source", "other")
        ada, eve = place.visitor(), place.visitor("eve")
        streams = [Stream(ada), Stream(eve)]
        wait_until(lambda: all(each.of("hello") for each in streams), "the streams")
        assert ada.get("now").status_code == eve.get("now").status_code == 200
        call = Running(place.agent(), RUNAWAY, "towns")
        wait_until(lambda: any(each["calls"] for each in streams[0].of("now")), "the call")
        assert not any(each["calls"] for each in streams[1].of("now"))
        cancel(ada, running(ada)[0])
        call.ended()


# Figures


def figures(visitor: Visitor, path: str = "now") -> dict[str, Any]:
    """Once all of the record is counted."""

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = visitor.get(path).json()["figures"]
        return found if found["complete"] else None

    found = wait_until(look, "the record is counted")
    assert found is not None
    return found


def ask(peer: HttpPeer, source: str, *, good: int = 0, denied: int = 0, failed: int = 0) -> None:
    for sql, count in (("SELECT 1", good), ("DROP TABLE towns", denied), ("SELECT x", failed)):
        for _ in range(count):
            peer.call("query", {"sql": sql, "source": source})


def test_figures_count_what_was_answered_denied_and_failed(make: Make) -> None:
    with make() as place:
        ada = place.visitor()
        before = {span: figures(ada, f"now?range={span}") for span in ("hour", "day")}
        ask(place.agent(), "towns", good=5, denied=3, failed=2)
        lines = ada.get("activity?limit=500").json()["lines"]
        on_record = sum(bool(each["call_id"]) for each in lines)
        assert on_record >= 10
        for span, steps in (("hour", 60), ("day", 144)):
            found = figures(ada, f"now?range={span}")
            assert len(found["calls"]) == len(found["waiting"]) == steps
            assert sum(found["calls"]) - sum(before[span]["calls"]) == on_record
            assert sum(found["denied"]) == 3 and sum(found["failed"]) == 2
            assert found["total_p50"] is not None and found["p99"][-1] is not None
            assert found["since"] % found["step_s"] == 0


def test_figures_outlive_a_restart_and_count_calls_of_other_processes_once(make: Make) -> None:
    with make() as place:
        ask(place.agent(), "towns", good=4, denied=1)
        before = figures(place.visitor())
    with place.serving():
        ada = place.visitor()
        found = figures(ada)
        assert sum(found["calls"]) == sum(before["calls"]) and sum(found["denied"]) == 1
        assert found["total_p50"] == before["total_p50"]
        # A process of its own on the same state.
        assert place.run("query", "towns", "SELECT 1", "--config", str(place.settings)).status == 0
        wait_until(
            lambda: sum(figures(ada)["calls"]) == sum(before["calls"]) + 1, "the other's call"
        )
        ask(place.agent(), "towns", good=2)
        wait_until(lambda: sum(figures(ada)["calls"]) == sum(before["calls"]) + 3, "our calls")


def test_figures_are_of_the_readers_sources_alone(make: Make, tmp_path: Path) -> None:
    sources = {name: sqlite_source(tmp_path, name) for name in ("towns", "other")}
    with make(sources) as place:
        place.add_operator("eve", "--role", "viewer", "--source", "other")
        agent = place.agent()
        ask(agent, "towns", good=5, denied=2)
        ask(agent, "other", good=3)
        ada, eve = place.visitor(), place.visitor("eve")
        assert sum(figures(ada)["calls"]) == 10
        seen = figures(eve)
        assert sum(seen["calls"]) == 3 and sum(seen["denied"]) == 0
        assert sum(figures(ada, "now?source=other")["calls"]) == 3
        refused = eve.get("now?source=towns")
        assert refused.status_code == 400 and "no source" in refused.text
        assert [each["name"] for each in eve.get("now").json()["sources"]] == ["other"]


def test_questions_that_wait_are_counted_while_they_wait(make: Make, tmp_path: Path) -> None:
    source = sqlite_source(tmp_path, access="write", approval_for="writes")
    with make({"towns": source, "other": sqlite_source(tmp_path, "other")}) as place:
        place.add_operator("eve", "--role", "viewer", "--source", "other")
        ada = place.visitor()
        assert sum(figures(ada)["waiting"]) == 0
        place.agent().call("query", {"sql": "DELETE FROM towns WHERE id = 1", "source": "towns"})
        assert figures(ada)["waiting"][-1] == 1
        assert sum(figures(place.visitor("eve"))["waiting"]) == 0


# The server


def test_the_condition_of_the_server_is_shown(make: Make, tmp_path: Path) -> None:
    sources = {
        "towns": sqlite_source(tmp_path),
        "gone": {"url": "postgresql://reader@127.0.0.1:1/shop"},
    }
    with make(sources) as place:
        place.add_operator("eve", "--role", "viewer", "--source", "towns")
        ask(place.agent(), "towns", good=1)
        ask(place.agent(), "gone", good=1)
        page = place.visitor().get("now").json()
        first, second = page["sources"]
        assert (first["name"], first["status"]) == ("gone", "error") and first["error"]
        assert (second["name"], second["status"], second["running"]) == ("towns", "connected", 0)
        assert page["record"]["problems"] == {} and page["record"]["free_bytes"] > 0
        assert page["webhook"]["state"] == "off"
        assert [each["name"] for each in place.visitor("eve").get("now").json()["sources"]] == [
            "towns"
        ]
        checkpoint = place.run("audit", "checkpoint")
        assert checkpoint.status == 0, checkpoint.err
        assert place.visitor().get("now").json()["record"]["checkpoint_at"] is not None


# Other ways in


@pytest.mark.needs("pgwire")
def test_a_statement_of_the_wire_protocol_is_cancelled_and_its_session_goes_on(
    make: Make,
) -> None:
    psycopg = pytest.importorskip("psycopg")
    port = claim_port()
    with make(pg={"listen": f"127.0.0.1:{port}"}) as place:
        ada = place.visitor()
        words = ["token", "create", "robot", "--scope", "fullAccess", *place.agreed]
        token = place.run(*words).out.strip()
        failures: list[Any] = []
        with psycopg.connect(
            f"host=127.0.0.1 port={port} user=robot dbname=towns password={token}", autocommit=True
        ) as session:

            def run() -> None:
                try:
                    session.execute(RUNAWAY)
                except psycopg.Error as error:
                    failures.append(error)

            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            (shown,) = running(ada)
            assert (shown["actor_name"], shown["source"]["name"]) == ("robot", "towns")
            cancel(ada, shown)
            thread.join()
            assert failures[0].sqlstate == "57014"
            assert "An operator cancelled the call" in str(failures[0])
            assert session.execute("SELECT count(*) FROM towns").fetchone() == (2,)


def test_a_call_of_another_process_on_the_state_is_shown_and_ended(make: Make) -> None:
    with make() as place:
        ada, agent = place.visitor(), place.agent()
        words = ["serve", "--http", "127.0.0.1:0", "--config", str(place.settings)]
        with serving(words, place.state) as second:
            found = re.search(r"http://[^/]+", second.until("the console is at"))
            assert found
            agent.port = int(found[0].rpartition(":")[2])
            call = Running(agent, RUNAWAY, "towns")
            (shown,) = running(ada)
            assert (shown["source"]["name"], shown["may_cancel"]) == ("towns", True)
            assert cancel(ada, shown).status_code == 200
            assert "An operator cancelled the call" in json.dumps(call.ended())
            wait_until(lambda: calls(ada) == [], "the call has ended")


def test_cancel_works_while_nothing_can_be_put_on_record(make: Make) -> None:
    with make() as place:
        ada = place.visitor()
        call = Running(place.agent(), RUNAWAY, "towns")
        (shown,) = running(ada)
        fill_limit(place.server.process.pid, 1)
        try:
            assert cancel(ada, shown).status_code == 200
            wait_until(lambda: calls(ada) == [], "the call has ended")
        finally:
            fill_limit(place.server.process.pid, resource.RLIM_INFINITY)
        call.ended()


def fill_limit(process: int, most: int) -> None:
    """Let a process write files of so many bytes at most: as on a full disk."""
    resource.prlimit(process, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
