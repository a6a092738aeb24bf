"""Names that no text may hold are found wherever PostgreSQL would find them."""

from __future__ import annotations

import pytest

from tidegate.engines.postgres.inspect import NONE, UnsafeObjects, opinion
from tidegate.model.statements import Effect

UNSAFE = UnsafeObjects(names=frozenset({"lifted", 'a"b'}), operators=frozenset({"===", "@"}))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT lifted(1)",
        'SELECT "lifted"(1)',
        "SELECT LIFTED (1)",
        'SELECT "a""b"(1)',
        "SELECT x.lifted FROM t x",
        "SELECT 1 === 2",
        "SELECT @ 1",
        "DO $$BEGIN PERFORM lifted(1); END$$",
        "DO $do$BEGIN PERFORM Public.Lifted(1); END$do$",
        'CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $f$SELECT "a""b"(1)$f$',
    ],
)
def test_a_name_or_a_sign_that_may_do_more_than_read_is_found(text: str) -> None:
    against = opinion(text, UNSAFE, changes=True)
    assert against is not None and against.effect is Effect.UNKNOWN


@pytest.mark.parametrize(
    "text",
    ["SELECT 'lifted'", "SELECT 1 -- lifted", "SELECT lift(1), a, b", "DO $$BEGIN NULL; END$$"],
)
def test_what_only_looks_like_one_is_no_name(text: str) -> None:
    assert opinion(text, UNSAFE, changes=True) is None


LONG = "f" * 62
"""Two letters shorter than PostgreSQL cuts names to, in bytes: 63."""
CUT = UnsafeObjects(names=frozenset({LONG + "g"}), operators=frozenset())


@pytest.mark.parametrize("name", [LONG + "g" + "x", LONG + "g" + "x" * 100, LONG + "g" + "\u00e9"])
def test_a_name_too_long_is_the_name_that_the_database_cuts_it_to(name: str):
    against = opinion(f"SELECT {name}(1)", CUT, changes=True)
    assert against is not None and against.effect is Effect.UNKNOWN


def test_a_name_that_is_not_cut_is_no_other_that_it_begins_with():
    unsafe = UnsafeObjects(names=frozenset({"f" * 61}), operators=frozenset())
    assert opinion(f"SELECT {'f' * 63}(1)", unsafe, changes=True) is None
    assert opinion(f"SELECT {'f' * 61}(1)", unsafe, changes=True) is not None


NAMED_ALIKE = UnsafeObjects(names=frozenset({"length", "inside"}), in_catalog=frozenset({"inside"}))


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("SELECT pg_catalog.length(a) FROM t", False),
        ('SELECT "pg_catalog" . "length" (a) FROM t', False),
        ("SELECT length(a) FROM t", True),
        ("SELECT public.length(a) FROM t", True),
        ("SELECT pg_catalog.length FROM pg_catalog", True),
        ("SELECT x.pg_catalog.length(a) FROM t", True),
        ("SELECT pg_catalog.inside(a) FROM t", True),
        ("SELECT pg_catalog.length(a), length(b) FROM t", True),
        ('SELECT "PG_CATALOG".length(a) FROM t', True),
    ],
)
def test_a_call_in_the_servers_own_schema_is_none_of_a_users_function(text: str, refused: bool):
    assert (opinion(text, NAMED_ALIKE, changes=False) is not None) is refused


def test_a_view_of_what_others_run_is_found_where_nothing_else_is_unsafe() -> None:
    shows = UnsafeObjects(sessions=frozenset({"watched"}))
    assert not shows.is_empty and NONE.is_empty
    against = opinion("SELECT * FROM watched", shows, changes=False)
    assert against is not None and "`watched` shows statements of other callers" in against.reason
    assert opinion("SELECT * FROM other", shows, changes=False) is None
