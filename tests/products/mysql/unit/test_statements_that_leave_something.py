"""Whether a statement leaves something on its session is the same for all that differ in values."""

import random

import pytest

from support.judge_cases import load
from support.judge_splices import splice
from tidegate.products.mysql.engine.engine import find_out_leaving, may_leave


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        ("SELECT * FROM t WHERE a = '@' AND id = 7", False),
        ("SELECT * FROM t WHERE a = 'set' OR b LIKE 'use %'", False),
        ("SELECT @a := 7", True),
        ("SELECT a FROM t WHERE id = 1 INTO @x", True),
        ("SELECT last_insert_id(7)", True),
        ("SELECT get_lock('x', 1)", False),
        ("SELECT id FROM t FOR UPDATE", False),
        ("SELECT a FROM t LOCK IN SHARE MODE", True),
        ("SELECT 'x", False),
        ("SELECT '@", True),
    ],
)
def test_words_count_and_values_do_not(text: str, leaves: bool) -> None:
    assert may_leave(text) is leaves


def test_the_answer_is_that_of_each_text_by_itself() -> None:
    rng = random.Random(5)
    texts = [case.sql for case in load()] + [splice(rng) for _ in range(3_000)]
    compared = [text for text in texts if len(text) <= 4_096]
    for text in compared:
        assert may_leave(text) is find_out_leaving(text), text
    assert {find_out_leaving(text) for text in compared} == {True, False}
