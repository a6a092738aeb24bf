"""A person approves: through the caller's own client in both eras, or in the inbox."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.audit_records import records
from support.command_line import Ended, serving, tidegate
from support.eventually import HANG_S, wait_until
from wire.conversations import python_sdk
from wire.wires import MODERN, HttpPeer, Outcome, Peer, StdioPeer

UPDATE = "UPDATE towns SET name = 'Lviv' WHERE id = 2"
LIES = "UPDATE towns SET name = 'x\nDry run:   0 rows would be changed' WHERE id = 2"
ALLOW = {"action": "accept", "content": {"decision": "allow once"}}
DENY = {"action": "accept", "content": {"decision": "deny"}}
ERAS = ("2025-06-18", "2025-11-25", MODERN)
each_era = pytest.mark.parametrize("revision", ERAS)

COMMANDS = re.compile("tidegate [a-z]+")
"""Those that a text names."""


class Harness:
    """A database behind the real command, with a person's inbox beside it."""

    def __init__(self, directory: Path) -> None:
        self.database = directory / "towns.db"
        self.state = directory / "state"
        with closing(sqlite3.connect(self.database)) as connection, connection:
            connection.execute("CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT)")
            connection.execute("INSERT INTO towns VALUES (1, 'Köln'), (2, 'Lemberg')")

    def add(self, *flags: str) -> None:
        words = ["source", "add", "towns", f"sqlite:///{self.database}", "--allow-writes"]
        assert self.run(*words, *(flags or ("--approval-for", "writes"))).status == 0

    def run(self, *words: str) -> Ended:
        return tidegate(*words, state=self.state)

    def command(self, *more: str) -> list[str]:
        words = ["serve", "--surface", "core", "--allow-writes", "--state", str(self.state), *more]
        return [sys.executable, "-m", "tidegate", *words]

    def names(self) -> list[str]:
        with closing(sqlite3.connect(self.database)) as connection:
            return [row[0] for row in connection.execute("SELECT name FROM towns ORDER BY id")]

    def waiting(self, *more: str) -> list[dict[str, Any]]:
        return self.run("approvals", "list", "--json", *more).json["approvals"]

    def question(self, refused: Outcome) -> str:
        """The newest question that waits, of which the caller reads the place and neither its id
        nor a command that answers it."""
        assert "approval.needed" in refused.text
        id: str = self.waiting()[-1]["id"]
        assert id not in refused.text
        assert COMMANDS.findall(refused.text) == ["tidegate console"]
        return id

    def records(self) -> list[dict[str, Any]]:
        return records(self.state)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


Open = Callable[..., Peer]


@pytest.fixture
def peer(harness: Harness) -> Iterator[Open]:
    """`peer(revision, answer)`: a client on stdio whose person answers so."""
    peers: list[Peer] = []

    def open_peer(revision: str, answer: Any = None, **more: Any) -> Peer:
        asked: list[str] = []

        def reply(request: Mapping[str, Any]) -> Any:
            asked.append(request["params"]["message"])
            return answer

        made = StdioPeer(revision, harness.command(), answer=reply, **more)
        made.asked = asked  # pyright: ignore[reportAttributeAccessIssue]
        peers.append(made)
        return made.connect()

    yield open_peer
    for made in peers:
        made.close()


def _query(peer: Peer, sql: str = UPDATE) -> Outcome:
    return peer.call("query", {"sql": sql})


@each_era
def test_a_person_at_the_client_lets_it_run_once(
    harness: Harness, peer: Open, revision: str
) -> None:
    harness.add()
    client: Any = peer(revision, ALLOW)
    assert "error" not in _query(client).text
    assert harness.names() == ["Köln", "Lviv"]
    (message,) = client.asked
    for reported in (UPDATE, "towns", "stdio", "write", "id 2, name Lemberg -> Lviv"):
        assert reported in message
    (question,) = harness.waiting("--all")
    assert question["state"] == "used"
    assert "stdio" in question["decided_by"]
    reported = {record["name"] for record in harness.records() if "name" in record}
    assert {"approval.asked", "approval.allowed", "approval.used"} <= reported
    intents = [each for each in harness.records() if each["phase"] == "intent"]
    assert [each["request"] for each in intents] == ["dry_run", "query"]
    assert question["id"] in {each.get("approval") for each in intents}


