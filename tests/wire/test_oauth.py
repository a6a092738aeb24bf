"""A real authorization server, a real client, and the gate between them."""

from __future__ import annotations

import http.client
import json
import sqlite3
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from external.install import python_of
from support.audit_records import records
from support.command_line import serving, tidegate
from support.eventually import PATIENCE_S
from support.free_ports import claim_port
from tidegate.surfaces.registry import SURFACES
from wire.conversations import python_oauth
from wire.raw_http import http_request
from wire.served import Served
from wire.wires import BOTH, MODERN

SERVER = Path(__file__).parents[1] / "external" / "authorization_server.py"
SCOPES = {"db:read": "readOnly", "db:write": "readWrite"}
SELECT = "SELECT name FROM towns ORDER BY id"
INSERT = "INSERT INTO towns VALUES (2, 'Tokyo')"
CORE = "/mcp/core"


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    port = claim_port()
    interpreter = python_of("authorization-server")
    served = Served([str(interpreter), str(SERVER), str(port)], port, "/jwks")
    yield Issuer(port)
    served.close()


class Issuer:
    """The authorization server, with a client that is a machine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        registered = self.post("/register", json.dumps(
            {
                "client_name": "machine",
                "redirect_uris": ["http://127.0.0.1:1/callback"],
                "grant_types": ["client_credentials"],
                "token_endpoint_auth_method": "client_secret_basic",
            }
        ), "application/json")  # fmt: skip
        self.client = registered["client_id"]
        pair = f"{self.client}:{registered['client_secret']}"
        self.basic = f"Basic {b64encode(pair.encode()).decode()}"

    def post(self, path: str, body: str, kind: str, **headers: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with closing(connection):
            connection.request("POST", path, body, {"Content-Type": kind, **headers})
            return json.loads(connection.getresponse().read())

    def token(self, resource: str | None, scope: str = "db:read", **more: str) -> str:
        form = {"grant_type": "client_credentials", "scope": scope, **more}
        if resource is not None:
            form["resource"] = resource
        answer = self.post(
            "/token", urlencode(form), "application/x-www-form-urlencoded", Authorization=self.basic
        )
        return answer["access_token"]


class Gate(NamedTuple):
    """A Tidegate that takes the issuer's tokens, and the database behind it."""

    port: int
    state: Path
    database: Path

    @property
    def resource(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def rows(self) -> list[str]:
        with closing(sqlite3.connect(self.database)) as connection:
            return [name for (name,) in connection.execute(SELECT)]

    def query(self, token: str | None, sql: str = SELECT, path: str = CORE) -> Answer:
        tool = "query" if path == CORE else "execute_query"
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": tool, "arguments": {"sql": sql}, "_meta": meta}
        frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "Content-Type": "application/json",
            "Accept": BOTH,
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return self.send("POST", path, json.dumps(frame).encode(), headers)

    def send(self, method: str, path: str, body: bytes | None = None, headers: Any = ()) -> Answer:
        response = http_request(self.port, method, path, body, headers)
        whole = response.read()
        response.close()
        challenge = response.headers.get("www-authenticate", "")
        return Answer(response.status, challenge, json.loads(whole))


class Answer(NamedTuple):
    status: int
    challenge: str
    body: Any

    @property
    def text(self) -> str:
        return self.body["result"]["content"][0]["text"]


@pytest.fixture
def gate(issuer: Issuer, tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(claim_port(), tmp_path / "state", tmp_path / "towns.db")
    with closing(sqlite3.connect(gate.database)) as connection, connection:
        connection.execute("CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO towns VALUES (1, 'Paris')")
    source = {
        "name": "towns", "url": f"sqlite:///{gate.database}", "access": "write",
    }  # fmt: skip
    config = {
        "http": f"127.0.0.1:{gate.port}",
        "surfaces": [name for name in ("core", "workbench") if name in SURFACES],
        "sources": [source],
        "allow_writes": True,
        "oauth": {
            "issuer": issuer.url,
            "resource": gate.resource,
            "scopes": SCOPES,
            "sources_claim": "sources",
        },
    }
    file = tmp_path / "tidegate.json"
    file.write_text(json.dumps(config))
    with serving(["serve", "--config", str(file)], gate.state) as server:
        server.until("serving")
        yield gate


def metadata_of(gate: Gate, path: str = "/mcp/core") -> str:
    return f"http://127.0.0.1:{gate.port}/.well-known/oauth-protected-resource{path}"


def test_a_token_for_this_server_reads_and_one_of_tidegate_s_own_does_too(
    gate: Gate, issuer: Issuer
) -> None:
    for resource in (gate.resource, f"{gate.resource}/core"):
        assert "Paris" in gate.query(issuer.token(resource)).text
    own = tidegate("token", "create", "own", "--scope", "readOnly", state=gate.state).out.strip()
    assert "Paris" in gate.query(own).text


def test_the_record_names_who_came_with_a_token(gate: Gate, issuer: Issuer) -> None:
    gate.query(issuer.token(gate.resource))
    (record,) = [line for line in records(gate.state) if line.get("statement") == SELECT]
    assert record["actor"].startswith(f"oauth:{issuer.url}#")
    assert record["actor_name"] == f"oauth:{issuer.client}"


@pytest.mark.parametrize("resource", ["https://other.example.com/mcp", None])
def test_a_token_for_another_server_is_refused(
    gate: Gate, issuer: Issuer, resource: str | None
) -> None:
    answer = gate.query(issuer.token(resource, "db:read db:write"), INSERT)
    assert answer.status == 401
    assert 'error="invalid_token"' in answer.challenge
    assert gate.rows() == ["Paris"]


def test_without_a_token_the_challenge_says_where_to_get_one(gate: Gate) -> None:
    answer = gate.query(None)
    assert answer.status == 401
    assert answer.challenge == (
        f'Bearer realm="tidegate", resource_metadata="{metadata_of(gate)}", scope="db:read"'
    )


@pytest.mark.needs("workbench")
def test_the_challenge_has_the_realm_of_the_surface_s_document(gate: Gate) -> None:
    workbench = gate.query(None, path="/mcp/workbench")
    assert 'realm="TablePro MCP"' in workbench.challenge
    assert metadata_of(gate, "/mcp/workbench") in workbench.challenge


def test_each_path_has_its_metadata(gate: Gate, issuer: Issuer) -> None:
    for path, resource in (
        ("", gate.resource),
        ("/mcp", gate.resource),
        ("/mcp/core", f"{gate.resource}/core"),
        *((f"/mcp/{name}", f"{gate.resource}/{name}") for name in SURFACES if name == "workbench"),
    ):
        answer = gate.send("GET", f"/.well-known/oauth-protected-resource{path}")
        assert answer.status == 200
        assert answer.body["resource"] == resource
        assert answer.body["authorization_servers"] == [issuer.url]
        assert answer.body["scopes_supported"] == ["db:read", "db:write"]
        assert answer.body["bearer_methods_supported"] == ["header"]
    assert gate.send("GET", "/.well-known/oauth-protected-resource/mcp/other").status == 404
    assert gate.send("POST", "/.well-known/oauth-protected-resource", b"{}").status == 405


def test_a_token_without_a_scope_that_is_mapped_is_refused_by_name(
    gate: Gate, issuer: Issuer
) -> None:
    answer = gate.query(issuer.token(gate.resource, "profile"))
    assert answer.status == 403
    assert 'error="insufficient_scope"' in answer.challenge
    assert 'scope="db:read"' in answer.challenge


def test_a_reader_that_writes_gets_the_scopes_it_needs(gate: Gate, issuer: Issuer) -> None:
    answer = gate.query(issuer.token(gate.resource), INSERT)
    assert answer.status == 403
    assert 'error="insufficient_scope"' in answer.challenge
    assert 'scope="db:read db:write"' in answer.challenge
    assert gate.rows() == ["Paris"]


def test_data_that_speaks_of_scopes_is_no_refusal(gate: Gate, issuer: Issuer) -> None:
    answer = gate.query(issuer.token(gate.resource), "SELECT 'policy.scope: x' AS said")
    assert (answer.status, answer.challenge) == (200, "")


def test_a_writer_writes(gate: Gate, issuer: Issuer) -> None:
    assert gate.query(issuer.token(gate.resource, "db:read db:write"), INSERT).status == 200
    assert gate.rows() == ["Paris", "Tokyo"]


def test_a_token_sees_the_sources_that_its_claim_names(gate: Gate, issuer: Issuer) -> None:
    answer = gate.query(issuer.token(gate.resource, sources="another"))
    assert answer.body["result"]["isError"]
    assert "Paris" not in answer.text


def test_a_token_in_the_address_is_not_taken(gate: Gate, issuer: Issuer) -> None:
    token = issuer.token(gate.resource)
    assert gate.query(None, path=f"{CORE}?access_token={token}").status == 401


@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_the_official_client_gets_a_token_by_itself_and_steps_up_to_write(
    gate: Gate, mode: str
) -> None:
    config = {
        "url": f"{gate.resource}/core",
        "mode": mode,
        "calls": [["query", {"sql": SELECT}], ["query", {"sql": INSERT}]],
    }
    report = python_oauth(config)
    read, written = report["results"]
    assert "Paris" in read["text"]
    assert not written["is_error"]
    assert gate.rows() == ["Paris", "Tokyo"]
    first, second = report["asked"]
    assert first == {
        "scope": "db:read",
        "resource": f"{gate.resource}/core",
        "code_challenge_method": "S256",
    }
    assert set(second["scope"].split()) == {"db:read", "db:write"}
