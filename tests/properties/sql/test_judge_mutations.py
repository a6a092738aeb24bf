"""A statement written differently is not judged more mildly, and no text whatever breaks the
judge."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from support.judge_cases import load
from support.judge_mutations import mutate
from tidegate.errors import Code
from tidegate.model.statements import Effect
from tidegate.sql.finding import Refusal
from tidegate.sql.judge import judge, judge_uncached

CASES = load()
DIALECTS = ("sqlite", "postgres", "mysql", "duckdb", "tsql")
WORDS = sorted({word for case in CASES for word in case.sql.split()})


@given(st.sampled_from(CASES), st.integers(0, 2**32))
@settings(max_examples=500, deadline=None)
def test_blanks_comments_and_case_never_lower_an_effect(case: object, seed: int) -> None:
    assert hasattr(case, "sql") and hasattr(case, "dialect")
    plain = judge_uncached(case.sql, case.dialect)
    try:
        written = mutate(case.sql, case.dialect, random.Random(seed))
    except Refusal:
        return
    assert judge_uncached(written, case.dialect).effect >= plain.effect, written


@given(st.sampled_from([case for case in CASES if case.expected == "allow"]), st.text(max_size=8))
@settings(max_examples=300, deadline=None)
def test_a_second_statement_is_never_overlooked(case: object, tail: str) -> None:
    assert hasattr(case, "sql") and hasattr(case, "dialect")
    if "--" in case.sql or "#" in case.sql:
        return  # a comment at the end swallows what follows
    text = f"{case.sql};{tail.replace('-', '').replace('/', '').replace('#', '')}\nDELETE FROM t"
    assert judge(text, case.dialect).effect is not Effect.READ, text


@given(st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join), st.sampled_from(DIALECTS))
@settings(max_examples=500, deadline=None)
def test_any_run_of_words_gets_a_judgement(text: str, dialect: str) -> None:
    judgement = judge_uncached(text, dialect)
    if judgement.effect is not Effect.READ:
        assert judgement.rule and judgement.reason and judgement.hint
        assert Code(judgement.code)


@given(
    st.text(st.characters(codec=None), max_size=200).map(lambda text: f"SELECT {text}"),
    st.sampled_from(DIALECTS),
)
@settings(max_examples=500, deadline=None)
def test_any_text_gets_a_judgement(text: str, dialect: str) -> None:
    for each in (text, text.removeprefix("SELECT ")):
        judgement = judge(each, dialect)
        assert judgement.effect is Effect.READ or judgement.reason


def test_a_statement_cut_off_anywhere_gets_a_judgement() -> None:
    for case in CASES:
        words = case.sql.split()
        cut = [" ".join(words[:end]) for end in range(len(words))]
        cut += [" ".join(words[end:]) for end in range(len(words))]
        cut += [case.sql[:end] for end in range(0, len(case.sql), 5)]
        for text in cut:
            judgement = judge_uncached(text, case.dialect)
            assert judgement.effect is Effect.READ or judgement.reason, text
            assert judgement.effect is not Effect.UNKNOWN or Code(judgement.code), text
