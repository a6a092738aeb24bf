"""Arrays, functions that give rows, and types in queries on the emulated catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support import postgres_server
from tidegate.errors import TidegateError
from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Index, Table
from tidegate.products.pgwire.catalog.database import CatalogDatabase
from tidegate.products.pgwire.catalog.schema_names import named_schemas
from tidegate.products.pgwire.catalog.tables import catalog_rows
from tidegate.products.pgwire.catalog.translation import translate
from tidegate.products.pgwire.session_settings import SessionSettings

PARTS = Table(
    "main", "part", "table",
    (ColumnInfo("b", "integer", key=2), ColumnInfo("a", "integer", key=1), ColumnInfo("c", "text")),
    (Index("part_c", ("c", "a")),),
)  # fmt: skip
USES = Table(
    "main", "uses", "table", (ColumnInfo("x", "integer"), ColumnInfo("y", "numeric(8,3)")),
    foreign_keys=(ForeignKey("uses_part", ("x", "y"), "part", ("a", "b")),),
)  # fmt: skip


@pytest.fixture(scope="module")
def database() -> Iterator[CatalogDatabase]:
    catalog = Catalog("shop", "main", ("main", "other"), (PARTS, USES), "1")
    rows = catalog_rows(catalog, ["shop"], "shop", "u", SessionSettings("u", None).items())
    session = {"current_user": "u", "current_schema": "main", "current_database": "shop"}
    found = CatalogDatabase(rows, session)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("text", "types", "rows"),
    [
        (
            "SELECT conname, unnest(conkey), generate_subscripts(conkey, 1) FROM pg_constraint"
            " WHERE contype = 'p'",
            ["name", "smallint", "integer"],
            [("part_pkey", 2, 1), ("part_pkey", 1, 2)],
        ),
        (
            "SELECT unnest(indkey), generate_subscripts(indkey, 1), indkey[0] FROM pg_index"
            " WHERE NOT indisunique",
            [None, "integer", None],
            [(3, 0, 3), (2, 1, 3)],
        ),
        (
            "SELECT array_agg(attname ORDER BY attnum DESC), bool_and(attnotnull) FROM pg_attribute"
            " WHERE attrelid = 'part'::regclass",
            ["name[]", "boolean"],
            [(["c", "a", "b"], 0)],
        ),
        ("SELECT array_agg(relname) FROM pg_class WHERE false", ["name[]"], [(None,)]),
        (
            "SELECT a.attname, k.n FROM pg_constraint c CROSS JOIN LATERAL unnest(c.conkey) WITH"
            " ORDINALITY AS k(num, n) JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum"
            " = k.num WHERE c.contype = 'f' ORDER BY k.n",
            ["name", None],
            [("x", 1), ("y", 2)],
        ),
        ("SELECT * FROM unnest(current_schemas(true)) AS s", [None], [("pg_catalog",), ("main",)]),
        ("SELECT i FROM generate_series(2, 4) AS n(i)", [None], [(2,), (3,), (4,)]),
        (
            "SELECT (information_schema._pg_expandarray(conkey)).n FROM pg_constraint"
            " WHERE contype = 'f'",
            ["integer"],
            [(1,), (2,)],
        ),
        (
            "SELECT conrelid::regclass, confrelid::regclass::text, 'part'::regclass = confrelid"
            " FROM pg_constraint WHERE contype = 'f'",
            ["regclass", "text", "boolean"],
            [("uses", "part", 1)],
        ),
        (
            "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attname = 'y'",
            ["text"],
            [("numeric(8,3)",)],
        ),
        ("SELECT '{a,\"b c\",NULL}'::text[], ARRAY[1, 2]", ["text[]", "integer[]"],
         [(["a", "b c", None], [1, 2])]),
        ("SELECT 'b' = ANY ('{a,b}'), 'c' <> ALL ('{a,b}'), indisprimary = 't' FROM pg_index"
         " WHERE indisprimary", ["boolean", "boolean", "boolean"], [(1, 1, 1)]),
        ("SELECT pg_table_is_visible('part'::regclass), to_regclass('nothing')",
         ["boolean", "oid"], [(1, None)]),
    ],
)  # fmt: skip
def test_arrays_and_sets_of_rows_are_as_postgresql_gives_them(
    database: CatalogDatabase, text: str, types: list[str | None], rows: list[tuple[Any, ...]]
):
    query = translate(text)
    columns, found = database.run(query, ())
    assert found == rows
    for column, wanted in zip(columns, types, strict=True):
        assert wanted is None or column.type == wanted
    described = [each.type for each in database.describe(query)]
    assert [name for name, wanted in zip(described, types, strict=True) if wanted] == [
        wanted for wanted in types if wanted
    ]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("SELECT 'nothing'::regclass", "42P01"),
        ("SELECT current_setting('nothing')", "42704"),
        ("SELECT \"nothing\" FROM pg_class", "0A000"),
        ("SELECT 1 FROM pg_class, LATERAL (SELECT relname) AS x", "0A000"),
        ("SELECT conkey[1:2] FROM pg_constraint", "0A000"),
        ("SELECT 'nothing'::pg_catalog.regproc::pg_catalog.oid", "0A000"),
        ("SELECT generate_series(1, 100000000)", "0A000"),
    ],
)  # fmt: skip
def test_what_is_unknown_is_refused(database: CatalogDatabase, text: str, state: str):
    with pytest.raises(TidegateError) as caught:
        database.run(translate(text), ())
    assert caught.value.details["sqlstate"] == state


def test_parameters_have_the_types_of_their_columns_and_casts():
    text = "SELECT 1 FROM pg_class WHERE oid = $1 AND relname = $2 AND relkind = ANY ($3::text[])"
    assert translate(text).parameters == {1: "oid", 2: "name", 3: "text[]"}


def test_the_types_of_a_chain_of_names_are_found_in_the_time_of_its_length():
    names = ", ".join(f"(SELECT n{at + 1}) AS n{at}" for at in range(30) for _ in range(4))
    columns = translate(f"SELECT {names}, n0 AS x, n0 AS y FROM pg_class").columns
    assert columns[-2:] == (("x", None), ("y", None))


def test_a_schema_is_named_by_itself_by_its_oid_or_by_a_pattern():
    schemas = {1: "a.b", 2: "a.c", 3: "d"}
    assert named_schemas(schemas, ["a.b", "x"], ()) == ["a.b"]
    assert named_schemas(schemas, ["3"], ("a.c", 1)) == ["a.b", "a.c", "d"]
    assert named_schemas(schemas, ["a.%"], ()) == ["a.b", "a.c"]
    assert named_schemas(schemas, [r"^(a\.b)$"], ()) == ["a.b"]
    assert named_schemas(schemas, ["%", "", "%%"], ()) == []


def test_a_constant_with_escapes_is_a_constant():
    text = r"SELECT 1 FROM pg_namespace WHERE nspname ~ E'^(desk\\.api)$'"
    assert named_schemas({1: "desk.api"}, translate(text).constants, ()) == ["desk.api"]


ADBC = (
    "SELECT oid, typname, typreceive, typbasetype, typrelid, typarray FROM pg_catalog.pg_type"
    " WHERE (typreceive != 0 OR typsend != 0) AND typtype != 'r'"
    " AND typreceive::TEXT != 'array_recv'"
)


def test_types_are_shown_with_the_names_of_the_functions_that_read_them(database: CatalogDatabase):
    """As ADBC asks it, which knows a type by that name alone."""
    _, rows = database.run(translate(ADBC), ())
    receivers = {row[1]: row[2] for row in rows}
    assert (receivers["int4"], receivers["text"]) == ("int4recv", "textrecv")
    known = dict(
        postgres_server.shared().ask(
            "SELECT typname, typreceive::text FROM pg_type WHERE oid < 9999"
        )
    )
    assert {name: known[name] for name in receivers} == receivers
    joined = (
        "SELECT t.typname, p.proname FROM pg_type AS t JOIN pg_proc AS p ON p.oid = t.typreceive"
        " WHERE t.oid IN (23, 1007) ORDER BY 1"
    )
    _, rows = database.run(translate(joined), ())
    assert rows == [("_int4", "array_recv"), ("int4", "int4recv")]
