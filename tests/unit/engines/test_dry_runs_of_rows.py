"""What a dry run says of rows: by their keys, and never more of a value than a person reads."""

from __future__ import annotations

from tidegate.engines.common.dry_run import MOST_CHARS, REKEYED, added, dry_run_of


def test_rows_are_paired_by_their_keys_in_whatever_order_they_come() -> None:
    before, after = [("a", 1), ("b", 2)], [("d", 2), ("c", 1)]
    found = dry_run_of(2, ["name"], before, after)
    assert (found.before, found.after) == ((("a",), ("b",)), (("c",), ("d",)))
    assert (found.affected, found.columns, found.reason) == (2, ("name",), "")


def test_a_row_whose_key_changes_is_left_out_and_the_dry_run_says_so() -> None:
    found = dry_run_of(2, ["name"], [("a", 1), ("b", 2)], [("c", 1), ("d", 3)])
    assert (found.before, found.after, found.reason) == ((("a",),), (("c",),), REKEYED)
    assert dry_run_of(1, ["name"], [("a", 1)], []).reason == REKEYED


def test_rows_that_go_have_nothing_behind_them_and_rows_that_come_nothing_before() -> None:
    gone = dry_run_of(1, ["name"], [("a", 1)], None)
    assert (gone.before, gone.after) == ((("a",),), (None,))
    come = added(3, ["id", "name"], [(1, None)])
    assert (come.affected, come.before, come.after) == (3, (None,), (("1", None),))


def test_a_long_value_is_cut() -> None:
    (row,) = added(1, ["name"], [("x" * (MOST_CHARS + 1),)]).after
    assert row is not None and len(row[0] or "") == MOST_CHARS
