"""Whatever takes rights away works on a disk that is full, also without a server.

The disk is a real one of a few megabytes, which another program has filled to the last byte and
fills again after each command.
"""

import json
import time
from contextlib import closing
from http.client import HTTPConnection

import pytest

from support.command_line import serving, tidegate
from support.eventually import PATIENCE_S, wait_until
from support.small_disk import SmallDisk, small_disk
from tidegate.approvals.approvals import Approvals
from tidegate.audit.verify import verify
from tidegate.config.model import ApprovalSettings
from tidegate.identity.pairing import CODE_S
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Scope
from tidegate.store.disk_reserve import SIZE
from tidegate.store.records import ApprovalBounds, Pairing, PendingApproval, Subject, TokenRights
from tidegate.store.sqlite.state import SqliteState


class Disk(SmallDisk):
    """The disk with the state, which commands change."""

    def take(self, *words: str) -> str:
        """Run a command that takes rights away, and fill the disk again; what it said."""
        ended = tidegate(*words, state=self.state)
        self.fill()
        assert ended.status == 0, ended.err
        return ended.err

    def events(self) -> list[str]:
        """The names of the events on record, once the disk has space again."""
        self.free()
        assert tidegate("token", "create", "later", "--scope", "readOnly", state=self.state).out
        assert verify(self.state / "audit", self.state / "audit-key").faults == ()
        shown = tidegate("audit", "tail", "-n", "200", "--json", state=self.state)
        assert shown.status == 0, shown.err
        return [line["name"] for line in map(json.loads, shown.out.splitlines()) if "name" in line]


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk") as made:
        yield Disk(made.path)


def make_token(disk, name, scope="readWrite"):
    ended = tidegate("token", "create", name, "--scope", scope, state=disk.state)
    assert ended.status == 0, ended.err
    return ended.out.strip()


def tokens(disk):
    listed = tidegate("token", "list", "--json", state=disk.state).json["tokens"]
    return {each["name"]: each for each in listed}


def test_every_command_that_takes_rights_away_works_on_a_full_disk(disk, tmp_path):
    make_token(disk, "agent")
    make_token(disk, "reader")
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    (tmp_path / "shop.db").touch()
    for name in ("shop", "books"):
        added = tidegate("source", "add", name, url, "--access", "write", state=disk.state)
        assert added.status == 0, added.err
    question = asked(disk)
    disk.fill()

    assert disk.take("token", "revoke", "agent") == "revoked agent\n"
    disk.take("token", "edit", "reader", "--scope", "readOnly")
    disk.take("approvals", "deny", question)
    disk.take("pair", "deny", "ABCD-2345")
    disk.take("source", "update", "shop", "--access", "read")
    assert disk.take("source", "remove", "books") == "removed books; its data is as it was\n"

    seen = tokens(disk)
    assert seen["agent"]["state"] == "revoked" and seen["reader"]["scope"] == "readOnly"
    (shop,) = tidegate("source", "list", "--json", state=disk.state).json["sources"]
    assert (shop["name"], shop["access"]) == ("shop", "read")
    names = disk.events()
    taken = ["token.revoked", "token.changed", "approval.denied", "pairing.denied"]
    for name in (*taken, "source.changed", "source.removed"):
        assert names.count(name) == 1, (name, names)


def asked(disk):
    """A question that waits for its answer; a request for a token waits, too."""
    subject = Subject("agent", "", "test", "tool", "shop", "id", "DELETE", "write", "r", "why")
    state = SqliteState(disk.state / "state.db")
    try:
        approvals = Approvals(state.approvals, ApprovalSettings())
        bounds = ApprovalBounds(0.0, 0.0, 9, 9)
        state.approvals.admit(
            PendingApproval("a1b2c3", "d", "pending", "tok_1", subject, time.time()), bounds
        )
        wanted = TokenRights(Scope.READ_ONLY)
        now = time.time()
        pairing = Pairing("ABCD-2345", "app", "127.0.0.1", "c", wanted, now, now + CODE_S)
        state.pairings.add(pairing, b"digest", most=9, most_of_origin=9, origin=str)
        return approvals.list()[0].id
    finally:
        state.close()


def test_many_tokens_are_revoked_one_after_another_and_every_one_is_on_record(disk):
    names = [f"agent{number}" for number in range(7)]
    make_token(disk, names[0])
    state = SqliteState(disk.state / "state.db")
    tokens_of_state = Tokens(state.tokens)
    for name in names[1:]:
        tokens_of_state.create(name, TokenRights(Scope.READ_ONLY))
    tokens_of_state.close()
    state.close()
    disk.fill()
    for name in names:
        said = disk.take("token", "revoke", name)
        assert said.startswith(f"revoked {name}\n")
    assert {each["state"] for each in tokens(disk).values()} == {"revoked"}
    assert disk.events().count("token.revoked") == len(names)


def test_a_token_is_revoked_on_a_full_disk_while_a_server_runs(disk):
    make_token(disk, "agent")
    with serving(["serve", "--http", "127.0.0.1:0"], disk.state) as server:
        server.until("serving")
        disk.fill()
        assert disk.take("token", "revoke", "agent").startswith("revoked agent\n")
        assert tokens(disk)["agent"]["state"] == "revoked"
    assert disk.events().count("token.revoked") == 1


def test_the_reserve_is_whole_again_when_the_disk_has_space(disk):
    make_token(disk, "agent")
    reserve = disk.state / "reserve"
    assert (reserve.stat().st_size, reserve.stat().st_mode & 0o777) == (SIZE, 0o600)
    disk.fill()
    disk.take("token", "revoke", "agent")
    disk.free()
    assert tidegate("token", "list", state=disk.state).status == 0
    assert reserve.stat().st_size == SIZE
    assert reserve.stat().st_blocks * 512 >= SIZE


def test_a_state_without_a_reserve_says_that_its_disk_is_full(disk):
    make_token(disk, "agent")
    (disk.state / "reserve").unlink()
    disk.fill()
    refused = tidegate("token", "revoke", "agent", state=disk.state)
    assert refused.status == 74
    assert "its disk is full" in refused.err and "Free some space" in refused.err
    disk.free()
    assert tokens(disk)["agent"]["state"] == "active"
    assert tidegate("token", "revoke", "agent", state=disk.state).status == 0


def test_a_full_disk_is_seen_by_whoever_asks_whether_the_server_is_ready(disk):
    words = ("serve", "--http", "127.0.0.1:0", "--config", json.dumps({"auth": False}))
    with serving(words, disk.state) as server:
        port = int(server.until("serving").partition("/mcp")[0].rpartition(":")[2])
        assert ready(port) == (200, {"status": "ready"})
        disk.fill()
        failing = {"audit": "audit.unavailable", "state": "state.failed"}
        refused = (503, {"status": "not_ready", "failing": failing})
        wait_until(lambda: ready(port) == refused, "the server is not ready")
        disk.free()
        wait_until(lambda: ready(port)[0] == 200, "the server is ready again")


def ready(port):
    """What `/ready` answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    with closing(connection):
        connection.request("GET", "/ready")
        response = connection.getresponse()
        return response.status, json.loads(response.read())
