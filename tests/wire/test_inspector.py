"""The Inspector's command line as a client, in both eras and over both transports."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from external.install import node, node_environment, node_modules
from support.eventually import HANG_S
from wire.fixture_tools import FIXTURES
from wire.served import EVERYTHING, Served

LAUNCHER = Path("@modelcontextprotocol/inspector/clients/launcher/build/index.js")
ERAS = ("legacy", "auto", "modern")
TOOL_FAILED = 5
NO_APP = 2

each_era = pytest.mark.parametrize("era", ERAS)


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, http_server: Served) -> list[str]:
    if request.param == "stdio":
        return [sys.executable, str(EVERYTHING), "--stdio"]
    return [f"http://127.0.0.1:{http_server.port}/mcp"]


def _inspect(
    home: Path, era: str, target: list[str], method: str, *options: str
) -> tuple[int, Any]:
    """The exit status and what was printed, decoded where it is JSON."""
    script = str(node_modules() / LAUNCHER)
    command = [str(node()), script, "--cli", "-q", "--protocol-era", era, "--method", method]
    done = subprocess.run(
        [*command, *options, "--format", "json", *target],
        env={**node_environment(), "HOME": str(home), "MCP_INSPECTOR_SECRET_STORE": "memory"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    said = done.stdout if done.returncode == 0 else done.stderr
    return done.returncode, json.loads(done.stdout) if done.returncode == 0 else said


@each_era
def test_a_tool_is_called(tmp_path: Path, target: list[str], era: str) -> None:
    options = ("--tool-name", "add", "--tool-args-json", '{"a":1,"b":2}')
    status, printed = _inspect(tmp_path, era, target, "tools/call", *options)
    assert status == 0, printed
    assert printed["result"]["structuredContent"] == {"sum": 3}


@each_era
def test_tools_are_listed_with_portable_schemas(
    tmp_path: Path, target: list[str], era: str
) -> None:
    status, printed = _inspect(tmp_path, era, target, "tools/list", "--strict")
    assert status == 0, printed
    assert [tool["name"] for tool in printed["result"]["tools"]] == list(FIXTURES)


@each_era
def test_a_tool_error_has_a_status_of_its_own(tmp_path: Path, target: list[str], era: str) -> None:
    options = ("--tool-name", "test_error_handling")
    status, said = _inspect(tmp_path, era, target, "tools/call", *options)
    assert status == TOOL_FAILED, said


@pytest.mark.parametrize(
    ("method", "options", "key"),
    [
        ("resources/list", (), "resources"),
        ("resources/templates/list", (), "resourceTemplates"),
        ("resources/read", ("--uri", "test://static-text"), "contents"),
        ("prompts/list", (), "prompts"),
        ("prompts/get", ("--prompt-name", "test_simple_prompt"), "messages"),
    ],
)
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_resources_and_prompts_are_read(
    tmp_path: Path, http_server: Served, era: str, method: str, options: tuple[str, ...], key: str
) -> None:
    target = [f"http://127.0.0.1:{http_server.port}/mcp"]
    status, printed = _inspect(tmp_path, era, target, method, *options)
    assert status == 0, printed
    assert printed["result"][key]


def test_an_unknown_resource_is_an_error(tmp_path: Path, target: list[str]) -> None:
    options = ("--uri", "test://nothing")
    status, said = _inspect(tmp_path, "modern", target, "resources/read", *options)
    assert status == 1, said
    assert "Resource not found" in said


@each_era
def test_a_call_that_lasts_ends_in_its_result(tmp_path: Path, target: list[str], era: str) -> None:
    options = ("--tool-name", "slow_compute", "--tool-args-json", '{"seconds":0.5,"label":"long"}')
    status, printed = _inspect(tmp_path, era, target, "tools/call", *options)
    assert status == 0, printed
    assert "computed long" in json.dumps(printed)


def test_a_task_that_fails_has_the_status_of_a_failed_tool(
    tmp_path: Path, target: list[str]
) -> None:
    status, said = _inspect(tmp_path, "modern", target, "tools/call", "--tool-name", "failing_job")
    assert status == TOOL_FAILED, said


def test_a_tool_with_a_page_names_it_to_a_client_that_shows_pages(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "shop.db").close()
    words = [
        "serve",
        "--source",
        f"shop=sqlite:///{tmp_path / 'shop.db'}",
        "--state",
        str(tmp_path),
    ]
    script = tmp_path / "served.py"  # the Inspector takes options of a command for its own
    script.write_text(f"import sys\nfrom tidegate.cli.main import main\nsys.exit(main({words}))\n")
    target = [sys.executable, str(script)]
    options = ("--tool-name", "query", "--app-info")
    status, found = _inspect(tmp_path, "legacy", target, "tools/call", *options, "--advertise-apps")
    assert status == 0, found
    assert found["appInfo"] == {
        "hasApp": True,
        "toolName": "query",
        "resourceUri": "ui://tidegate/result",
        "prefersBorder": True,
        "resourceMimeType": "text/html;profile=mcp-app",
    }
    status, _ = _inspect(tmp_path, "legacy", target, "tools/call", *options)
    assert status == NO_APP
