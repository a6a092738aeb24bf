"""What the attacks share: a server that asks for no token, one per file."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from support.attack_target import Target, target


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Target]:
    """Open to everyone on loopback, reading only."""
    directory: Path = tmp_path_factory.mktemp("attacked")
    with target(directory, "--no-auth") as running:
        yield running
