"""A caller that may use two tables alone, in real databases and in one that has no more."""

import asyncio
import re

import pytest

import support.masking_cases as attempts
from support.masking_shop import ENGINES, ROWS, Side, make, opened, row_texts, script
from support.table_list_cases import BY_ENGINE, COMMON
from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.statements import Effect

LISTED = DataRules(only=("customers", "cheap"))
HOMES = {"postgres": "public", "sqlite": "main", "duckdb": "main"}
BARE = (
    "CREATE TABLE kept AS SELECT * FROM cheap", "DROP VIEW vip_orders", "DROP VIEW vip",
    "DROP VIEW cheap", "DROP TABLE orders", "DROP TABLE products",
    "ALTER TABLE kept RENAME TO cheap",
)  # fmt: skip


class Pair:
    """The shop, and one that has the listed tables alone."""

    def __init__(self, engine: str, directory) -> None:
        self.name = engine
        self._loop = asyncio.new_event_loop()
        urls = (
            make(engine, directory, "whole", script(ROWS)),
            make(engine, directory, "bare", script(ROWS, BARE)),
        )
        self._opened = opened(*urls)
        self.whole, self.bare = self._loop.run_until_complete(self._opened.__aenter__())

    def ask(self, side: Side, text: str, effect: Effect = Effect.READ):
        return self._loop.run_until_complete(side.ask(text, effect))

    def contents(self):
        tables = ("customers", "orders", "products")
        return [row_texts(self.ask(self.whole, f"SELECT * FROM {table}")[1]) for table in tables]

    def cases(self, mark):
        home = HOMES.get(self.name, self.whole.catalog.database)
        for line in (COMMON + BY_ENGINE[self.name]).splitlines():
            if line.startswith(mark):
                text = line[2:].replace("{home}", home)
                yield text.replace('"', "`") if self.name == "mysql" else text

    def close(self) -> None:
        self._loop.run_until_complete(self._opened.__aexit__(None, None, None))
        self._loop.close()


@pytest.fixture(scope="module", params=ENGINES)
def pair(request, tmp_path_factory):
    pair = Pair(request.param, tmp_path_factory.mktemp("shop"))
    yield pair
    pair.close()


def refusal(pair, text):
    try:
        pair.whole.rewritten(text, LISTED)
    except TidegateError as error:
        assert error.code in (Code.POLICY_TABLE, Code.POLICY_MASKED), text
        return f"{error.message} {error.hint}"
    return None


def test_what_names_another_table_is_refused(pair):
    answered = [text for text in pair.cases("!") if refusal(pair, text) is None]
    assert answered == []


def test_a_refusal_does_not_tell_whether_there_is_such_a_table(pair):
    for text in pair.cases("!"):
        other = re.sub(r"(?i)\borders\b", "nowhere", text)
        said = re.sub(r"(?i)\borders\b", "nowhere", refusal(pair, text) or "")
        assert refusal(pair, other) == said, text


def test_ordinary_queries_stay_as_they_are_written(pair):
    for text in pair.cases("="):
        assert pair.whole.rewritten(text, LISTED) == text


def test_what_is_answered_is_what_a_database_of_these_tables_answers(pair):
    for text in pair.cases("="):
        if text.startswith(("SHOW", "DESC", "SUMMARIZE", "EXPLAIN")):
            continue
        names, rows = pair.ask(pair.bare, text)
        found_names, found = pair.ask(pair.whole, pair.whole.masked(text, LISTED))
        assert (found_names, row_texts(found)) == (names, row_texts(rows)), text


def test_changes_of_a_listed_table_are_let_through_and_no_other(pair):
    before = pair.contents()
    after_with = (
        "WITH x AS (SELECT 901 AS i) INSERT INTO customers (id, name) SELECT i, 'New' FROM x",
        "WITH x AS (SELECT 901 AS i) UPDATE customers SET name = 'x' WHERE id IN (SELECT i FROM x)",
        "WITH x AS (SELECT id FROM cheap) DELETE FROM customers WHERE id = 901",
    )
    for text in (
        "INSERT INTO customers (id, name) VALUES (900, 'New')",
        *(after_with if pair.name != "mysql" else ()),
        "INSERT INTO customers (id, name) SELECT id + 902, title FROM cheap",
        "UPDATE customers SET name = 'Newer' WHERE id = 900",
        "DELETE FROM customers WHERE id >= 900",
    ):
        assert pair.whole.rewritten(text, LISTED) == text
        pair.ask(pair.whole, text, Effect.WRITE)
    for text in pair.cases("!"):
        assert refusal(pair, text) is not None
    assert pair.contents() == before


def test_masks_hold_on_listed_tables(pair):
    data_rules = DataRules(masks=(("customers.email", "nothing"),), only=("customers",))
    text = pair.whole.rewritten("SELECT email FROM customers", data_rules)
    assert {row[0] for row in pair.ask(pair.whole, text)[1]} == {None}
    with pytest.raises(TidegateError) as caught:
        pair.whole.rewritten("SELECT * FROM customers JOIN orders ON true", data_rules)
    assert caught.value.code is Code.POLICY_TABLE


def test_a_listed_view_of_a_masked_table_keeps_the_mask(pair):
    data_rules = DataRules(masks=(("customers.email", "nothing"),), only=("vip",))
    text = pair.whole.rewritten("SELECT contact FROM vip", data_rules)
    assert {row[0] for row in pair.ask(pair.whole, text)[1]} == {None}
    assert refusal_under(pair, "SELECT email FROM customers", data_rules) is Code.POLICY_TABLE


def test_an_empty_list_admits_no_table(pair):
    assert refusal_under(pair, "SELECT * FROM customers", DataRules(only=())) is Code.POLICY_TABLE
    assert pair.whole.rewritten("SELECT 1", DataRules(only=())) == "SELECT 1"


def refusal_under(pair, text, data_rules):
    with pytest.raises(TidegateError) as caught:
        pair.whole.rewritten(text, data_rules)
    return caught.value.code


def test_no_attempt_at_hidden_values_gets_at_those_of_other_tables(pair):
    """The attempts at masked values, by who may use a table that has none of them."""
    data_rules = DataRules(only=("products", "cheap"))
    for line in (attempts.COMMON + attempts.BY_ENGINE[pair.name]).splitlines():
        text = line[2:].replace("{db}", pair.whole.catalog.database)
        text = text.replace('"', "`") if pair.name == "mysql" else text
        if not text.strip():
            continue
        try:
            written = pair.whole.rewritten(text, data_rules)
            said = repr(row_texts(pair.ask(pair.whole, written)[1]))
        except TidegateError as error:
            said = error.message
        assert "secret" not in said.replace("holds secrets", ""), text
