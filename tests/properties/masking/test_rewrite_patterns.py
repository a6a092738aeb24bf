"""A statement that is rewritten like another of its pattern reads as if it were rewritten alone."""

import re
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.masking_queries import TABLES, Writer
from tidegate.errors import TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.model.statements import Statement
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.fingerprint import fingerprint
from tidegate.sql.lex import lex
from tidegate.sql.masking.rewrite import rewrite, rewrite_uncached

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
DATA_RULES = DataRules(
    masks=(("customers.email", "hash"), ("vip.contact", "partial")),
    filters=(("orders", "tenant_id = '1'"),),
)
LISTED = DataRules(filters=DATA_RULES.filters, only=("orders", "customers", "products"))
LITERAL = re.compile(r"'(?:[^']|'')*'|\b\d+\b")
VALUES = st.one_of(
    st.integers(0, 10**12).map(str),
    # A NUL is refused before the text is read, with a rule of its own.
    st.text(st.characters(exclude_characters="\0"), max_size=9).map(
        lambda text: "'" + text.replace("'", "''") + "'"
    ),
    st.sampled_from(["'customers'", "'; DROP TABLE t'", "'--'", "'/*'", "1.5", "0x1F", "1e5"]),
    st.sampled_from(
        ["'vip'", "'$.email'", "'\\'", "1.", ".5", "007", "1_000", "-1", "NULL", "true"]
    ),
    st.sampled_from(
        ["E'x'", "N'x'", "x'41'", "_utf8'x'", "U&'\\0041'", "$$x$$", "'a' 'b'", "'a'\n'b'"]
    ),
    st.sampled_from(
        ['"x"', '"email"', "`email`", "email", "customers", "$1", "$10", "?", "?1", ":a"]
    ),
    st.sampled_from(["date '2020-01-01'", "1--1\n", "1..2", "(SELECT email FROM customers)", "@v"]),
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
    "SELECT {}, email FROM customers GROUP BY {} ORDER BY {} LIMIT {} OFFSET {}",
    "SELECT email -> {} FROM customers WHERE name LIKE {} ESCAPE {} AND id = -{} AND id -{} > 0",
    "SELECT * FROM customers WHERE name = {}{} OR name <> {}\n{}",
    "SELECT * FROM customers WHERE name = {}::text AND id = {}::int AND {} = {}::regclass",
    "SELECT * FROM customers WHERE id={}and id={} OR d > date {} - INTERVAL {} DAY",
    "SELECT * FROM customers, {} WHERE name = {}",
    "SELECT a.{} FROM customers a JOIN {} ON {} = {} TABLESAMPLE bernoulli ({})",
    "SELECT sum(id) OVER (ORDER BY id ROWS {} PRECEDING) FROM customers FETCH FIRST {} ROWS ONLY",
    "SELECT (SELECT max(email) FROM customers WHERE id = {}) + {}, 1 FROM orders",
    "SELECT main . customers . id FROM main /* {} */ . customers WHERE main.customers.id = {}",
    "SELECT JSON_VALUE(email, {} RETURNING int DEFAULT {} ON EMPTY) FROM customers",
    "WITH RECURSIVE r AS (SELECT {} AS n UNION ALL SELECT n + {} FROM r) SELECT * FROM r, vip",
    "WITH a AS (SELECT * FROM orders WHERE id = {}) INSERT INTO products SELECT * FROM a LIMIT {}",
    "SELECT * FROM vip_orders v JOIN cheap c ON c.id = {} WHERE v.contact LIKE {}",
    "SELECT f(a => {}), g(b := {}) FROM customers WHERE (customers).{} = {}",
    "SELECT * LIKE {} FROM customers WHERE COLUMNS({}) = {}",
)
GAPS = (" ", "\n", "  ", "/**/", " /* ' */ ", ' /* " */ ', " -- '\n", "\t\f")


def said(how, text, engine, data_rules, params=None):
    """What rewriting gives, or the rule that refused it."""
    try:
        written = how(Statement(text, params), engine, data_rules, CATALOG, KEY)
    except TidegateError as refusal:
        return refusal.details["rule"]
    except Refusal as refusal:
        return refusal.finding.rule
    assert written.fingerprint in (None, fingerprint(written.text))
    return Statement(written.text, written.params)


@given(
    st.randoms(use_true_random=False),
    st.sampled_from(ENGINES),
    st.sampled_from([DATA_RULES, LISTED]),
    st.lists(VALUES, min_size=1, max_size=4),
    st.sampled_from([*WRITTEN_IN_FULL, None, None]),
    st.sampled_from([None, None, (), (7,)]),
)
def test_a_pattern_rewrites_whatever_its_values(dice, engine, data_rules, values, shape, params):
    text = Writer(dice, engine).query() if shape is None else shape.format(*("5", "'x'") * 4)
    said(rewrite, text, engine, data_rules)
    turn = iter(values * 40)
    if shape is None:
        other = LITERAL.sub(lambda found: next(turn, found[0]), text)
    else:
        other = shape.format(*islice(turn, shape.count("{}")))
    for each in (text, other):
        for given_params in (None, params):
            assert said(rewrite, each, engine, data_rules, given_params) == said(
                rewrite_uncached, each, engine, data_rules, given_params
            )


