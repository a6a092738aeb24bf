"""What a record or an approval shows of a statement: all of it but the inside of its literals."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.sql.dialects import find
from tidegate.sql.lex import NAME, OP, STRING, WORD, lex
from tidegate.sql.redaction import literal_spans, redact_statement

DIALECTS = ("sqlite", "postgres", "mysql", "duckdb")
SECRET = "Zq9hunter2"
WORDS = st.sampled_from(
    ["SELECT", "password", "WHERE", "token", "api_key", "OR", "id", "IN", "AND", "secret", "x"]
)
COMMENTS = st.sampled_from(["/* token */", "/* it's */", "-- password ' \n", '/* " */'])
SIGNS = st.sampled_from(["=", "<>", "(", ")", ",", "+", "<", ".", "3", "1.5"])
INNER = st.text("abc '\"-/*;=$:@#\n", max_size=12)


def literals(dialect):
    plain = INNER.map(lambda text: "'" + f"{SECRET}{text}".replace("'", "''") + "'")
    if dialect == "mysql":
        return plain | INNER.map(lambda text: '"' + f"{SECRET}{text}".replace('"', '""') + '"')
    if dialect in ("postgres", "duckdb"):
        dollar = INNER.map(lambda text: f"$t${SECRET}{text.replace('$', '')}$t$")
        escape = INNER.map(lambda text: "E'\\'" + f"{SECRET}{text}".replace("'", "''") + "'")
        return plain | dollar | escape
    return plain


def names(dialect):
    quote = "`" if dialect == "mysql" else '"'
    return INNER.map(lambda text: f"{quote}n{text.replace(quote, '')}{quote}")


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(database=None, deadline=None)
@given(data=st.data())
def test_keywords_names_operators_and_comments_survive_and_literals_do_not(dialect, data):
    piece = WORDS | COMMENTS | SIGNS | literals(dialect) | names(dialect)
    pieces = data.draw(st.lists(piece, min_size=1, max_size=12))
    text = "UPDATE users SET password = " + " + ".join(pieces)
    shown = redact_statement(text, dialect)
    assert SECRET not in shown
    rules = find(dialect).lexical_rules
    before, after = lex(text, rules), lex(shown, rules)
    assert [(token.kind, token.key) for token in before] == [
        (token.kind, token.key) for token in after
    ]
    for was, now in zip(before, after, strict=True):
        if was.kind in (WORD, NAME, OP):
            assert was.text == now.text
        if was.kind == STRING:
            assert re.sub(r"^\\+", "", now.text) == "***"
    assert outside(text, dialect) == outside(shown, dialect)
    assert redact_statement(shown, dialect) == shown


def outside(text, dialect):
    """The text without the insides of its literals."""
    spans, end = literal_spans(text, find(dialect))
    assert end == len(text)
    edges = [0, *(edge for span in spans for edge in span), end]
    return [text[start:stop] for start, stop in zip(edges[::2], edges[1::2], strict=True)]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "text",
    [
        "UPDATE products SET price = 6 WHERE id = 1 AND title <> 'token'"
        " OR id IN (SELECT id FROM products) -- x",
        "/* token */ UPDATE products SET price = 6 WHERE title = 'a' OR 1 = 1",
        "UPDATE products SET note = 'x://y:' WHERE id = 1 OR id IN (SELECT id FROM products)",
        "UPDATE products SET note = '-----BEGIN KEY-----' WHERE id = 1 OR id > 0",
        "UPDATE password SET secret = 1 /* ' */ WHERE token = 2 -- '\n OR id > 0",
    ],
)
def test_no_text_of_a_caller_hides_a_part_of_the_statement(dialect, text):
    shown = redact_statement(text, dialect)
    assert outside(shown, dialect) == outside(text, dialect)
    assert "OR " in shown


def test_a_word_in_a_comment_costs_no_literal():
    text = "UPDATE t SET a = 'b' /* token */ -- password"
    assert redact_statement(text, "postgres") == text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_literal_that_was_cut_is_left_out_with_what_follows(dialect):
    assert redact_statement(f"UPDATE u SET password = '{SECRET}", dialect) == (
        "UPDATE u SET password =***"
    )
