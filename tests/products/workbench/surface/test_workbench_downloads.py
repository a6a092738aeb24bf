"""Files of an export: inside one folder, new ones only, whole or not there."""

from __future__ import annotations

import json
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from contract.surfaces.engine_shops import ENGINE_SHOPS, EngineShop
from support.surface_client import READER
from support.surface_gateway import SHOP_ID
from tidegate.config.model import Config
from tidegate.errors import Code, TidegateError
from tidegate.products.workbench.surface.downloads import Downloads, NewFile

OUTSIDE = "output_path must be inside the Downloads directory (Downloads)"
NO_PLACE = "output_path must name a new file in a folder that exists inside the Downloads directory"


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "Downloads"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def shop(tmp_path: Path) -> EngineShop:
    """Files are the same for every engine."""
    return ENGINE_SHOPS["sqlite"](tmp_path)


def call(engine_shop: EngineShop, downloads: Path, path: str, **arguments: Any) -> dict[str, Any]:
    """The whole reply to an export into a file."""
    config = Config(surface={"workbench": {"export_directory": str(downloads)}})
    given = {"connection_id": SHOP_ID, "format": "csv", "tables": ["customers"]} | arguments
    return engine_shop.converse(
        lambda peer: peer.call("export_data", output_path=path, **given), READER, config=config
    )


def everything_under(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def refused(
    engine_shop: EngineShop, downloads: Path, path: str, message: str, **arguments: Any
) -> None:
    """The export is refused with the message, and there is no new file anywhere."""
    around = downloads.parent
    before = everything_under(around)
    error = call(engine_shop, downloads, path, **arguments)["error"]
    assert (error["code"], error["message"]) == (-32602, f"Invalid params: {message}")
    assert everything_under(around) == before


@pytest.mark.parametrize("format", ["csv", "json", "sql"])
def test_a_file_is_written_and_its_path_returned(
    engine_shop: EngineShop, downloads: Path, format: str
) -> None:
    shown = call(engine_shop, downloads, f"out.{format}", format=format)["result"][
        "structuredContent"
    ]
    assert shown == {"path": str(downloads / f"out.{format}"), "rows_exported": 3}
    written = downloads / f"out.{format}"
    assert "ada@example.org" in written.read_text("utf-8")
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


def test_the_file_holds_what_an_answer_would(engine_shop: EngineShop, downloads: Path) -> None:
    call(engine_shop, downloads, "out.csv")
    inline = engine_shop.result("export_data", format="csv", tables=["customers"])
    assert (downloads / "out.csv").read_bytes().decode() == inline["data"]


def test_several_tables_in_one_json_file_are_one_object(
    engine_shop: EngineShop, downloads: Path
) -> None:
    tables = ["orders", "void", "orders"]
    shown = call(engine_shop, downloads, "all.json", format="json", tables=tables)
    assert shown["result"]["structuredContent"]["rows_exported"] == 6
    whole = json.loads((downloads / "all.json").read_text("utf-8"))
    assert {name: len(rows) for name, rows in whole.items()} == {
        "orders": 3, "void": 0, "orders_2": 3,
    }  # fmt: skip


def test_several_tables_in_one_csv_file_have_an_empty_line_between(
    shop: EngineShop, downloads: Path
) -> None:
    call(shop, downloads, "all.csv", tables=["orders", "void"])
    first, second = (downloads / "all.csv").read_bytes().decode().split("\r\n\r\n")
    assert first.startswith("id,customer_id")
    assert second == "id,name\r\n"


def test_nothing_is_overwritten(shop: EngineShop, downloads: Path) -> None:
    (downloads / "out.csv").write_text("mine")
    paths = [
        call(shop, downloads, "out.csv")["result"]["structuredContent"]["path"] for _ in range(2)
    ]
    assert paths == [str(downloads / "out-1.csv"), str(downloads / "out-2.csv")]
    assert (downloads / "out.csv").read_text() == "mine"


def test_a_path_may_be_absolute_or_begin_with_the_home(
    shop: EngineShop, downloads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(downloads.parent))
    (downloads / "deep").mkdir()
    for path in (str(downloads / "a.csv"), "~/Downloads/b.CSV", "deep/c.csv", "./d.csv"):
        assert "result" in call(shop, downloads, path), path
    assert everything_under(downloads) == {"a.csv", "b.CSV", "deep", "deep/c.csv", "d.csv"}


@pytest.mark.parametrize(
    "path",
    ["../out.csv", "deep/../../out.csv", "/tmp/out.csv", "~/out.csv", "~root/out.csv", ".",
     "~nobody-is-called-so/out.csv", "../Downloads/out.csv", "../DownloadsEvil/out.csv"],
)  # fmt: skip
def test_a_path_outside_is_refused(
    shop: EngineShop, downloads: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("HOME", str(downloads.parent))
    (downloads / "deep").mkdir()
    (downloads.parent / "DownloadsEvil").mkdir()
    refused(shop, downloads, path, OUTSIDE)


def test_a_folder_that_only_begins_alike_is_outside(shop: EngineShop, downloads: Path) -> None:
    evil = downloads.parent / "DownloadsEvil"
    evil.mkdir()
    refused(shop, downloads, str(evil / "out.csv"), OUTSIDE)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".out.csv", "output_path must not name a hidden file or folder"),
        (".deep/out.csv", "output_path must not name a hidden file or folder"),
        ("out.txt", "output_path must end in .csv"),
        ("out", "output_path must end in .csv"),
        ("out.csv.sh", "output_path must end in .csv"),
        ("a\nb.csv", "output_path must not hold control characters"),
        ("a\0.csv", "output_path must not hold control characters"),
        ("missing/out.csv", NO_PLACE),
        ("x" * 300 + ".csv", NO_PLACE),
    ],
)
def test_names_that_do_not_fit_are_refused(
    shop: EngineShop, downloads: Path, path: str, message: str
) -> None:
    refused(shop, downloads, path, message)


