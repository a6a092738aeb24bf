"""By which secret the rows of a change are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.config.model import UndoSettings
from tidegate.errors import Code, TidegateError
from tidegate.history.undo_log import UndoLog
from tidegate.model.changes import ChangeEntry, ChangeImage, ListChanges
from tidegate.model.sources import Source
from tidegate.store.sqlite.state import SqliteState

FILE, CLUSTER = "1" * 64, "2" * 64
ENTRY = ChangeEntry("c1", "shop", "id-shop", "tok_1", "claude", 100.0, 200.0)
SOURCE = Source("id-shop", "shop", "sqlite:////shop.db", "sqlite", "sqlite")
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


def test_a_change_that_has_expired_is_not_given_though_its_row_is_still_there(
    tmp_path: Path,
) -> None:
    state = SqliteState(tmp_path / "state.db")
    now = [150.0]
    log = UndoLog(state.changes, UndoSettings(), lambda: FILE, clock=lambda: now[0])
    log.save(ENTRY, IMAGE, "here")
    assert log.find("c1", SOURCE).id == "c1"
    now[0] = 200.0  # none of what is older was removed since
    with pytest.raises(TidegateError) as refused:
        log.find("c1", SOURCE)
    assert refused.value.code is Code.UNDO_UNAVAILABLE
    assert log.list((SOURCE,), ListChanges()) == ()
    assert state.changes.find("c1") is not None
    state.close()
