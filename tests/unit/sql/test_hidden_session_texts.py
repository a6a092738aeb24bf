"""Whoever reads the view of the sessions reads a query in its place, however the text says it."""

from __future__ import annotations

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.sql.dialects import find
from tidegate.sql.session_texts import hide_session_texts

VIEW = find("postgres").session_views["pg_stat_activity"]


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("SELECT query FROM pg_stat_activity", "SELECT query FROM ({}) AS pg_stat_activity"),
        ("SELECT a.query FROM pg_stat_activity a", "SELECT a.query FROM ({}) a"),
        ("SELECT 1 FROM Pg_Catalog.PG_STAT_ACTIVITY x, t", "SELECT 1 FROM ({}) x, t"),
        ("TABLE pg_stat_activity", "SELECT * FROM ({}) AS pg_stat_activity"),
    ],
)
def test_the_view_is_replaced(text: str, hidden: str) -> None:
    assert hide_session_texts(text, "postgres") == hidden.format(VIEW)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'pg_stat_activity' FROM t",
        "SELECT query FROM mine.pg_stat_activity",
        "WITH pg_stat_activity AS (SELECT 1 AS query) SELECT query FROM pg_stat_activity",
    ],
)
def test_what_only_has_its_name_stays(text: str) -> None:
    assert hide_session_texts(text, "postgres") == text


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t SELECT query FROM pg_stat_activity",
        "SELECT query FROM ONLY pg_stat_activity",
        "SELECT query FROM pg_stat_activity TABLESAMPLE system (50)",
    ],
)
def test_what_cannot_be_followed_is_refused(text: str) -> None:
    with pytest.raises(TidegateError) as caught:
        hide_session_texts(text, "postgres")
    assert caught.value.code is Code.POLICY_DENIED
