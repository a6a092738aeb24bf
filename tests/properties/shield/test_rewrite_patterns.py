"""A statement that is rewritten like another of its pattern reads as if it were rewritten alone."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shield_queries import TABLES, Writer
from tidegate.errors import GateError
from tidegate.metadata import Catalog, ColumnInfo, Table
from tidegate.sql.opinion import Refusal
from tidegate.sql.rewrite import rewrite, rewrite_anew
from tidegate.sql.shield.model import Shield

KEY = "0123456789abcdef0123456789abcdef"
ENGINES = ("postgres", "mysql", "sqlite", "duckdb")
CATALOG = Catalog(
    "db",
    "main",
    ("main",),
    tuple(
        Table("main", name, "table", tuple(ColumnInfo(column, "text") for column in columns))
        for name, columns in TABLES.items()
    ),
    "1",
)
SHIELD = Shield(
    masks=(("customers.email", "hash"), ("vip.contact", "partial")),
    filters=(("orders", "tenant_id = '1'"),),
)
LISTED = Shield(filters=SHIELD.filters, only=("orders", "customers", "products"))
LITERAL = re.compile(r"'(?:[^']|'')*'|\b\d+\b")
VALUES = st.one_of(
    st.integers(0, 10**12).map(str),
    st.text(max_size=9).map(lambda text: "'" + text.replace("'", "''") + "'"),
    st.sampled_from(["'customers'", "'; DROP TABLE t'", "'--'", "'/*'", "1.5", "0x1F", "1e5"]),
)
WRITTEN_IN_FULL = (
    "SELECT customers.email FROM customers, orders WHERE orders.id = {} AND customers.name = {}",
    'SELECT "customers"."id" FROM "main"."customers" WHERE "customers"."id" = {} LIMIT {}',
    "SELECT main.customers.id FROM main.customers WHERE main.customers.name LIKE {} OR {} = 1",
    "SELECT (SELECT max(email) FROM customers WHERE id = {}), {} FROM orders",
    "SELECT id /* {} */ FROM customers -- {}\n",
    "WITH orders AS (SELECT * FROM customers WHERE id > {}) SELECT * FROM orders LIMIT {}",
    "SELECT * FROM products WHERE id = {} AND title = {}",
    "SELECT * FROM customers c JOIN orders o ON o.id = {} WHERE c.name IN ({}, 'a')",
    "TABLE customers LIMIT {}",
    "DELETE FROM products WHERE id = {} OR title = {}",
)


def said(how, text, engine, shield):
    """What rewriting gives, or the rule that refused it."""
    try:
        return how(text, engine, shield, CATALOG, KEY)
    except GateError as refusal:
        return refusal.details["rule"]
    except Refusal as refusal:
        return refusal.opinion.rule


@given(
    st.randoms(use_true_random=False),
    st.sampled_from(ENGINES),
    st.sampled_from([SHIELD, LISTED]),
    st.lists(VALUES, min_size=1, max_size=4),
    st.sampled_from([*WRITTEN_IN_FULL, None, None]),
)
def test_a_pattern_rewrites_whatever_its_values(dice, engine, shield, values, shape):
    text = Writer(dice, engine).query() if shape is None else shape.format("5", "'x'")
    said(rewrite, text, engine, shield)
    turn = iter(values * 40)
    other = LITERAL.sub(lambda found: next(turn, found[0]), text)
    for each in (text, other):
        assert said(rewrite, each, engine, shield) == said(rewrite_anew, each, engine, shield)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_statement_of_a_known_pattern_is_hidden_from_as_well(engine):
    shape = "SELECT c.email FROM customers c WHERE c.id = {} AND c.name = '{}'"
    said(rewrite, shape.format(1, "a"), engine, SHIELD)
    written = said(rewrite, shape.format(234, "it''s"), engine, SHIELD)
    assert KEY in written
    assert written.endswith("c WHERE c.id = 234 AND c.name = 'it''s'")


@pytest.mark.parametrize("engine", ENGINES)
def test_what_another_catalog_knows_is_rewritten_by_that(engine):
    text = "SELECT phone FROM customers WHERE id = {}"
    rewrite(text.format(1), engine, SHIELD, CATALOG, KEY)
    known = {table.name: table for table in CATALOG.tables}
    renamed = Table("main", "customers", "table", (ColumnInfo("email", "text"),))
    tables = tuple({**known, "customers": renamed}.values())
    changed = Catalog("db", "main", ("main",), tables, "2")
    written = rewrite(text.format(2), engine, SHIELD, changed, KEY)
    assert "phone" not in written.removeprefix("SELECT phone")
