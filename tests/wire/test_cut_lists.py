"""A list of a provider that goes on, and whose next page nothing tells how to ask for, is said to
be cut wherever its rows are shown: MCP, the PostgreSQL wire, the console, the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import psycopg
import pytest

from support.cloud_api import Farm
from support.console_visitor import Visitor
from support.data_desk import Desk, answer, desk, ended_run
from support.free_ports import claim_port
from support.paging_api import answer as answer_page
from support.paging_api import write_styles
from support.paging_styles import HOST, SIZE, STYLES
from wire.wires import MODERN, HttpPeer

STYLE = next(name for name, style in STYLES.items() if not style.is_linked)
SELECT = f"SELECT id FROM styles.all.bare_{STYLE}"


pytestmark = pytest.mark.needs("cloud", "console", "pgwire", "workbench")


class Place(NamedTuple):
    desk: Desk
    settings: str
    token: str
    wire: int


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("cut")
    farm = Farm(answer_page)
    settings = folder / "settings.json"
    source = {"name": "apis", "url": f"cloud://{write_styles(folder / 'documents')}"}
    settings.write_text(
        json.dumps(
            {
                "sources": [source],
                "surfaces": ["core", "cloud", "workbench"],
                "cloud": {"endpoints": {HOST: farm.url}},
            }
        )
    )
    port = claim_port()
    serves = ("--config", str(settings), "--pg", f"127.0.0.1:{port}")
    with desk(folder, (), serves=serves, operators=False) as found:
        made = found.run(
            *("token", "create", "reader", "--scope", "readOnly", "--owner", "ada"),
            *("--passphrase-file", str(folder / "consent")),
        )
        yield Place(found, str(settings), made.out.strip(), port)
    farm.close()


@pytest.fixture(scope="module")
def ada(place: Place) -> Visitor:
    return place.desk.visitor()


@pytest.mark.parametrize(
    ("surface", "tool"),
    [("core", "query"), ("cloud", "run_select_query"), ("workbench", "execute_query")],
)
def test_mcp_says_that_the_list_goes_on(place: Place, surface: str, tool: str) -> None:
    port = int(place.desk.address.rpartition(":")[2])
    peer = HttpPeer(port, MODERN, path=f"/mcp/{surface}", capabilities={})
    peer.token = place.token
    arguments = {"sql": SELECT}
    if surface == "workbench":
        listed = peer.call("list_connections", {}).result["structuredContent"]["connections"]
        arguments = {"connection_id": listed[0]["id"], "query": SELECT}
    said = peer.call(tool, arguments)
    assert not said.result.get("isError"), said.text
    assert "the first page of a provider's list" in said.text, said.text


def test_the_wire_warns_that_the_list_goes_on(place: Place) -> None:
    told: list[tuple[str | None, str | None]] = []
    with psycopg.connect(
        host="127.0.0.1", port=place.wire, user="reader", password=place.token, dbname="apis"
    ) as connection:
        connection.add_notice_handler(
            lambda notice: told.append((notice.sqlstate, notice.message_primary))
        )
        assert len(connection.execute(SELECT).fetchall()) == SIZE
    assert [state for state, _ in told] == ["01004"]
    assert "the first page of a provider's list" in str(told[0][1])


def test_the_command_line_says_that_the_list_goes_on(place: Place) -> None:
    ended = place.desk.run("query", "apis", SELECT, "--config", place.settings)
    assert ended.status == 0, ended.err
    assert "the first page of a provider's list" in ended.err
    shown = place.desk.run("query", "apis", SELECT, "--config", place.settings, "--json")
    assert [each["kind"] for each in shown.json["truncations"]] == ["pages"]


def test_the_console_says_that_the_list_goes_on(ada: Visitor) -> None:
    body = {"source": "apis", "statement": SELECT, "tab": ""}
    run = ended_run(ada, answer(ada.post("data/runs", body))["id"])
    assert (run["state"], run["row_count"], run["truncated"]) == ("done", SIZE, True), run
    assert run["limit"] is None
    assert "the first page of a provider's list" in str(run["warnings"])
