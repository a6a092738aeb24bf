"""Long work through the gate: statements and approvals that outlast a client, over a restart."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.audit_records import records
from support.eventually import wait_until
from wire.lasting_gate import TAKES_TASKS, Gate
from wire.wires import HANDSHAKE, MODERN, HttpPeer, Outcome, Peer, StdioPeer

UPDATE = "UPDATE towns SET name = 'Lviv' WHERE id = 2"
COUNT = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {most})"
    " SELECT count(*) AS c FROM n"
)
ENDLESS = COUNT.format(most=10**12)
A_SECOND = COUNT.format(most=4_000_000)
SLOW_UPDATE = f"UPDATE towns SET name = ({ENDLESS}) WHERE id = 1"


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    made = Gate(tmp_path)
    yield made
    made.close()


def begin(peer: Peer, sql: str) -> str:
    params = {"name": "query", "arguments": {"sql": sql}}
    created = peer.request("tools/call", params).result
    assert created["resultType"] == "task", created
    return created["taskId"]


def get(peer: HttpPeer, task: str) -> dict[str, Any]:
    return peer.request("tasks/get", {"taskId": task}).result


def ended(peer: HttpPeer, task: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found = get(peer, task)
        return None if found["status"] == "working" else found

    return wait_until(look, "the task ends")


def text_of(found: dict[str, Any]) -> str:
    return found["result"]["content"][0]["text"]


def resumed(peer: HttpPeer, outcome: Outcome) -> str:
    """What core's `more` gives in the end for a call that still ran."""
    text = outcome.text
    while "still running" in text:
        handle = json.loads(text)["more"]
        text = peer.call("more", {"handle": handle}).text
    return text


def test_a_long_statement_becomes_a_task_and_one_line_of_the_record(gate: Gate) -> None:
    gate.start()
    with gate.client() as peer:
        task = begin(peer, A_SECOND)
        assert '"rows":[[4000000]]' in text_of(ended(peer, task))
    lines = [each for each in records(gate.state) if each.get("statement") == A_SECOND]
    assert [each["phase"] for each in lines] == ["outcome"]
    assert gate.run("audit", "verify").status == 0


def test_a_cancelled_task_ends_its_statement(gate: Gate) -> None:
    gate.start()
    with gate.client() as peer:
        task = begin(peer, SLOW_UPDATE)
        peer.request("tasks/cancel", {"taskId": task})
        assert ended(peer, task)["status"] == "cancelled"
        assert gate.names() == ["Köln", "Lemberg"]
        assert "error" not in peer.call("query", {"sql": UPDATE}).text, "no lock is left"


@pytest.mark.parametrize("answer", ["allow", "deny"])
def test_a_call_that_waits_for_a_person_is_a_task_at_once(gate: Gate, answer: str) -> None:
    gate.write('approval_for = "writes"', "after_s = 1000")
    gate.start()
    with gate.client() as peer:
        task = begin(peer, UPDATE)
        waiting = get(peer, task)
        assert waiting["status"] == "working"
        assert "Inbox" in waiting["statusMessage"]
        assert gate.question() not in json.dumps(waiting)
        assert gate.run("approvals", answer, gate.question()).status == 0
        text = text_of(ended(peer, task))
    if answer == "allow":
        assert json.loads(text)["affected"] == 1
        assert gate.names() == ["Köln", "Lviv"]
    else:
        assert "approval.declined" in text
        assert gate.names() == ["Köln", "Lemberg"]


@pytest.mark.parametrize("revision", [*HANDSHAKE, MODERN])
def test_a_long_approval_ends_well_in_a_client_that_gives_up_early(
    gate: Gate, revision: str
) -> None:
    gate.write(
        'approval_for = "writes"', "answer_s = 0.3\nafter_s = 0.2", "[approvals]\nwait_s = 100"
    )
    gate.start()
    with gate.client(revision, {}) as peer:
        first = peer.call("query", {"sql": UPDATE})
        assert "still running" in first.text
        again = peer.call("query", {"sql": UPDATE})
        assert json.loads(again.text)["more"] == json.loads(first.text)["more"], "it waits once"
        assert gate.run("approvals", "allow", gate.question()).status == 0
        assert json.loads(resumed(peer, first))["affected"] == 1
    assert gate.names() == ["Köln", "Lviv"]


