"""Runs the contract on every engine of `engine_cases`.

An engine of another package runs it too: `TIDEGATE_ENGINE_CASE` names its case, `module:CASE`.
"""

import os
import threading

import apsw
import pytest

from support.engine_cases import CASES
from support.eventually import PATIENCE_S
from tidegate.product import load

if "TIDEGATE_ENGINE_CASE" in os.environ:
    _case = load(os.environ["TIDEGATE_ENGINE_CASE"])
    CASES[_case.name] = _case


@pytest.fixture(params=sorted(CASES))
def case(request, tmp_path):
    """One engine with a shop of its own; no thread of it may outlive the test."""
    prepared = CASES[request.param].prepare(tmp_path)
    before = set(threading.enumerate())
    yield prepared
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_S)  # one that waited for a process ends just behind it
    assert set(threading.enumerate()) <= before


@pytest.fixture
def shop(tmp_path):
    """SQLite's shop, for what is particular to SQLite."""
    return CASES["sqlite"].prepare(tmp_path)


@pytest.fixture
def change(shop):
    """Change the shop from outside, as another program would."""

    def change(script):
        connection = apsw.Connection(shop.url.removeprefix("sqlite:///"))
        try:
            connection.execute(script)
        finally:
            connection.close()

    return change
