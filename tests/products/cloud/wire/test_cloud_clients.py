"""The official clients on the surface `cloud`, over HTTP and on stdio, in both eras: every tool,
the prompt, and changes of which a person denies one and approves others."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from products.cloud.support.signed_documents import archive
from support.cloud_api import PROVIDER, SERVICE
from support.cloud_surface import (
    ADDRESS,
    DELETE,
    EXEC,
    INSERT,
    RESOURCE,
    SELECT,
    Desk,
    recorded,
    running_desk,
    write_desk,
)
from support.command_line import serving, tidegate
from support.thread_server import ThreadHttpServer
from support.thread_server import running as running_server
from wire.conversations import python_sdk, typescript_sdk
from wire.wires import MODERN

CLIENTS = {
    "python 1": (partial(python_sdk, 1), {}, "2025-11-25"),
    "python 2, legacy": (partial(python_sdk, 2), {"mode": "legacy"}, "2025-11-25"),
    "python 2": (partial(python_sdk, 2), {"mode": "auto"}, MODERN),
    "typescript 1": (partial(typescript_sdk, 1), {}, "2025-11-25"),
    "typescript 2, legacy": (partial(typescript_sdk, 2), {"mode": "legacy"}, "2025-11-25"),
    "typescript 2": (partial(typescript_sdk, 2), {"mode": "auto"}, MODERN),
}
DENIED = DELETE.replace("'1'", "'2'")
PLACE = dict(zip(("provider", "service", "resource"), RESOURCE.split("."), strict=True))
SERVED = ("provider", "service")
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("server_info", {}, "mode: safe"),
    ("list_providers", {}, "| desk | v24.01.00001 |"),
    ("list_services", {"provider": "desk"}, "tickets"),
    ("list_resources", {each: PLACE[each] for each in SERVED}, "tickets"),
    ("list_methods", PLACE, "| close | team | EXEC |"),
    ("describe_resource", PLACE, "# Resource"),
    ("describe_method", {**PLACE, "method": "create"}, "input_required"),
    ("list_registry", {}, "farm"),
    ("pull_provider", {"provider": "farm"}, "# Pull Result"),
    ("validate_select_query", {"sql": SELECT}, "valid: true"),
    ("run_select_query", {"sql": SELECT}, "Printer"),
    ("prompts/get", {"name": "write_safe_select"}, "SHOW methods IN"),
    ("run_mutation_query", {"sql": DENIED}, "refused: user declined approval"),
    ("run_mutation_query", {"sql": INSERT}, "# Mutation Result"),
    ("run_lifecycle_operation", {"sql": EXEC}, "# Lifecycle Result"),
    ("list_providers", {}, "farm"),
]
"""Calls in their order, and what the text of each reply must hold."""
ANSWERS = [{"action": action} for action in ("decline", "accept", "accept")]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a registry of documents that offers the provider `farm`."""
    folder = tmp_path_factory.mktemp("registry")
    place = folder / "dist" / "farm"
    place.mkdir(parents=True)
    (folder / "dist" / "providers.yaml").write_text(
        "providers: {farm: {versions: [v00.00.00000]}}\n"
    )
    files = {
        "v00.00.00000/provider.yaml": PROVIDER.encode(),
        "v00.00.00000/services/live.yaml": json.dumps(SERVICE).encode(),
    }
    (place / "v00.00.00000.tgz").write_bytes(archive(files).getvalue())

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, directory=str(folder))

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadHttpServer(Handler)
    with running_server(server):
        yield f"http://127.0.0.1:{server.port}"


class Place(NamedTuple):
    """A folder with settings for a server, and the provider behind it."""

    folder: Path
    settings: Path
    desk: Desk

    @property
    def state(self) -> Path:
        return self.folder / "state"


@pytest.fixture
def place(tmp_path: Path, registry: str) -> Iterator[Place]:
    with running_desk() as desk:
        url = f"cloud://{write_desk(tmp_path / 'documents')}"
        calls = {"path": str(tmp_path / "calls.log")}
        settings = tmp_path / "settings.json"
        settings.write_text(
            json.dumps({
                "state": str(tmp_path / "state"),
                "sources": [{"name": "apis", "url": url, "access": "write"}],
                "cloud": {
                    "registry": registry, "verify": False, "endpoints": {ADDRESS: desk.url},
                },
                "surface": {"cloud": {"server": {"audit": {"file": calls}}}},
            })
        )  # fmt: skip
        settings.chmod(0o600)
        yield Place(tmp_path, settings, desk)


def check(client: str, where: dict[str, Any], place: Place) -> None:
    """Let a client make all calls, and look at what the provider was sent."""
    talk, mode, revision = CLIENTS[client]
    calls = [[tool, arguments] for tool, arguments, _ in CALLS]
    report = talk({**where, **mode, "calls": calls, "answers": list(ANSWERS)})
    assert report["revision"] == revision or client == "typescript 1"  # which may not say it
    tools = [tool for tool, _, _ in CALLS if "/" not in tool]
    assert set(report["tools"]) == set(tools)
    assert len(set(tools)) == 13
    for (tool, _, wanted), found in zip(CALLS, report["results"], strict=True):
        assert wanted in found["text"], (tool, found)
        assert found.get("is_error", False) is ("refused" in wanted), (tool, found)
    assert [each.partition("\n")[0] for each in report["asked"]] == [
        "Approve run_mutation_query (mutation_delete)?",
        "Approve run_mutation_query (mutation_create)?",
        "Approve run_lifecycle_operation (lifecycle)?",
    ]
    assert place.desk.writes == [("POST", "/v1/teams/red/tickets"), ("POST", "/v1/teams/red/close")]
    assert set(place.desk.tickets) == {"1", "2", "9"}
    lines = recorded(place.folder)
    assert [line["tool"] for line in lines] == tools
    assert [line["decision"] for line in lines if line["tool"].startswith(("run_m", "run_l"))] == [
        "needs_approval_declined", "needs_approval_accepted", "needs_approval_accepted",
    ]  # fmt: skip


@pytest.mark.parametrize("client", ["python 2, legacy", "python 2", "typescript 1", "typescript 2"])
def test_each_official_client_uses_every_tool_over_http(place: Place, client: str) -> None:
    made = tidegate("token", "create", "peer", "--scope", "fullAccess", state=place.state)
    words = ["serve", "--surface", "cloud", "--http", "127.0.0.1:0", "--config"]
    with serving([*words, str(place.settings), "--allow-writes"], place.state) as server:
        said = next(word for word in server.until("serving").split() if word.startswith("http"))
        url = f"{said.removesuffix('/mcp')}/mcp/cloud"
        check(client, {"url": url, "token": made.out.strip()}, place)


@pytest.mark.parametrize("client", ["python 1", "python 2", "typescript 2, legacy", "typescript 2"])
def test_each_official_client_uses_every_tool_on_stdio(place: Place, client: str) -> None:
    command = [sys.executable, "-m", "tidegate", "serve", "--surface", "cloud", "--allow-writes"]
    check(client, {"command": [*command, "--config", str(place.settings)]}, place)
