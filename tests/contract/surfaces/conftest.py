"""Runs a surface's contract on every engine of `houses`."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.surfaces.houses import HOUSES, House


@pytest.fixture(params=sorted(HOUSES))
def house(request: pytest.FixtureRequest, tmp_path: Path) -> House:
    """One engine with a shop of its own."""
    return HOUSES[request.param](tmp_path)
