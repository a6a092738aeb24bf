"""Values of staged edits as the page sends them."""

import pytest

from tidegate.errors import TidegateError
from tidegate.model.editing import EditColumn
from tidegate.products.console.edit_cells import Cell, value_of


def test_a_long_text_that_is_no_number_is_told_at_once() -> None:
    for classes in (False, True):
        column = EditColumn("n", "DECIMAL", "decimal", classes=classes)
        cell = Cell(text="1" * 500_000 + "x", storage="real" if classes else None)
        with pytest.raises(TidegateError, match="a number"):
            value_of(cell, column)
