"""Pure parts of edits of rows: what cells mean, what scripts say, which rows differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.engines.api import RowsConflictError
from tidegate.engines.common.row_edits import check_rows, grouped, in_order, new_keys
from tidegate.engines.common.row_images import is_same_row
from tidegate.engines.common.row_statements import forms_of, script_of
from tidegate.model.changes import ImageColumn
from tidegate.model.editing import EditColumn
from tidegate.model.row_changes import DEFAULT, ChangeRows, FoundRow, RowEdit, TableShape
from tidegate.products.console.edit_cells import cell_of, value_of
from tidegate.sql.dialects import find
from tidegate.sql.judge import judge
from tidegate.sql.scan import scan

SHAPE = TableShape(
    "main",
    "t",
    (ImageColumn("id", "INTEGER"), ImageColumn('a"b', "TEXT"), ImageColumn("c")),
    (0,),
    "",
)
VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
)
ROWS = st.tuples(st.integers(0, 50), VALUES, VALUES)
SET = st.dictionaries(st.integers(1, 2), st.one_of(VALUES, st.just(DEFAULT)), min_size=1)


@st.composite
def changes(draw: st.DrawFn) -> ChangeRows:
    rows = draw(st.lists(ROWS, max_size=6, unique_by=lambda row: row[0]))
    edits = [
        RowEdit(row, None if draw(st.booleans()) else tuple(draw(SET).items())) for row in rows
    ]
    added = draw(st.lists(SET, min_size=0 if edits else 1, max_size=4))
    edits += [RowEdit(None, tuple(values.items())) for values in added]
    return ChangeRows(table="t", schema="main", shape=SHAPE, edits=tuple(edits))


@given(VALUES)
def test_a_cell_of_a_class_gives_its_value_back(value: Any) -> None:
    column = EditColumn("c", "", "other", classes=True)
    again = value_of(cell_of(value, classes=True), column)
    assert is_same_row((again,), (value,))


@given(changes())
def test_edits_are_made_each_once_and_what_is_deleted_first(change: ChangeRows) -> None:
    order = in_order(change)
    assert sorted(place for place, _ in order) == list(range(len(change.edits)))
    verbs = [edit.verb for _, edit in order]
    assert verbs == sorted(verbs, key=["delete", "update", "insert"].index)
    together = [place for group in grouped(change) for place, _ in group.edits]
    assert sorted(together) == list(range(len(change.edits)))


@given(changes(), st.sampled_from(["sqlite", "postgres", "mysql", "duckdb"]))
def test_the_script_has_a_statement_for_each_edit_and_its_forms_are_changes(
    change: ChangeRows, dialect: str
) -> None:
    script = script_of(change, dialect)
    assert script.statements == script.shown == len(change.edits)
    for form in forms_of(change, dialect).values():
        assert scan(form.text, find(dialect))
        assert judge(form.text, dialect, ()).effect.label == "write", form.text


@given(changes(), st.integers(1, 400))
def test_a_script_that_is_cut_says_how_much_is_missing(change: ChangeRows, most: int) -> None:
    script = script_of(change, "sqlite", most)
    assert 1 <= script.shown <= script.statements
    missing = script.statements - script.shown
    assert (f"-- and {missing:,} more" in script.text.splitlines()[-1]) == bool(missing)


@given(changes(), st.data())
def test_any_difference_is_a_conflict_and_none_is_none(
    change: ChangeRows, data: st.DataObject
) -> None:
    there: dict[int, FoundRow | None] = {
        place: FoundRow(edit.before, edit.before)
        for place, edit in enumerate(change.edits)
        if edit.before is not None
    }
    check_rows(change, there, {})
    assert new_keys(change, there) == []
    if not there:
        return
    place = data.draw(st.sampled_from(sorted(there)))
    row = data.draw(st.one_of(st.none(), ROWS))
    was = change.edits[place].before
    there[place] = None if row is None else FoundRow(row, row)
    if is_same_row(row, was):
        check_rows(change, there, {})
        return
    with pytest.raises(RowsConflictError) as caught:
        check_rows(change, there, {})
    assert [each.edit for each in caught.value.conflicts] == [place]


@given(changes(), changes())
def test_changes_have_the_same_digest_if_they_are_the_same(
    one: ChangeRows, two: ChangeRows
) -> None:
    assert (one.digest == two.digest) == (repr(one.edits) == repr(two.edits))
