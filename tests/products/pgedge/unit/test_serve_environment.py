"""What `serve --surface postgres` takes from the environment, beneath its options and settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.cli.parser import build
from tidegate.cli.settings import load_for_serve
from tidegate.config.model import Config


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PGHOST": "db.example",
        "PGUSER": "reader",
        "PGEDGE_HTTP_ENABLED": "true",
        "PGEDGE_HTTP_ADDRESS": "127.0.0.1:8081",
        "PGEDGE_AUTH_ENABLED": "false",
    }.items():
        monkeypatch.setenv(name, value)


def load(*words: str) -> Config:
    return load_for_serve(build().parse_args(["serve", *words]))


def test_the_database_of_the_environment_is_the_one_of_calls_that_name_none() -> None:
    config = load("--surface", "postgres")
    assert [source.name for source in config.sources] == ["default"]
    assert config.surface["postgres"]["source"] == "default"
    assert (config.http, config.auth) == ("127.0.0.1:8081", False)


def test_options_come_before_the_environment(tmp_path: Path) -> None:
    config = load(
        "--surface", "postgres", "--source", "shop=sqlite:////x.db", "--http", "127.0.0.1:9"
    )
    assert config.surface["postgres"]["source"] == "shop"
    assert (config.http, config.auth) == ("127.0.0.1:9", False)
    assert load("--surface", "postgres", "--stdio").http is None


def test_settings_come_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.toml"
    file.write_text('http = "127.0.0.1:7"\n[surface.postgres]\nsource = "other"\n')
    file.chmod(0o600)
    config = load("--surface", "postgres", "--config", str(file))
    assert (config.http, config.surface["postgres"]["source"]) == ("127.0.0.1:7", "other")


def test_other_surfaces_take_nothing_from_it() -> None:
    config = load("--surface", "core")
    assert (config.sources, config.http, config.auth) == ((), None, True)
