"""The language of a source judges what has no judgement of its own, and rewrites under rules."""

import pytest

from tidegate.engines.registry import language_of
from tidegate.errors import TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.language import Language
from tidegate.model.requests import Explain, Operation, Query
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement

SHOP = Source("1", "shop", "sqlite:///a.db", "sqlite", "sqlite")


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("SELECT 1", "select"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "select"),
        ("WITH a AS (SELECT 1) DELETE FROM t WHERE x IN (SELECT * FROM a)", "delete"),
        ("INSERT INTO t VALUES (1)", "insert"),
        ("REPLACE INTO t VALUES (1)", "insert"),
        ("UPDATE t SET a = 1 WHERE b = 2", "update"),
        ("DROP TABLE t", "ddl"),
        ("CREATE TABLE t (a INT)", "ddl"),
        ("EXPLAIN SELECT 1", "explain"),
        ("PRAGMA table_info(t)", "pragma"),
        ("BEGIN", "begin"),
        ("what is this", ""),
    ],
)
def test_a_statement_has_a_verb(text: str, verb: str) -> None:
    assert language_of(SHOP).classify(Query(Statement(text)), SHOP).verb == verb


def test_the_plan_of_a_change_is_judged_as_explain() -> None:
    judgement = language_of(SHOP).classify(Explain(Statement("DELETE FROM t")), SHOP)
    assert (judgement.effect, judgement.verb) == (Effect.READ, "explain")


def test_sql_has_no_operations() -> None:
    judgement = language_of(SHOP).classify(Operation("transact", {"data": []}), SHOP)
    assert judgement.effect is Effect.UNKNOWN


def test_a_language_hides_nothing_unless_it_says_how() -> None:
    class Plain(Language):
        pass

    rules, catalog = DataRules(only=("t",)), Catalog("main", "main", (), (), "1")
    assert Plain().rewrite(Operation("get"), SHOP, rules, catalog, "0" * 32) is None


def test_a_source_of_an_unknown_engine_has_no_language() -> None:
    with pytest.raises(TidegateError, match="unknown"):
        language_of(Source("1", "odd", "odd://x", "odd", "odd"))
