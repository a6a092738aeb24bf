"""Every implementation of the state. `other` is the same state, opened once more.

The suites of the areas run on each: a new implementation is one line here.
"""

import pytest

from support import postgres_state
from tidegate.store.sqlite.state import SqliteState

STATES = {
    "sqlite": lambda directory: SqliteState(directory / "state.db"),
    "sqlite-sealed": lambda directory: SqliteState(directory / "state.db", postgres_state.KEY),
    "postgres": postgres_state.open_state,
    "postgres-15": lambda directory: postgres_state.open_state(directory, "debian"),
}
_SERVERS = {"postgres": "wheel", "postgres-15": "debian"}
_WHOLE = {"postgres-15", "sqlite-sealed"}
_PARAMETERS = [
    pytest.param(name, marks=[pytest.mark.whole] if name in _WHOLE else []) for name in STATES
]


@pytest.fixture(params=_PARAMETERS)
def open_state(request, tmp_path):
    opened = []
    if server := _SERVERS.get(request.param):
        postgres_state.empty_state(server)

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
