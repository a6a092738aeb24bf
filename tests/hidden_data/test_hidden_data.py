"""What is hidden changes no reply, on any road to any engine; and what changes one is found."""

from __future__ import annotations

import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from hidden_data.hunt import hunt

COUNT = 150
"""Reads on each engine. `./dev hidden --count` asks more."""

ANSWERED = 60
"""The least of them that must come with rows: refusals alone would prove nothing."""

NO_PINS = """
from tidegate.sql.masking import mask_expressions
mask_expressions.telling_indexes = lambda *_: []
from tidegate.cli.main import main
main()
"""
"""A server that reads whatever index the planner likes best, as it once did."""

NO_ESTIMATES = """
from tidegate.sql.dialects.sqlite import _Sqlite
_Sqlite.estimated_alike = lambda self, query, nulls: query
from tidegate.cli.main import main
main()
"""


def engine(name: str) -> object:
    there = {"mysql": mysql_server.available(), "postgres": bool(postgres_server.available())}
    mark = pytest.mark.skipif(not there.get(name, True), reason=f"needs a server of {name}")
    return pytest.param(name, marks=mark)


@pytest.mark.parametrize(
    "name", [engine(each) for each in ("sqlite", "duckdb", "postgres", "mysql")]
)
def test_what_is_hidden_changes_no_reply(name: str) -> None:
    (tally,) = hunt([name], COUNT, seed=1)
    assert tally.finds == ()
    assert tally.answered >= ANSWERED


@pytest.mark.parametrize("fault", [NO_PINS, NO_ESTIMATES], ids=["indexes", "estimates"])
def test_a_planted_leak_is_found(fault: str) -> None:
    (tally,) = hunt(["sqlite"], COUNT, seed=1, program=("-c", fault), most_finds=1)
    assert tally.finds
