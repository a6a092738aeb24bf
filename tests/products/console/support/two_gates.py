"""Two gates in one process on one state in PostgreSQL, which send each other messages."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support import postgres_state
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings


async def two_gates(
    directory: Path, monkeypatch: pytest.MonkeyPatch, *sources: SourceSettings
) -> tuple[App, App]:
    """Two gates on one state, which see what the other one does."""
    postgres_state.empty_state("wheel")
    monkeypatch.setenv("PGTEST_KEY", "a key of both gates of this test, long enough")
    url, key = postgres_state.state_url(), "${ENV:PGTEST_KEY}"
    here, elsewhere = (
        App.open(
            Config(state=str(directory / name), state_url=url, state_key=key, sources=sources),
            "server",
        )
        for name in ("a", "b")
    )
    for app in (here, elsewhere):
        await asyncio.to_thread(app.state.versions.follow)
    return here, elsewhere
