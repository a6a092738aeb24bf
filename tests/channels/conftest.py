"""What `./dev release` makes of this tree, once for each process of the tests."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from support.release_repository import copy_this_tree, release


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_this_tree(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="session")
def released(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the files of a release."""
    folder = tmp_path_factory.mktemp("released") / "dist"
    done = release(repository, folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def plugin(released: Path, tmp_path: Path) -> Path:
    """The folder of the plugin as it was unpacked."""
    with zipfile.ZipFile(released / "tidegate-plugin.zip") as archive:
        archive.extractall(tmp_path / "plugin")
    return tmp_path / "plugin"
