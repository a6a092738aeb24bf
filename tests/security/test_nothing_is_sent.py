"""Nothing is sent to a server that no operator has named, as SECURITY.md promises."""

from __future__ import annotations

import ipaddress
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import environment
from support.eventually import HANG_S

SOURCES = Path(__file__).parents[2] / "src"
_ADDRESS = re.compile(r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)+)")
_EXAMPLES = re.compile(r"(^|\.)(example|example\.(com|org)|w3\.org)$")
_CALL = re.compile(r'(?:sin_addr=inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)")')

NAMED_BY_AN_OPERATOR = {
    "products/cloud/documents/registry.py": "what `tidegate cloud` fetches documents from",
    "products/cloud/login/credentials.py": "logins of a cloud source",
    "products/cloud/login/token_requests.py": "logins of a cloud source",
    "products/pgedge/settings.py": "the model provider of `llm`, off without a key",
    "search/embeddings/providers.py": "the provider of `embeddings`, off without a key",
    "webhook/chat.py": "the name of a form in messages to the operator's own chat; no one asks it",
}
"""Modules with the address of a server of others, and what a person does who has it asked."""


def test_servers_of_others_are_those_that_an_operator_names() -> None:
    found = {
        path.relative_to(SOURCES / "tidegate").as_posix()
        for path in SOURCES.rglob("*")
        if path.suffix in (".py", ".js", ".html", ".java", ".clj")
        and any(
            not _EXAMPLES.search(host) and not host.startswith("127.")
            for host in _ADDRESS.findall(path.read_text("utf-8"))
        )
    }
    there = {"/".join(each.parts[-2:]) for each in (SOURCES / "tidegate").glob("*/*")}
    assert found == {
        name for name in NAMED_BY_AN_OPERATOR if "/".join(name.split("/")[:2]) in there
    }


PLACES = re.compile(r"^\| `(\S*(?:url|endpoint|address|issuer|registry|repository|region))`", re.M)
"""The settings that name a server of others, by how their names end."""
SAID_AS = {
    "sources[].url": "the sources that you add",
    "state_url": "the database of a shared state",
    "vault.address": "vaults",
    "aws.region": "AWS",
    "embeddings.base_url": "model providers",
    "embeddings.columns[].use.base_url": "model providers",
    "language.model.base_url": "model providers",
    "approvals.webhook.url": "webhooks",
    "oauth.issuer": "authorization servers",
    "oauth.jwks_url": "authorization servers",
    "otel.endpoint": "collectors of traces",
    "ship.to[].url": "receivers of the record",
    "drivers.repository": "repositories of drivers",
    "cloud.registry": "registries of documents",
    "surface.cloud.server.address": "",  # where it listens
}
"""What SECURITY.md calls the server that a setting names."""


def test_the_promise_names_each_kind_of_server_that_a_setting_can_name() -> None:
    root = SOURCES.parent
    found = set(PLACES.findall((root / "docs" / "reference" / "settings.md").read_text("utf-8")))
    assert found == SAID_AS.keys()
    promise = (root / "SECURITY.md").read_text("utf-8").partition("* Nothing is sent anywhere")[2]
    promise = " ".join(promise.partition("\n\n")[0].split())
    assert [each for each in SAID_AS.values() if each not in promise] == []


@pytest.mark.whole
@pytest.mark.needs("duckdb")
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_setting_up_asking_and_checking_reach_no_other_machine(tmp_path: Path) -> None:
    """All processes of the commands are watched, by the calls that they make to the kernel."""
    with sqlite3.connect(tmp_path / "shop.db") as shop:
        shop.execute("CREATE TABLE items (id INTEGER PRIMARY KEY)")
        shop.execute("INSERT INTO items VALUES (1), (2)")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "people.csv").write_text("name\nAda\nBob\n")
    talk = "".join(json.dumps(each) + "\n" for each in _conversation())
    # Two states: on one that has a source, a person must agree to the next.
    _watch(tmp_path, "one", "setup", "--url", str(tmp_path / "shop.db"), "--client", "cursor")
    _watch(tmp_path, "one", "tables", "shop")
    _watch(tmp_path, "one", "doctor")
    assert "[2]" in _watch(tmp_path, "one", "serve", stdin=talk)
    _watch(tmp_path, "two", "setup", "--url", str(tmp_path / "files"), "--client", "none")
    assert "2" in _watch(tmp_path, "two", "query", "files", "SELECT count(*) FROM people")


def test_the_watch_sees_another_machine(tmp_path: Path) -> None:
    """A datagram socket sends nothing when it connects."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    script = "import socket; socket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"
    trace = tmp_path / "trace"
    subprocess.run(["strace", *_WATCHED, str(trace), sys.executable, "-c", script], check=True)
    assert set(_others(trace)) == {"192.0.2.1"}


_WATCHED = ("-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o")


def _watch(home: Path, state: str, *words: str, stdin: str = "") -> str:
    """What a command prints, which must end well and speak to no other machine."""
    trace = home / "trace"
    variables = environment(home / state) | {"HOME": str(home)}
    variables = {name: text for name, text in variables.items() if not name.startswith("XDG_")}
    done = subprocess.run(
        ["strace", *_WATCHED, str(trace), sys.executable, "-m", "tidegate", *words],
        cwd=home, env=variables, input=stdin, capture_output=True, text=True, timeout=HANG_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(_others(trace)) == set(), words
    return done.stdout


def _others(trace: Path) -> Iterator[str]:
    for match in _CALL.finditer(trace.read_text("utf-8", "replace")):
        address = ipaddress.ip_address(match[1] or match[2])
        if not address.is_loopback and not address.is_unspecified:
            yield str(address)


def _conversation() -> list[dict[str, object]]:
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "tests", "version": "1"},
    }
    ask = {"name": "query", "arguments": {"source": "shop", "sql": "SELECT count(*) FROM items"}}
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {**ask}},
    ]
