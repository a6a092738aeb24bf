"""A place in a rewritten statement is told in the caller's text where it is certain, else none."""

from __future__ import annotations

import pytest

from tidegate.sql.rewritten_place import place_in_original

PUT_IN = "(SELECT id, '***' AS email FROM main.customers) AS customers"


@pytest.mark.parametrize(
    ("original", "word"),
    [
        ("SELECT nothing FROM customers", "nothing"),
        ("SELECT id FROM customers WHERE nothing = 1", "nothing"),
        ("SELECT 'שלום 👩', nothing FROM customers", "nothing"),
        ("SELECT id FROM customers ORDER BY 7", "7"),
        ("SELECT id FROM customers JOIN customers AS c ON nothing = 1 JOIN customers d", "nothing"),
        ("SELECT id FROM customers JOIN customers AS c ON c.id = (", "("),
    ],
)
def test_what_the_caller_wrote_is_found_around_what_was_put_in(original: str, word: str) -> None:
    written = original.replace(" customers", f" {PUT_IN}")
    place = written.rindex(word)
    assert place_in_original(original, written, place) == original.rindex(word)


@pytest.mark.parametrize(
    ("original", "written", "place"),
    [
        # In what was put in, also where the caller wrote the same word elsewhere.
        ("SELECT id FROM customers", f"SELECT id FROM {PUT_IN}", 16),
        ("SELECT id FROM customers c", f"SELECT id FROM {PUT_IN} c", 23),
        # A word that stands twice between two pieces could be either.
        ("SELECT 1 FROM t, x, x, t", "SELECT 1 FROM (s) t, x, x, (s) t", 21),
        # Nothing is there, and the word is the beginning of another one.
        ("SELECT 1", "SELECT 1 ", 99),
        ("SELECT 1", "SELECT 1 ", -1),
        ("SELECT nothing FROM t", "SELECT no FROM t", 7),
    ],
)
def test_a_place_that_is_not_certain_is_none(original: str, written: str, place: int) -> None:
    assert place_in_original(original, written, place) is None
