"""Every implementation of the state. `other` is the same state, opened once more.

The suites of the areas run on each: a new implementation is one line here.
"""

import pytest

from tidegate.store.sqlite.state import SqliteState

STATES = {"sqlite": lambda directory: SqliteState(directory / "state.db")}


@pytest.fixture(params=sorted(STATES))
def open_state(request, tmp_path):
    opened = []

    def open_state():
        opened.append(STATES[request.param](tmp_path))
        return opened[-1]

    yield open_state
    for state in opened:
        state.close()


@pytest.fixture
def state(open_state):
    return open_state()


@pytest.fixture
def other(state, open_state):
    return open_state()
