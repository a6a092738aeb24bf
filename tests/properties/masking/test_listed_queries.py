"""A query of a caller with a list of tables runs if, and only if, it runs where there are no
others; and then it says the same. SQLite says itself which tables a query reads."""

import asyncio
import random

import apsw
import pytest
import sqlglot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from support.masking_queries import TABLES, Writer
from support.masking_shop import ENGINES, ROWS, make, opened, row_texts, script
from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules

LISTED = DataRules(only=("customers", "orders"))
OTHERS = frozenset({"products", "cheap", "vip", "vip_orders"})
BARE = (
    "DROP VIEW vip_orders", "DROP VIEW vip", "DROP VIEW cheap", "DROP TABLE products"
)  # fmt: skip


class Pair:
    """The shop of six tables and views, and one of two."""

    def __init__(self, engine, directory):
        self.name = engine
        self.url = make(engine, directory, "whole", script(ROWS))
        self._loop = asyncio.new_event_loop()
        self._opened = opened(self.url, make(engine, directory, "bare", script(ROWS, BARE)))
        self.whole, self.bare = self._loop.run_until_complete(self._opened.__aenter__())

    def ask(self, side, text):
        return self._loop.run_until_complete(side.ask(text))

    def close(self):
        self._loop.run_until_complete(self._opened.__aexit__(None, None, None))
        self._loop.close()


def is_idle(pair, text):
    """Whether a query names other tables only in CTEs that it does not use: some databases do not
    look at them then."""
    if pair.name not in ("sqlite", "duckdb"):
        return False
    tree = sqlglot.parse_one(text, dialect=pair.name)
    while unused := [cte for cte in tree.find_all(exp.CTE) if not is_used(cte, tree)]:
        with_clause = unused[0].parent
        unused[0].pop()
        if not with_clause.expressions:
            with_clause.pop()
    return OTHERS.isdisjoint(table.name for table in tree.find_all(exp.Table))


def is_used(cte, tree):
    """Whether a query names a CTE of its own outside of that one."""
    within = set(map(id, cte.find_all(exp.Table)))
    return any(
        table.name == cte.alias and id(table) not in within for table in tree.find_all(exp.Table)
    )


@pytest.fixture(scope="module", params=ENGINES)
def pair(request, tmp_path_factory):
    pair = Pair(request.param, tmp_path_factory.mktemp("shop"))
    yield pair
    pair.close()


@settings(
    max_examples=80,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(dice=st.randoms(use_true_random=False))
def test_a_query_runs_where_it_would_run_without_the_other_tables(pair, dice):
    text = Writer(dice, pair.name).query()
    try:
        expected = pair.ask(pair.bare, text)
    except TidegateError:
        expected = None
    try:
        written = pair.whole.rewritten(text, LISTED)
    except TidegateError as error:
        assert error.code is Code.POLICY_TABLE, text
        assert expected is None or is_idle(pair, text), text
        return
    assert written == text
    if expected is not None:
        names, rows = pair.ask(pair.whole, written)
        assert (names, row_texts(rows)) == (expected[0], row_texts(expected[1])), text
        return
    with pytest.raises(TidegateError):  # a query of no use to anybody: nothing was kept from it
        pair.ask(pair.whole, written)


def test_sqlite_reads_no_other_table_for_what_is_let_through(tmp_path):
    pair = Pair("sqlite", tmp_path)
    connection = apsw.Connection(str(tmp_path / "whole.sqlite"))
    let_through, kept_out = 0, 0
    for seed in range(400):
        text = Writer(random.Random(seed), "sqlite").query()
        read: set[str] = set()

        def look(action, first, second, database, source, read=read):
            if action == apsw.SQLITE_READ:
                read.add(first.lower())
            return apsw.SQLITE_OK

        connection.authorizer = look
        try:
            connection.execute(text).close()
        except apsw.Error:
            continue
        others = (read & TABLES.keys()) - {"customers", "orders"}
        try:
            pair.whole.rewritten(text, LISTED)
        except TidegateError:
            assert others or is_idle(pair, text), text
            kept_out += 1
        else:
            assert not others, text
            let_through += 1
    pair.close()
    assert let_through > 20 and kept_out > 20