def test_an_answer_after_the_call_stopped_waiting_counts_when_it_is_sent_again(gate: Gate) -> None:
    gate.write(
        'approval_for = "writes"', "answer_s = 0.3\nafter_s = 0.2", "[approvals]\nwait_s = 0.6"
    )
    gate.start()
    with gate.client(capabilities={}) as peer:
        assert "still running" in peer.call("query", {"sql": UPDATE}).text

        def has_ended() -> bool:
            with closing(sqlite3.connect(gate.state / "state.db")) as connection:
                return connection.execute("SELECT status FROM tasks").fetchone() == ("completed",)

        wait_until(has_ended, "the call stops waiting")
        assert gate.run("approvals", "allow", gate.question()).status == 0
        assert json.loads(resumed(peer, peer.call("query", {"sql": UPDATE})))["affected"] == 1


@pytest.mark.parametrize("surface", ["workbench", "postgres"])
@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
def test_other_surfaces_say_that_it_runs_and_the_same_call_waits(
    gate: Gate, surface: str, revision: str
) -> None:
    gate.write(tasks="answer_s = 0.3\nafter_s = 0.2")
    gate.start()
    peer = HttpPeer(gate.port, revision, capabilities={}, path=f"/mcp/{surface}")
    peer.token = gate.token
    with peer.connect():
        tool, given = "query_database", {"query": A_SECOND}
        if surface == "workbench":
            listed = peer.call("list_connections").text
            id = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", listed)[0]
            tool, given = "execute_query", {"connection_id": id, "query": A_SECOND}
        first = json.dumps(peer.call(tool, given).response)
        assert "still runs" in first
        assert "Send the same call again" in first
        while "still runs" in (text := json.dumps(peer.call(tool, given).response)):
            pass
        assert "4000000" in text
    lines = [each for each in records(gate.state) if each.get("statement") == A_SECOND]
    assert [each["phase"] for each in lines] == ["outcome"], "it ran once"


@pytest.mark.parametrize("capabilities", [{}, TAKES_TASKS])
def test_a_call_that_waits_for_another_is_no_call_of_its_own(
    gate: Gate, alive_soon: Callable[[], None], capabilities: Any
) -> None:
    gate.write(tasks="answer_s = 0.3\nafter_s = 0.2")
    gate.start()
    with gate.client(capabilities={}) as peer:
        handle = json.loads(peer.call("query", {"sql": SLOW_UPDATE}).text)["more"]
        gate.until_changing(handle.removeprefix("call-"))
        peer.capabilities = capabilities
        for _ in range(4):
            assert json.loads(peer.call("more", {"handle": handle}).text)["more"] == handle
        with closing(sqlite3.connect(gate.state / "state.db")) as connection:
            assert connection.execute("SELECT count(*) FROM tasks").fetchone() == (1,)
        gate.kill()
        alive_soon()
        gate.start()
        assert "not known whether it changed" in peer.call("more", {"handle": handle}).text


@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
def test_rows_that_come_after_the_reply_wait_for_the_same_call(gate: Gate, revision: str) -> None:
    gate.write(tasks="answer_s = 0.3\nafter_s = 0.2")
    gate.start()
    many = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 2000)"
        f" SELECT x, printf('%0200d', x) AS wide, ({A_SECOND}) AS slow FROM n"
    )
    peer = HttpPeer(gate.port, revision, capabilities={}, path="/mcp/v1")
    peer.token = gate.token
    with peer.connect():
        given = {"query": many, "mode": "sql", "limit": 2000}
        first = json.dumps(peer.call("query_database", given).response)
        assert "still runs" in first
        while "still runs" in (text := json.dumps(peer.call("query_database", given).response)):
            pass
        assert len(re.findall(r"slow[^,]*4000000", text)) == 2000


# Rights count when the result is given out


def test_a_revoked_token_gets_nothing_and_its_work_ends(gate: Gate) -> None:
    gate.start()
    with gate.client() as peer:
        task = begin(peer, ENDLESS)
        assert gate.run("token", "revoke", "agent").status == 0
        message = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get"}
        message["params"] = peer.add_meta({"taskId": task})
        response = peer.post(message)
        assert response.status == 401
        response.close()
        wait_until(
            lambda: [
                each
                for each in records(gate.state)
                if each.get("statement") == ENDLESS and each.get("code") == "call.cancelled"
            ],
            "the statement ends",
        )


