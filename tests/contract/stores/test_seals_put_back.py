"""Who is quick to put a row back with its list of seals, or has the state's database make something
else of the statements of gates, gives no rights.

Views, functions and operators of one's own need more rights there than to write tables.
"""

import json

import pytest
from msgspec import structs

from contract.stores.test_seals import (
    BOUNDS,
    DIGEST,
    SESSION,
    SOURCE,
    TOKEN,
    Postgres,
    allow,
    keep,
    place,  # noqa: F401 - a fixture
    state,  # noqa: F401 - a fixture
)
from support import postgres_state
from tidegate.errors import TidegateError
from tidegate.model.actors import Scope
from tidegate.store.records import OperatorEntry, Pairing, TokenRights

DATABASE = "DO $$BEGIN EXECUTE format('ALTER DATABASE %I {}', current_database()); END$$"
TAKES_ALL = """
CREATE FUNCTION tidegate.same({0}, {0}) RETURNS boolean LANGUAGE sql
    AS 'SELECT $1 OPERATOR(pg_catalog.=) $2 OR $2 OPERATOR(pg_catalog.=) ''{1}''';
CREATE OPERATOR tidegate.= (LEFTARG = {0}, RIGHTARG = {0}, FUNCTION = tidegate.same)
"""
MORE = """
ALTER TABLE tidegate.tokens RENAME TO kept;
CREATE SEQUENCE tidegate.times;
CREATE FUNCTION tidegate.more(text) RETURNS text LANGUAGE plpgsql STABLE AS $$BEGIN
    IF nextval('tidegate.times') % 2 = 1 THEN RETURN $1; END IF;
    RETURN 'fullAccess';
END$$;
CREATE VIEW tidegate.tokens AS SELECT id, serial, name, prefix, digest,
    tidegate.more(scope) AS scope,
    sources, created_at, expires_at, last_used_at, revoked_at, tags, tables, scram_verifier, proxy,
    owner, max_rows_changed, maker FROM tidegate.kept
"""
NO_MORE = """
DROP VIEW tidegate.tokens; DROP FUNCTION tidegate.more(text); DROP SEQUENCE tidegate.times;
ALTER TABLE tidegate.kept RENAME TO tokens
"""


def lists(place, area):  # noqa: F811
    return place.ask("SELECT part, number, body, mac FROM seals WHERE area = %s", area)


def put_back(place, area, kept):  # noqa: F811
    for part, *values in kept:
        sql = "UPDATE seals SET number = %s, body = %s, mac = %s WHERE area = %s AND part = %s"
        place.ask(sql, *values, area, part)


def test_a_used_grant_put_back_at_once_is_not_used_again(place, state):  # noqa: F811
    allow(state)
    kept = lists(place, "approvals")
    assert state.approvals.answer("d", BOUNDS, 120.0).state == "used"
    place.ask("UPDATE approvals SET state = 'allowed', uses = 0, ended_at = NULL")
    put_back(place, "approvals", kept)
    assert state.approvals.answer("d", BOUNDS, 121.0) is None
    assert any("list" in each for each in state.concerns())


def test_a_revoked_token_put_back_at_once_stays_revoked(place, state):  # noqa: F811
    state.tokens.add(TOKEN, DIGEST)
    kept = lists(place, "tokens")
    state.tokens.revoke("ann", 5.0)
    place.ask(place.without_triggers)
    put_back(place, "tokens", kept)
    assert state.tokens.by_digest(DIGEST) is None


@pytest.mark.parametrize("reads_first", [True, False])
def test_what_was_put_back_at_once_counts_at_no_other_process_of_the_gate(
    place,  # noqa: F811
    state,  # noqa: F811
    reads_first,
):
    """Its processes share a directory: what one has written the others have seen."""
    other = place.open()
    state.tokens.add(TOKEN, DIGEST)
    allow(state)
    if reads_first:
        assert other.tokens.by_digest(DIGEST) and other.approvals.find("a1")
    tokens, approvals = lists(place, "tokens"), lists(place, "approvals")
    state.tokens.revoke("ann", 5.0)
    assert state.approvals.answer("d", BOUNDS, 120.0).state == "used"
    place.ask(place.without_triggers)
    place.ask("UPDATE approvals SET state = 'allowed', uses = 0, ended_at = NULL")
    put_back(place, "tokens", tokens)
    put_back(place, "approvals", approvals)
    for gate in (other, place.open()):
        assert gate.tokens.by_digest(DIGEST) is None
        assert gate.approvals.answer("d", BOUNDS, 121.0) is None


def test_a_change_that_was_not_kept_leaves_the_lists_good(place, state):  # noqa: F811
    state.tokens.add(TOKEN, DIGEST)
    with pytest.raises(TidegateError):
        state.tokens.add(TOKEN, b"2" * 32)  # an active token has that name
    assert state.tokens.by_digest(DIGEST) == TOKEN
    assert not state.concerns()


@pytest.fixture
def server(tmp_path):
    postgres_state.empty_state()
    made = Postgres(tmp_path)
    yield made
    made.close()


def test_a_view_does_not_give_another_scope_than_was_checked(server):
    gate = server.open()
    gate.tokens.add(TOKEN, DIGEST)
    server.ask(MORE)
    try:
        for _ in range(4):
            found = gate.tokens.by_digest(DIGEST)
            assert found is None or found.scope is Scope.READ_ONLY
    finally:
        server.ask(NO_MORE)


