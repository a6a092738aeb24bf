"""Who writes the tables of the state past the gates gives no rights, and takes no revocation back.

Each attack is made by SQL, on each state.
"""

import threading
from contextlib import closing

import apsw
import psycopg
import pytest
from msgspec import structs

from support import postgres_state
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.model.budgets import Budget
from tidegate.model.sources import Source
from tidegate.secrets.cluster_key import ClusterKey
from tidegate.store.records import (
    ApprovalBounds,
    OperatorEntry,
    OperatorSession,
    Pairing,
    PendingApproval,
    Subject,
    TokenEntry,
    TokenRights,
)
from tidegate.store.sqlite.state import SqliteState

OTHER_KEY = ClusterKey("the key of another set of gates, as long")
BOUNDS = ApprovalBounds(grants_since=0.0, denials_since=0.0, most=1_000, most_of_actor=50)
SUBJECT = Subject("a", "", "core", "query", "shop", "s1", "DELETE", "write", "r", "")
TOKEN = TokenEntry("t1", "ann", "tg_1", Scope.READ_ONLY, frozenset({"shop"}), 1.0)
DIGEST = b"1" * 32
SOURCE = Source("s1", "shop", "sqlite:////tmp/shop.db", "sqlite", "sqlite")
BUDGET = Budget("b1", "calls", "day", 10)
SESSION = OperatorSession("n1", "o1", "link", 1.0, 1.0, 900.0, None, "ip", "b")


class Sqlite:
    """A state in a file, and SQL past the gates."""

    without_triggers = "DROP TRIGGER tokens_stay_revoked; UPDATE tokens SET revoked_at = NULL"

    def __init__(self, directory):
        self.directory = directory
        self._opened = []

    def open(self, key=postgres_state.KEY, directory=None, **options):
        path = self.directory / "state.db"
        self._opened.append(SqliteState(path, key, **options))
        return self._opened[-1]

    def ask(self, sql, *values):
        with closing(apsw.Connection(str(self.directory / "state.db"))) as connection:
            return connection.execute(sql.replace("%s", "?"), values).fetchall()

    def close(self):
        for each in self._opened:
            each.close()


class Postgres(Sqlite):
    """The same in a database."""

    without_triggers = "SET session_replication_role = replica; UPDATE tokens SET revoked_at = NULL"

    def open(self, key=postgres_state.KEY, directory=None, **options):
        directory = directory or self.directory
        self._opened.append(
            postgres_state.PostgresState(postgres_state.state_url(), directory, key, **options)
        )
        return self._opened[-1]

    def ask(self, sql, *values):
        with psycopg.connect(postgres_state.state_url()) as connection:
            connection.execute("SET search_path = tidegate")
            cursor = connection.execute(sql, values or None)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    if request.param == "postgres":
        postgres_state.empty_state()
    made = (Sqlite if request.param == "sqlite" else Postgres)(tmp_path)
    yield made
    made.close()


@pytest.fixture
def state(place):
    return place.open()


def refusal(act):
    with pytest.raises(TidegateError) as caught:
        act()
    return caught.value