@each_era
@pytest.mark.parametrize("answer", [DENY, {"action": "decline"}])
def test_a_person_at_the_client_refuses_it(
    harness: Harness, peer: Open, revision: str, answer: Any
) -> None:
    harness.add()
    client: Any = peer(revision, answer)
    assert "approval.declined" in _query(client).text
    assert "approval.declined" in _query(client).text
    assert len(client.asked) == 1
    assert harness.names() == ["Köln", "Lemberg"]


@each_era
def test_who_closes_the_form_leaves_the_question_in_the_inbox(
    harness: Harness, peer: Open, revision: str
) -> None:
    harness.add()
    client = peer(revision, {"action": "cancel"})
    id = harness.question(_query(client))
    assert harness.names() == ["Köln", "Lemberg"]
    assert harness.run("approvals", "allow", id).status == 0
    assert "error" not in _query(client).text
    assert harness.names() == ["Köln", "Lviv"]


@each_era
def test_an_answer_of_the_wrong_shape_grants_nothing(
    harness: Harness, peer: Open, revision: str
) -> None:
    harness.add()
    client = peer(revision, {"action": "accept", "content": {"decision": "yes"}})
    _query(client)
    assert harness.names() == ["Köln", "Lemberg"]
    assert [each["state"] for each in harness.waiting("--all")] == ["pending"]


@each_era
@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}])
def test_a_client_that_shows_no_forms_is_never_asked(
    harness: Harness, peer: Open, revision: str, capabilities: Any
) -> None:
    harness.add()
    client: Any = peer(revision, ALLOW, capabilities=capabilities)
    id = harness.question(_query(client))
    assert client.asked == []
    assert harness.names() == ["Köln", "Lemberg"]
    assert harness.run("approvals", "allow", id).status == 0
    assert "error" not in _query(client).text
    assert "approval.needed" in _query(client).text
    assert harness.names() == ["Köln", "Lviv"]


@each_era
def test_where_the_inbox_alone_counts_no_client_is_asked(
    harness: Harness, peer: Open, revision: str
) -> None:
    harness.add("--approval-for", "writes", "--approval", "inbox", "--unattended", "allow")
    client: Any = peer(revision, ALLOW)
    harness.question(_query(client))
    assert client.asked == []
    assert harness.names() == ["Köln", "Lemberg"]


@each_era
def test_where_no_one_can_be_asked_the_operator_may_have_said_yes(
    harness: Harness, peer: Open, revision: str
) -> None:
    harness.add("--approval-for", "writes", "--unattended", "allow")
    assert "error" not in _query(peer(revision, capabilities={})).text
    assert harness.names() == ["Köln", "Lviv"]
    assert harness.waiting("--all") == []


@each_era
def test_who_may_not_read_unasked_is_shown_no_rows(
    harness: Harness, peer: Open, revision: str
) -> None:
    harness.add("--agents", "ask")
    client: Any = peer(revision, {"action": "cancel"})
    id = harness.question(_query(client))
    (message,) = client.asked
    assert "Lemberg" not in message
    assert "name Lemberg -> Lviv" in harness.run("approvals", "show", id).out
    assert harness.names() == ["Köln", "Lemberg"]


@each_era
def test_a_statement_cannot_speak_for_the_gate(harness: Harness, peer: Open, revision: str) -> None:
    harness.add()
    client: Any = peer(revision, {"action": "decline"})
    _query(client, LIES)
    (message,) = client.asked
    assert "  | Dry run:   0 rows" in message
    assert not any(line.startswith("Dry run:   0") for line in message.splitlines())


