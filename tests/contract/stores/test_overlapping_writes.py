"""Each write that uses something up, called by two gates whose transactions overlap in PostgreSQL.

A third connection holds the row. Both gates have seen it unchanged and wait when it is let go, so
the write of one of them must find that the other was first.
"""

import threading

import psycopg
import pytest

from support import postgres_state
from support.eventually import PATIENCE_S, wait_until
from tidegate.errors import Code, TidegateError
from tidegate.model.budgets import Budget
from tidegate.store.postgres.state import PostgresState
from tidegate.store.records import (
    ApprovalBounds,
    OperatorEntry,
    Pairing,
    PendingApproval,
    Subject,
    TokenRights,
)

BOUNDS = ApprovalBounds(grants_since=0.0, denials_since=0.0, most=1_000, most_of_actor=50)
SUBJECT = Subject("a", "", "core", "query", "shop", "s1", "DELETE", "write", "r", "")


def question(id, digest="d"):
    return PendingApproval(id, digest, "pending", "tok", SUBJECT, 100.0)


def grant(state, *ids, most_uses=1):
    for id in ids:
        state.approvals.admit(question(id, id), BOUNDS)
        state.approvals.resolve(id, "allowed", "ada", "", 110.0, until=900.0, most_uses=most_uses)
    postgres_state.ask("UPDATE tidegate.approvals SET digest = 'd'")


def ask_for_token(state):
    pairing = Pairing(
        "AB12", "claude", "10.0.0.1", "c", TokenRights(), asked_at=100.0, expires_at=900.0
    )
    state.pairings.add(pairing, b"d", most=9, most_of_origin=9, origin=str)


def give_link(state):
    state.operators.add(OperatorEntry("o1", "ada", b"s", b"h", (), 1.0))
    state.operators.add_link(b"l", "o1", 900.0, 100.0)


def use_grant(state):
    return state.approvals.answer("d", BOUNDS, 120.0)


CASES = {
    "a grant is used": (lambda state: grant(state, "a1"), "approvals", use_grant, 1),
    "a grant of two uses is used": (
        lambda state: grant(state, "a1", most_uses=2), "approvals", use_grant, 2,
    ),
    "two grants of one call are used": (
        lambda state: grant(state, "a1", "a2"), "approvals", use_grant, 2,
    ),
    "a request is decided": (
        lambda state: state.approvals.admit(question("a1"), BOUNDS),
        "approvals",
        lambda state: state.approvals.resolve("a1", "allowed", "ada", "", 110.0),
        1,
    ),
    "a link is used": (
        give_link, "operator_links", lambda state: state.operators.use_link(b"l", 200.0), 1,
    ),
    "a pairing is decided": (
        ask_for_token,
        "pairings",
        lambda state: state.pairings.resolve("AB12", "approved", 200.0),
        1,
    ),
    "a code is ended": (
        ask_for_token, "pairings", lambda state: state.pairings.end("AB12", "pending", "burnt"), 1,
    ),
    "a nonce that has expired is used again": (
        lambda state: state.shared.use_once("nonce", "n", 100.0, 50.0),
        "used_values",
        lambda state: state.shared.use_once("nonce", "n", 900.0, 200.0),
        1,
    ),
    "the last of a budget is taken": (
        lambda state: (
            state.budgets.add(Budget("b1", "calls", "minute", 10)),
            state.budgets.take("b1", 60, 9),
        ),
        "budget_use",
        lambda state: state.budgets.take("b1", 60, 1),
        1,
    ),
    "a failure is counted": (
        lambda state: [
            state.shared.add_failure("ip", 100.0, most=4, window_s=60.0) for _ in range(3)
        ],
        "failures",
        lambda state: state.shared.add_failure("ip", 101.0, most=4, window_s=60.0),
        1,
    ),
}  # fmt: skip


@pytest.fixture
def gates(tmp_path):
    postgres_state.empty_state()
    # Without seals: what `grant` does by SQL would not count.
    opened = [postgres_state.open_state(tmp_path, key=None) for _ in range(2)]
    yield opened
    for each in opened:
        each.close()


@pytest.mark.parametrize("name", sorted(CASES))
def test_of_two_gates_at_once_as_many_get_it_as_there_is(gates, name):
    prepare, table, use, most = CASES[name]
    prepare(gates[0])
    got = at_once(table, *(lambda gate=gate: use(gate) for gate in gates))
    assert len([each for each in got if each]) == most


def at_once(table, *calls):
    """What the calls return, each of which has waited for the rows of the table."""
    got = []
    threads = [threading.Thread(target=lambda call=call: got.append(call())) for call in calls]
    with psycopg.connect(postgres_state.state_url()) as holder:
        holder.execute(f"SELECT 1 FROM tidegate.{table} FOR UPDATE")
        for each in threads:
            each.start()
        wait_until(
            lambda: (
                postgres_state.ask(
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                    " AND datname = current_database()"
                )[0][0]
                >= len(calls)
                or not any(each.is_alive() for each in threads)
            ),
            "the calls to wait for the rows",
        )
    for each in threads:
        each.join(PATIENCE_S)
    return got


def test_no_more_questions_are_pending_than_may_be(gates):
    refused = []

    def ask(gate, first):
        for number in range(first, first + 40):
            try:
                gate.approvals.admit(question(f"a{number}", f"d{number}"), BOUNDS)
            except TidegateError as error:
                assert error.code is Code.LIMIT_RATE
                refused.append(number)

    threads = [threading.Thread(target=ask, args=(gates[n % 2], 40 * n)) for n in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE_S)
    assert len(gates[0].approvals.list(["pending"])) == 50 and len(refused) == 30


def test_what_is_read_after_a_number_was_committed_in_order(gates):
    """Two gates open tabs at once. Who reads the events after the last number that it has seen sees
    all of them."""
    seen, opened = [], 60

    def open_tabs(gate, owner):
        for number in range(opened):
            gate.windows.open_window(owner, f"s{number}", "Query", float(number))

    reader = gates[0]
    threads = [threading.Thread(target=open_tabs, args=(gate, f"o{n}")) for n, gate in
               enumerate(gates)]  # fmt: skip
    last = reader.windows.last_event()
    for each in threads:
        each.start()
    for _ in range(10_000):
        going = any(each.is_alive() for each in threads)
        events = reader.windows.events(last)
        seen += events
        last = events[-1].n if events else last
        if not going and not events:
            break
    assert len(seen) == 2 * opened


def test_texts_that_postgresql_cannot_hold_come_back_as_they_were(gates):
    for text in ("a\x00b", "\x01", "\x010", "\ud800", "x\udfffy", "é\x00\x01\ud83d"):
        gates[0].windows.show([text], 5.0)
        assert gates[1].windows.seen_at(text) == 5.0
        window = gates[0].windows.open_window(text, text, text, 1.0)
        assert gates[1].windows.open_window(text, text, text, 1.0) == window


def test_one_state_has_one_version_for_all_its_addresses(gates, tmp_path):
    other = PostgresState(postgres_state.state_url() + "&application_name=x", tmp_path)
    number = other.versions.of("tokens")
    gates[0].budgets.add(Budget("b1", "calls", "minute", 10))
    assert other.versions.of("budgets") and other.versions.of("tokens") == number
    other.close()
