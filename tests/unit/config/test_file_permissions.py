"""A file that grants rights is refused while another account could write it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidegate.config.file_permissions import require_private_file
from tidegate.config.loading import load
from tidegate.errors import Code, TidegateError

NOBODY = "nobody"
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away, which root alone may")


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    place = tmp_path / "kept"
    place.mkdir(mode=0o755)
    path = place / "tidegate.toml"
    path.write_text('http = "127.0.0.1:0"\n')
    path.chmod(0o644)
    return path


def refusal(path: Path, *accounts: str) -> str:
    with pytest.raises(TidegateError) as caught:
        require_private_file(path, accounts)
    assert caught.value.code is Code.CONFIG_INVALID
    return caught.value.message


def test_a_file_of_ours_that_only_we_write_is_taken(settings: Path) -> None:
    require_private_file(settings, [NOBODY])
    assert load(str(settings)).http == "127.0.0.1:0"


def test_a_file_that_everybody_may_write_is_refused_and_not_read(settings: Path) -> None:
    settings.chmod(0o646)
    with pytest.raises(TidegateError) as caught:
        load(str(settings))
    assert "Every account could write" in caught.value.message
    assert "chmod go-w" in caught.value.hint


def test_a_directory_that_everybody_may_write_is_as_good_as_the_file(settings: Path) -> None:
    settings.parent.chmod(0o777)
    assert str(settings.parent) in refusal(settings)


def test_a_link_is_followed_to_where_it_leads(settings: Path, tmp_path: Path) -> None:
    settings.chmod(0o646)
    link = tmp_path / "link.toml"
    link.symlink_to(settings)
    assert str(settings) in refusal(link)


@ROOT
def test_a_file_of_the_agents_account_is_refused(settings: Path) -> None:
    os.chown(settings, 65_534, -1)
    assert "belongs to another account" in refusal(settings)
    assert f"`{NOBODY}` owns" in refusal(settings, NOBODY)


def test_a_link_in_a_directory_that_everybody_may_write_is_refused(
    settings: Path, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "tidegate.toml").symlink_to(settings)
    assert str(shared) in refusal(shared / "tidegate.toml")


def test_every_link_on_the_way_is_looked_at(settings: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "inner").symlink_to(settings.parent)
    (tmp_path / "outer").symlink_to(Path("shared") / ".." / "shared" / "inner")
    assert str(shared) in refusal(tmp_path / "outer" / "tidegate.toml")


@ROOT
def test_a_link_of_another_account_is_refused_where_only_its_owner_may_replace_it(
    settings: Path, tmp_path: Path
) -> None:
    sticky = tmp_path / "sticky"
    sticky.mkdir()
    sticky.chmod(0o1777)
    link = sticky / "tidegate.toml"
    link.symlink_to(settings)
    require_private_file(link)
    os.chown(link, 65_534, -1, follow_symlinks=False)
    assert "belongs to another account" in refusal(link)
    assert f"`{NOBODY}` owns" in refusal(link, NOBODY)


@ROOT
@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_directory_of_another_account_is_as_good_as_the_file(settings: Path, mode: int) -> None:
    settings.parent.chmod(mode)
    os.chown(settings.parent, 65_534, -1)
    assert "belongs to another account" in refusal(settings)


@ROOT
def test_a_group_that_the_agents_account_is_in_must_not_write(settings: Path) -> None:
    os.chown(settings, -1, 65_534)
    settings.chmod(0o664)
    assert f"`{NOBODY}` could write" in refusal(settings, NOBODY)


def test_an_account_that_is_not_there_is_an_error(settings: Path) -> None:
    assert "There is no account" in refusal(settings, "no-such-account")