def test_a_link_to_a_folder_outside_is_not_followed(shop: EngineShop, downloads: Path) -> None:
    outside = downloads.parent / "outside"
    outside.mkdir()
    (downloads / "link").symlink_to(outside)
    refused(shop, downloads, "link/out.csv", NO_PLACE)


def test_a_link_in_the_place_of_the_file_is_not_followed(shop: EngineShop, downloads: Path) -> None:
    target = downloads.parent / "target.csv"
    target.write_text("mine")
    (downloads / "out.csv").symlink_to(target)
    (downloads / "out-1.csv").symlink_to(downloads.parent / "not-there.csv")
    shown = call(shop, downloads, "out.csv")["result"]["structuredContent"]
    assert shown["path"] == str(downloads / "out-2.csv")
    assert target.read_text() == "mine"
    assert not (downloads.parent / "not-there.csv").exists()


def test_a_pipe_in_the_place_of_the_file_is_left_alone(shop: EngineShop, downloads: Path) -> None:
    os.mkfifo(downloads / "out.csv")
    shown = call(shop, downloads, "out.csv")["result"]["structuredContent"]
    assert shown["path"] == str(downloads / "out-1.csv")


def test_the_folder_itself_may_be_a_link(shop: EngineShop, downloads: Path) -> None:
    link = downloads.parent / "Linked"
    link.symlink_to(downloads)
    shown = call(shop, link, str(link / "out.csv"))["result"]["structuredContent"]
    assert shown["path"] == str(downloads / "out.csv")


def test_without_the_folder_nothing_is_made(shop: EngineShop, downloads: Path) -> None:
    downloads.rmdir()
    refused(
        shop,
        downloads,
        "out.csv",
        "The Downloads directory cannot be used: No such file or directory",
    )


@pytest.mark.parametrize("query", ["DELETE FROM orders", "SELECT nope FROM orders", "SELEC 1"])
def test_a_refused_export_makes_no_file(
    engine_shop: EngineShop, downloads: Path, query: str
) -> None:
    reply = call(engine_shop, downloads, "out.csv", tables=None, query=query)
    assert "error" in reply
    assert everything_under(downloads) == set()
    assert engine_shop.count("orders") == 3


def test_a_query_that_fails_midway_leaves_no_file(shop: EngineShop, downloads: Path) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000)"
    query = f"{numbers} SELECT CASE WHEN i = 4000 THEN abs(-9223372036854775808) ELSE i END FROM n"
    assert "error" in call(shop, downloads, "out.csv", tables=None, query=query)
    assert everything_under(downloads) == set()


@contextmanager
def small_disk(most: int) -> Iterator[None]:
    """No file grows beyond `most` bytes meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_no_half_file(shop: EngineShop, downloads: Path) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000)"
    query = f"{numbers} SELECT i, printf('%.*c', 1000, 'x') FROM n"
    with small_disk(2_000_000):
        error = call(shop, downloads, "out.csv", tables=None, query=query)["error"]
    assert error["code"] == -32000
    assert error["message"] == "Server error: The export cannot be written: File too large"
    assert everything_under(downloads) == set()


def new_file(downloads: Path, path: str) -> NewFile:
    engine_shop = Downloads(str(downloads))
    return engine_shop.new_file(engine_shop.names(path, ".csv"))


def test_a_disk_that_is_full_at_the_end_leaves_no_half_file(downloads: Path) -> None:
    file = new_file(downloads, "out.csv")
    with small_disk(100):
        file.put(b"x" * 200)
        with pytest.raises(TidegateError) as caught:
            file.finish()
        file.discard()
    assert caught.value.code is Code.STATE_FAILED
    assert everything_under(downloads) == set()


def test_a_folder_swapped_for_a_link_meanwhile_leads_nowhere(downloads: Path) -> None:
    outside = downloads.parent / "outside"
    outside.mkdir()
    (downloads / "deep").mkdir()
    file = new_file(downloads, "deep/out.csv")
    (downloads / "deep").rename(downloads / "moved")
    (downloads / "deep").symlink_to(outside)
    with pytest.raises(TidegateError):
        file.put(b"x")
    assert everything_under(outside) == set()


def test_what_is_taken_back_is_the_file_that_was_made(downloads: Path) -> None:
    outside = downloads.parent / "outside"
    outside.mkdir()
    (outside / "out.csv").write_text("mine")
    (downloads / "deep").mkdir()
    file = new_file(downloads, "deep/out.csv")
    file.put(b"x")
    (downloads / "deep").rename(downloads / "moved")
    (downloads / "deep").symlink_to(outside)
    file.discard()
    assert (outside / "out.csv").read_text() == "mine"
    assert everything_under(downloads / "moved") == set()


def test_another_file_of_its_name_is_not_taken_back(downloads: Path) -> None:
    file = new_file(downloads, "out.csv")
    file.put(b"x")
    (downloads / "out.csv").unlink()
    (downloads / "out.csv").write_text("mine")
    file.discard()
    assert (downloads / "out.csv").read_text() == "mine"


def test_rows_that_come_after_the_end_make_no_file(downloads: Path) -> None:
    file = new_file(downloads, "out.csv")
    file.discard()
    with pytest.raises(TidegateError):
        file.put(b"late")
    assert everything_under(downloads) == set()
