"""A folder of files as a source of the command line and of agents: rules hold for it as for any."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.command_line import Ended, Serving, serving

Run = Callable[..., Ended]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    (path / "north").mkdir(parents=True)
    (path / "orders.csv").write_text("id,customer\n1,ann@example.org\n2,bob@example.org\n")
    (path / "north" / "stores.csv").write_text("id,town\n1,Oslo\n")
    return path


def tool(server: Serving, name: str, **arguments: Any) -> str:
    answer = server.ask("tools/call", {"name": name, "arguments": arguments})
    return answer["result"]["content"][0]["text"]


def test_a_relative_folder_is_saved_as_an_absolute_one(run: Run, folder: Path):
    assert run("source", "add", "shop", "files://./data", cwd=folder.parent).status == 0
    (source,) = run("source", "list", "--json").json["sources"]
    assert source["url"] == f"files://{folder}"
    assert source["engine"] == "files"
    shown = run("query", "shop", "SELECT town FROM north.stores", "--json").json
    assert shown["rows"] == [["Oslo"]]


def test_a_test_of_the_source_names_files_that_cannot_be_read(run: Run, folder: Path):
    (folder / "broken.parquet").write_bytes(b"nothing of the kind")
    assert run("source", "add", "shop", f"files://{folder}").status == 0
    report = run("source", "test", "shop", "--json").json
    assert report["tables"] == 3
    (warning,) = [each for each in report["warnings"] if "SELECT 1 took" not in each]
    assert warning.startswith("broken: broken.parquet cannot be read: ")


def test_a_folder_cannot_be_added_for_writing(run: Run, folder: Path):
    refused = run("source", "add", "shop", f"files://{folder}", "--allow-writes")
    assert refused.status == 78
    assert "is only read" in refused.err
    assert run("source", "list", "--json").json["sources"] == []


def test_a_change_is_refused_and_the_files_stay_as_they_are(run: Run, folder: Path):
    assert run("source", "add", "shop", f"files://{folder}").status == 0
    before = (folder / "orders.csv").read_bytes()
    for text in (
        "DELETE FROM orders",
        "INSERT INTO orders VALUES (3, 'x')",
        f"COPY orders TO '{folder}/out.csv'",
        f"SELECT * FROM '{folder}/orders.csv'",
        "SELECT * FROM read_text('/etc/passwd')",
    ):
        assert run("query", "shop", text).status == 77, text
    assert (folder / "orders.csv").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["north", "orders.csv"]


def test_a_masked_column_of_a_file_stays_masked(run: Run, folder: Path):
    added = run(
        *("source", "add", "shop", f"files://{folder}"),
        *("--mask", "orders.customer=partial", "--filter", "orders: id = 1"),
    )
    assert added.status == 0, added.err
    for query in (
        "SELECT * FROM orders",
        "SELECT o.* FROM orders AS o",
        "FROM orders",
        "WITH x AS (SELECT * FROM orders) SELECT * FROM x",
    ):
        shown = run("query", "shop", query, "--json")
        assert shown.json["rows"] == [[1, "a***@example.org"]], shown.err
    (folder / "orders.csv").write_text("id,customer\n1,carol@example.org\n")
    assert run("query", "shop", "FROM orders", "--json").json["rows"] == [[1, "c***@example.org"]]


def test_a_second_file_of_a_masked_name_closes_the_source_and_shows_neither(run: Run, folder: Path):
    assert (
        run("source", "add", "shop", f"files://{folder}", "--mask", "orders.customer").status == 0
    )
    (folder / "orders.tsv").write_text("id\tcustomer\n1\tann@example.org\n")
    for table in ("orders", "orders_csv", "orders_tsv", "north.stores"):
        refused = run("query", "shop", f"SELECT * FROM {table}")
        assert (refused.status, "ann@" in refused.out + refused.err) == (77, False), table
    (folder / "orders.tsv").unlink()
    assert run("query", "shop", "SELECT id FROM orders").status == 0


def test_agents_find_describe_and_read_the_tables_and_hear_of_a_broken_file(
    run: Run, folder: Path, state: Path
):
    (folder / "broken.parquet").write_bytes(b"nothing of the kind")
    assert run("source", "add", "shop", f"files://{folder}").status == 0
    with serving(["serve", "--surface", "core"], state) as server:
        assert tool(server, "search", words="town").startswith("north.stores(id bigint?, town")
        described = tool(server, "describe", tables=["orders", "broken"])
        assert "orders(id bigint?, customer varchar?" in described
        assert ") -- orders.csv" in described
        assert "broken() -- broken.parquet cannot be read: " in described
        assert "Oslo" in tool(server, "query", sql="SELECT * FROM north.stores")
        (folder / "new.csv").write_text("word\nhello\n")
        assert "new(word varchar?" in tool(server, "search", words="new")
        assert "hello" in tool(server, "query", sql="SELECT * FROM new")
        assert "cannot be read" in tool(server, "query", sql="SELECT * FROM broken")


def test_a_bridge_with_a_list_of_tables_reaches_no_other_file(run: Run, folder: Path, state: Path):
    assert run("source", "add", "shop", f"files://{folder}").status == 0
    with serving(["bridge", "--table", "north.stores"], state) as bridge:
        bridge.ask(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        )
        assert "Oslo" in tool(bridge, "query", sql="SELECT * FROM north.stores")
        for query in ("SELECT * FROM orders", f"SELECT * FROM '{folder}/orders.csv'"):
            assert "ann@" not in tool(bridge, "query", sql=query)
        assert "customer" not in tool(bridge, "search", words="customer orders")
    run("stop")
