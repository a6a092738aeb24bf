"""The judge against PostgreSQL's own grammar, on every case and on thousands of spliced texts.

What the grammar cannot parse PostgreSQL refuses, so it is no harm that the judge calls some of it a
read: it reads a few words of other dialects wherever they are. That PostgreSQL does refuse each of
those is what `tests/security/judge/test_judge_against_servers.py` sees.
"""

from __future__ import annotations

import random

import pytest

import support.pg_grammar as pg_grammar
from support.judge_cases import kinds, load
from support.judge_splices import splice
from tidegate.model.statements import Effect, Judgement
from tidegate.sql.dialects.model import words
from tidegate.sql.judge import judge_uncached

KINDS = kinds()
SPLICED = 4_000
NEWER = {"SELECT a FROM t GROUP BY ALL"}
"""What the grammar of PostgreSQL 18 does not have, and 19 has."""
VALUES = words("""
    current_catalog current_date current_role current_schema current_time current_timestamp
    current_user localtime localtimestamp session_user system_user user
    """)
"""Functions that are called without brackets: the judge takes them for tables behind FROM."""


def disagreement(text: str) -> str | None:
    """What the judge says too mildly, or else than the grammar does; None if nothing."""
    judgement, grammar = judge_uncached(text, "postgres"), pg_grammar.opinion(text)
    if judgement.effect is not Effect.READ or grammar is None:
        return None
    if not grammar.reads:
        return f"called a read: {text}"
    tables = _tables(judgement)
    if not grammar.tables <= tables <= grammar.tables | VALUES:
        return f"tables {judgement.tables} and {sorted(grammar.tables)}: {text}"
    return None


def _tables(judgement: Judgement) -> set[str]:
    return {table.lower() for table in judgement.tables}


def test_the_grammar_tells_a_change_from_a_read() -> None:
    for text in (
        "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
        "SELECT * INTO u FROM t",
        "SELECT * FROM (SELECT * FROM t FOR UPDATE) x",
        "EXPLAIN ANALYZE DELETE FROM t",
        "COPY t TO '/tmp/x'",
        "DO 'BEGIN END'",
        "CREATE TABLE x AS SELECT 1",
        "SET x = 1",
    ):
        opinion = pg_grammar.opinion(text)
        assert opinion is not None and not opinion.reads, text
    assert pg_grammar.opinion("SELECT 1; SELECT 2") is None
    assert pg_grammar.opinion("SELEC 1") is None
    assert pg_grammar.opinion(
        "WITH a AS (WITH b AS (SELECT 1) SELECT * FROM b) SELECT * FROM a, b, c.a"
    ) == (True, {"b", "c.a"})


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_case_is_judged_more_mildly_than_the_grammar_has_it(kind: str) -> None:
    found = [(case.id, disagreement(case.sql)) for case in KINDS[kind]]
    assert [each for each in found if each[1]] == []


def test_what_is_a_read_of_postgres_is_one_to_the_grammar() -> None:
    for case in load("postgres"):
        if case.expected == "allow" and case.sql not in NEWER:
            opinion = pg_grammar.opinion(case.sql)
            assert opinion is not None and opinion.reads, case


def test_spliced_texts_are_not_judged_more_mildly_than_the_grammar_has_it() -> None:
    chance = random.Random(20_261_122)
    parsed = reads = 0
    for _ in range(SPLICED):
        text = splice(chance)
        assert disagreement(text) is None
        grammar = pg_grammar.opinion(text)
        parsed += grammar is not None
        reads += grammar is not None and judge_uncached(text, "postgres").effect is Effect.READ
    assert parsed > SPLICED / 10 and reads > SPLICED / 50, (parsed, reads)
