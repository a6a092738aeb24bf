"""Errors of settings name what is wrong and show no secret that was written in a wrong place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.config.errors import invalid
from tidegate.config.loading import load
from tidegate.errors import Code, TidegateError

OAUTH = {"issuer": "https://login.example", "resource": "https://db.example/mcp"}
OAUTH_SCOPES = {"scopes": {"db": "readOnly"}}
MISPLACED: tuple[dict[str, Any], ...] = (
    {"oauth": {**OAUTH, **OAUTH_SCOPES, "issuer": "https://user:hush@login.example/"}},
    {"oauth": {**OAUTH, **OAUTH_SCOPES, "resource": "https://hush@db.example/mcp"}},
    {"oauth": {**OAUTH, **OAUTH_SCOPES, "jwks_url": "https://login.example/keys?key=hush"}},
    {"oauth": {**OAUTH, **OAUTH_SCOPES, "jwks_url": f"https://user:hush{'x' * 90}@login.example/"}},
    {"oauth": {**OAUTH, **OAUTH_SCOPES, "jwks_url": "https://user:p/a@hush@login.example/"}},
    {"http": "127.0.0.1:1", "console": {"enabled": True, "origin": "https://user:hush@db.example"}},
    {"allowed_origins": ["https://user:hush@db.example/page"]},
    {"embeddings": {"provider": "openai", "base_url": "ftp://user:hush@model.example/"}},
    {"embeddings": {"provider": "openai", "api_key": "hush${ENV:REST}"}},
    {"embeddings": {"provider": "openai", "api_key": "${ENV:BEGIN}hush"}},
    {"cloud": {"registry": "https://user:hush@files.example"}},
    {"cloud": {"private_hosts": ["user:hush@db.example"]}},
    {"cloud": {"endpoints": {"https://user:hush@db.example": "http://127.0.0.1:1"}}},
    {"drivers": {"repository": "https://user:hush@files.example"}},
)


@pytest.mark.parametrize("settings", MISPLACED, ids=str)
def test_a_login_a_query_and_a_key_are_not_shown(settings: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "tidegate.json"
    file.write_text(json.dumps(settings))
    file.chmod(0o600)
    with pytest.raises(TidegateError) as caught:
        load(str(file))
    assert caught.value.code is Code.CONFIG_INVALID
    assert "hush" not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    "message",
    [
        "`a` is `https://db.example:8443/path`, which is no origin.",
        "`a` is `http://[::1]:8080/`: not that.",
        "`oauth.issuer` is `http://db.example:80`.",
        "A setting is not valid: `a`: Expected `int`.",
    ],
)
def test_the_rest_of_an_address_is_shown(message: str) -> None:
    assert invalid(message).message == message
