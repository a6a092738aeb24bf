"""By which secret the rows of a change are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.config.model import UndoSettings
from tidegate.errors import Code, TidegateError
from tidegate.history.undo_log import UndoLog
from tidegate.model.changes import ChangeEntry, ChangeImage
from tidegate.store.sqlite.state import SqliteState

FILE, CLUSTER = "1" * 64, "2" * 64
ENTRY = ChangeEntry("c1", "shop", "id-shop", "tok_1", "claude", 100.0, 200.0)
IMAGE = ChangeImage((), b"what the engine keeps")


def test_changes_from_before_the_gates_had_a_key_are_read_by_that_of_then(tmp_path: Path) -> None:
    state = SqliteState(tmp_path / "state.db")

    def clock() -> float:
        return 150.0

    before = UndoLog(state.changes, UndoSettings(), lambda: FILE, clock=clock)
    before.save(ENTRY, IMAGE, "here")
    now = UndoLog(state.changes, UndoSettings(), lambda: CLUSTER, former=lambda: FILE, clock=clock)
    assert now.image(ENTRY, "here") == IMAGE
    without = UndoLog(state.changes, UndoSettings(), lambda: CLUSTER, clock=clock)
    with pytest.raises(TidegateError) as refused:
        without.image(ENTRY, "here")
    assert refused.value.code is Code.UNDO_UNAVAILABLE
    state.close()