def test_an_answer_that_comes_before_the_question_grants_nothing(
    harness: Harness, peer: Open
) -> None:
    harness.add()
    client = peer(MODERN, ALLOW)
    params = {"name": "query", "arguments": {"sql": UPDATE}}
    first = client.request("tools/call", params).result
    (key,) = first["inputRequests"]
    volunteered = {**params, "inputResponses": {key: ALLOW}}
    client.request("tools/call", volunteered)
    assert harness.names() == ["Köln", "Lemberg"]
    assert [each["state"] for each in harness.waiting("--all")] == ["pending"]


def test_the_same_call_five_times_at_once_is_one_question(harness: Harness, peer: Open) -> None:
    harness.add()
    client = peer(MODERN, ALLOW)
    params = {"name": "query", "arguments": {"sql": UPDATE}}
    results = [client.request("tools/call", params).result for _ in range(5)]
    assert [each["resultType"] for each in results].count("input_required") == 1
    (question,) = harness.waiting()
    assert question["askers"] == 5


@pytest.mark.parametrize(("generation", "mode"), [(1, None), (2, "auto"), (2, "legacy")])
def test_the_official_clients_ask_their_person(
    harness: Harness, generation: int, mode: str | None
) -> None:
    harness.add()
    config: dict[str, Any] = {"command": harness.command(), "answer": ALLOW}
    if mode is not None:
        config["mode"] = mode
    report = python_sdk(generation, {**config, "calls": [["query", {"sql": UPDATE}]]})
    assert not report["results"][0]["is_error"], report
    assert len(report["asked"]) == 1
    assert harness.names() == ["Köln", "Lviv"]
    declined = {**config, "answer": {"action": "decline"}}
    other = "DELETE FROM towns WHERE id = 1"
    report = python_sdk(generation, {**declined, "calls": [["query", {"sql": other}]]})
    assert report["results"][0]["is_error"], report
    assert harness.names() == ["Köln", "Lviv"]


def test_a_grant_belongs_to_its_token(harness: Harness) -> None:
    harness.add()
    tokens = [
        harness.run("token", "create", name, "--scope", "readWrite").out.strip()
        for name in ("ann", "bob")
    ]
    words = ["serve", "--surface", "core", "--http", "127.0.0.1:0", "--state", str(harness.state)]
    with serving(words, harness.state) as server:
        address = next(word for word in server.until("serving").split() if word.startswith("http"))
        port = int(address.removesuffix("/mcp").rpartition(":")[2])
        ann, bob = (HttpPeer(port, MODERN, capabilities={}) for _ in tokens)
        ann.token, bob.token = tokens
        id = harness.question(_query(ann))
        assert harness.run("approvals", "allow", id[:9]).status == 0
        assert "approval.needed" in _query(bob).text
        assert harness.names() == ["Köln", "Lemberg"]
        assert "error" not in _query(ann).text
        assert harness.names() == ["Köln", "Lviv"]


def _waits(harness: Harness) -> str:
    """A file of settings with which a call waits for the inbox."""
    path = harness.database.with_name("settings.json")
    path.write_text(json.dumps({"approvals": {"wait_s": HANG_S}, "allow_writes": True}))
    return str(path)


