"""Two servers, each with a directory of its own, on one state in PostgreSQL."""

import json
import shutil
import socket
import sqlite3
import sys
from contextlib import ExitStack, closing

import pytest

import support.postgres_server as postgres_server
from support.command_line import tidegate
from support.eventually import wait_until
from support.free_ports import claim_port
from support.operator_terminal import operator_terminal
from wire.served import Served
from wire.wires import MODERN, HttpPeer

URL = "${ENV:PGTEST_STATE}"


class Gate:
    """One server, and the commands on its directory."""

    def __init__(self, directory, database):
        directory.mkdir()
        self.directory, self.port = directory, claim_port()
        self.settings = directory / "gate.toml"
        self.settings.write_text(
            f'state = "{directory / "state"}"\nstate_url = "{URL}"\n'
            'state_key = "${ENV:PGTEST_KEY}"\n'
            f'http = "127.0.0.1:{self.port}"\nconsole.enabled = false\n'
            "audit.checkpoint_s = 0.2\n"
            f'[[sources]]\nname = "towns"\nurl = "sqlite:///{database}"\naccess = "write"\n'
            'approval_for = "writes"\n'
        )

    def run(self, *words):
        return tidegate(*words, "--config", str(self.settings))

    def start(self):
        command = [sys.executable, "-m", "tidegate", "serve", "--config", str(self.settings)]
        return Served(command, self.port)

    def client(self, token):
        peer = HttpPeer(self.port, MODERN)
        peer.token = token
        return peer

    def begin_session(self, token):
        """A client of an earlier revision, whose session begins at this gate."""
        peer = HttpPeer(self.port, "2025-11-25")
        peer.token = token
        opened = {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }  # fmt: skip
        peer.exchange({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opened})
        peer.notify("notifications/initialized")
        return peer

    def ask(self, token, sql="SELECT name FROM towns"):
        """The status of a call, and what it says."""
        message = {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {
                "name": "query", "arguments": {"sql": sql, "source": "towns"},
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": MODERN,
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        }  # fmt: skip
        response = self.client(token).post(message)
        try:
            return response.status, response.read().decode()
        finally:
            response.close()


@pytest.fixture
def gates(tmp_path, monkeypatch):
    server = postgres_server.shared()
    database = server.new_database()
    monkeypatch.setenv("PGTEST_STATE", server.url(database))
    monkeypatch.setenv("PGTEST_KEY", "a key of both gates of this test, long enough")
    towns = tmp_path / "towns.db"
    with closing(sqlite3.connect(towns)) as connection, connection:
        connection.execute("CREATE TABLE towns (name TEXT)")
        connection.execute("INSERT INTO towns VALUES ('Lemberg')")
    made = [Gate(tmp_path / name, towns) for name in ("a", "b")]
    with ExitStack() as stack:
        for each in made:
            stack.enter_context(closing(each.start()))
        yield (*made, server, database)


def token_of(gate, name, *words):
    made = gate.run("token", "create", name, *words)
    assert made.status == 0, made.err
    return made.out.strip()


def test_rights_questions_and_lockouts_are_those_of_both_gates(gates, monkeypatch):
    a, b, server, database = gates
    agent = token_of(a, "agent", "--scope", "readWrite")
    for gate in (a, b):
        status, said = gate.ask(agent)
        assert status == 200 and "Lemberg" in said

    # A session of an earlier revision is known at both, by a key that the state does not hold.
    peer = a.begin_session(agent)
    peer.port = b.port
    called = {"name": "query", "arguments": {"sql": "SELECT name FROM towns", "source": "towns"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    assert "Lemberg" in json.dumps(peer.exchange(call).result)
    assert server.ask("SELECT name FROM tidegate.shared_secrets", database) == []

    # A question that was asked at one gate is answered for both, and the grant is used once.
    change = "INSERT INTO towns VALUES ('Lviv')"
    assert "approval" in a.ask(agent, change)[1]
    (question,) = b.run("approvals", "list", "--json").json["approvals"]
    assert b.run("approvals", "allow", question["id"]).status == 0
    said = [gate.ask(agent, change)[1] for gate in (b, a)]
    assert "approval.needed" not in said[0] and "approval.needed" in said[1]
    assert "Lviv" in a.ask(agent)[1]

    # Revoked at one gate, it ends at the other.
    assert a.run("token", "revoke", "agent").status == 0
    wait_until(lambda: b.ask(agent)[0] == 401, "the other gate refuses the token")

    # The database of the state is no source of any gate.
    url = server.url(database)
    added = b.run("source", "add", "inner", url)
    assert added.status != 0 and "state of a gate" in added.err
    assert "PostgreSQL" in b.run("doctor", "--json").out
    assert b.run("config", "check").status == 0

    # Wrong tokens count together.
    for number in range(4):
        assert (a, b)[number % 2].ask("tg_" + "x" * 43)[0] == 401
    wait_until(lambda: a.ask("tg_" + "y" * 43)[0] == 429, "the address is locked")
    assert b.ask("tg_" + "z" * 43)[0] == 429

    # Each gate has its own record, which verifies.
    for gate in (a, b):
        verified = gate.run("audit", "verify", "--json")
        assert verified.status == 0, verified.err
    assert {json.loads(line)["name"] for line in lines(a) if "token." in line} >= {"token.revoked"}

    # One with another key does not join.
    monkeypatch.setenv("PGTEST_KEY", "the key of other gates, which is as long as that")
    refused = a.run("serve")
    assert refused.status == 78 and "another key" in refused.err


def test_the_records_of_both_gates_are_proved_together_and_a_copied_volume_is_refused(
    gates, tmp_path
):
    a, b, server, database = gates
    agent = token_of(a, "agent", "--scope", "readWrite")
    for gate in (a, b):
        assert gate.ask(agent)[0] == 200
    found = "SELECT place, processes FROM tidegate.gates WHERE octet_length(head) > 0"
    wait_until(lambda: len(server.ask(found, database)) == 2, "both heads are in the state")
    assert sorted(tuple(row) for row in server.ask(found, database)) == [
        (f"{socket.gethostname()}:{gate.directory / 'state'}", 1) for gate in (a, b)
    ]

    # A copy of one gate's volume, with the settings of its own place, is no gate.
    copied = tmp_path / "copy"
    shutil.copytree(a.directory / "state", copied)
    settings = tmp_path / "copy.toml"
    settings.write_text('state_key = "${ENV:PGTEST_KEY}"\n')
    state = ("--config", str(settings), "--state", str(copied), "--state", URL)
    refused = tidegate("serve", "--http", "127.0.0.1:0", *state)
    assert refused.status == 74
    assert f":{a.directory / 'state'}` writes: this is a copy of it" in refused.err
    assert "move `audit` and `audit-key`" in refused.err
    shutil.rmtree(copied / "audit")
    shutil.rmtree(copied / "audit-key")
    assert tidegate("token", "create", "third", "--scope", "readOnly", *state).status == 0

    # All three records, and then one that is not there.
    directories = [str(each) for each in (a.directory / "state", b.directory / "state", copied)]
    url = ("--state", URL)
    verified = tidegate("audit", "verify", *directories, *url)
    assert verified.status == 0, verified.out + verified.err
    assert "intact: 3 gates" in verified.out
    verified = tidegate("audit", "verify", *directories[:2], *url)
    assert verified.status == 1
    assert f"is missing: it was in {socket.gethostname()}:{copied}" in verified.out

    # One that has ended is forgotten, and one that runs is not.
    third = (copied / "audit" / "gate-id").read_text()
    forget = "UPDATE tidegate.gates SET expires_at = 0 WHERE id = '{}'"
    server.ask(forget.format(third), database)
    assert a.run("audit", "forget", third).status == 77  # a person must agree
    with operator_terminal() as terminal:
        words = ("audit", "forget", third, "--config", str(a.settings))
        assert tidegate(*words, terminal=terminal).status == 0
    running = (b.directory / "state" / "audit" / "gate-id").read_text()
    refused = a.run("audit", "forget", running)
    assert refused.status == 2 and "End it first" in refused.err
    verified = tidegate("audit", "verify", *directories[:2], *url)
    assert verified.status == 0, verified.out + verified.err

    # A gate whose id another volume has taken lets nothing through; the other one goes on.
    taken = (
        "UPDATE tidegate.gates SET holder = 'another', place = 'far:/state',"
        f" expires_at = expires_at + 3600 WHERE id = '{running}'"
    )
    server.ask(taken, database)
    wait_until(lambda: b.ask(agent)[0] == 503, "the gate has seen that its lease is lost")
    assert "far:/state" in b.ask(agent)[1]
    assert a.ask(agent)[0] == 200


def lines(gate):
    return [
        line
        for path in sorted((gate.directory / "state" / "audit").glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
