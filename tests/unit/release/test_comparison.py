"""Two builds must have the same files with the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from release import Refusal
from release.__main__ import compare


def _folder(place: Path, **files: str) -> Path:
    place.mkdir()
    for name, text in files.items():
        (place / name).write_text(text)
    return place


def test_the_same_bytes_are_accepted(tmp_path: Path) -> None:
    compare(_folder(tmp_path / "one", wheel="a"), _folder(tmp_path / "two", wheel="a"))


def test_another_byte_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="Two builds of wheel differ"):
        compare(_folder(tmp_path / "one", wheel="a"), _folder(tmp_path / "two", wheel="b"))


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="different files"):
        compare(
            _folder(tmp_path / "one", wheel="a", sdist="b"), _folder(tmp_path / "two", wheel="a")
        )