@pytest.mark.parametrize(
    ("kind", "value", "find"),
    [
        ("bytea", "\\x39", lambda gate: gate.tokens.by_digest(b"9")),
        ("bytea", "\\x39", lambda gate: gate.operators.session(b"9")),
        ("bytea", "\\x39", lambda gate: gate.pairings.by_digest(b"9")),
        ("text", "other", lambda gate: gate.approvals.answer("other", BOUNDS, 120.0)),
    ],
    ids=["token", "session", "request", "grant"],
)
def test_no_secret_counts_that_only_the_database_takes_for_equal(server, kind, value, find):
    first = server.open()
    first.tokens.add(TOKEN, DIGEST)
    fill(first)
    server.ask(TAKES_ALL.format(kind, value))
    server.ask(DATABASE.format("SET search_path = tidegate, pg_catalog"))
    try:
        gate = server.open()
        try:
            assert find(gate) is None
        except TidegateError as error:
            assert "other values" in error.message
    finally:
        server.ask(DATABASE.format("RESET search_path"))
        server.ask(f"DROP OPERATOR tidegate.= ({kind}, {kind});")
        server.ask(f"DROP FUNCTION tidegate.same({kind}, {kind})")


def test_a_trigger_that_keeps_the_counters_hides_no_revocation(server):
    gate, other = server.open(), server.open()
    gate.tokens.add(TOKEN, DIGEST)
    other.versions.look()
    was = other.versions.of("tokens")
    server.ask(
        "CREATE FUNCTION tidegate.keep() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN RETURN NULL; END$$;"
        " CREATE TRIGGER keep BEFORE UPDATE ON tidegate.generations FOR EACH ROW"
        " EXECUTE FUNCTION tidegate.keep()"
    )
    try:
        gate.tokens.revoke("ann", 5.0)
        other.versions.look()
        assert other.versions.of("tokens") != was
    finally:
        server.ask("DROP FUNCTION tidegate.keep() CASCADE")


def test_a_revocation_that_is_put_back_before_anyone_looks_is_named_with_the_next_look(server):
    """With its list and its counter, so that nothing of the state has changed. Another gate has
    seen nothing of it: see decision 135."""
    gate = server.open()
    gate.tokens.add(TOKEN, DIGEST)
    gate.tokens.list()
    gate.versions.look()
    said = []
    gate.seals.tell_by(said.append)
    rows = server.ask("SELECT area, value FROM generations")
    kept, restore = lists(server, "tokens"), keep(server, "tokens", "true")
    gate.tokens.revoke("ann", 5.0)
    server.ask(server.without_triggers)  # that keep a token revoked
    restore()
    put_back(server, "tokens", kept)
    for area, value in rows:
        server.ask("UPDATE generations SET value = %s WHERE area = %s", value, area)
    gate.versions.look()
    assert gate.versions.of("tokens") > dict(rows)["tokens"]
    assert gate.tokens.by_digest(DIGEST) is None
    assert any("tokens" in each for each in said) and gate.concerns()
    gate.versions.look()  # all gates were made to read again
    counted = gate.versions.of("tokens")
    gate.versions.look()
    assert gate.versions.of("tokens") == counted  # once, and not with each look


@pytest.mark.parametrize("is_first", [True, False])
def test_a_gate_that_begins_after_a_failover_knows_what_the_new_server_lacks(server, is_first):
    """No process runs that has seen the former server: what the gate had seen is in its files."""
    gate = server.open()
    gate.tokens.add(TOKEN, DIGEST)
    gate.tokens.add(structs.replace(TOKEN, id="t2", name="bob"), b"2" * 32)
    gate.sources.add(SOURCE)
    kept = {area: lists(server, area) for area in ("tokens", "sources")}
    gate.tokens.revoke("ann", 5.0)
    assert gate.sources.change(structs.replace(SOURCE, access="readOnly"), SOURCE)
    gate.close()
    server.ask(server.without_triggers)
    server.ask("UPDATE sources SET access = %s", SOURCE.access or "")
    for area, rows in kept.items():
        put_back(server, area, rows)
    was = server.directory / "state-server.json"
    state_id, system, timeline = json.loads(was.read_bytes())
    was.write_text(json.dumps([state_id, system if is_first else "0", timeline - 1]))
    again = server.open()
    assert again.tokens.by_digest(DIGEST) is None and again.sources.list() == ()
    assert again.tokens.by_digest(b"2" * 32) is not None
    assert any("before the state's server was replaced" in each for each in again.concerns())


def fill(gate):
    allow(gate)
    gate.operators.add(OperatorEntry("o1", "ada", b"s", b"h", (), 1.0))
    gate.operators.add_session(SESSION, b"n" * 32)
    wanted = Pairing("AB12", "claude", "10.0.0.1", "c", TokenRights(), 100.0, 900.0)
    gate.pairings.add(wanted, b"d" * 32, most=9, most_of_origin=9, origin=str)


@pytest.mark.parametrize("how", ["put back", "removed"])
def test_a_token_whose_list_of_seals_does_not_count_is_as_good_as_revoked(place, state, how):  # noqa: F811
    state.tokens.add(TOKEN, DIGEST)
    assert state.tokens.by_digest(DIGEST) == TOKEN  # a call of it is under way
    kept = lists(place, "tokens")
    state.tokens.revoke("ann", 5.0)
    if how == "put back":
        place.ask(place.without_triggers)
        put_back(place, "tokens", kept)
    else:
        place.ask("DELETE FROM tokens")
        place.ask("DELETE FROM seals WHERE area = 'tokens'")
    assert state.tokens.revoked(["t1"]) == {"t1"}
