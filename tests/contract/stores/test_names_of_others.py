"""Who owns a schema of the state's database, or sets `search_path` there, has no gate call a
function, operator or type of theirs: each statement looks for names in `pg_catalog` alone.
"""

import pytest

from contract.stores.test_seals import BOUNDS, DIGEST, SOURCE, TOKEN, Postgres, allow
from contract.stores.test_seals_put_back import DATABASE, lists, put_back
from support import postgres_state
from tidegate.store.postgres.database import connect_once

PINNED = ("pg_catalog, pg_temp",)
OTHER_SERVER = """
CREATE FUNCTION tidegate.pg_control_system() RETURNS TABLE (system_identifier bigint)
    LANGUAGE sql AS 'SELECT 7::bigint'
"""


@pytest.fixture
def server(tmp_path):
    postgres_state.empty_state()
    made = Postgres(tmp_path)
    yield made
    made.close()


def test_a_function_of_a_public_schema_hides_no_revocation(server, tmp_path):
    """One that fits the types better comes before that of PostgreSQL, wherever it is."""
    gate = server.open()
    (tmp_path / "b").mkdir()
    other = server.open(directory=tmp_path / "b")
    gate.tokens.add(TOKEN, DIGEST)
    kinds = ("bigint", "numeric")
    for kind in kinds:
        server.ask(
            f"CREATE FUNCTION public.say_five(json, text, {kind}) RETURNS json LANGUAGE sql"
            " AS $$SELECT (coalesce($1, '{}')::jsonb || jsonb_build_object($2, 5))::json$$;"
            f" CREATE AGGREGATE public.json_object_agg(text, {kind})"
            " (SFUNC = public.say_five, STYPE = json)"
        )
    try:
        before = other.read_versions()["tokens"]
        gate.tokens.revoke("ann", 5.0)
        assert other.read_versions()["tokens"] > before
    finally:
        for kind in kinds:
            server.ask(f"DROP FUNCTION public.say_five(json, text, {kind}) CASCADE")


def test_a_schema_that_comes_first_makes_no_other_server_of_the_state(server):
    """On another server lists of seals that are older would count."""
    gate = server.open()
    allow(gate)
    kept = lists(server, "approvals")
    assert gate.approvals.answer("d", BOUNDS, 120.0).state == "used"
    gate.close()
    server.ask(OTHER_SERVER)
    server.ask(DATABASE.format("SET search_path = tidegate, pg_catalog"))
    try:
        server.ask("UPDATE approvals SET state = 'allowed', uses = 0, ended_at = NULL")
        put_back(server, "approvals", kept)
        again = server.open()
        again.read_versions()
        assert again.approvals.answer("d", BOUNDS, 121.0) is None
        assert server.ask("SELECT system_id FROM about") != [("7",)]
    finally:
        server.ask(DATABASE.format("RESET search_path"))
        server.ask("DROP FUNCTION tidegate.pg_control_system()")


def test_all_statements_look_for_names_in_the_catalog_alone(server):
    gate = server.open()
    asked = "SELECT current_setting('search_path')"
    with gate._database.reading() as connection:
        assert connection.row(asked) == connection.row(f"{asked} WHERE %s = 1", (1,)) == PINNED
        text = "a'\\\0\x01\ud800 %s $1"
        assert connection.row("SELECT %s::text, %s", (text, b"\0'")) == (text, b"\0'")
    with gate._database.changing() as connection:
        assert connection.row(asked) == PINNED
    with gate._database.changing("rights", settles=False) as connection:
        assert connection.row(f"{asked} WHERE %s = 'a'", ("a",)) == PINNED
    with connect_once(gate._database.url) as connection:
        assert connection.row(asked) == PINNED
        connection.ask("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        assert connection.row(asked) == PINNED
        assert connection.row("SHOW transaction_isolation") == ("repeatable read",)
        connection.ask("ROLLBACK")
    gate.sources.add(SOURCE)
    assert gate.sources.list() == (SOURCE,)
