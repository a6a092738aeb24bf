"""A server removes what is over, also while no one calls."""

from pathlib import Path

import pytest

from tidegate.app import App
from tidegate.config.model import Config
from tidegate.serve.lifecycle import forget_ended
from tidegate.store.carried import MOST_SWEPT, Carried


async def test_what_later_calls_might_have_needed_goes_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App.open(Config(state=str(tmp_path)))
    try:
        now = app.state.now()
        for n in range(MOST_SWEPT + 1):
            app.state.carried.put(Carried("rows", f"v{n}", f"o{n}", now + 1.0), [b"1"], now)
        app.state.carried.put(Carried("rows", "x", "a", now + 900.0), [b"1"], now)
        monkeypatch.setattr(app.state, "now", lambda: now + 2.0)
        await forget_ended(app)
        left = [app.state.carried.read("rows", f"v{n}", 0.0) for n in range(MOST_SWEPT + 1)]
        assert set(left) == {()}
        assert app.state.carried.read("rows", "x", now) == ((0, b"1"),)
    finally:
        await app.close()
