"""`tidegate install --link`: a link that a client opens has the entry that `install` writes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from support.command_line import Ended, environment, tidegate

Run = Callable[..., Ended]


@pytest.fixture
def run(state: Path, tmp_path: Path) -> Run:
    (tmp_path / "home").mkdir()

    def run(*words: str, **more: str) -> Ended:
        variables = environment(state) | {"HOME": str(tmp_path / "home"), **more}
        return tidegate(*words, variables=variables, cwd=tmp_path / "home", stdin="")

    return run


def shown(ended: Ended, key: str, name: str = "tidegate") -> object:
    assert ended.status == 0, ended.err
    return json.loads(ended.out)[key][name]


def test_cursors_link_has_the_name_and_the_entry(run: Run, tmp_path: Path) -> None:
    words = ("install", "cursor", "--name", "shop", "--surface", "core")
    ended = run(*words, "--link")
    link = urlsplit(ended.out.strip())
    assert (link.scheme, link.netloc, link.path) == (
        "cursor", "anysphere.cursor-deeplink", "/mcp/install",
    )  # fmt: skip
    query = parse_qs(link.query, strict_parsing=True)
    assert query["name"] == ["shop"]
    entry = json.loads(base64.b64decode(query["config"][0], validate=True))
    assert entry == shown(run(*words, "--print"), "mcpServers", "shop")
    assert not any((tmp_path / "home").iterdir()), "something was written"


def test_vs_codes_link_has_the_entry_with_its_name(run: Run) -> None:
    words = ("install", "vscode", "--surface", "core")
    link = run(*words, "--link").out.strip()
    scheme, _, encoded = link.partition("?")
    assert scheme == "vscode:mcp/install"
    entry = json.loads(unquote(encoded))
    assert entry.pop("name") == "tidegate"
    assert entry == shown(run(*words, "--print"), "servers")


@pytest.mark.parametrize("client", ["cursor", "vscode"])
def test_a_link_refers_to_variables_and_has_no_value(run: Run, client: str) -> None:
    """A link is passed on more easily than a file."""
    link = run("install", client, "--link", "--env", "SHOP_PW", SHOP_PW="geheim").out.strip()
    text = unquote(link)
    if client == "cursor":
        config = parse_qs(urlsplit(link).query)["config"][0]
        text = base64.b64decode(config).decode()
    assert "${env:SHOP_PW}" in text and "geheim" not in text


def test_an_address_can_be_in_a_link(run: Run) -> None:
    link = run("install", "vscode", "--link", "--http", "http://127.0.0.1:8765/mcp").out.strip()
    entry = json.loads(unquote(link.partition("?")[2]))
    assert entry == {"name": "tidegate", "type": "http", "url": "http://127.0.0.1:8765/mcp"}


def test_a_client_without_links_is_answered_with_those_that_have_some(run: Run) -> None:
    refused = run("install", "codex", "--link")
    assert refused.status == 2 and refused.out == ""
    assert "name one of cursor, vscode" in refused.err


def test_a_link_is_for_one_client(run: Run) -> None:
    assert run("install", "--link").status == 2
    assert run("install", "--link", "--all").status == 2
