"""Runs a surface's contract on every engine of `engine_shops`."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.surfaces.engine_shops import ENGINE_SHOPS, EngineShop


@pytest.fixture(params=sorted(ENGINE_SHOPS))
def engine_shop(request: pytest.FixtureRequest, tmp_path: Path) -> EngineShop:
    """One engine with a shop of its own."""
    return ENGINE_SHOPS[request.param](tmp_path)
