"""Files for this account alone: their modes from the first moment on, links and pipes in their
place, and what is left when something fails."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tidegate.system.file_rights import is_open_to_others
from tidegate.system.private_files import (
    Folder,
    NotAFileError,
    create_file,
    create_once,
    make_private_directory,
    open_existing,
    open_file,
    private_umask,
    replace_file,
    write_new_file,
)

Make = Callable[[Path], object]

MAKERS: dict[str, Make] = {
    "create": lambda path: os.close(create_file(path)),
    "open": lambda path: os.close(open_file(path, "read and write")),
    "append": lambda path: os.close(open_file(path, "append")),
    "overwrite": lambda path: os.close(open_file(path, "overwrite")),
    "new": lambda path: write_new_file(path, b"text"),
    "replace": lambda path: replace_file(path, b"text"),
    "once": lambda path: create_once(path, b"text"),
    "directory": make_private_directory,
    "folder": lambda path: os.close(Folder(path.parent).create_file(path.name)),
}


@pytest.fixture(autouse=True)
def open_umask() -> Generator[None]:
    """A process that would let everyone read and write what it makes."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_what_is_made_is_for_this_account_alone(tmp_path: Path, make: Make) -> None:
    path = tmp_path / "made"
    make(path)
    assert not is_open_to_others(path.stat())
    assert [each.name for each in tmp_path.iterdir()] == ["made"]


def test_a_public_file_may_be_read_by_all_and_written_by_us(tmp_path: Path) -> None:
    replace_file(tmp_path / "key.pub", b"text", all_may_read=True)
    assert stat.S_IMODE((tmp_path / "key.pub").stat().st_mode) == 0o644


def test_what_a_library_makes_is_for_this_account_alone(tmp_path: Path) -> None:
    with private_umask():
        (tmp_path / "made").write_text("")
    assert not is_open_to_others((tmp_path / "made").stat())


@pytest.mark.parametrize("make", [create_file, lambda path: write_new_file(path, b"text")])
def test_a_new_file_is_not_made_through_a_link(tmp_path: Path, make: Make) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        make(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_is_opened_through_a_link_only_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        open_file(tmp_path / "link", "append", follow=False)
    os.close(open_file(tmp_path / "link", "append"))
    assert (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "directory"])
def test_a_pipe_or_a_directory_is_no_file_and_keeps_no_one_waiting(
    tmp_path: Path, make: Make
) -> None:
    make(tmp_path / "odd")
    with pytest.raises(NotAFileError):
        open_existing(tmp_path / "odd")


def test_a_link_to_a_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(OSError, match="symbolic links"):
        open_existing(tmp_path / "link")


def test_what_cannot_take_its_place_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError):
        replace_file(tmp_path / "taken", b"text")
    create_once(tmp_path / "file", b"first")
    create_once(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first"
    assert {each.name for each in tmp_path.iterdir()} == {"taken", "file"}


def test_a_folder_that_was_entered_stays_the_same_when_another_takes_its_path(
    tmp_path: Path,
) -> None:
    (tmp_path / "inner").mkdir()
    folder = Folder(tmp_path)
    folder.enter("inner")
    (tmp_path / "inner").rename(tmp_path / "moved")
    (tmp_path / "inner").symlink_to("/")
    descriptor = folder.create_file("new")
    made_as = os.fstat(descriptor)
    os.close(descriptor)
    assert (tmp_path / "moved" / "new").exists()
    with pytest.raises(OSError):
        folder.enter("..none")
    folder.remove_file("new", made_as)
    assert list((tmp_path / "moved").iterdir()) == []
    folder.close()