def test_a_mask_that_came_after_the_rows_withholds_them(gate: Gate) -> None:
    gate.start()
    slow = f"SELECT name, ({A_SECOND}) FROM towns"
    with gate.client() as peer:
        task = begin(peer, slow)
        assert "Lemberg" in text_of(ended(peer, task))
        gate.write('approval_for = "nothing"\nmasks = [{ column = "towns.name" }]')
        found = get(peer, task)
        assert "Lemberg" not in json.dumps(found)
        assert "result.gone" in text_of(found)


def test_a_mask_that_came_after_an_error_withholds_what_it_quotes(gate: Gate) -> None:
    gate.start()
    with gate.client() as peer:
        task = begin(peer, f"INSERT INTO towns SELECT 2, 'twin' WHERE ({A_SECOND}) > 0")
        assert "towns.id" in text_of(ended(peer, task))
        gate.write('approval_for = "nothing"\nmasks = [{ column = "towns.name" }]')
        said = text_of(get(peer, task))
    assert said.startswith("result.gone") and "towns.id" not in said
    assert "took effect" not in said


def test_a_change_whose_result_is_withheld_is_not_to_be_sent_again(gate: Gate) -> None:
    gate.write('approval_for = "writes"')
    gate.start()
    with gate.client() as peer:
        task = begin(peer, UPDATE)
        assert gate.run("approvals", "allow", gate.question()).status == 0
        assert json.loads(text_of(ended(peer, task)))["affected"] == 1
        gate.write('approval_for = "nothing"\nmasks = [{ column = "towns.name" }]')
        said = text_of(get(peer, task))
    assert said.startswith("result.gone") and said.endswith(
        "The change itself took effect. Do not send it again."
    )


def test_a_handle_of_no_call_says_what_to_do(gate: Gate) -> None:
    gate.start()
    with gate.client() as peer:
        said = peer.call("more", {"handle": "call-" + "0" * 32}).text
    assert said.endswith("Send the call again; if it may have changed data, check the data first.")


def test_a_task_of_a_source_that_is_gone_gives_nothing(gate: Gate) -> None:
    gate.start()
    with gate.client() as peer:
        task = begin(peer, f"SELECT name, ({A_SECOND}) FROM towns")
        assert "Lemberg" in text_of(ended(peer, task))
        text = gate.settings.read_text()
        gate.settings.write_text(text.replace('name = "towns"', 'name = "other"'))
        found = get(peer, task)
        assert "Lemberg" not in json.dumps(found)
        assert "source.unknown" in text_of(found)


# A restart


def test_after_a_restart_a_read_is_to_be_sent_again(
    gate: Gate, alive_soon: Callable[[], None]
) -> None:
    gate.start()
    with gate.client() as peer:
        task = begin(peer, ENDLESS)
        gate.kill()
        alive_soon()
        gate.start()
        found = ended(peer, task)
        assert "It had changed nothing: send the call again." in found["error"]["message"]


@pytest.mark.parametrize("capabilities", [{}, TAKES_TASKS])
def test_just_after_a_server_was_killed_the_call_is_not_said_to_be_lost(
    gate: Gate, capabilities: Any
) -> None:
    gate.write(tasks="answer_s = 0.3\nafter_s = 0.2")
    gate.start()
    with gate.client(capabilities=capabilities) as peer:
        params = {"name": "query", "arguments": {"sql": SLOW_UPDATE}}
        reply = peer.request("tools/call", params).result
        gate.kill()
        gate.start()
        if capabilities:
            found = get(peer, reply["taskId"])
            assert found["status"] == "working"
            said = found["statusMessage"]
        else:
            handle = json.loads(reply["content"][0]["text"])["more"]
            said = peer.call("more", {"handle": handle}).text
        assert "Ask again in 30 s; until then do not send the call again." in said


def test_after_a_restart_a_change_whose_outcome_is_unknown_is_not_said_to_have_failed(
    gate: Gate, alive_soon: Callable[[], None]
) -> None:
    gate.start()
    with gate.client() as peer:
        task = begin(peer, SLOW_UPDATE)
        gate.until_changing(task)
        gate.kill()
        alive_soon()
        gate.start()
        message = ended(peer, task)["error"]["message"]
        assert "not known whether it changed data" in message
        assert "again" in message
    assert gate.names() == ["Köln", "Lemberg"]


