"""A state file of the released version before is taken over without loss.

`state_version_2.sql` holds the rows that version 2 wrote for the same calls.
"""

from hashlib import sha256
from pathlib import Path

import apsw

from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Scope
from tidegate.model.sources import Mask, RowFilter
from tidegate.store.records import ApprovalBounds
from tidegate.store.sqlite.connection import APPLICATION_ID, NEWEST, scripts
from tidegate.store.sqlite.state import SqliteState

ROWS = Path(__file__).parent / "state_version_2.sql"


def state_of_version_2(path):
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL")
    for script in scripts()[:2]:
        connection.execute(script.read_text("utf-8"))
    connection.execute(ROWS.read_text("utf-8"))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 2")
    connection.close()
    path.chmod(0o600)
    return SqliteState(path)


def test_a_state_of_version_2_is_taken_over_without_loss(tmp_path):
    path = tmp_path / "state.db"
    state = state_of_version_2(path)
    plain, shop = state.sources.list()
    assert (plain.access, plain.agents, plain.approval_for) == ("read", "ask", "nothing")
    assert (shop.access, shop.agents, shop.approval_for) == ("write", "allow", "writes")
    assert (shop.id, shop.url, shop.tags) == ("s1", "sqlite:///shop.db", ("prod",))
    assert shop.masks == (Mask("customers.email", "hash", except_tokens=("billing",)),)
    assert shop.filters == (RowFilter("orders", "owner = {actor.name}", tag="prod"),)

    claude, gone = state.tokens.list()
    assert (claude.name, claude.scope, claude.last_used_at) == ("claude", Scope.READ_WRITE, 150.0)
    assert (claude.sources, claude.tags) == (frozenset({"shop"}), frozenset({"prod"}))
    assert (claude.tables, claude.expires_at) == (frozenset({"orders"}), 4e9)
    assert gone.revoked_at == 200.0
    assert claude.scram_verifier is gone.scram_verifier is None
    assert state.tokens.by_digest(sha256(b"tg_" + b"a" * 43).digest()) == claude
    tokens = Tokens(state.tokens)
    assert tokens.verify("tg_" + "a" * 43).id == "tok_claude"
    tokens.close()

    found = state.history.search(["name"], sources=None, since=None, until=None, limit=9)
    assert [entry.text for entry in found] == ["SELECT name FROM customers"]
    found = state.history.search([], sources=None, since=None, until=None, limit=9)
    assert [(entry.success, entry.error) for entry in found] == [
        (False, "no such column"),
        (True, ""),
    ]

    pending, allowed = state.approvals.list()
    assert (pending.id, pending.state, pending.subject.statement) == (
        "aa11",
        "pending",
        "UPDATE orders SET a = 1",
    )
    assert (allowed.state, allowed.decided_by) == ("allowed", "cli:ann")
    used = state.approvals.answer("d2", ApprovalBounds(0.0, 0.0, 9, 9), 320.0)
    assert (used.id, used.state) == ("bb22", "used")
    state.close()

    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA user_version").get == NEWEST
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    connection.close()
