"""Values of every type are compared and written exactly: what only looks the same is a conflict."""

from typing import Any

import pytest

from support.row_edits import Editor, meanwhile
from support.undo_shops import Kind, Shop, gate_of
from tidegate.errors import Code

ALIKE: dict[str, list[tuple[str, str, str]]] = {
    "sqlite": [("x COLLATE NOCASE", "'a'", "'A'"), ("x", "5", "'5'"), ("x", "1", "1.0")],
    "postgres": [
        ("x numeric", "1.0", "1.00"),
        ("x float8", "'-0'", "0"),
        ("x json", "'{\"a\": 1}'", "'{\"a\":1}'"),
        ("x char(5)[]", "ARRAY['a']::char(5)[]", "ARRAY['A']::char(5)[]"),
        ("x interval", "'1 mon'", "'30 days'"),
        ("x point", "'(1,2)'", "'(1,3)'"),
    ],
    "mysql": [
        ("x varchar(20) COLLATE utf8mb4_general_ci", "'a'", "'A'"),
        ("x varchar(20)", "'a'", "'a '"),
        ("x float", "0.1", "0.1000001"),
        ("x json", "'{\"a\": 1}'", "'{\"a\":1}'"),
        ("x bit(3)", "b'1'", "b'10'"),
    ],
    "duckdb": [
        ("x VARCHAR[]", "['a, b']", "['a', 'b']"),
        ("x STRUCT(a INTEGER, b VARCHAR)", "{'a': 1, 'b': 'x'}", "{'a': 1, 'b': 'y'}"),
        ("x JSON", "'{\"a\": 1}'", "'{\"a\":1}'"),
    ],
}


async def test_a_value_that_only_looks_the_same_is_another_one(shop: Shop) -> None:
    for column, was, now in ALIKE[shop.name]:
        async with gate_of(shop) as gate:
            columns = f"id INTEGER PRIMARY KEY, {column}, y INTEGER"
            await meanwhile(gate, f"CREATE TABLE alike ({columns})")
            await meanwhile(gate, f"INSERT INTO alike VALUES (1, {was}, 1)")
            editor = Editor(gate, "alike")
            found = await editor.read(("1",))
            again = await editor.read(("1",))
            assert again == found
            await meanwhile(gate, f"UPDATE alike SET x = {now}")
            before = shop.contents("alike")
            error = await editor.refused(found, editor.update(found, 0, y="2"))
            assert error.code is Code.ROWS_CONFLICT, (column, error)
            assert shop.contents("alike") == before
            found = await editor.read(("1",))
            await editor.submit(found, editor.update(found, 0, y="2"))
            await meanwhile(gate, "UPDATE alike SET y = 1")
            assert shop.contents("alike") == before, column
            await meanwhile(gate, "DROP TABLE alike")


async def test_values_of_every_type_are_written_as_they_are_shown(shop: Shop, kind: Kind) -> None:
    shop.script(kind.types.table)
    shop.script(kind.types.insert)
    before = shop.contents("everything")
    async with gate_of(shop) as gate:
        editor = Editor(gate, "everything")
        found = await editor.read(("1",), ("2",), ("3",))
        names = found.shape.names
        free = [place for place in range(len(names)) if place not in found.shape.key]

        def swapped(places: tuple[int, ...]) -> list[Any]:
            """Each row with the values of another one."""
            edits: list[Any] = []
            for place, other in enumerate(places):
                row = found.rows[other]
                assert row is not None
                values = {names[at]: row.shown[at] for at in free}
                edits.append(editor.update(found, place, **values))
            return edits

        await editor.submit(found, *swapped((1, 2, 0)))
        assert shop.contents("everything") != before
        found = await editor.read(("1",), ("2",), ("3",))
        done = await editor.submit(found, *swapped((2, 0, 1)))
        assert shop.contents("everything") == before
        assert done.change, done
        await gate.undo(done.change)
        assert shop.contents("everything") != before


LONG: dict[str, str] = {"postgres": "varchar(3)", "mysql": "varchar(3)"}


async def test_what_does_not_fit_a_column_is_refused_and_not_cut(shop: Shop) -> None:
    if shop.name not in LONG:
        pytest.skip("its texts have no length")
    shop.script(f"CREATE TABLE short (id INTEGER PRIMARY KEY, x {LONG[shop.name]})")
    shop.script("INSERT INTO short VALUES (1, 'abc')")
    async with gate_of(shop) as gate:
        editor = Editor(gate, "short")
        found = await editor.read(("1",))
        for edit in (editor.update(found, 0, x="abcd"), editor.insert(found, id="2", x="abcd")):
            error = await editor.refused(found, edit)
            assert error.code is Code.SQL_FAILED, error
        assert shop.rows("SELECT x FROM short") == [("abc",)]


async def test_bytes_are_written_as_bytes(shop: Shop) -> None:
    kind = {"postgres": "bytea", "mysql": "varbinary(20)"}.get(shop.name, "BLOB")
    shop.script(f"CREATE TABLE raw (id INTEGER PRIMARY KEY, b {kind})")
    async with gate_of(shop) as gate:
        editor = Editor(gate, "raw")
        found = await editor.read()
        for id, value in (("1", b"\0\xff'\\x41"), ("2", b"")):
            done = await editor.submit(found, editor.insert(found, id=id, b=value))
            assert editor.shown(done.rows[0], found)["b"] == value
        read = await editor.read(("1",), ("2",))
        assert [editor.shown(row, read)["b"] for row in read.rows] == [b"\0\xff'\\x41", b""]
        await editor.submit(read, editor.update(read, 0, b=b"\x01"), editor.delete(read, 1))
    assert shop.rows(f"SELECT id FROM raw WHERE b = {_byte(shop)}") == [(1,)]


def _byte(shop: Shop) -> str:
    """The byte 1 as a literal."""
    return {"postgres": "'\x01'", "duckdb": "'\x01'::BLOB"}.get(shop.name, "x'01'")


async def test_a_key_that_the_database_gives_is_found(shop: Shop) -> None:
    key = {
        "sqlite": "id INTEGER PRIMARY KEY",
        "mysql": "id INTEGER PRIMARY KEY AUTO_INCREMENT",
        "duckdb": "id INTEGER PRIMARY KEY DEFAULT nextval('numbers')",
    }.get(shop.name, "id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY")
    if shop.name == "duckdb":
        shop.script("CREATE SEQUENCE numbers")
    shop.script(f"CREATE TABLE counted ({key}, x VARCHAR(20))")
    async with gate_of(shop) as gate:
        editor = Editor(gate, "counted")
        found = await editor.read()
        edits = [editor.insert(found, x=each) for each in ("a", "b", "c")]
        done = await editor.submit(found, *edits, editor.insert(found))
        shown = [editor.shown(row, found) for row in done.rows]
        assert [(str(each["id"]), each["x"]) for each in shown] == [
            ("1", "a"),
            ("2", "b"),
            ("3", "c"),
            ("4", None),
        ]
