"""The state's server goes, and a standby is promoted that lacks the last changes."""

import time

import pytest
from msgspec import structs

import support.postgres_server as postgres_server
from support import postgres_state
from support.eventually import wait_until
from support.postgres_standby import Standby
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.model.budgets import Budget
from tidegate.model.sources import Source
from tidegate.store.postgres.state import PostgresState
from tidegate.store.records import (
    ApprovalBounds,
    OperatorEntry,
    PendingApproval,
    Subject,
    TokenEntry,
)

BOUNDS = ApprovalBounds(0.0, 0.0, 99, 99)
SUBJECT = Subject("a", "", "core", "query", "shop", "s1", "DELETE", "write", "r", "")
TOKEN = TokenEntry("t1", "ann", "tg_", Scope.READ_ONLY, None, 1.0)
WIDE = structs.replace(TOKEN, id="t3", name="cid", scope=Scope.READ_WRITE)
SOURCE = Source("s1", "shop", "sqlite:////tmp/shop.db", "sqlite", "sqlite")
OPERATOR = OperatorEntry("o1", "ada", b"salt", b"hash", (), 1.0)


@pytest.fixture
def servers():
    primary = postgres_server.Server(postgres_server.available()["wheel"])
    primary.ask("ALTER SYSTEM SET wal_level = replica")
    primary.ask("ALTER SYSTEM SET max_wal_senders = 4")
    primary.restart()
    standby = Standby(primary)
    yield primary, standby
    standby.close()
    primary.close()


def test_a_promoted_standby_brings_no_right_back_and_no_grant_is_used_twice(servers, tmp_path):
    primary, standby = servers
    primary.ask("CREATE DATABASE tidegate")
    url = (
        f"postgresql://postgres@/tidegate?host={primary.directory},{standby.directory}"
        f"&port={primary.port},{standby.port}&target_session_attrs=read-write"
    )
    gate = PostgresState(url, tmp_path, postgres_state.KEY)
    gate.tokens.add(TOKEN, b"1" * 32)
    gate.tokens.add(structs.replace(TOKEN, id="t2", name="bob"), b"2" * 32)
    gate.tokens.add(WIDE, b"3" * 32)
    gate.sources.add(SOURCE)
    gate.operators.add(OPERATOR)
    gate.operators.add(structs.replace(OPERATOR, id="o2", name="bob"))
    gate.approvals.admit(PendingApproval("a1", "d", "pending", "t1", SUBJECT, 1.0), BOUNDS)
    gate.approvals.resolve("a1", "allowed", "ada", "", 2.0)
    gate.read_versions()
    assert any("synchronous" in each for each in gate.concerns())
    wait_until(
        lambda: standby.ask("SELECT count(*) FROM tidegate.approvals", "tidegate") == [(1,)],
        "the standby to have it",
    )
    standby.ask("ALTER SYSTEM SET primary_conninfo = ''")
    standby.ask("SELECT pg_reload_conf()")
    wait_until(lambda: not standby.ask("SELECT 1 FROM pg_stat_wal_receiver"), "it follows no more")
    assert gate.tokens.revoke("ann", 5.0) is not None
    assert gate.approvals.answer("d", BOUNDS, 6.0) is not None  # used, and the standby lacks it
    assert gate.tokens.change(structs.replace(WIDE, scope=Scope.READ_ONLY), WIDE)
    assert gate.sources.change(structs.replace(SOURCE, agents="off"), SOURCE)
    assert gate.budgets.add(Budget("b1", "calls", "day", 10))
    other = PostgresState(url, tmp_path, postgres_state.KEY)
    assert other.operators.remove("o2")
    other.close()
    assert [each.name for each in gate.operators.list()] == ["ada"]

    primary.kill()
    with pytest.raises(TidegateError) as caught:
        gate.read_versions()
    assert caught.value.code is Code.STATE_FAILED and caught.value.retry_after_s
    standby.ask("SELECT pg_promote()")
    promoted = time.monotonic()
    # Whatever is asked first there, that it lacks is written before.
    found = wait_until(lambda: look_up(gate), "the gate to see its state again")
    assert time.monotonic() - promoted < 10.0
    assert found.revoked_at == 5.0
    assert gate.read_versions()

    # The revocation is written again. What else was narrowed is wide here, and counts as absent.
    assert [(each.id, each.revoked_at) for each in gate.tokens.list()] == [
        ("t1", 5.0),
        ("t2", None),
    ]
    assert gate.tokens.revoked(["t2", "t3"]) == {"t3"}
    assert gate.sources.list() == ()
    assert [each.name for each in gate.operators.list()] == ["ada"]
    with pytest.raises(TidegateError) as caught:
        gate.budgets.list()
    assert caught.value.code is Code.STATE_FAILED
    said = "\n".join(gate.concerns())
    assert "past the gates" not in said
    for name in ("t3", "s1", "o2", "b1"):
        assert f"the row {name} of" in said
    newcomer = PostgresState(url, tmp_path / "new", postgres_state.KEY)
    assert newcomer.sources.list() == ()  # also at a gate that has seen nothing
    newcomer.seal_again()  # by a person, who has looked
    newcomer.close()
    assert gate.sources.list() == (SOURCE,) and gate.budgets.list() == ()
    assert gate.approvals.answer("d", BOUNDS, 7.0) is None
    assert gate.approvals.find("a1").state == "expired"
    ((kept,),) = standby.ask("SELECT timeline FROM tidegate.about", "tidegate")
    assert kept == 2
    gate.close()

    # The former primary comes back, first in the list, and does not know that it was replaced.
    primary.start()
    with pytest.raises(TidegateError, match="was replaced"):
        PostgresState(url, tmp_path, postgres_state.KEY)
    again = PostgresState(url, tmp_path, postgres_state.KEY, is_repair=True)
    for use in (again.read_versions, lambda: again.tokens.revoke("bob", 9.0), again.tokens.list):
        with pytest.raises(TidegateError, match="was replaced"):
            use()
    again.close()


def look_up(gate):
    try:
        return gate.tokens.by_digest(b"1" * 32)
    except TidegateError as error:
        assert error.retry_after_s
        return None
