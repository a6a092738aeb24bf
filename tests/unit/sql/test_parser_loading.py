"""Dialects of the parser are loaded when they are first needed, in any order and on any thread."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from tidegate.errors import Code
from tidegate.sql.finding import Refusal
from tidegate.sql.parse import parse

DIALECTS = ("", "sqlite", "postgres", "mysql", "duckdb")
SCRIPT = """
import sys, threading
from tidegate.sql.parse import parse

for dialect in sys.argv[1:]:
    found = []
    thread = threading.Thread(target=lambda: found.append(parse("SELECT 1 AS a", dialect, 4)))
    thread.start()
    thread.join()
    assert found, dialect
    assert found[0].sql(dialect or None) == "SELECT 1 AS a"
"""


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(DIALECTS, 2)))
def test_a_dialect_can_be_loaded_after_any_other_and_on_a_new_thread(
    first: str, second: str
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, first, second], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr


WATCH = """
import sys

class Watch:
    seen = {}

    def find_spec(self, name, path=None, target=None):
        self.seen.update(sys.modules)
        return None

sys.meta_path.insert(0, Watch())
from tidegate.sql.parse import parse

for dialect in ("sqlite", "postgres", "mysql", "duckdb"):
    parse("SELECT 1 AS a", dialect, 4)
assert "sqlglot.dialects.duckdb" in sys.modules
print(*(name for name, each in Watch.seen.items() if sys.modules.get(name) is not each))
"""


def test_no_import_puts_a_stand_in_before_what_other_threads_import() -> None:
    ran = subprocess.run([sys.executable, "-c", WATCH], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout.strip()) == (0, ""), ran.stderr


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("text", ["", ";", "-- a", " /* a */ "])
def test_what_the_parser_takes_for_nothing_is_refused_as_empty(text: str, dialect: str) -> None:
    with pytest.raises(Refusal) as refused:
        parse(text, dialect, 1)
    assert refused.value.finding.code is Code.SQL_EMPTY
