"""Runs the contract on every engine that edits rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.row_edits import ENGINES
from support.undo_shops import KINDS, Kind, Shop


@pytest.fixture(params=ENGINES)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def shop(kind: Kind, tmp_path: Path) -> Iterator[Shop]:
    made = kind.make(tmp_path)
    yield made
    made.close()
