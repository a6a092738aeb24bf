"""What `./dev release` makes of this tree, once for all processes of the tests."""

from __future__ import annotations

import fcntl
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.release_repository import copy_this_tree, release


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this run of the tests have in common."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "release"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def repository(shared: Path) -> Path:
    folder = shared / "repository"
    with _one_at_a_time(shared):
        if not folder.exists():
            making = shared / "making"
            making.mkdir()
            copy_this_tree(making).rename(folder)
    return folder


@pytest.fixture(scope="session")
def released(repository: Path, shared: Path) -> Path:
    """The folder with the files of a release. No test may change it."""
    folder = shared / "dist"
    with _one_at_a_time(shared):
        if not folder.exists():
            done = release(repository, folder)
            assert done.returncode == 0, done.stderr
    return folder


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture
def plugin(released: Path, tmp_path: Path) -> Path:
    """The folder of the plugin as it was unpacked."""
    with zipfile.ZipFile(released / "tidegate-plugin.zip") as archive:
        archive.extractall(tmp_path / "plugin")
    return tmp_path / "plugin"
