"""Tables by form on the real engines: what a form makes is described as the same form, and what it
changes as the changed one."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec import structs

from support.engine_cases import CASES
from tidegate.model.schema import Table
from tidegate.model.statements import Effect
from tidegate.product import load
from tidegate.sql.dialects import find
from tidegate.sql.table_forms.model import ColumnForm, Default, IndexForm, KeyForm, TableForm
from tidegate.sql.table_forms.writer import TableWriter

ENGINES = ("duckdb", "mysql", "postgres", "sqlite")
pytestmark = pytest.mark.parametrize("name", [each for each in ENGINES if each in CASES])
SCHEMAS = {"sqlite": "main", "duckdb": "main", "postgres": "public"}
VALUES = {
    "sqlite": {"INTEGER": ("7", "-7"), "TEXT": ("", "it's\\", "7"), "BOOLEAN": ("true",)},
    "duckdb": {
        "INTEGER": ("7", "-7"),
        "VARCHAR": ("", "it's\\", "7", "true"),
        "BOOLEAN": ("false",),
        "DATE": ("2026-01-31",),
        "DECIMAL(10,2)": ("1.50",),
    },
    "postgres": {
        "integer": ("7", "-7"),
        "bigint": ("99999999999",),
        "text": ("", "it's\\", "7", "true", "a::text"),
        "boolean": ("false",),
        "date": ("2026-01-31",),
        "numeric(10,2)": ("1.50", "-0.10"),
        "integer[]": ("{1,2}",),
        "jsonb": ('{"a": "it\'s"}',),
    },
    "mysql": {
        "int(11)": ("7", "-7"),
        "varchar(255)": ("", "it's\\", "7", "true"),
        "decimal(10,2)": ("1.50", "-0.10"),
        "date": ("2026-01-31",),
        "datetime": ("2026-01-31 00:00:00",),
    },
}
"""Values of defaults by type, as the databases write them again."""
COMPUTED = {
    "sqlite": ("TIMESTAMP", "CURRENT_TIMESTAMP"),
    "duckdb": ("TIMESTAMP", "CURRENT_TIMESTAMP"),
    "postgres": ("timestamp with time zone", "CURRENT_TIMESTAMP"),
    "mysql": ("datetime", "current_timestamp()"),
}
NUMBERED = {"postgres": "integer", "mysql": "int(11)"}
ODD = 'Größe "x" `y` s\'z'


class Place:
    """A database of the engine, a writer of its forms, and the schema that they name."""

    def __init__(self, name: str, case: Any, engine: Any) -> None:
        self.case = case
        self.engine = engine
        self.writer: TableWriter = load(find(case.source.dialect).table_forms)
        self.schema = SCHEMAS.get(name) or case.url.partition("?")[0].rpartition("/")[2]

    async def run(self, plan: Any) -> None:
        assert plan.lacks == ()
        for step in plan.steps:
            await self.case.ask(self.engine, step.text, effect=Effect.ADMIN)

    async def table(self, name: str) -> Table:
        catalog = await self.case.browse(self.engine, "catalog")
        (table,) = [each for each in catalog.tables if each.name == name]
        return table

    async def form(self, name: str) -> TableForm:
        return self.writer.read(await self.table(name))


def kept(form: TableForm) -> TableForm:
    """The form as it is read of a table: each column has been there."""
    columns = tuple(structs.replace(each, was=each.name) for each in form.columns)
    indexes = tuple(sorted(form.indexes, key=lambda index: index.name))
    keys = tuple(sorted(form.foreign_keys, key=lambda key: (key.name, key.columns)))
    return structs.replace(form, columns=columns, indexes=indexes, foreign_keys=keys)


def made_form(name: str, writer: TableWriter, schema: str, number: int) -> TableForm:
    """A form of everything that the dialect can make, at random."""
    chance = random.Random(f"{name} {number}")
    lacks = writer.lacks
    numbered = name in NUMBERED and chance.random() < 0.5
    keys = [ColumnForm("id", NUMBERED.get(name, "INTEGER"), False, identity=numbered)]
    if not numbered and chance.random() < 0.5:
        keys.append(ColumnForm(ODD, keys[0].type, False))
    columns = list(keys)
    for place in range(chance.randrange(1, 7)):
        kind = chance.choice(list(VALUES[name]))
        default = None
        if chance.random() < 0.6:
            default = Default("literal", chance.choice(VALUES[name][kind]))
        if chance.random() < 0.2:
            kind, text = COMPUTED[name]
            default = Default("expression", text)
        comment = "" if "column.comment" in lacks else chance.choice(["", "it's a \\ comment"])
        nullable = chance.random() < 0.7
        columns.append(ColumnForm(f"c {place}", kind, nullable, default, comment=comment))
    item = {"mysql": "int(11)", "postgres": "integer"}.get(name, "INTEGER")
    columns += [ColumnForm("item", item), ColumnForm("other item", item)]
    actions = chance.choice(["CASCADE", "SET NULL", "NO ACTION"])
    key = KeyForm(
        ("item",),
        "items",
        ("id",),
        name="" if "foreign_key.name" in lacks else f"of_item_{number}",
        on_delete="NO ACTION" if "foreign_key.actions" in lacks else actions,
    )
    by = [each.name for each in columns if each.type == item][:2]
    indexes = [
        IndexForm(f"by_{number}_b", tuple(by), chance.random() < 0.5),
        IndexForm(f"By {number}", ("other item",)),
    ]
    return kept(
        TableForm(
            f"made {number}",
            schema,
            tuple(columns),
            tuple(each.name for each in chance.sample(keys, len(keys))),
            (key,) if chance.random() < 0.7 else (),
            tuple(chance.sample(indexes, chance.randrange(3))),
            "" if "table.comment" in lacks else chance.choice(["", "what it's for"]),
        )
    )


async def test_a_form_of_what_a_form_made_is_the_same_form(name, tmp_path):
    case = CASES[name].prepare(tmp_path)
    async with case.opened() as engine:
        place = Place(name, case, engine)
        wanted = [made_form(name, place.writer, place.schema, number) for number in range(15)]
        for form in wanted:
            await place.run(place.writer.create(form))
        tables = (await case.browse(engine, "catalog")).tables
        found = {each.name: place.writer.read(each) for each in tables}
        for form in wanted:
            assert found[form.name] == form
            again = next(each for each in tables if each.name == form.name)
            assert place.writer.alter(again, form).steps == ()


def first(name: str, schema: str, writer: TableWriter) -> TableForm:
    """A table with rows in mind: a key, a text, a number with an index."""
    text = {"mysql": "varchar(255)", "postgres": "text", "duckdb": "VARCHAR"}.get(name, "TEXT")
    number = NUMBERED.get(name, "INTEGER")
    return kept(
        TableForm(
            "first",
            schema,
            (
                ColumnForm("id", number, False),
                ColumnForm("word", text, True, Default("literal", "a")),
                ColumnForm("size", number),
                ColumnForm("gone", text),
            ),
            ("id",),
            (),
            (IndexForm("by_size", ("size",)),),
        )
    )


async def changed(place: Place, **changes: Any) -> TableForm:
    """Change the table as a form does, and compare what the database has then."""
    now = await place.form("first")
    wanted = structs.replace(now, **changes)
    plan = place.writer.alter(await place.table("first"), wanted)
    if place.writer.dialect == "mysql":
        assert len(plan.steps) == 1
    await place.run(plan)
    found = await place.form(wanted.name)
    assert found == kept(wanted)
    if wanted.name != "first":
        back = place.writer.alter(
            await place.table(wanted.name), structs.replace(found, name="first")
        )
        await place.run(back)
    return await place.form("first")


def with_column(form: TableForm, was: str, **changes: Any) -> dict[str, Any]:
    columns = [
        structs.replace(each, **changes) if each.name == was else each for each in form.columns
    ]
    return {"columns": tuple(columns)}


async def test_a_form_changes_a_table_with_rows_as_far_as_the_dialect_can(name, tmp_path):
    case = CASES[name].prepare(tmp_path)
    async with case.opened() as engine:
        place = Place(name, case, engine)
        writer, lacks = place.writer, place.writer.lacks
        form = first(name, place.schema, writer)
        await place.run(writer.create(form))
        table = writer.table(form)
        for row in ("(1, 'x', 10, 'y')", "(2, 'y', 20, 'z')"):
            await case.ask(engine, f"INSERT INTO {table} VALUES {row}", effect=Effect.WRITE)
        form = await changed(place, indexes=())
        form = await changed(place, **with_column(form, "word", name=ODD))
        form = await changed(place, **with_column(form, ODD, name="word"))
        new = ColumnForm("new", form.columns[2].type, False, Default("literal", "5"))
        if name == "duckdb":
            new = structs.replace(new, nullable=True)
        form = await changed(
            place, columns=(*[each for each in form.columns if each.name != "gone"], new)
        )
        assert [each.name for each in form.columns] == ["id", "word", "size", "new"]
        form = await changed(place, name="Renamed")
        if "column.default" not in lacks:
            form = await changed(place, **with_column(form, "word", default=None))
            literal = Default("literal", "it's")
            form = await changed(place, **with_column(form, "word", default=literal))
        if "column.nullable" not in lacks:
            form = await changed(place, **with_column(form, "word", nullable=False))
            form = await changed(place, **with_column(form, "word", nullable=True))
        if "column.comment" not in lacks:
            form = await changed(place, **with_column(form, "word", comment="it's"), comment="t")
            form = await changed(place, **with_column(form, "word", comment=""), comment="")
        if "column.type" not in lacks:
            bigger = {"duckdb": "BIGINT", "postgres": "bigint", "mysql": "bigint(20)"}[name]
            form = await changed(place, **with_column(form, "new", type=bigger, name="newer"))
        if "foreign_key.add" not in lacks:
            item = {"mysql": "int(11)", "postgres": "integer"}[name]
            column = ColumnForm("item", item)
            key = KeyForm(("item",), "items", ("id",), "of_item", on_delete="CASCADE")
            form = await changed(place, columns=(*form.columns, column), foreign_keys=(key,))
            form = await changed(place, foreign_keys=())
        if "primary_key" not in lacks and name != "duckdb":
            form = await changed(
                place,
                primary_key=("id", "size"),
                columns=tuple(
                    structs.replace(each, nullable=False) if each.name == "size" else each
                    for each in form.columns
                ),
            )
        by = (IndexForm("Again", ("size", "word"), True),)
        form = await changed(place, indexes=by)
        rows = await case.ask(engine, f"SELECT id, word, size FROM {table} ORDER BY id")
        assert rows == [(1, "x", 10), (2, "y", 20)]


async def test_what_the_dialect_cannot_do_is_said_with_the_reason_and_nothing_is_written(
    name, tmp_path
):
    case = CASES[name].prepare(tmp_path)
    async with case.opened() as engine:
        place = Place(name, case, engine)
        form = first(name, place.schema, place.writer)
        await place.run(place.writer.create(form))
        table = await place.table("first")
        asks = {
            "column.type": with_column(form, "size", type="TEXT"),
            "column.nullable": with_column(form, "word", nullable=False),
            "column.default": with_column(form, "word", default=None),
            "column.comment": with_column(form, "word", comment="x"),
            "table.comment": {"comment": "x"},
            "primary_key": {"primary_key": ("size",)},
            "foreign_key.add": {"foreign_keys": (KeyForm(("size",), "items", ("id",)),)},
        }
        for feature, change in asks.items():
            plan = place.writer.alter(table, structs.replace(form, **change))
            if feature in place.writer.lacks:
                assert place.writer.lacks[feature] in plan.lacks
                assert plan.steps == ()
        for change in (
            {"name": " "},
            {"columns": ()},
            {"columns": (*form.columns, ColumnForm("SIZE", "TEXT"))},
            {"columns": (*form.columns, ColumnForm("", "TEXT"))},
            {"columns": (*form.columns, ColumnForm("x", ""))},
            {"primary_key": ("nothing",)},
            {"indexes": (IndexForm("i", ("nothing",)),)},
            {"indexes": (IndexForm("", ("size",)),)},
            {"foreign_keys": (KeyForm(("size",), "items", ()),)},
            {"columns": (*form.columns, ColumnForm("x", "TEXT", fixed="generated"))},
        ):
            broken = structs.replace(form, **change)
            for plan in (place.writer.create(broken), place.writer.alter(table, broken)):
                assert plan.lacks
                assert plan.steps == ()
        swapped = structs.replace(
            form,
            columns=tuple(
                structs.replace(
                    each, name={"word": "size", "size": "word"}.get(each.name, each.name)
                )
                for each in form.columns
            ),
        )
        assert place.writer.alter(table, swapped).lacks
        gone = (structs.replace(form.columns[1], name="word", was="no more"), *form.columns[2:])
        plan = place.writer.alter(table, structs.replace(form, columns=(form.columns[0], *gone)))
        assert "The table has no column no more any more." in plan.lacks
