"""What frameworks for agents make of every tool, and whether their models read why a call fails.

They are large (600 MB), so that `./dev frameworks` runs this and `./dev test` the rules by which
the schemas are written (`tests/contract/surfaces/test_tool_schemas.py`).
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from external import install
from support.command_line import serving
from support.eventually import HANG_S
from wire.schema_loss import has_open_object, losses
from wire.wires import HttpPeer

pytestmark = pytest.mark.skipif(
    "TIDEGATE_TEST_FRAMEWORKS" not in os.environ, reason="`./dev frameworks` installs them"
)

PEERS = Path(__file__).parent / "peers"
PYTHON = {
    "google-genai": "frameworks",
    "langchain": "frameworks",
    "openai-agents": "frameworks",
    "pydantic-ai": "frameworks",
    "mcp-use": "frameworks",
    "fastmcp": "frameworks",
    "google-adk": "frameworks-adk",
}
"""The pins of each framework in Python."""
NODE = ("vercel", "mastra", "mcp-remote")
OWN_LOSS = {
    ("mcp-use", "langchain"): (": enum ",),
    ("langchain", "gemini"): ("record $.parameters[]: ", ": ['object'] became ['string']"),
}
"""What a form loses whatever a server lists: mcp-use drops enums, and the adapter of LangChain for
Gemini gives the items of a parameter one type where they have several, and makes a text of an
object of any properties, which `datalog` takes as JSON (`test_argument_texts.py`)."""
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "core": ("query", {"sql": "DELETE FROM towns"}, "read-only"),
    "workbench": (
        "describe_table",
        {"connection_id": "towns", "table": "towns"},
        "Invalid UUID for parameter: connection_id",
    ),
    "postgres": (
        "query_database",
        {"query": "DELETE FROM towns"},
        "only runs statements that read",
    ),
    "jdbc": ("record", {"query": "SELECT 1", "confirmed": True}, "connectionId"),
    "datalog": ("datalevin_close_database", {"database": "none"}, "database"),
    "cloud": ("run_select_query", {"sql": "SELECT 1"}, "cloud"),
}
"""A call that each surface refuses, and what the model must read."""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("frameworks")
    path = folder / "towns.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript("CREATE TABLE towns (id INTEGER); INSERT INTO towns VALUES (1)")
    state = folder / "state"
    state.mkdir(mode=0o700)
    words = ("serve", "--http", "127.0.0.1:0", "--no-auth", "--extended")
    with serving((*words, "--source", f"towns=sqlite:///{path}"), state) as server:
        address = next(word for word in server.until("serving").split() if "http" in word)
        yield int(address.removesuffix("/mcp").rpartition(":")[2])
    with closing(sqlite3.connect(path)) as kept:
        assert kept.execute("SELECT count(*) FROM towns").fetchone() == (1,)


def report_of(framework: str, surface: str, port: int) -> dict[str, Any]:
    tool, arguments, _ = REFUSED[surface]
    config: dict[str, Any] = {
        "framework": framework,
        "url": f"http://127.0.0.1:{port}/mcp/{surface}",
        "call": [tool, arguments],
    }
    if framework in PYTHON:
        command = [str(install.python_of(PYTHON[framework])), str(PEERS / "frameworks.py")]
    else:
        modules = install.frameworks_of_node()
        command = [str(install.node()), str(PEERS / "frameworks.mjs")]
        config["modules"] = str(modules)
    done = subprocess.run(
        [*command, json.dumps(config)],
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("surface", REFUSED)
@pytest.mark.parametrize("framework", [*PYTHON, *NODE])
def test_a_framework_loses_nothing_and_shows_the_reason(
    port: int, framework: str, surface: str
) -> None:
    peer = HttpPeer(port, "2025-11-25", path=f"/mcp/{surface}").connect()
    listed = peer.request("tools/list").result["tools"]
    peer.close()
    report = report_of(framework, surface, port)
    assert report.get("forms"), report
    for form, given in report["forms"].items():
        own = OWN_LOSS.get((framework, form), ())
        strict = form == "strict"
        if strict:
            without = {tool["name"] for tool in listed if has_open_object(tool["inputSchema"])}
            assert set(given) == {tool["name"] for tool in listed} - without
        found = [
            f"{tool['name']} {loss}"
            for tool in listed
            if not strict or tool["name"] in given
            for loss in losses(tool["inputSchema"], given[tool["name"]], all_required=strict)
        ]
        found = [each for each in found if not any(known in each for known in own)]
        assert found == [], form
    assert "raised" not in report, report["raised"]
    assert REFUSED[surface][2] in report["shown"], report["shown"]
