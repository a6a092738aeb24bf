"""What a spreadsheet would take for a formula leaves by all exports with a quote before it."""

import csv
import io
import json
import subprocess
from pathlib import Path

import pytest

import tidegate.charts
from external.install import node
from tidegate.products.console.activity_export import _cell
from tidegate.results.formats import _csv_field

TEXTS = ["=1+1", "+x", "-x", "@x", "\tx", "\rx", "\nx", "\uff1dx", "-12.50", "+3", "plain", "1=1"]
CHART = Path(tidegate.charts.__file__).parent / "chart.js"


@pytest.mark.parametrize("text", TEXTS)
def test_both_exports_quote_the_same_texts(text):
    (row,) = csv.reader(io.StringIO(_csv_field(text), newline=""))
    assert row == [_cell(text)]


def test_the_table_of_a_chart_has_the_same_fields(tmp_path: Path) -> None:
    texts = [*TEXTS, "a;=1", "1.2.3", "-1.2.3", ""]
    script = f"""import {{ chartCsv }} from "./chart.mjs";
    const rows = {json.dumps([[each] for each in texts])};
    console.log(JSON.stringify(chartCsv({{ columns: ["=c"], rows }})));"""
    (tmp_path / "chart.mjs").write_text(CHART.read_text("utf-8"), "utf-8")
    (tmp_path / "run.mjs").write_text(script, "utf-8")
    done = subprocess.run([node(), tmp_path / "run.mjs"], capture_output=True, check=True)
    written = "".join([f"{_csv_field(each)}\r\n" for each in ("=c", *texts)])
    assert json.loads(done.stdout) == written