@given(
    st.randoms(use_true_random=False),
    st.sampled_from(ENGINES),
    st.sampled_from([DATA_RULES, LISTED]),
    st.lists(st.sampled_from(GAPS), min_size=1, max_size=6),
    st.lists(VALUES, min_size=1, max_size=4),
)
def test_a_pattern_rewrites_whatever_stands_between_its_tokens(
    dice, engine, data_rules, gaps, values
):
    text = Writer(dice, engine).query()
    said(rewrite, text, engine, data_rules)
    starts = [token.at for token in lex(text, find(engine).lexical_rules)]
    pieces = [text[at:end] for at, end in zip(starts, [*starts[1:], None], strict=True)]
    turn = iter(values * 40)
    gap = iter(gaps * len(pieces))
    other = "".join(
        (next(turn, piece) if LITERAL.fullmatch(piece.strip()) else piece.strip()) + next(gap)
        for piece in pieces
    )
    assert said(rewrite, other, engine, data_rules) == said(
        rewrite_uncached, other, engine, data_rules
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_statement_of_a_known_pattern_is_hidden_from_as_well(engine):
    shape = "SELECT c.email FROM customers c WHERE c.id = {} AND c.name = '{}'"
    said(rewrite, shape.format(1, "a"), engine, DATA_RULES)
    written = said(rewrite, shape.format(234, "it''s"), engine, DATA_RULES)
    assert KEY in written.params
    assert KEY not in written.text
    assert written.text.endswith("c WHERE c.id = 234 AND c.name = 'it''s'")


@pytest.mark.parametrize("engine", ENGINES)
def test_what_another_catalog_knows_is_rewritten_by_that(engine):
    text = "SELECT phone FROM customers WHERE id = {}"
    rewrite(Statement(text.format(1)), engine, DATA_RULES, CATALOG, KEY)
    known = {table.name: table for table in CATALOG.tables}
    renamed = Table("main", "customers", "table", (ColumnInfo("email", "text"),))
    tables = tuple({**known, "customers": renamed}.values())
    changed = Catalog("db", "main", ("main",), tables, "2")
    written = rewrite(Statement(text.format(2)), engine, DATA_RULES, changed, KEY)
    assert "phone" not in written.text.removeprefix("SELECT phone")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "value",
    [
        "2",
        "007",
        "1.5",
        "12.",
        ".5",
        "1e5",
        "'x'",
        "'it''s'",
        "''",
        "'vip'",
        "'--'",
        "'%\\'",
        "''''",
    ],
)
def test_a_new_value_is_put_in_as_if_the_statement_were_rewritten_alone(engine, value):
    shape = (
        "SELECT v.contact, c.id FROM vip v, cheap c WHERE c.id = {} AND v.contact LIKE {} LIMIT 3"
    )
    for first in ("5", "'y'"):
        said(rewrite, shape.format(first, first), engine, DATA_RULES)
    for text in (shape.format(value, "'z'"), shape.format(4, value), shape.format(value, value)):
        alone = said(rewrite_uncached, text, engine, DATA_RULES)
        assert said(rewrite, text, engine, DATA_RULES) == alone
        assert said(rewrite, text, engine, DATA_RULES) == alone


@pytest.mark.parametrize("engine", ENGINES)
def test_statements_that_differ_in_values_share_a_fingerprint_once_rewritten(engine):
    shape = "SELECT contact FROM vip WHERE id = {} AND contact <> '{}'"
    texts = [shape.format(*values) for values in ((1, "a"), (234, "it''s"), (0, ""))]
    written = [rewrite(Statement(text), engine, DATA_RULES, CATALOG, KEY) for text in texts]
    assert "it''s" in written[1].text
    assert len({each.text for each in written}) == 3
    assert len({each.fingerprint for each in written}) == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("params", [(), (7,), (7, 8)])
def test_parameters_that_nothing_takes_are_met_as_if_no_statement_alike_were_known(engine, params):
    shape = "SELECT email FROM customers WHERE id = {} AND name = 'x'"
    said(rewrite, shape.format(1), engine, DATA_RULES)
    for text in (shape.format(2), shape.format("?"), shape.format("$1"), shape.format("?2")):
        alone = said(rewrite_uncached, text, engine, DATA_RULES, params)
        assert said(rewrite, text, engine, DATA_RULES, params) == alone


@pytest.mark.parametrize("engine", ENGINES)
def test_each_place_of_the_key_has_the_key(engine):
    shape = "SELECT a.email, b.email FROM customers a, customers b WHERE a.id = {} AND b.id = 3"
    for number in (1, 23, 456):
        alone = said(rewrite_uncached, shape.format(number), engine, DATA_RULES)
        assert said(rewrite, shape.format(number), engine, DATA_RULES) == alone
        assert set(alone.params) == {KEY}
