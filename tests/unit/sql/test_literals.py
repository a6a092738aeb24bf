"""What has a literal of its own in each dialect, and texts that end behind their first word."""

from __future__ import annotations

import pytest

from tidegate.model.statements import Effect
from tidegate.sql.dialects import find
from tidegate.sql.judge import judge

DIALECTS = ("sqlite", "postgres", "mysql", "duckdb", "oracle", "default")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_truth_and_nothing_are_words_or_numbers(dialect: str) -> None:
    written = [find(dialect).literal(value) for value in (None, True, False, 1, 0)]
    assert written[0] == "NULL" and written[3:] == ["1", "0"]
    assert written[1:3] in (["TRUE", "FALSE"], ["1", "0"])


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("word", ["UPDATE", "INSERT", "REPLACE", "DELETE", "MERGE", "WITH"])
def test_a_word_alone_is_no_statement(word: str, dialect: str) -> None:
    assert judge(word, dialect).effect is Effect.UNKNOWN
