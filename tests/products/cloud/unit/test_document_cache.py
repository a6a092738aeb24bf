"""Documents that were read once are read from the cache, and a damaged cache changes nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.document_cache import DocumentCache
from tidegate.products.cloud.documents.yaml_reader import read_yaml

LONG = b"a: [1, 2.5, true, null, 'x']\nb: &x {c: d}\ne: *x\n" + b"# filling\n" * 2_000


def test_what_was_read_once_comes_from_the_cache(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "cache"
    cache = DocumentCache(directory)
    first = cache.read(LONG, "d")
    (file,) = directory.iterdir()
    assert first == read_yaml(LONG, "d")
    assert directory.stat().st_mode & 0o077 == file.stat().st_mode & 0o077 == 0
    file.write_bytes(b"\x81\xa1a\x07")
    assert cache.read(LONG, "d") == {"a": 7}


def test_a_changed_document_is_read_again(tmp_path: Path) -> None:
    cache = DocumentCache(tmp_path)
    cache.read(LONG, "d")
    assert cache.read(LONG.replace(b"'x'", b"'y'"), "d")["a"][-1] == "y"


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x82\xa1a"])
def test_a_damaged_file_is_as_if_there_were_none(tmp_path: Path, content: bytes) -> None:
    cache = DocumentCache(tmp_path)
    cache.read(LONG, "d")
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    assert cache.read(LONG, "d") == read_yaml(LONG, "d")
    assert file.read_bytes() != content


def test_a_directory_that_cannot_be_made_is_as_if_there_were_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = DocumentCache(tmp_path / "file" / "cache")
    assert cache.read(LONG, "d") == read_yaml(LONG, "d")


def test_what_the_format_cannot_hold_and_what_is_short_is_not_kept(tmp_path: Path) -> None:
    cache = DocumentCache(tmp_path)
    huge = b"n: " + b"9" * 40 + b"\n" + LONG
    assert cache.read(huge, "d")["n"] == int("9" * 40)
    assert cache.read(b"a: 1", "d") == {"a": 1}
    with pytest.raises(TidegateError, match="d, line"):
        cache.read(b"a: [\n" + LONG, "d")
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_files_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.products.cloud.documents.document_cache._MOST_FILES", 4)
    cache = DocumentCache(tmp_path)
    for number in range(9):
        cache.read(b"%d: x\n" % number + LONG, "d")
        assert len(list(tmp_path.iterdir())) <= 4


def test_a_folder_that_others_may_write_is_refused_and_their_files_are_not_used(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "cache"
    directory.mkdir(mode=0o700)
    cache = DocumentCache(directory)
    cache.read(LONG, "a.yaml")
    (kept,) = directory.glob("*.msgpack")
    kept.write_bytes(msgspec.msgpack.encode({"forged": True}))
    assert cache.read(LONG, "a.yaml") == {"forged": True}  # by this account itself
    kept.chmod(0o666)
    assert cache.read(LONG, "a.yaml") != {"forged": True}
    directory.chmod(0o777)
    with pytest.raises(TidegateError) as caught:
        DocumentCache(directory)
    assert caught.value.code is Code.CONFIG_INVALID
    assert str(directory) in caught.value.message