def test_after_a_restart_an_approval_counts_for_the_call_that_is_sent_again(
    gate: Gate, alive_soon: Callable[[], None]
) -> None:
    gate.write('approval_for = "writes"', "after_s = 1000")
    gate.start()
    with gate.client() as peer:
        task = begin(peer, UPDATE)
        gate.kill()
        assert gate.run("approvals", "allow", gate.question()).status == 0
        alive_soon()
        gate.start()
        assert "nothing ran" in ended(peer, task)["error"]["message"]
        assert gate.names() == ["Köln", "Lemberg"]
        assert json.loads(peer.call("query", {"sql": UPDATE}).text)["affected"] == 1
    assert gate.names() == ["Köln", "Lviv"]


def test_the_handle_of_core_says_the_same_after_a_restart(
    gate: Gate, alive_soon: Callable[[], None]
) -> None:
    gate.write(tasks="answer_s = 0.3\nafter_s = 0.2")
    gate.start()
    with gate.client(capabilities={}) as peer:
        handle = json.loads(peer.call("query", {"sql": ENDLESS}).text)["more"]
        gate.kill()
        alive_soon()
        gate.start()
        text = peer.call("more", {"handle": handle}).text
        assert re.match(r"result\.gone: .*It had changed nothing: send the call again\.", text)


def test_after_a_restart_the_same_change_is_not_made_again_before_its_caller_knows(
    gate: Gate, alive_soon: Callable[[], None]
) -> None:
    gate.write(tasks="answer_s = 0.3\nafter_s = 0.2", more="stop_grace_s = 0.1")
    gate.start()

    def send() -> str:
        peer = HttpPeer(gate.port, "2025-06-18", capabilities={}, path="/mcp/workbench")
        peer.token = gate.token
        with peer.connect():
            listed = peer.call("list_connections").text
            id = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", listed)[0]
            given = {"connection_id": id, "query": SLOW_UPDATE}
            return json.dumps(peer.call("execute_query", given).response)

    assert "still runs" in send()
    gate.until_changing()
    gate.kill()
    alive_soon()
    gate.start()
    assert "not known whether it changed data" in send()
    intents = [each for each in records(gate.state) if each.get("statement") == SLOW_UPDATE]
    assert len(intents) <= 1, (
        "it did not run again; it is kept that it may, before that is recorded"
    )
    assert "still runs" in send(), "its caller knows, and means it"


@pytest.fixture
def alive_soon(gate: Gate) -> Callable[[], None]:
    """Lets the time pass for which a process that was killed may still be there."""

    def pass_time() -> None:
        with closing(sqlite3.connect(gate.state / "state.db")) as connection, connection:
            connection.execute("UPDATE tasks SET alive_until = 0")

    return pass_time


def test_what_ended_before_the_server_stopped_is_known(gate: Gate) -> None:
    gate.start()
    with gate.client() as peer:
        task = begin(peer, f"UPDATE towns SET name = ({A_SECOND}) WHERE id = 1")
        assert ended(peer, task)["status"] == "completed"
        assert gate.served is not None
        gate.served.close()
        gate.start()
        found = ended(peer, task)
        assert "had ended" in found["error"]["message"]
        assert "stands" in found["error"]["message"]
    assert gate.names() == ["4000000", "Lemberg"]


def test_the_end_of_a_client_on_pipes_cancels_what_goes_on(gate: Gate) -> None:
    text = gate.settings.read_text()
    gate.settings.write_text(re.sub("http = .*", "stop_grace_s = 0.5", text))
    words = ("-m", "tidegate", "serve", "--stdio", "--config", str(gate.settings))
    peer = StdioPeer(MODERN, [sys.executable, *words], capabilities=TAKES_TASKS)
    begin(peer.connect(), ENDLESS)
    peer.close_input()
    assert peer.process.wait(60) == 0
    peer.close()
    lines = [each for each in records(gate.state) if each.get("statement") == ENDLESS]
    assert [(each["phase"], each["code"]) for each in lines] == [("outcome", "call.cancelled")]


def test_a_server_that_stops_ends_what_goes_on_and_says_so(gate: Gate) -> None:
    gate.write(more="stop_grace_s = 0.5")
    gate.start()
    with gate.client() as peer:
        task = begin(peer, ENDLESS)
        assert gate.served is not None
        gate.served.process.terminate()
        assert gate.served.process.wait(60) in (0, -15, 143)
        gate.served.close()
        gate.start()
        assert ended(peer, task)["status"] in ("failed", "cancelled")
