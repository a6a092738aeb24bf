"""The configuration of StackQL's MCP server as settings: each key is followed or refused."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.config.loading import load
from tidegate.config.model import Config
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.commands.server_settings import with_cloud_server
from tidegate.products.cloud.surface.settings import seconds
from tidegate.surfaces.registry import check_surfaces, read_settings

WHOLE: dict[str, Any] = {
    "server": {
        "name": "inventory",
        "version": "1.2.3",
        "description": "What we have",
        "transport": "http",
        "address": "127.0.0.1:9999",
        "scheme": "https",
        "tls_cert_file": "/c.pem",
        "tls_key_file": "/k.pem",
        "max_concurrent_requests": 7,
        "request_timeout": "1m30s",
        "mode": "delete_safe",
        "read_only": True,
        "render": "json",
        "audit": {
            "disabled": False,
            "failure_mode": "strict_mutations",
            "sink": "file",
            "file": {"path": "calls.log", "max_size_mb": 5, "max_backups": 3, "max_age_days": 9},
        },
    },
    "backend": {
        "type": "stackql",
        "app_name": "stackql",
        "dsn": "stackql://localhost",
        "max_connections": 4,
        "connection_timeout": "500ms",
        "query_timeout": "1h",
    },
    "enabled_tools": ["server_info", "run_select_query"],
    "enabled_prompts": ["write_safe_select"],
}
YAML = "server:\n  mode: read_only\nenabled_tools: [server_info]\n"
TOML = 'enabled_tools = ["server_info"]\n[server]\nmode = "read_only"\n'


def served(config: Config, **given: Any) -> Config:
    """The settings of a server that is started with these options."""
    names = dict.fromkeys(("http", "stdio", "tls_cert", "tls_key"), None)
    return with_cloud_server(config, argparse.Namespace(**(names | given)))


def checked(settings: dict[str, Any]) -> Config:
    config = load(json.dumps(settings))
    check_surfaces(config)
    return config


def refusal(settings: dict[str, Any]) -> str:
    with pytest.raises(TidegateError) as refused:
        served(checked(settings))
    assert refused.value.code is Code.CONFIG_INVALID
    return refused.value.message


def test_the_configuration_alone_is_that_of_the_surface_cloud() -> None:
    config = served(checked(WHOLE))
    assert config.surfaces == ("cloud",)
    assert config.http == "127.0.0.1:9999"
    assert config.tls is not None
    assert (config.tls.cert, config.tls.key) == ("/c.pem", "/k.pem")
    assert config.allow_writes
    settings: Any = read_settings("cloud", config)
    assert settings.mode == "delete_safe"
    assert settings.server.request_timeout_s == 90
    assert settings.backend.connection_timeout_s == 0.5
    assert settings.backend.query_timeout_s == 3600
    assert settings.server.audit.file.max_backups == 3


def test_under_the_section_of_the_surface_it_means_the_same_and_gives_no_rights() -> None:
    config = served(checked({"surface": {"cloud": WHOLE}, "surfaces": ["core", "cloud"]}))
    assert config.surfaces == ("core", "cloud")
    assert config.http == "127.0.0.1:9999"
    assert not config.allow_writes


@pytest.mark.parametrize(
    ("server", "mode", "writes"),
    [
        ({}, "safe", True),
        ({"read_only": True}, "read_only", False),
        ({"read_only": False}, "safe", True),
        ({"read_only": True, "mode": "full_access"}, "full_access", True),
        ({"mode": "read_only"}, "read_only", False),
    ],
)
def test_the_mode_wins_over_the_older_setting(server: Any, mode: str, writes: bool) -> None:
    config = checked({"server": server})
    settings: Any = read_settings("cloud", config)
    assert settings.mode == mode
    assert config.allow_writes is writes


@pytest.mark.parametrize(
    ("name", "text"),
    [("c.yaml", YAML), ("c.toml", TOML), ("c.json", '{"server":{"mode":"read_only"}}')],
)
def test_a_file_of_each_format_is_read_and_so_is_its_text(
    tmp_path: Path, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    path.chmod(0o600)
    for given in (str(path), text):
        settings: Any = read_settings("cloud", load(given))
        assert settings.mode == "read_only"


def test_an_object_in_braces_may_be_yaml() -> None:
    settings: Any = read_settings("cloud", load("{server: {mode: read_only}}"))
    assert settings.mode == "read_only"


@pytest.mark.parametrize(
    "text",
    [
        "{server: }}",
        '{"server": {"mode": "safe"},}{',
        "server\nmode",
        '{"server": 1}',
        "a: b: c\nd",
    ],
)
def test_text_that_cannot_be_read_is_an_error_and_no_default(text: str) -> None:
    with pytest.raises(TidegateError) as refused:
        check_surfaces(load(text))
    assert refused.value.code is Code.CONFIG_INVALID


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"server": {"mode": "yolo"}}, "surface.cloud.server.mode"),
        ({"server": {"mode": "saef"}}, "surface.cloud.server.mode"),
        ({"server": {"transport": "sse"}}, "surface.cloud.server.transport"),
        ({"server": {"transport_cfg": {"a": 1}}}, "surface.cloud.server.transport_cfg"),
        ({"server": {"max_concurrent_requests": 0}}, "max_concurrent_requests"),
        ({"server": {"request_timeout": 30}}, "request_timeout"),
        ({"server": {"request_timeout": "30"}}, "surface.cloud.server.request_timeout"),
        ({"server": {"read_ony": True}}, "surface.cloud.server.read_ony"),
        ({"server": {"render": "html"}}, "surface.cloud.server.render"),
        ({"server": {"audit": {"sink": "otel"}}}, "surface.cloud.server.audit.sink"),
        ({"server": {"audit": {"disable": True}}}, "surface.cloud.server.audit.disable"),
        ({"server": {"audit": {"file": {"path": "a", "dir": "b"}}}}, "`path` and `dir`"),
        ({"server": {"audit": {"failure_mode": "explode"}}}, "failure_mode"),
        ({"backend": {"type": "tcp"}}, "surface.cloud.backend.type"),
        ({"backend": {"dsn": "postgres://u:secret@h/d"}}, "surface.cloud.backend.dsn"),
        ({"backend": {"app_name": "postgres"}}, "surface.cloud.backend.app_name"),
        ({"backend": {"connection_string": "x"}}, "surface.cloud.backend.connection_string"),
        ({"backend": {"query_timeout": "-1s"}}, "surface.cloud.backend.query_timeout"),
        ({"query_library": {"offline": True}}, "surface.cloud.query_library"),
        ({"enabled_resources": ["x"]}, "surface.cloud.enabled_resources"),
        ({"enabled_tools": ["server_inf"]}, "surface.cloud.enabled_tools"),
        ({"enabled_prompts": ["nothing"]}, "surface.cloud.enabled_prompts"),
        ({"server": {"scheme": "https"}}, "surface.cloud.server.tls_cert_file"),
        ({"server": {"tls_cert_file": "/c"}}, "surface.cloud.server.tls_key_file"),
        ({"server": {"transport": "stdio", "address": "h:1"}}, "surface.cloud.server.address"),
    ],
)
def test_a_key_that_cannot_be_followed_is_refused_by_its_name(
    settings: dict[str, Any], named: str
) -> None:
    assert named in refusal(settings)


def test_keys_of_both_configurations_side_by_side_are_refused_with_both_names() -> None:
    message = refusal({"server": {"mode": "safe"}, "sources": []})
    assert "`server`" in message
    assert "`sources`" in message


@pytest.mark.parametrize(
    ("server", "given", "named"),
    [
        ({"address": "127.0.0.1:1"}, {"http": "127.0.0.1:2"}, ("address", "--http")),
        ({"transport": "stdio"}, {"http": "127.0.0.1:2"}, ("transport", "--http")),
        ({"transport": "http"}, {"stdio": True}, ("transport", "--stdio")),
        (
            {"tls_cert_file": "/c", "tls_key_file": "/k"}, {"tls_cert": "/d"},
            ("tls_cert_file", "--tls-cert"),
        ),
        ({"address": "127.0.0.1:1"}, {"tls_key": "/k"}, ("address", "--tls-key")),
    ],
)  # fmt: skip
def test_an_option_that_says_the_same_is_a_conflict_that_names_both(
    server: dict[str, Any], given: dict[str, Any], named: tuple[str, str]
) -> None:
    config = checked({"server": server})
    with pytest.raises(TidegateError) as refused:
        served(config, **given)
    assert f"`surface.cloud.server.{named[0]}`" in refused.value.message
    assert f"`{named[1]}`" in refused.value.message


def test_a_setting_of_ours_that_says_the_same_is_a_conflict_too() -> None:
    section = {"server": {"address": "127.0.0.1:1"}}
    message = refusal({"http": "127.0.0.1:2", "surface": {"cloud": section}})
    assert "`surface.cloud.server.address`" in message
    assert "`http`" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30s", 30), ("1m30s", 90), ("1.5h", 5400), ("500ms", 0.5), (".5s", 0.5), ("1h0m1s", 3601)],
)
def test_durations_are_those_of_go(text: str, expected: float) -> None:
    assert seconds(text, "x") == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "30", "0s", "-1s", "1d", "s", "1 s", "1s ", "25h", "1e3s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(TidegateError, match="`x` cannot be"):
        seconds(text, "x")


def test_a_misspelt_key_of_the_object_alone_gets_the_nearest_one() -> None:
    with pytest.raises(TidegateError) as caught:
        load('{"server": {"mode": "safe"}, "enabled_tols": ["server_info"]}')
    assert "`enabled_tols`" in caught.value.message
    assert caught.value.hint == "Did you mean `enabled_tools`?"
