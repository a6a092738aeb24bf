"""The gate's judgement of statements for cloud providers, and what is hidden from a caller."""

from __future__ import annotations

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules, EngineRules
from tidegate.model.requests import Browse, Explain, Operation, Query
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.products.cloud.language.cloud_sql import LANGUAGE

SOURCE = Source("c", "c", "cloud:///x", "cloud", "cloud")
NOTHING = Catalog("cloud", "", (), (), "")


def judged(text: str, *, explains: bool = False):
    request = Explain(Statement(text)) if explains else Query(Statement(text))
    return LANGUAGE.classify(request, SOURCE)


@pytest.mark.parametrize(
    ("text", "verb", "effect"),
    [
        ("SELECT a FROM p.s.r WHERE x = ?", "select", Effect.READ),
        ("WITH x AS (SELECT regexp_like(a, b) FROM p.s.r) SELECT 1 FROM x", "select", Effect.READ),
        ("SHOW METHODS IN p.s.r", "select", Effect.READ),
        ("REGISTRY PULL p v1.0.0", "select", Effect.READ),
        ("EXPLAIN DELETE FROM p.s.r WHERE x = 1", "select", Effect.READ),
        ("INSERT INTO p.s.r(a) VALUES (1)", "mutation_create", Effect.WRITE),
        ("UPDATE p.s.r SET a = 1 WHERE b = 2", "mutation_create", Effect.WRITE),
        ("REPLACE p.s.r SET a = 1 WHERE b = 2", "mutation_create", Effect.WRITE),
        ("DELETE FROM p.s.r WHERE b = 2", "mutation_delete", Effect.WRITE),
        ("EXEC p.s.r.m @a = 1", "lifecycle", Effect.WRITE),
    ],
)  # fmt: skip
def test_a_statement_has_a_class_and_an_effect(text: str, verb: str, effect: Effect) -> None:
    judgement = judged(text)
    assert (judgement.verb, judgement.effect) == (verb, effect)
    if ".r" in text and "SHOW" not in text:
        assert judgement.tables == ("p.s.r",)


@pytest.mark.parametrize(
    "text",
    [
        "", "SELECT 1; DELETE FROM p.s.r WHERE b = 2", "PURGE x", "SET x = 1",
        "PRAGMA user_version",
        "WITH x AS (DELETE FROM p.s.r RETURNING *) SELECT * FROM x",
        "SELECT load_extension('x') FROM p.s.r", "ATTACH 'x' AS y", "CREATE VIEW v AS SELECT 1",
        "INSERT INTO p.s.r(a) SELECT readfile('/etc/passwd')",
    ],
)  # fmt: skip
def test_what_cannot_be_read_or_is_not_known_is_unknown(text: str) -> None:
    assert judged(text).effect is Effect.UNKNOWN


def test_an_explanation_has_no_class_of_its_statement() -> None:
    assert judged("DELETE FROM p.s.r WHERE b = 2", explains=True).effect is Effect.READ


def test_other_requests_are_unknown() -> None:
    assert LANGUAGE.classify(Operation("x"), SOURCE).effect is Effect.UNKNOWN


def rewritten(text: str, rules: DataRules):
    request = Query(Statement(text))
    return LANGUAGE.rewrite(request, SOURCE, rules, NOTHING, "key")


@pytest.mark.parametrize("listed", ["p", "p.s", "p.s.r", "P.S.R", "p.*", "p.s.*"])
def test_a_list_of_tables_may_name_a_provider_a_service_or_a_resource(listed: str) -> None:
    rules = DataRules(only=(listed,))
    assert rewritten("SELECT a FROM p.s.r", rules) is not None
    for text in ("SELECT a FROM q.s.r", "SELECT 1 FROM p.s.r, p2.s.r", "EXEC q.s.r.m @a = 1"):
        with pytest.raises(TidegateError) as caught:
            rewritten(text, rules)
        assert caught.value.code is Code.POLICY_TABLE
    assert rewritten("SHOW SERVICES IN q", rules) is not None
    assert rewritten("EXPLAIN SELECT a FROM q.s.r", rules) is not None


@pytest.mark.parametrize(
    "rules", [DataRules(masks=(("p.s.r.a", "nothing"),)), DataRules(filters=(("p.s.r", "a = 1"),))]
)
def test_a_query_goes_to_the_engine_with_the_rules_and_a_change_is_refused(
    rules: DataRules,
) -> None:
    for text, touched in (("SELECT * FROM P.S.R", True), ("SELECT b FROM p.s.r", False)):
        request = rewritten(text, rules)
        assert isinstance(request, Query)
        assert request.engine_rules == EngineRules(rules, "key")
        assert request.masked == ((("p.s.r", "a"),) if rules.masks and touched else ())
    for text in ("UPDATE P.S.R SET b = 1 WHERE A = 1", "INSERT INTO p.s.q(b) SELECT b FROM p.s.r",
                 "EXEC p.s.r.m @b = 1"):  # fmt: skip
        with pytest.raises(TidegateError) as caught:
            rewritten(text, rules)
        assert caught.value.code is Code.POLICY_MASKED
    assert rewritten("UPDATE p.s.other SET b = 1 WHERE a = 1", rules) is not None
    assert LANGUAGE.rewrite(Browse("catalog"), SOURCE, rules, NOTHING, "key") is None
