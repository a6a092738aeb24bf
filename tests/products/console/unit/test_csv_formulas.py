"""What a spreadsheet would take for a formula leaves by both exports with a quote before it."""

import csv
import io

import pytest

from tidegate.products.console.activity import _cell
from tidegate.results.formats import _csv_field

TEXTS = ["=1+1", "+x", "-x", "@x", "\tx", "\rx", "\nx", "\uff1dx", "-12.50", "+3", "plain", "1=1"]


@pytest.mark.parametrize("text", TEXTS)
def test_both_exports_quote_the_same_texts(text):
    (row,) = csv.reader(io.StringIO(_csv_field(text), newline=""))
    assert row == [_cell(text)]
