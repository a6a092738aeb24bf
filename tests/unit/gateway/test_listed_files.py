"""A caller's database is all the files that its driver derives from the name, whatever leads there.

The oracle is the drivers themselves: the files that they open beside the name that they are given.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import apsw
import pytest

from support.jdbc_drivers import USERS, driver_path, template
from support.jdbc_surface import make_file, served
from support.surface_client import Peer
from tidegate.config.sources import SourceSettings
from tidegate.gateway.listed_files import fault_of, marks_of
from unit.gateway.test_temporary_sources import make, opened, surface

SCRIPT = ("CREATE TABLE secret (id int, word varchar(40))", "INSERT INTO secret VALUES (1, 'hid')")


DERIVED = """
shop.mv.db shop.script shop.lobs shop-wal shop.db-shm shop.wal shop/data.mdb shop/seg0/c10.dat
shop/seg0 shop.tmp/block shop"""


@pytest.mark.parametrize("name", DERIVED.split())
@pytest.mark.parametrize("kind", ["soft", "hard", "dangling", "pipe"])
def test_each_file_of_a_database_must_be_in_the_folder_itself(
    tmp_path: Path, name: str, kind: str
) -> None:
    listed, elsewhere = tmp_path / "listed", tmp_path / "elsewhere"
    (listed / name).parent.mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "file").write_text("secret")
    place = listed / name
    if kind == "hard":
        place.hardlink_to(elsewhere / "file")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(elsewhere / ("file" if kind == "soft" else "none"))
    assert fault_of(str(listed / "shop"), (str(listed),)) is not None
    place.unlink()
    place.write_text("own")
    assert fault_of(str(listed / "shop"), (str(listed),)) is None


def test_a_link_to_another_listed_folder_is_followed_to_all_that_is_there(tmp_path: Path) -> None:
    listed, elsewhere = tmp_path / "listed", tmp_path / "elsewhere"
    for folder in (listed, elsewhere, listed / "real"):
        folder.mkdir()
    (listed / "shop").symlink_to(listed / "real")
    assert fault_of(str(listed / "shop"), (str(listed),)) is None
    (listed / "real" / "deep").symlink_to(elsewhere)
    assert "outside" in str(fault_of(str(listed / "shop"), (str(listed),)))
    assert "outside" not in str(fault_of(str(listed / "shop"), (str(listed), str(elsewhere))))


@pytest.mark.parametrize("product", ["h2", "hsqldb", "derby"])
@pytest.mark.parametrize("link", ["soft", "hard"])
async def test_no_driver_opens_a_file_that_a_link_leads_to(
    tmp_path: Path, product: str, link: str
) -> None:
    jars = driver_path(product)
    outside = tmp_path / "outside"
    shutil.copytree(template(product, SCRIPT), outside)
    async with served(tmp_path, temporary_sources={"driver_path": jars}) as under_test:
        files = under_test.files
        for each in sorted(outside.rglob("*")):
            place = files / each.relative_to(outside)
            if each.is_dir():
                place.mkdir(exist_ok=True)
            elif link == "soft":
                place.symlink_to(each)
            else:
                place.hardlink_to(each)
        peer = under_test.peer()
        url = f"jdbc:{product}:{'file:' if product == 'hsqldb' else ''}{files}/shop"
        reply = await peer.request("connect", url=url, user=USERS[product])
        assert "listed" in str(reply) or "second name" in str(reply)
        assert "connected" not in str(reply.get("result", {}).get("status"))


async def test_a_link_put_there_later_stops_the_next_call(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        peer = Peer(surface(app))
        await peer.open()
        listed, hidden = tmp_path / "listed" / "own.db", tmp_path / "elsewhere" / "hidden.db"
        make(listed)
        with apsw.Connection(str(hidden)) as made:
            made.execute("CREATE TABLE t(id INTEGER); INSERT INTO t VALUES (77)")
        await peer.result("open", name="own", url=f"sqlite:///{listed}")
        assert await peer.text("ask", source="own", sql="SELECT * FROM t") == "[[1],[2]]"
        listed.unlink()
        listed.symlink_to(hidden)
        assert "77" not in await peer.text("ask", source="own", sql="SELECT * FROM t")
        await peer.result(
            "open", name="other", url=f"sqlite:///{make_file(listed.parent / 'b')[12:]}"
        )
        (listed.parent / "b-wal").hardlink_to(hidden)
        assert "second name" in await peer.text("ask", source="other", sql="SELECT 1")


async def test_escapes_in_a_path_lead_nowhere_that_was_not_checked(tmp_path: Path) -> None:
    async with served(tmp_path) as under_test:
        make_file(tmp_path / "outside.db")
        peer = under_test.peer()
        files = under_test.files
        for url in (
            f"jdbc:sqlite:{files}/%2e%2e/outside.db",
            f"jdbc:sqlite:{files}/%2E./outside.db",
            f"jdbc:h2:{files}/..\\..\\outside",
            f"jdbc:h2:{files}/%2e%2e/outside",
        ):
            reply = await peer.request("connect", url=url)
            assert "source.temporary" in str(reply) or "operator" in str(reply), url
            assert "connected" not in str(reply.get("result", {}).get("status")), url


async def test_the_derived_file_of_a_saved_source_is_refused_under_another_name(
    tmp_path: Path,
) -> None:
    jars = driver_path("h2")
    saved = tmp_path / "saved"
    shutil.copytree(template("h2", SCRIPT), saved)
    source = SourceSettings("shop", f"jdbc:h2:{saved}/shop")
    async with served(
        tmp_path,
        sources=[source],
        temporary_sources={"driver_path": jars, "directories": [str(tmp_path)]},
    ) as under_test:
        peer = under_test.peer()
        (under_test.files / "twin.mv.db").symlink_to(saved / "shop.mv.db")
        reply = await peer.request("connect", url=f"jdbc:h2:{under_test.files}/twin")
        assert "already" in str(reply)
        assert marks_of(str(saved / "shop"))
