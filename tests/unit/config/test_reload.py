"""A server follows its settings file: what is said of sources holds from the next look."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.config.loading import load
from tidegate.config.model import Config
from tidegate.config.reload import FOLLOWED, ConfigWatcher, PendingRestart, _settled
from tidegate.errors import Code, TidegateError


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "tidegate.json"
    path.write_text("{}")
    return path


def look(following: ConfigWatcher, settings: Path) -> Config | None:
    return following.look(lambda: load(str(settings)))


def test_a_file_that_stays_as_it_is_says_nothing_new(settings: Path) -> None:
    following = ConfigWatcher(settings)
    assert look(following, settings) is None
    assert look(following, settings) is None


def test_a_change_is_reported_once(settings: Path) -> None:
    following = ConfigWatcher(settings)
    settings.write_text('{"sources": [{"name": "a", "url": "sqlite:///a.db"}]}')
    changed = look(following, settings)
    assert changed is not None
    assert [source.name for source in changed.sources] == ["a"]
    assert look(following, settings) is None


def test_a_change_before_the_first_reading_is_seen(settings: Path) -> None:
    following = ConfigWatcher(settings)
    settings.write_text('{"allow_writes": true}')
    assert look(following, settings) is not None


@pytest.mark.parametrize("content", ["{", '{"sauces": []}', None])
def test_while_the_file_cannot_be_used_every_look_fails(
    settings: Path, content: str | None
) -> None:
    following = ConfigWatcher(settings)
    if content is None:
        settings.unlink()
    else:
        settings.write_text(content)
    for _ in range(2):
        with pytest.raises(TidegateError) as caught:
            look(following, settings)
        assert caught.value.code is Code.CONFIG_INVALID
    settings.write_text('{"auth": true}')
    assert look(following, settings) is not None
    assert look(following, settings) is None


def test_a_file_that_is_being_written_has_no_rules_yet(tmp_path: Path) -> None:
    settings, rules = tmp_path / "tidegate.toml", '[[masks]]\ncolumn = "towns.name"\n'
    settings.write_text(rules)
    following = ConfigWatcher(settings)
    settings.write_text("")
    with pytest.raises(TidegateError):
        look(following, settings)

    def load_the_first_half() -> Config:
        settings.write_text("allow_writes = true\n")
        found = load(str(settings))
        settings.write_text("allow_writes = true\n" + rules)
        return found

    settings.write_text(rules)
    with pytest.raises(TidegateError):
        following.look(load_the_first_half)
    changed = look(following, settings)
    assert changed is not None and changed.masks


def test_what_was_loaded_and_could_not_be_put_to_use_is_loaded_again(settings: Path) -> None:
    following = ConfigWatcher(settings)
    settings.write_text('{"allow_writes": true}')
    assert look(following, settings) is not None
    following.forget()
    assert look(following, settings) is not None
    assert look(following, settings) is None


def test_every_followed_setting_is_one() -> None:
    settled = {name for name, _ in _settled(Config())}
    for name in FOLLOWED:
        section, _, inner = name.partition(".")
        value = getattr(Config(), section)
        assert not inner or hasattr(value, inner)
        assert name not in settled


def test_settings_that_wait_for_a_start_are_reported_once_for_each_change() -> None:
    awaited = PendingRestart(Config())
    http = {"http": "127.0.0.1:0"}
    source = {"name": "a", "url": "sqlite:///a.db"}
    steps: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"sources": [source]}, ()),
        ({"bridge": {"scope": "readWrite"}, "approvals": {"dry_run": False}}, ()),
        (http, ("http",)),
        ({**http, "masks": [{"column": "a.b"}]}, ()),
        (
            {**http, "limits": {"max_rows": 1000, "timeout_s": 5}},
            ("limits.max_rows", "limits.timeout_s"),
        ),
        ({"limits": {"max_rows": 1000, "timeout_s": 6}}, ("limits.timeout_s",)),
        ({}, ()),
        (http, ("http",)),
    ]
    for settings, names in steps:
        assert awaited.unreported(load(json.dumps(settings))) == names