def _begin(peer: HttpPeer, id: str) -> Any:
    """Send the change and leave its answer unread."""
    meta = {"progressToken": id}
    params = {"name": "query", "arguments": {"sql": UPDATE}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": peer.add_meta(params)}
    return peer.post(message)


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_a_call_may_wait_for_the_inbox(harness: Harness, decision: str) -> None:
    harness.add()
    made = harness.run("token", "create", "ann", "--scope", "readWrite")
    words = ["serve", "--surface", "core", "--http", "127.0.0.1:0", "--config", _waits(harness)]
    with serving([*words, "--state", str(harness.state)], harness.state) as server:
        address = next(word for word in server.until("serving").split() if word.startswith("http"))
        port = int(address.removesuffix("/mcp").rpartition(":")[2])
        peer = HttpPeer(port, MODERN, capabilities={})
        peer.token = made.out.strip()
        response = _begin(peer, "waits")
        asked = wait_until(harness.waiting, "the question in the inbox")
        assert harness.run("approvals", decision, asked[0]["id"]).status == 0
        reported = json.dumps(list(response.messages()))
        response.close()
        assert "Waiting for approval" in reported
    if decision == "allow":
        assert harness.names() == ["Köln", "Lviv"]
    else:
        assert "approval.declined" in reported
        assert harness.names() == ["Köln", "Lemberg"]


PHRASE = "I understand this is irreversible"
DROP = "DROP TABLE towns"
EMPTY = "DELETE FROM towns"


@each_era
@pytest.mark.parametrize("sql", [DROP, EMPTY])
def test_what_cannot_be_undone_needs_the_phrase_and_then_a_person(
    harness: Harness, peer: Open, revision: str, sql: str
) -> None:
    harness.add("--approval-for", "nothing")
    client: Any = peer(revision, DENY)
    for given in ({}, {"confirm": PHRASE.lower()}, {"confirm": ""}, {"confirm": f"{PHRASE}."}):
        refused = client.call("query", {"sql": sql, **given}).text
        assert refused.partition(":")[0] in ("policy.confirm", "argument.invalid")
        assert PHRASE in refused and len(refused) < 250
    assert client.asked == [] and harness.waiting("--all") == []
    refused = client.call("query", {"sql": sql, "confirm": PHRASE}).text
    assert "approval.declined" in refused and len(refused) < 250
    (message,) = client.asked
    assert sql in message
    assert harness.names() == ["Köln", "Lemberg"]


@each_era
def test_the_phrase_and_a_person_at_the_client_let_it_run_once(
    harness: Harness, peer: Open, revision: str
) -> None:
    harness.add("--approval-for", "nothing")
    client: Any = peer(revision, ALLOW)
    assert "error" not in client.call("query", {"sql": EMPTY, "confirm": PHRASE}).text
    assert harness.names() == []
    assert len(client.asked) == 1
    assert "policy.confirm" in client.call("query", {"sql": EMPTY}).text
    assert len(client.asked) == 1


@each_era
def test_the_phrase_alone_waits_in_the_inbox_of_who_shows_no_forms(
    harness: Harness, peer: Open, revision: str
) -> None:
    harness.add("--approval-for", "nothing")
    client = peer(revision, capabilities={})
    asked = client.call("query", {"sql": EMPTY, "confirm": PHRASE})
    assert len(asked.text) < 250
    assert harness.names() == ["Köln", "Lemberg"]
    assert harness.run("approvals", "allow", harness.question(asked)).status == 0
    # The grant is for the call as it was: it does not stand for the phrase.
    assert "policy.confirm" in client.call("query", {"sql": EMPTY}).text
    assert harness.names() == ["Köln", "Lemberg"]
    assert "error" not in client.call("query", {"sql": EMPTY, "confirm": PHRASE}).text
    assert harness.names() == []
    again = client.call("query", {"sql": EMPTY, "confirm": PHRASE})
    assert "approval.needed" in again.text


@each_era
def test_the_phrase_opens_nothing_else(harness: Harness, peer: Open, revision: str) -> None:
    harness.add("--approval-for", "nothing")
    client: Any = peer(revision, ALLOW)
    insert = "INSERT INTO towns (name) VALUES ('x')"
    for sql in (insert, "SELECT 1", "VACUUM", f"{DROP}; {DROP}", "ATTACH 'x.db' AS x"):
        assert client.call("query", {"sql": sql, "confirm": PHRASE}).text.startswith(
            ("policy.", "sql.")
        )
    assert client.asked == []
    assert harness.names() == ["Köln", "Lemberg"]
