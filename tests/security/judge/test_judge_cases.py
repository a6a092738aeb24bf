"""Every statement of the cases gets the verdict that a caller with read scope must get."""

from __future__ import annotations

import pytest

from support.judge_cases import Case, kinds
from tidegate.errors import Code
from tidegate.model.actors import Actor, Scope
from tidegate.model.sources import Source
from tidegate.model.statements import Effect
from tidegate.policy.verdict import evaluate
from tidegate.sql.judge import judge, judge_uncached

KINDS = kinds()
CASES = [case for cases in KINDS.values() for case in cases]
READER = Actor("t1", "reader", Scope.READ_ONLY)


def verdict_of(case: Case) -> str:
    """What a reader is told, as the cases say it."""
    source = Source("s1", "shop", "", case.dialect, case.dialect)
    judgement = judge(case.sql, case.dialect)
    return evaluate(READER, source, Scope.READ_ONLY, judgement).kind


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_reader_gets_the_expected_verdict(kind: str) -> None:
    verdicts = [(case, verdict_of(case)) for case in KINDS[kind]]
    wrong = [(case, told) for case, told in verdicts if case.expected not in ("limit", told)]
    assert wrong == []


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_refusal_tells_its_rule_its_code_and_what_to_do(kind: str) -> None:
    for case in KINDS[kind]:
        if case.expected == "deny":
            judgement = judge_uncached(case.sql, case.dialect)
            assert judgement.effect is not Effect.READ, case
            assert judgement.rule and judgement.reason and judgement.hint, case
            assert Code(judgement.code), case


def test_a_statement_is_judged_the_same_from_the_cache() -> None:
    for case in CASES:
        first, second = judge(case.sql, case.dialect), judge(case.sql, case.dialect)
        assert first == second, case
        assert first.effect == judge_uncached(case.sql, case.dialect).effect, case


def test_the_cases_cover_every_dialect() -> None:
    denied = {case.dialect for case in CASES if case.expected == "deny"}
    assert denied >= {"sqlite", "postgres", "mysql", "duckdb", "tsql", "oracle"}
