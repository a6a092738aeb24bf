"""The settings file: what is read, and that nothing misspelt is ever ignored."""

import os
import stat

import msgspec
import pytest

from tidegate.config.addresses import http_address
from tidegate.config.loading import load
from tidegate.config.model import Config
from tidegate.config.sections import Section
from tidegate.config.sources import check_source_name
from tidegate.config.state import state_directory
from tidegate.errors import Code, TidegateError

TOML = """
surfaces = ["workbench", "core"]
allow_writes = true
[[sources]]
name = "shop"
url = "sqlite:///shop.db"
access = "write"
tags = ["demo"]
[limits]
max_rows = 2000
[audit]
failure_mode = "strict"
"""
JSON = """{"surfaces": ["workbench", "core"], "allow_writes": true,
"sources": [{"name": "shop", "url": "sqlite:///shop.db", "access": "write",
"tags": ["demo"]}], "limits": {"max_rows": 2000}, "audit": {"failure_mode": "strict"}}"""
YAML = """
surfaces: [workbench, core]
allow_writes: true
sources:
  - name: shop
    url: sqlite:///shop.db
    access: write
    tags: [demo]
limits: {max_rows: 2000}
audit:
  failure_mode: strict
"""


def refusal(settings: str) -> TidegateError:
    with pytest.raises(TidegateError) as caught:
        load(settings)
    assert caught.value.code is Code.CONFIG_INVALID
    return caught.value


def test_toml_json_yaml_and_inline_settings_say_the_same(tmp_path):
    loaded = [load(JSON)]
    for suffix, text in (("toml", TOML), ("json", JSON), ("yaml", YAML), ("yml", YAML)):
        path = tmp_path / f"gate.{suffix}"
        path.write_text(text)
        loaded.append(load(str(path)))
    assert loaded == [loaded[0]] * 5
    assert loaded[0].sources[0].tags == ("demo",)
    assert loaded[0].limits.max_rows == 2000
    assert loaded[0].limits.default_rows == 500


def test_the_defaults_are_the_safe_ones():
    config = load("{}")
    assert config == Config()
    assert config.auth
    assert not config.allow_writes
    assert config.audit.failure_mode == "strict"
    assert load('{"sources": [{"name": "a", "url": "x"}]}').sources[0].access == "read"


def test_a_misspelt_setting_is_an_error_that_names_its_path_and_the_right_name():
    error = refusal('{"limits": {"max_row": 5}}')
    assert "`limits.max_row`" in error.message
    assert error.hint == "Did you mean `max_rows`?"
    error = refusal('{"sources": [{"name": "a", "url": "x"}, {"name": "b", "uri": "x"}]}')
    assert "`sources[1].uri`" in error.message
    assert error.hint == "Did you mean `url`?"


def test_a_setting_that_resembles_none_lists_the_known_ones():
    assert "failure_mode" in refusal('{"audit": {"zzz": 1}}').hint


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ('{"limits": {"max_rows": "many"}}', "limits.max_rows"),
        ('{"limits": {"max_rows": 0}}', "limits.max_rows"),
        ('{"sources": [{"name": "a"}]}', "sources[0]"),
        ('{"auth": "no"}', "auth"),
        ('{"bridge": {"scope": "all"}}', "bridge.scope"),
        ('{"limits": {"default_rows": 20000}}', "limits.default_rows"),
        ('{"limits": {"timeout_s": 301}}', "limits.timeout_s"),
        ('{"sources": 3}', "sources"),
        ('{"limits": []}', "limits"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_that_names_its_place(settings, place):
    assert f"`{place}`" in refusal(settings).message


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ('{"audit": {"failure_mode": "best_efort"}}', "Did you mean `best_effort`?"),
        ('{"audit": {"failure_mode": "Strict"}}', "Did you mean `strict`?"),
        (
            '{"sources": [{"name": "a", "url": "sqlite:///a", "access": "wirte"}]}',
            "Did you mean `write`?",
        ),
        (
            '{"audit": {"failure_mode": "zzz"}}',
            "Choose from strict, strict_mutations, best_effort.",
        ),
    ],
)
def test_a_word_that_does_not_fit_is_answered_with_the_nearest_or_with_all(settings, hint):
    assert refusal(settings).hint == hint


