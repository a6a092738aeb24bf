"""A caller's database is all the files that its driver derives from the name, whatever leads there.

The oracle is the drivers themselves: the files that they open beside the name that they are given.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from support.jdbc_drivers import USERS, driver_path, template
from support.jdbc_surface import make_file, served
from support.surface_client import Peer
from tidegate.config.sources import SourceSettings
from tidegate.gateway import listed_files
from tidegate.gateway.listed_files import MOST_DEPTH, MOST_FILES, fault_of, marks_of
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


_watchers: list[list[str]] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "os.scandir" and _watchers:
        _watchers[-1].append(str(arguments[0]))


sys.addaudithook(_note)


@contextmanager
def folders_read() -> Iterator[list[str]]:
    """The folders that are listed meanwhile, as the interpreter itself reports them."""
    _watchers.append([])
    try:
        yield _watchers[-1]
    finally:
        _watchers.pop()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel lists no mounts elsewhere")
@pytest.mark.parametrize("is_folder", [True, False])
@pytest.mark.parametrize(
    "path", ["/proc/self", "/proc/self/environ", "/proc", "/sys/class", "link"]
)
def test_no_folder_of_the_kernel_is_walked(tmp_path: Path, path: str, is_folder: bool) -> None:
    if path == "link":
        (tmp_path / "link").symlink_to("/proc/self")
        path = str(tmp_path / "link")
    with folders_read() as read:
        assert "kernel" in str(fault_of(path, ("/",), is_folder=is_folder))
        assert not marks_of(path, is_folder=is_folder)
    assert [each for each in read if each.startswith(("/proc/", "/sys/"))] == []


def test_a_folder_of_too_many_files_is_not_read_to_its_end(tmp_path: Path) -> None:
    many, deep = tmp_path / "many", tmp_path / "deep"
    for each in (many / "a", many / "b", deep.joinpath(*["x"] * (MOST_DEPTH + 3))):
        each.mkdir(parents=True)
    for number in range(MOST_FILES // 2):
        for folder in ("a", "b"):
            os.close(os.open(many / folder / str(number), os.O_CREAT))
    assert f"{MOST_FILES:,}" in str(fault_of(str(many), (str(tmp_path),)))
    assert fault_of(str(many / "a"), (str(tmp_path),)) is None
    with folders_read() as read:
        assert f"{MOST_DEPTH} deep" in str(fault_of(str(deep), (str(tmp_path),)))
    assert len([each for each in read if "/x" in each]) == MOST_DEPTH - 1


def test_what_has_not_changed_is_not_read_again() -> None:
    folder = os.path.dirname(os.__file__) + "/json"
    with folders_read() as first:
        assert fault_of(folder, ("/",), is_folder=True) is None
    assert first
    with folders_read() as then:
        assert fault_of(folder, ("/",), is_folder=True) is None
        assert marks_of(folder, ("/",), is_folder=True)
    assert then == []


def _replace_by_link(place: Path, target: Path) -> None:
    (place.parent / "made").symlink_to(target)
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    (place.parent / "made").replace(place)


def _replace_by_name(place: Path, target: Path) -> None:
    place.unlink()
    place.hardlink_to(target)


CHANGES: dict[str, Callable[[Path, Path], None]] = {
    "a file": lambda shop, out: _replace_by_link(shop / "data.mdb", out / "data.mdb"),
    "a file that has a second name": lambda shop, out: _replace_by_name(
        shop / "data.mdb", out / "data.mdb"
    ),
    "a new file": lambda shop, out: (shop / "new").symlink_to(out / "data.mdb"),
    "a file within": lambda shop, out: _replace_by_link(shop / "in" / "deep", out / "data.mdb"),
    "a folder within": lambda shop, out: _replace_by_link(shop / "in", out),
    "where a link leads": lambda shop, out: _replace_by_link(shop.parent / "far", out),
    "what a link leads to": lambda shop, out: _replace_by_name(
        shop.parent / "real" / "data.mdb", out / "data.mdb"
    ),
    "the folder": lambda shop, out: _replace_by_link(shop, out),
    "a pipe": lambda shop, out: os.mkfifo(shop / "pipe"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_after_a_look_is_seen_at_the_next(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed_files, "SETTLED_NS", -(10**18))  # all is as if it were long ago
    listed, outside, shop = tmp_path / "listed", tmp_path / "outside", tmp_path / "listed" / "shop"
    for folder in (shop / "in", listed / "real", outside):
        folder.mkdir(parents=True)
    for file in (
        *(outside / "data.mdb", shop / "data.mdb", shop / "in" / "deep"),
        listed / "real" / "data.mdb",
    ):
        file.write_text("x")
    (listed / "far").symlink_to(listed / "real")
    (shop / "to").symlink_to(listed / "far" / "data.mdb")
    assert fault_of(str(shop), (str(listed),)) is None
    with folders_read() as read:
        assert fault_of(str(shop), (str(listed),)) is None
    assert read == []
    newest, probe = shop.stat().st_ctime_ns, tmp_path / "probe"
    while not probe.exists() or probe.stat().st_ctime_ns <= newest:  # until the clock has moved on
        probe.touch()
    CHANGES[change](shop, outside)
    assert fault_of(str(shop), (str(listed),)) is not None


def test_a_database_that_is_a_folder_has_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop-photos").mkdir()
    os.mkfifo(tmp_path / "shop-photos" / "pipe")
    assert fault_of(str(tmp_path / "shop"), (str(tmp_path),), is_folder=True) is None
    assert "plain" in str(fault_of(str(tmp_path / "shop"), (str(tmp_path),)))


@pytest.mark.parametrize("product", ["h2", "hsqldb", "derby"])
@pytest.mark.parametrize("link", ["soft", "hard"])
async def test_no_driver_opens_a_file_that_a_link_leads_to(
    tmp_path: Path, product: str, link: str
) -> None:
    jars = driver_path(product)
    outside = tmp_path / "outside"
    shutil.copytree(template(product, SCRIPT), outside)
    async with served(tmp_path, jdbc={"driver_path": jars}) as under_test:
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


@pytest.mark.needs("duckdb", "jdbc")
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


@pytest.mark.needs("duckdb", "jdbc")
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
        jdbc={"driver_path": jars},
        temporary_sources={"directories": [str(tmp_path)]},
    ) as under_test:
        peer = under_test.peer()
        (under_test.files / "twin.mv.db").symlink_to(saved / "shop.mv.db")
        reply = await peer.request("connect", url=f"jdbc:h2:{under_test.files}/twin")
        assert "already" in str(reply)
        assert marks_of(str(saved / "shop"))
