"""A secret that was read elsewhere is in nothing that a server writes, shows or starts."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import support.postgres_server as postgres_server
from products.vault.contract.test_leases import RULES, Leased
from products.vault.support.openbao import shared
from support.command_line import serving, tidegate
from support.eventually import PATIENCE_S

RIGHT, WRONG = "unguessable-right-7Qx", "unguessable-wrong-9Zy"
PRINTS = "import sys; print(open(sys.argv[1]).read()); print('unguessable-said', file=sys.stderr)"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def query(port: int, source: str) -> str:
    """What a caller is told."""
    params = {"name": "query", "arguments": {"sql": "SELECT 1 AS one", "source": source}}
    frame = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**params, "_meta": META},
    }  # fmt: skip
    headers = {
        "Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call", "Mcp-Name": "query",
    }  # fmt: skip
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        connection.request("POST", "/mcp", json.dumps(frame), headers)
        return connection.getresponse().read().decode()


def processes(of: int) -> Iterator[str]:
    """The command lines of a process and of those that it has started."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(re.findall(r"PPid:\s+(\d+)", (place / "status").read_text())[0])
            if of in (int(place.name), parent):
                yield (place / "cmdline").read_text()
        except (OSError, IndexError):
            continue  # it has ended


def test_nothing_that_is_written_or_shown_holds_a_secret(tmp_path: Path) -> None:
    vault, leased = shared(), Leased("10s")
    token = vault.token(RULES, 'path "secret/data/*" { capabilities = ["read"] }')
    server = postgres_server.shared()
    server.ask(f"DROP ROLE IF EXISTS nowhere; CREATE ROLE nowhere LOGIN PASSWORD '{RIGHT}'")
    (tmp_path / "secrets").mkdir()
    for name, text in (("right", RIGHT), ("wrong", WRONG), ("token", token)):
        (tmp_path / "secrets" / name).write_text(text)
    vault.write("nowhere", password=RIGHT)
    vault.write("wrong", password=WRONG)

    def url(reference: str) -> str:
        return f"postgresql://nowhere:{reference}@127.0.0.1:{server.port}/{leased.database}"

    def prints(name: str) -> str:
        words = [sys.executable, "-c", PRINTS, str(tmp_path / "secrets" / name)]
        return f"${{COMMAND:{json.dumps(words)}}}"

    urls = {
        "program": url(prints("right")),
        "refused": url(prints("wrong")),
        "kept": url("${VAULT:secret/data/nowhere#password}"),
        "refusedkept": url("${VAULT:secret/data/wrong#password}"),
        "leased": leased.url,
        "missing": url("${VAULT:secret/data/none#password}"),
    }
    settings = {
        "auth": False,
        "vault": {"address": vault.address, "token": f"${{FILE:{tmp_path}/secrets/token}}"},
        "sources": [{"name": name, "url": each} for name, each in urls.items()],
    }
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(settings))
    file.chmod(0o600)
    state = tmp_path / "state"
    words = ("serve", "--http", "127.0.0.1:0", "--config", str(file))
    said, shown = "", ""
    with serving(words, state) as gate:
        port = int(re.findall(r":(\d+)/mcp", gate.until("serving core"))[0])
        for _ in range(3):
            answers = {name: query(port, name) for name in urls}
            shown += "\0".join(answers.values()) + "\0".join(processes(gate.process.pid))
        ended = gate.tell(signal.SIGTERM)
        said += ended.out + ended.err
    for name in ("program", "kept", "leased"):
        assert "one" in answers[name] and "error" not in answers[name].lower(), answers[name]
    for name in ("refused", "refusedkept"):
        assert "refused the login" in answers[name], answers[name]
    assert "secret/data/none" in answers["missing"] and vault.address in answers["missing"]
    checked = tidegate("doctor", "--config", str(file), "--json", state=state)
    said += checked.out + checked.err
    assert "refused the login" in checked.out
    written = b"".join(each.read_bytes() for each in state.rglob("*") if each.is_file())
    everything = written + (said + shown).encode()
    assert b"source.opened" in written or b"query" in written, "the record is among it"
    secrets = [RIGHT, WRONG, "unguessable-said", token, vault.root]
    for secret in secrets:
        assert secret.encode() not in everything, secret[:12]
    server.ask("DROP ROLE nowhere")