def test_a_key_given_twice_is_refused_in_every_format(tmp_path):
    assert "twice" in refusal('{"auth": true, "auth": false}').message
    for suffix, text in (
        ("yaml", "auth: true\nauth: false\n"),
        ("toml", "auth = true\nauth = false\n"),
    ):
        path = tmp_path / f"gate.{suffix}"
        path.write_text(text)
        refusal(str(path))


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("toml", "= 1"),
        ("json", "{"),
        ("yaml", "a: ["),
        ("yaml", "- a"),
        ("json", "[]"),
        ("ini", ""),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, suffix, text):
    path = tmp_path / f"gate.{suffix}"
    path.write_text(text)
    refusal(str(path))


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert "nothing.toml" in refusal(str(tmp_path / "nothing.toml")).message


def test_an_empty_yaml_file_is_all_defaults(tmp_path):
    path = tmp_path / "gate.yaml"
    path.write_text("# nothing yet\n")
    assert load(str(path)) == Config()


def test_two_sources_of_one_name_are_refused():
    error = refusal('{"sources": [{"name": "a", "url": "x"}, {"name": "a", "url": "y"}]}')
    assert "`a`" in error.message


@pytest.mark.parametrize("name", ["a", "shop", "9", "a.b-c_d", "A" * 64])
def test_a_plain_name_can_name_a_source(name):
    check_source_name(name)


@pytest.mark.parametrize("name", ["", "-a", ".a", "_a", "a b", "a/b", "A" * 65, "ä", "a\n"])
def test_a_name_with_anything_else_cannot(name):
    with pytest.raises(TidegateError):
        check_source_name(name)


def test_addresses_are_split_and_others_refused():
    assert http_address("127.0.0.1:7878") == ("127.0.0.1", 7878)
    assert http_address("[::1]:0") == ("::1", 0)
    for text in ("7878", ":7878", "host:", "host:http", "host:70000", "::1:80", "host:-1"):
        with pytest.raises(TidegateError):
            http_address(text)


def test_without_authentication_only_loopback_is_served():
    assert "192.0.2.1" in refusal('{"auth": false, "http": "192.0.2.1:80"}').message
    for address in ("127.0.0.1:80", "[::1]:80", "localhost:80"):
        assert load(f'{{"auth": false, "http": "{address}"}}').http == address


class Echo(Section, frozen=True):
    """A product that listens."""

    NAME = "echo"
    listen: str

    @property
    def listen_address(self) -> str:
        return self.listen


def test_two_that_listen_at_one_address_are_refused():
    with pytest.raises(TidegateError) as caught:
        Config(http="127.0.0.1:80", sections={"echo": Echo("127.0.0.1:80")})
    assert "`http` and `echo.listen`" in caught.value.message
    for other in ("localhost:80", "0.0.0.0:80", "[::]:80"):
        with pytest.raises(TidegateError, match="where `http` listens too"):
            Config(http="127.0.0.1:80", sections={"echo": Echo(other)})
    for other in ("127.0.0.1:81", "192.0.2.1:80", "localhost:81", "[::1]:80"):
        Config(http="127.0.0.1:80", sections={"echo": Echo(other)})
    Config(http="127.0.0.1:0", sections={"echo": Echo("127.0.0.1:0")})


def test_flags_laid_over_settings_pass_the_same_checks():
    config = load('{"http": "192.0.2.1:80"}')
    with pytest.raises(TidegateError):
        msgspec.structs.replace(config, auth=False)


def test_the_state_directory_is_made_for_its_owner_alone(tmp_path):
    path = state_directory(str(tmp_path / "deep" / "state"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_the_state_directory_comes_from_the_setting_else_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEGATE_STATE", str(tmp_path / "environment"))
    assert state_directory(None) == tmp_path / "environment"
    assert state_directory(str(tmp_path / "setting")) == tmp_path / "setting"
    monkeypatch.delenv("TIDEGATE_STATE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_directory(None).is_relative_to(tmp_path)


def test_a_state_directory_that_everyone_can_write_is_refused(tmp_path):
    path = tmp_path / "open"
    path.mkdir()
    path.chmod(0o777)
    with pytest.raises(TidegateError) as caught:
        state_directory(str(path))
    assert caught.value.code is Code.STATE_FAILED
    assert "chmod 700" in caught.value.hint


def test_a_state_directory_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TidegateError) as caught:
        state_directory(os.fspath(tmp_path / "file" / "state"))
    assert caught.value.code is Code.STATE_FAILED


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a directory away needs root")
def test_a9_a_state_directory_of_another_account_is_refused(tmp_path):
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    os.chown(path, 65534, 65534)
    with pytest.raises(TidegateError) as caught:
        state_directory(str(path))
    assert caught.value.code is Code.STATE_FAILED
    assert "another account" in caught.value.message
    assert list(path.iterdir()) == []