def keep(place, table, where):
    """The rows of a table as they are, and what puts them back."""
    rows = place.ask(f"SELECT * FROM {table} WHERE {where}")

    def put_back():
        place.ask(f"DELETE FROM {table} WHERE {where}")
        for row in rows:
            place.ask(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", *row)

    return put_back


def allow(state, id="a1", digest="d", most_uses=1):
    state.approvals.admit(PendingApproval(id, digest, "pending", "t1", SUBJECT, 100.0), BOUNDS)
    assert state.approvals.resolve(
        id, "allowed", "ada", "", 110.0, until=900.0, most_uses=most_uses
    )


# What is made of nothing


def test_a_token_that_was_written_into_the_table_is_none(place, state):
    state.tokens.add(TOKEN, DIGEST)
    place.ask(
        "INSERT INTO tokens (id, name, prefix, digest, scope, created_at)"
        " VALUES ('t9', 'eve', 'tg_9', %s, 'fullAccess', 1.0)",
        b"9" * 32,
    )
    assert state.tokens.by_digest(b"9" * 32) is None
    assert [each.name for each in state.tokens.list()] == ["ann"]
    assert any("t9" in each for each in state.concerns())


def test_a_token_with_a_secret_of_another_one_is_none(place, state):
    state.tokens.add(TOKEN, DIGEST)
    place.ask("UPDATE tokens SET digest = %s", b"9" * 32)
    assert state.tokens.by_digest(b"9" * 32) is None
    assert state.tokens.revoked(["t1"]) == {"t1"}


@pytest.mark.parametrize(
    "change",
    ["scope = 'fullAccess'", "sources = NULL", "expires_at = 9e9", "owner = 'ada'", "id = 't2'"],
)
def test_a_token_whose_rights_were_widened_in_the_table_is_none(place, state, change):
    state.tokens.add(TOKEN, DIGEST)
    place.ask(f"UPDATE tokens SET {change}")
    assert state.tokens.by_digest(DIGEST) is None
    place.ask("UPDATE tokens SET last_used_at = 5.0")  # says nothing about rights
    assert state.tokens.revoked(["t1"]) == {"t1"}


def test_a_source_without_its_masks_is_none(place, state):
    state.sources.add(structs.replace(SOURCE, access="readOnly"))
    assert state.sources.find("shop") is not None
    place.ask("UPDATE sources SET access = 'fullAccess'")
    state.versions.look()
    other = place.open()
    assert other.sources.find("shop") is None and other.sources.list() == ()


def test_an_operator_a_session_and_a_link_that_were_written_into_the_tables_are_none(place, state):
    state.operators.add(OperatorEntry("o1", "ada", b"s", b"h", (), 1.0))
    session = OperatorSession("x1", "o1", "passphrase", 1.0, 1.0, 9.0, None, "::1", "b")
    state.operators.add_session(session, b"real")
    place.ask("UPDATE operator_sessions SET seen_at = 2.0")
    assert state.operators.session(b"real") is not None
    place.ask(
        "INSERT INTO operators (id, name, salt, hash, roles, created_at)"
        " VALUES ('o9', 'eve', %s, %s, '[]', 1.0)",
        b"s",
        b"h",
    )
    place.ask(
        "INSERT INTO operator_sessions SELECT 'x9', %s, operator, signed_in_by, created_at,"
        " seen_at, ends_at, 1.0, address, browser FROM operator_sessions",
        b"made",
    )
    place.ask(
        "INSERT INTO operator_links (digest, operator, expires_at) VALUES (%s, 'o1', 900.0)", b"l"
    )
    assert [each.name for each in state.operators.list()] == ["ada"]
    assert [each.id for each in state.operators.sessions()] == ["x1"]
    assert state.operators.session(b"made") is None
    assert state.operators.use_link(b"l", 100.0) is None
    place.ask("UPDATE operator_sessions SET confirmed_at = 3.0 WHERE id = 'x1'")
    assert state.operators.session(b"real") is None


def test_a_grant_that_was_written_into_the_table_is_not_used(place, state):
    question = PendingApproval("a1", "d", "pending", "t1", SUBJECT, 100.0)
    state.approvals.admit(question, BOUNDS)
    place.ask("UPDATE approvals SET state = 'allowed', decided_at = 110.0, decided_by = 'ada'")
    assert state.approvals.answer("d", BOUNDS, 120.0) is None
    assert state.approvals.find("a1") is None


def test_a_person_cannot_allow_a_question_that_was_changed_in_the_table(place, state):
    question = PendingApproval("a1", "d", "pending", "t1", SUBJECT, 100.0)
    state.approvals.admit(question, BOUNDS)
    place.ask("UPDATE approvals SET digest = 'of another statement'")
    assert not state.approvals.resolve("a1", "allowed", "ada", "", 110.0)


def test_a_request_for_a_token_that_was_approved_in_the_table_gives_none(place, state):
    wanted = Pairing("AB12", "claude", "10.0.0.1", "c", TokenRights(), 100.0, 900.0)
    state.pairings.add(wanted, b"d", most=9, most_of_origin=9, origin=str)
    place.ask("UPDATE pairings SET state = 'approved', granted = wanted")
    assert state.pairings.by_digest(b"d") is None
    assert not state.pairings.end("AB12", "approved", "exchanged")


# What is put back


def test_a_token_that_was_revoked_does_not_come_back(place, state):
    state.tokens.add(TOKEN, DIGEST)
    state.tokens.revoke("ann", 5.0)
    place.ask(place.without_triggers)
    assert state.tokens.by_digest(DIGEST) is None
    assert state.tokens.revoked(["t1"]) == {"t1"}


def test_a_grant_that_was_used_does_not_come_back(place, state):
    allow(state)
    put_back = keep(place, "approvals", "id = 'a1'")
    assert state.approvals.answer("d", BOUNDS, 120.0).state == "used"
    place.ask("UPDATE approvals SET state = 'allowed', uses = 0, ended_at = NULL")
    assert state.approvals.answer("d", BOUNDS, 121.0) is None
    if isinstance(place, Sqlite) and not isinstance(place, Postgres):
        put_back()
        assert state.approvals.answer("d", BOUNDS, 122.0) is None


def test_a_list_of_seals_that_was_put_back_with_its_row_is_refused(place, state):
    allow(state)
    rows = place.ask("SELECT part, number, body, mac FROM seals WHERE area = 'approvals'")
    assert state.approvals.answer("d", BOUNDS, 120.0).state == "used"
    state.approvals.list()
    place.ask("UPDATE approvals SET state = 'allowed', uses = 0, ended_at = NULL")
    for part, *values in rows:
        place.ask(
            "UPDATE seals SET number = %s, body = %s, mac = %s WHERE area = 'approvals'"
            " AND part = %s",
            *values,
            part,
        )
    assert state.approvals.answer("d", BOUNDS, 121.0) is None
    state.close()
    again = place.open()  # the numbers are in a file
    assert again.approvals.answer("d", BOUNDS, 122.0) is None
    assert any("list" in each for each in again.concerns())
    again.seals.forget_numbers()  # as on a server that was promoted, where changes may be lost
    assert again.approvals.answer("d", BOUNDS, 122.0) is not None


def test_a_list_of_seals_that_no_gate_has_made_does_not_count(place, state):
    state.tokens.add(TOKEN, DIGEST)
    place.ask("UPDATE seals SET mac = %s WHERE area = 'tokens'", b"0" * 32)
    other = place.open()
    assert other.tokens.by_digest(DIGEST) is None
    added = structs.replace(TOKEN, id="t2", name="bob")
    assert refusal(lambda: other.tokens.add(added, b"2" * 32)).code is Code.STATE_FAILED
    assert other.tokens.revoke("ann", 5.0) is not None


def test_a_budget_that_was_removed_or_raised_in_the_table_ends_the_answer(place, state):
    state.budgets.add(BUDGET)
    place.ask("UPDATE budgets SET amount = 1000")
    assert refusal(state.budgets.list).code is Code.STATE_FAILED
    place.ask("UPDATE budgets SET amount = 10")
    assert state.budgets.list() == (BUDGET,)
    place.ask("DELETE FROM budgets")
    assert refusal(state.budgets.list).code is Code.STATE_FAILED


def test_what_was_removed_from_the_table_is_named(place, state):
    state.tokens.add(TOKEN, DIGEST)
    place.ask("DELETE FROM tokens")
    assert state.tokens.list() == ()
    assert any("t1" in each and "removed" in each for each in state.concerns())


def test_a_gate_never_seals_what_was_written_past_it(place, state):
    """Also where it changes the row itself."""
    state.tokens.add(TOKEN, DIGEST)
    place.ask("UPDATE tokens SET sources = NULL")
    widened = structs.replace(TOKEN, sources=None)
    state.tokens.change(structs.replace(widened, expires_at=900.0), widened)
    assert state.tokens.by_digest(DIGEST) is None
    state.tokens.revoke("ann", 5.0)
    assert state.tokens.by_digest(DIGEST) is None


def test_a_row_that_was_put_right_counts_again(place, state):
    state.tokens.add(TOKEN, DIGEST)
    place.ask("UPDATE tokens SET name = 'eve'")
    assert state.tokens.list() == () and state.concerns()
    place.ask("UPDATE tokens SET name = 'ann'")
    assert state.tokens.list() == (TOKEN,) and not state.concerns()


@pytest.mark.parametrize(
    ("table", "event", "does"),
    [
        ("tokens", "INSERT", "NEW.scope := 'fullAccess'"),
        ("tokens", "UPDATE", "NEW.sources := NULL"),
        ("tokens", "UPDATE", "NEW.revoked_at := NULL"),
        ("approvals", "UPDATE", "NEW.uses := 0; NEW.state := 'allowed'"),
        ("operators", "INSERT", "NEW.hash := 'x'::bytea"),
        ("approvals", "UPDATE OF uses", "NEW.uses := -9"),
        ("operator_sessions", "DELETE", "RETURN NULL"),
        ("operators", "DELETE", "RETURN NULL"),
        ("sources", "DELETE", "RETURN NULL"),
    ],
)
def test_what_a_trigger_writes_in_place_of_the_gate_is_not_sealed(tmp_path, table, event, does):
    postgres_state.empty_state()
    place = Postgres(tmp_path)
    state = place.open()
    if event != "INSERT":
        state.tokens.add(TOKEN, DIGEST)
        allow(state)
        state.sources.add(SOURCE)
        state.operators.add(OperatorEntry("o1", "ada", b"s", b"h", (), 1.0))
        state.operators.add_session(SESSION, b"n" * 32)
    if event == "UPDATE OF uses":
        assert state.approvals.answer("d", BOUNDS, 120.0) is not None
    act = {
        ("tokens", "INSERT"): lambda: state.tokens.add(TOKEN, DIGEST),
        ("tokens", "UPDATE"): lambda: state.tokens.revoke("ann", 5.0),
        ("approvals", "UPDATE"): lambda: state.approvals.answer("d", BOUNDS, 120.0),
        ("operators", "INSERT"): lambda: state.operators.add(
            OperatorEntry("o1", "ada", b"s", b"h", (), 1.0)
        ),
        ("approvals", "UPDATE OF uses"): lambda: state.approvals.give_back("a1"),
        ("operator_sessions", "DELETE"): lambda: state.operators.end_sessions(operator="o1"),
        ("operators", "DELETE"): lambda: state.operators.remove("o1"),
        ("sources", "DELETE"): lambda: state.sources.remove("shop"),
    }[table, event]
    place.ask(
        "CREATE FUNCTION tidegate.evil() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$BEGIN {does}; RETURN NEW; END$$;"
        f" CREATE TRIGGER evil BEFORE {event} ON tidegate.{table} FOR EACH ROW"
        " EXECUTE FUNCTION tidegate.evil()"
    )
    try:
        assert "other values" in refusal(act).message
    finally:
        place.ask("DROP FUNCTION tidegate.evil() CASCADE")
        place.close()


def test_what_was_written_among_the_events_of_the_record_does_not_come_into_it(place, state):
    state.shared.keep_unrecorded(b"ours")
    ((ours, _),) = state.shared.unrecorded()
    place.ask("INSERT INTO unrecorded_events (event) VALUES (%s)", b"theirs")
    assert state.shared.unrecorded() == ((ours, b"ours"),)
    place.ask("UPDATE unrecorded_events SET event = %s", b"changed")
    assert state.shared.unrecorded() == ()
    place.ask("UPDATE unrecorded_events SET event = %s WHERE id = %s", b"ours", ours)
    state.shared.forget_unrecorded(ours)
    assert state.shared.unrecorded() == ()
    state.shared.keep_unrecorded(b"lost")
    place.ask("DELETE FROM unrecorded_events")
    assert state.shared.unrecorded() == ()
    assert any("unrecorded_events" in each and "removed" in each for each in state.concerns())


# The key


def test_a_gate_with_another_key_or_none_does_not_join(place, state, tmp_path):
    state.tokens.add(TOKEN, DIGEST)
    for key in (OTHER_KEY, None):
        assert refusal(lambda key=key: place.open(key)).code is Code.CONFIG_INVALID


def test_a_state_without_seals_gets_them_by_a_command_alone(place):
    plain = place.open(None)
    plain.tokens.add(TOKEN, DIGEST)
    plain.shared.secret("x")
    assert "not sealed" in refusal(place.open).message
    repairing = place.open(is_repair=True)
    assert repairing.seal_again() == 1
    assert repairing.tokens.by_digest(DIGEST) == TOKEN
    sealed = place.open()
    assert sealed.tokens.list() == (TOKEN,)
    assert sealed.shared.secret("x") == repairing.shared.secret("x")
    assert not place.ask("SELECT 1 FROM shared_secrets WHERE name = 'y'")


def test_who_removes_all_seals_does_not_have_the_rows_sealed_anew(place, state):
    state.tokens.add(TOKEN, DIGEST)
    place.ask("DELETE FROM seals")
    assert state.tokens.by_digest(DIGEST) is None
    assert "not sealed" in refusal(place.open).message


def test_who_empties_a_state_does_not_have_it_begin_anew(place, state):
    """Its budgets would be gone, and tokens of files and sources of settings still there."""
    state.budgets.add(BUDGET)
    for table in ("seals", "budgets"):
        place.ask(f"DELETE FROM {table}")
    assert "not sealed" in refusal(place.open).message
    place.open(is_repair=True).seal_again()
    assert place.open().budgets.list() == ()


def test_a_state_that_was_sealed_again_ends_the_seals_of_before(place, state):
    state.tokens.add(TOKEN, DIGEST)
    before = place.ask("SELECT area, part, number, body, mac FROM seals")
    secret = state.shared.secret("x")
    repairing = place.open(is_repair=True)
    repairing.seal_again()
    assert repairing.shared.secret("x") != secret
    place.ask("DELETE FROM seals")
    for row in before:
        place.ask("INSERT INTO seals (area, part, number, body, mac) VALUES (%s,%s,%s,%s,%s)", *row)
    assert "put back" in refusal(place.open).message


def test_a_gate_that_runs_follows_a_state_that_is_sealed_again(place, state, tmp_path):
    state.tokens.add(TOKEN, DIGEST)
    (tmp_path / "b").mkdir()
    place.ask(
        "INSERT INTO sources (id, name, url, engine, dialect, access, agents, approval_for, tags)"
        " VALUES ('s9', 'past', 'sqlite:////tmp/x.db', 'sqlite', 'sqlite', 'read', 'on', '', '[]')"
    )
    assert state.sources.list() == () and state.concerns()
    other = place.open(directory=tmp_path / "b", is_repair=True)
    other.seal_again()
    assert [each.name for each in state.sources.list()] == ["past"]
    other.tokens.add(structs.replace(TOKEN, id="t2", name="bob"), b"2" * 32)
    assert state.tokens.by_digest(DIGEST) == TOKEN
    assert [each.name for each in state.tokens.list()] == ["ann", "bob"]
    assert not state.concerns()


def test_secrets_that_gates_share_are_not_in_the_state(place, state):
    assert len(state.shared.secret("request state")) == 32
    assert place.open().shared.secret("request state") == state.shared.secret("request state")
    assert place.ask("SELECT * FROM shared_secrets") == []


# Several gates


def test_two_gates_see_what_each_other_seals(place, state, tmp_path):
    (tmp_path / "b").mkdir()
    other = place.open(directory=tmp_path / "b")
    for number in range(20):
        gate = (state, other)[number % 2]
        gate.tokens.add(
            structs.replace(TOKEN, id=f"t{number}", name=f"n{number}"), b"%032d" % number
        )
    assert len(state.tokens.list()) == len(other.tokens.list()) == 20
    assert not state.concerns() and not other.concerns()
    assert other.tokens.revoke("n3", 5.0) is not None
    assert state.tokens.revoked([f"t{number}" for number in range(20)]) == {"t3"}


def test_who_puts_a_counter_back_hides_no_revocation_from_another_gate(tmp_path):
    postgres_state.empty_state()
    place = Postgres(tmp_path)
    state = place.open()
    state.tokens.add(TOKEN, DIGEST)
    (tmp_path / "b").mkdir()
    other = place.open(directory=tmp_path / "b")
    before = other.read_versions()
    assert state.tokens.revoke("ann", 5.0) is not None
    for topic, number in before.items():
        place.ask("UPDATE generations SET value = %s WHERE area = %s", number, topic)
    assert other.read_versions()["tokens"] > before["tokens"]  # which it counts itself
    counted = other.read_versions()
    assert other.read_versions() == counted
    place.close()


def test_of_gates_that_use_a_grant_at_once_as_many_get_it_as_it_has_uses(place, state):
    other = place.open()
    allow(state, most_uses=3)
    got = []

    def use(gate):
        for _ in range(4):
            got.append(gate.approvals.answer("d", BOUNDS, 120.0))

    threads = [threading.Thread(target=use, args=(gate,)) for gate in (state, other) * 2]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert len(got) == 16 and len([each for each in got if each]) == 3
    assert not state.concerns() and not other.concerns()


def test_a_source_is_renamed_with_the_seals_of_all_that_names_it(place, state):
    state.sources.add(SOURCE)
    state.tokens.add(TOKEN, DIGEST)
    state.budgets.add(structs.replace(BUDGET, source="shop"))
    allow(state)
    now = structs.replace(SOURCE, name="store", id="s2")
    assert state.sources.rename(SOURCE, now, 130.0) == ("ann",)
    other = place.open()
    assert other.sources.list() == (now,)
    assert other.tokens.by_digest(DIGEST).sources == {"store"}
    assert other.budgets.list()[0].source == "store"
    assert other.approvals.find("a1").state == "expired"
    assert not other.concerns()


def test_an_operator_is_removed_with_its_sessions(place, state):
    state.operators.add(OperatorEntry("o1", "ada", b"s", b"h", (), 1.0))
    state.operators.add_link(b"l", "o1", 900.0, 100.0)
    session = OperatorSession("x1", "o1", "link", 1.0, 1.0, 9.0, None, "::1", "b")
    state.operators.add_session(session, b"real")
    assert state.operators.remove("o1")
    assert state.operators.list() == () and not state.concerns()
    state.operators.add(OperatorEntry("o1", "ada", b"s", b"h", (), 1.0))
    assert [each.id for each in state.operators.list()] == ["o1"]
