"""One worker of Datalevin for all of these tests that run in one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.datalog import CACHE_HOME, Datalog, Opened, prepared
from tidegate.products.datalog.engine import workers


@pytest.fixture(scope="session")
def _worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Datalog]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(CACHE_HOME))
        patch.setattr(workers, "MOST_WORKERS", 1)
        datalog = prepared()
        # A worker lives as long as it has a source, so one stays open.
        held = datalog.open(tmp_path_factory.mktemp("held") / "database", "write")
        datalog.keep()
        yield datalog
        held.close()
        datalog.close()


@pytest.fixture
def datalog(_worker: Datalog) -> Iterator[Datalog]:
    yield _worker
    _worker.close_sources()


@pytest.fixture
def people(datalog: Datalog, tmp_path: Path) -> Opened:
    """Four people in a new directory, which may be changed."""
    return datalog.make(tmp_path / "people")
