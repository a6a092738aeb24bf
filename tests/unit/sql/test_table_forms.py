"""The statements of table forms: as few as the dialect can, with what a person should know."""

from __future__ import annotations

from msgspec import structs

from tidegate.model.schema import ColumnInfo, ForeignKey, Index, Table
from tidegate.sql.table_forms.model import ColumnForm, Default, IndexForm, KeyForm, TableForm
from tidegate.sql.table_forms.writer import TableWriter, writer_of

TABLE = Table(
    "public",
    "orders",
    "table",
    (
        ColumnInfo("id", "integer", False, key=1, extra="identity by default"),
        ColumnInfo("total", "numeric(10,2)", True, "'-1.5'::numeric"),
        ColumnInfo("note", "text", True, "lower('X'::text)"),
        ColumnInfo("twice", "numeric", True, extra="generated always"),
    ),
    (
        Index("orders_pkey", ("id",), True, True),
        Index("by_total", ("total",)),
        Index("by_note", ("lower(note)",), usable=False),
    ),
    (ForeignKey("of", ("id",), "others", ("id",), "public", on_delete="CASCADE"),),
)


def writer(dialect: str = "postgres") -> TableWriter:
    found = writer_of(dialect, dialect)
    assert found is not None
    return found


def test_a_description_is_read_as_a_form() -> None:
    form = writer().read(TABLE)
    assert [each.default for each in form.columns] == [
        None,
        Default("literal", "-1.5"),
        Default("expression", "lower('X'::text)"),
        None,
    ]
    assert [(each.identity, each.fixed) for each in form.columns] == [
        (True, ""),
        (False, ""),
        (False, ""),
        (False, "generated always"),
    ]
    assert form.primary_key == ("id",)
    assert form.foreign_keys == (KeyForm(("id",), "others", ("id",), "of", on_delete="CASCADE"),)
    assert [(each.name, each.fixed) for each in form.indexes] == [
        ("by_note", True),
        ("by_total", False),
    ]


def test_postgresql_takes_one_statement_but_for_names_indexes_and_comments() -> None:
    form = writer().read(TABLE)
    columns = (
        form.columns[0],
        structs.replace(form.columns[1], type="bigint", nullable=False, default=None),
        structs.replace(form.columns[2], name="remark", comment="it's"),
        ColumnForm("at", "date", True, Default("expression", "now()")),
    )
    wanted = structs.replace(form, name="sales", columns=columns, indexes=form.indexes[:1])
    plan = writer().alter(TABLE, wanted)
    assert plan.lacks == ()
    assert [each.text for each in plan.steps] == [
        'DROP INDEX "public"."by_total"',
        'ALTER TABLE "public"."orders" RENAME COLUMN "note" TO "remark"',
        'ALTER TABLE "public"."orders"\n'
        '  DROP COLUMN "twice",\n'
        '  ADD COLUMN "at" date DEFAULT (now()),\n'
        '  ALTER COLUMN "total" DROP DEFAULT,\n'
        '  ALTER COLUMN "total" TYPE bigint USING "total"::bigint,\n'
        '  ALTER COLUMN "total" SET NOT NULL',
        'ALTER TABLE "public"."orders" RENAME TO "sales"',
        'COMMENT ON COLUMN "public"."sales"."remark" IS \'it\'\'s\'',
    ]
    warnings = " ".join(plan.steps[2].warnings)
    assert "The values of twice are lost." in warnings
    assert "all rows may be written again" in warnings
    assert "while all rows are checked" in warnings
    assert "those before it stay done" in plan.stays


def test_what_a_form_cannot_say_is_neither_made_nor_changed() -> None:
    form = writer().read(TABLE)
    assert "twice (generated always) cannot be made" in " ".join(writer().create(form).lacks)
    retyped = [structs.replace(each, type="bigint") for each in form.columns]
    plan = writer().alter(TABLE, structs.replace(form, columns=tuple(retyped)))
    assert plan.steps == ()
    assert "twice (generated always) is not changed" in " ".join(plan.lacks)
    without = structs.replace(form, indexes=form.indexes[1:])
    assert "by_note is not changed by a form" in " ".join(writer().alter(TABLE, without).lacks)


def test_names_and_values_stay_in_their_quotes() -> None:
    odd = "x\"; DROP TABLE t; --'"
    form = TableForm(
        odd,
        odd,
        (ColumnForm(odd, "text", True, Default("literal", odd), comment=odd),),
        (),
        (KeyForm((odd,), odd, (odd,), odd, odd),),
        (IndexForm(odd, (odd,)),),
        odd,
    )
    for step in writer().create(form).steps:
        rest = step.text.replace('x""; DROP TABLE t; --', "")
        assert "DROP" not in rest.replace("'x\"; DROP TABLE t; --''", "")


def test_a_column_of_sqlite_without_a_type_is_left_as_it_is() -> None:
    table = Table("main", "t", "table", (ColumnInfo("a", ""), ColumnInfo("b", "TEXT")))
    form = writer("sqlite").read(table)
    wanted = structs.replace(form, columns=(form.columns[0],))
    plan = writer("sqlite").alter(table, wanted)
    assert [each.text for each in plan.steps] == ['ALTER TABLE "main"."t" DROP COLUMN "b"']
    assert writer("sqlite").create(wanted).steps[0].text == 'CREATE TABLE "main"."t" (\n  "a"\n)'


def test_only_the_engine_of_a_dialect_has_forms() -> None:
    assert writer_of("sqlite", "sqlite") is not None
    assert writer_of("jdbc", "postgres") is None
    assert writer_of("cloud", "cloud") is None
    assert writer_of("x", "x") is None
