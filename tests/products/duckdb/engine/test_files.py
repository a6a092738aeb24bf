"""A folder of files as a source: its tables are the files as they are now, and nothing else."""

import gzip
import os
import shutil
import subprocess
import sys
import zipfile

import duckdb
import pytest

from products.duckdb.support.workbook_file import write_workbook
from support.engine_cases import CASES, Case, digest_files
from tidegate.engines.registry import check_access, engine_of
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.products.duckdb.engine.errors import translate
from tidegate.products.duckdb.engine.folder import FolderSession
from tidegate.products.duckdb.engine.messages import Folder, Setup


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "data"
    path.mkdir()
    (path / "orders.csv").write_text("id,customer,placed\n1,ann,2024-01-01\n2,bob,2024-02-02\n")
    return path


@pytest.fixture
def case(folder):
    case = Case("files", lambda _: "", CASES["files"].spelling, digest_files, f"files://{folder}")
    case.source = Source("s1", "shop", case.url, *engine_of(case.url))
    return case


async def names(case, engine):
    catalog = await case.browse(engine, "catalog")
    return [(table.schema, table.name) for table in catalog.tables]


async def comment(case, engine, name):
    catalog = await case.browse(engine, "catalog", table=name)
    (table,) = catalog.tables
    return table.columns, table.comment


def save(path, query, form):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = str(path).replace("'", "''")
    duckdb.sql(f"COPY ({query}) TO '{text}' (FORMAT {form})")


async def test_each_kind_of_file_is_a_table_with_its_columns_and_types(case, folder):
    (folder / "tabs.tsv").write_text("a\tb\n1\tx y\n")
    (folder / "few.jsonl").write_text('{"a": 1, "tags": ["x"]}\n{"a": 2, "tags": []}\n')
    (folder / "list.json").write_text('[{"a": 1.5}, {"a": 2.5}]')
    save(folder / "sales.parquet", "SELECT 7::SMALLINT AS n, true AS paid", "parquet")
    (folder / "packed.csv.gz").write_bytes(gzip.compress(b"a,b\n1,x\n"))
    (folder / "notes.txt").write_text("no rows here")
    (folder / ".hidden.csv").write_text("a\n1\n")
    async with case.opened() as engine:
        catalog = await case.browse(engine, "catalog")
        columns = {
            table.name: [(column.name, column.type) for column in table.columns]
            for table in catalog.tables
        }
        assert columns == {
            "few": [("a", "BIGINT"), ("tags", "VARCHAR[]")],
            "list": [("a", "DOUBLE")],
            "orders": [("id", "BIGINT"), ("customer", "VARCHAR"), ("placed", "DATE")],
            "packed": [("a", "BIGINT"), ("b", "VARCHAR")],
            "sales": [("n", "SMALLINT"), ("paid", "BOOLEAN")],
            "tabs": [("a", "BIGINT"), ("b", "VARCHAR")],
        }
        assert {table.kind for table in catalog.tables} == {"table"}
        assert await case.ask(engine, "SELECT b FROM packed") == [("x",)]
        assert await case.ask(engine, "SELECT sum(a) FROM list") == [(4.0,)]


async def test_the_sheets_of_a_workbook_are_tables(case, folder):
    write_workbook(
        folder / "budget.xlsx",
        {
            "2024": [["item", "cost", "paid"], ["pen", 1.5, True], ["ink", 2, None]],
            "Next year": [["n", "n", None], [1, 2, "x"]],
            "empty": [],
        },
    )
    async with case.opened() as engine:
        assert await case.ask(engine, "SELECT * FROM budget ORDER BY item DESC") == [
            ("pen", 1.5, True),
            ("ink", 2.0, None),
        ]
        assert await case.ask(engine, 'SELECT * FROM "budget_Next year"') == [(1, 2, "x")]
        columns, said = await comment(case, engine, "budget_Next year")
        assert [column.name for column in columns] == ["n", "n_1", "column3"]
        assert said == "budget.xlsx, sheet 2"
        write_workbook(folder / "budget.xlsx", {"only": [["item"], ["new"]]})
        assert await case.ask(engine, "SELECT * FROM budget") == [("new",)]
        assert ("main", "budget_Next year") not in await names(case, engine)


async def test_a_new_file_appears_a_changed_one_shows_its_rows_and_a_removed_one_is_gone(
    case, folder
):
    async with case.opened() as engine:
        assert await case.ask(engine, "SELECT count(*) FROM orders") == [(2,)]
        before = await engine.schema_version()
        (folder / "orders.csv").write_text("id,total\n5,1.5\n")
        assert await case.ask(engine, "SELECT * FROM orders") == [(5, 1.5)]
        assert await engine.schema_version() != before
        (folder / "north").mkdir()
        (folder / "north" / "later.csv").write_text("a\n1\n")
        assert await case.ask(engine, "SELECT * FROM north.later") == [(1,)]
        shutil.rmtree(folder / "north")
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, "SELECT * FROM north.later")
        assert caught.value.code is Code.SQL_FAILED
        assert await names(case, engine) == [("main", "orders")]


async def test_every_worker_sees_a_change_that_another_one_saw_first(case, folder):
    async with case.opened() as engine:
        first = await case.start(engine, case.spelling.rows.format(n=50_000))
        await first.fetch(1)
        assert await case.ask(engine, "SELECT count(*) FROM orders") == [(2,)]
        (folder / "orders.csv").write_text("id\n1\n2\n3\n")
        second = await case.start(engine, case.spelling.rows.format(n=50_000))
        await second.fetch(1)
        assert await case.ask(engine, "SELECT count(*) FROM orders") == [(3,)]
        await first.close()
        await second.close()
        assert await case.ask(engine, "SELECT count(*) FROM orders") == [(3,)]


@pytest.mark.parametrize(
    ("file", "table"),
    [
        ('it\'s "odd".csv', 'it\'s "odd"'),
        ("Umsätze 2024.csv", "Umsätze 2024"),
        ("v1.2.csv", "v1_2"),
        ("a*b?[1].csv", "a_b__1_"),
        ("two\nlines.csv", "two_lines"),
        ("select.csv", "select"),
        ("x'); DROP VIEW orders; --.csv", "x'); DROP VIEW orders; --"),
        ("%41.csv", "%41"),
        ("~x.csv", "~x"),
        ("file:x.csv", "file_x"),
        ("a[!b].csv", "a_!b_"),
        ("a]b.csv", "a_b"),
    ],
)
async def test_a_file_with_an_odd_name_is_a_table_that_can_be_quoted(case, folder, file, table):
    (folder / file).write_text('na\'me,"q""\n1,2\n' if file.startswith("it") else "a,b\n1,2\n")
    async with case.opened() as engine:
        assert ("main", table) in await names(case, engine)
        quoted = table.replace('"', '""')
        assert await case.ask(engine, f'SELECT * FROM "{quoted}"') == [(1, 2)]
        assert await case.ask(engine, "SELECT count(*) FROM orders") == [(2,)]


PATTERNS = (("s*.csv", "s_"), ("s?.csv", "s_"), ("s[0-9].csv", "s_0-9_"), ("[!x]1.csv", "_!x_1"))


@pytest.mark.parametrize(("file", "table"), PATTERNS)
async def test_a_name_that_is_a_pattern_shows_no_row_of_another_file(case, folder, file, table):
    (folder / "s1.csv").write_text("word\nhunter2\n")
    (folder / file).write_text("word\nown\n")
    (folder / "d[s].d").mkdir()
    (folder / "d[s].d" / "s1.csv").write_text("word\nown\n")
    (folder / "ds.d").mkdir()
    (folder / "ds.d" / "s1.csv").write_text("word\nhunter2\n")
    async with case.opened() as engine:
        assert await case.ask(engine, f'SELECT word FROM "{table}"') == [("own",)]
        assert await case.ask(engine, 'SELECT word FROM "d_s__d"."s1"') == [("own",)]
        assert await case.ask(engine, "SELECT word FROM s1") == [("hunter2",)]


async def test_a_backslash_in_a_pattern_leads_to_no_other_folder(case, folder):
    (folder / "s").mkdir()
    (folder / "s" / "[1].csv").write_text("word\nhunter2\n")
    (folder / "s\\[1].csv").write_text("word\nown\n")
    async with case.opened() as engine:
        with pytest.raises(TidegateError, match="holds a backslash"):
            await case.ask(engine, 'SELECT * FROM "s__1_"')


async def test_files_of_one_name_have_distinct_tables(case, folder):
    save(folder / "orders.parquet", "SELECT 9 AS n", "parquet")
    for place in ("north", "south/deep", "main"):
        (folder / place).mkdir(parents=True)
        (folder / place / "orders.csv").write_text(f"place\n{place}\n")
    (folder / "Orders.CSV").write_text("a\n3\n")
    async with case.opened() as engine:
        assert sorted(await names(case, engine)) == [
            ("main", "Orders_CSV"),
            ("main", "orders_csv_2"),
            ("main", "orders_parquet"),
            ("main_", "orders"),
            ("north", "orders"),
            ("south_deep", "orders"),
        ]
        assert await case.ask(engine, "SELECT place FROM south_deep.orders") == [("south/deep",)]
        assert await case.ask(engine, "SELECT n FROM orders_parquet") == [(9,)]


async def test_a_link_that_leads_out_is_not_followed(case, folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.csv").write_text("word\nhunter2\n")
    (folder / "link.csv").symlink_to(outside / "secret.csv")
    (folder / "linked").symlink_to(outside)
    (folder / "again.csv").symlink_to(folder / "orders.csv")
    (folder / "dangling.csv").symlink_to(folder / "none.csv")
    async with case.opened() as engine:
        assert await names(case, engine) == [
            ("main", "again"),
            ("main", "link"),
            ("main", "orders"),
        ]
        assert await case.ask(engine, "SELECT count(*) FROM again") == [(2,)]
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, "SELECT count(*) FROM link")
        assert "leads out of the folder" in caught.value.message
        assert "hunter2" not in str(caught.value)


async def test_a_broken_file_is_an_error_of_its_table_alone(case, folder):
    (folder / "broken.parquet").write_bytes(b"PAR1 and then nothing of the kind")
    (folder / "damaged.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    (folder / "latin.csv").write_bytes("id,name\n1,Müller\n".encode("latin-1"))
    (folder / "cut.jsonl").write_text('{"a": 1}\n{"a": \n')
    async with case.opened() as engine:
        for name in ("broken", "damaged", "latin", "cut"):
            columns, said = await comment(case, engine, name)
            assert columns == ()
            assert "cannot be read: " in said
            for query in (f"SELECT * FROM {name}", f"SELECT count(*) FROM {name}"):
                with pytest.raises(TidegateError) as caught:
                    await case.ask(engine, query)
                assert caught.value.code is Code.SQL_FAILED
                assert "cannot be read" in caught.value.message
                assert "Correct the file" in caught.value.hint
                assert str(folder) not in caught.value.message
        assert await case.ask(engine, "SELECT count(*) FROM orders") == [(2,)]
        counts = (await case.browse(engine, "counts")).rows
        assert counts == {("main", "orders"): 2}
        (folder / "latin.csv").write_text("id,name\n1,Müller\n")
        assert await case.ask(engine, "SELECT name FROM latin") == [("Müller",)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b,c\n1,2,3\n4,5\n6,7,8\n", "line 1 has 3 values but line 3 has 2 values"),
        ("a,b,c\n1,2,3\n4,5,6,7\n8,9,0\n", "line 1 has 3 values but line 3 has 4 values"),
        ("a;b\n1;2;3\n4;5;6\n", "line 1 has 2 values but line 2 has 3 values"),
        ("a,b,c\n1,2,3\n4,5,6\nTotal: 2\n", "line 1 has 3 values but line 4 has one value"),
        ("May\na,b,c\n1,2,3\n4,5\n", "line 1 has one value but line 2 has 3 values"),
        ('a,b\n"x\ny",2\n3\n', "line 1 has 2 values but line 4 has one value"),
        ("a,b,c\n" + "1,2,3\n" * 3_000 + "4,5\n", "line 1 has 3 values but line 3002 has 2 values"),
    ],
)
async def test_rows_of_different_lengths_are_an_error_and_no_wrong_table(case, folder, text, said):
    (folder / "ragged.csv").write_text(text)
    (folder / "packed.csv.gz").write_bytes(gzip.compress(text.encode()))
    async with case.opened() as engine:
        for name in ("ragged", "packed"):
            with pytest.raises(TidegateError) as caught:
                await case.ask(engine, f"SELECT * FROM {name}")
            assert f"cannot be read: {said}; make all rows alike" in caught.value.message
        (folder / "ragged.csv").write_text("a,b\n1,2\n")
        assert await case.ask(engine, "SELECT b FROM ragged") == [(2,)]


async def test_one_column_with_marks_in_its_texts_is_still_a_table(case, folder):
    (folder / "notes.csv").write_text("note\nall well\nlate, but here\nfine\n")
    (folder / "quoted.csv").write_text('a,b\n"x,y",2\n"p""q",3\n')
    async with case.opened() as engine:
        assert await case.ask(engine, "SELECT count(*) FROM notes") == [(3,)]
        assert await case.ask(engine, "SELECT a FROM quoted") == [("x,y",), ('p"q',)]


async def test_lines_before_the_header_are_left_out_and_the_comment_says_so(case, folder):
    (folder / "report.csv").write_text("Report of May\n\na,b\n1,2\n3,4\n")
    async with case.opened() as engine:
        assert await case.ask(engine, "SELECT a, b FROM report") == [(1, 2), (3, 4)]
        _, said = await comment(case, engine, "report")
    assert said == "report.csv, without its first 2 lines"


async def test_a_line_that_does_not_fit_is_named_without_its_values(case, folder):
    rows = "".join(f"{number},x\n" for number in range(1_800_000))
    (folder / "long.csv").write_text(f"id,name\n{rows}hunter2,password\n")
    async with case.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, "SELECT sum(id) FROM long")
    assert caught.value.message == (
        "long.csv cannot be read: line 1800002 has in the column id what is not BIGINT."
    )


def test_what_to_run_for_a_workbook_is_the_end_of_the_hint():
    said = "Invalid Input Error: a.xlsx cannot be read: workbooks need the extra `excel`. Run: x y"
    error = translate(duckdb.InvalidInputException(said))
    assert error.message == "a.xlsx cannot be read: workbooks need the extra `excel`."
    assert error.hint == "The other tables can be read. Run: x y"


async def test_a_workbook_without_its_library_says_what_to_install(folder):
    write_workbook(folder / "budget.xlsx", {"one": [["a"], [1]]})
    code = (
        "import sys; sys.modules['python_calamine'] = None\n"
        "from tidegate.products.duckdb.engine.folder import FolderSession\n"
        "from tidegate.products.duckdb.engine.messages import Folder, Setup\n"
        "folder = Folder(sys.argv[1], 10)\n"
        "cursor = FolderSession(Setup(None, 10**9, 1, 0.0, folder), folder).cursor('')\n"
        "print(cursor.execute('SELECT comment FROM duckdb_views() WHERE NOT internal')"
        ".fetchall())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )
    assert "workbooks need the extra `excel`. Run: " in ended.stdout
    assert "tidegate[" in ended.stdout or "[excel]" in ended.stdout
    assert "'orders.csv'" in ended.stdout


async def test_a_workbook_that_unpacks_to_too_much_is_not_read(case, folder):
    with zipfile.ZipFile(folder / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b"0" * (129 * 2**20))
    async with case.opened() as engine:
        _, said = await comment(case, engine, "bomb")
        assert (
            said == "bomb.xlsx cannot be read: it has more than 128 MB; save it as Parquet or CSV"
        )


async def test_a_folder_with_too_many_files_is_refused_and_not_cut(case, folder):
    for number in range(5):
        (folder / f"t{number}.csv").write_text("a\n1\n")
    case.source = Source("s1", "shop", f"{case.url}?files=5", "files", "duckdb")
    with pytest.raises(TidegateError) as caught:
        async with case.opened():
            pass
    assert caught.value.code is Code.SOURCE_UNREACHABLE
    assert "more than 5 files" in caught.value.message
    (folder / "t0.csv").unlink()
    async with case.opened() as engine:
        assert len(await names(case, engine)) == 5


async def test_a_folder_that_goes_away_is_an_error_and_comes_back(case, folder):
    async with case.opened() as engine:
        folder.rename(folder.with_name("aside"))
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, "SELECT count(*) FROM orders")
        assert caught.value.code is Code.SOURCE_UNREACHABLE
        folder.with_name("aside").rename(folder)
        assert await case.ask(engine, "SELECT count(*) FROM orders") == [(2,)]


ESCAPES = (
    "SELECT * FROM '{outside}/secret.csv'",
    "SELECT * FROM read_csv('{outside}/secret.csv')",
    "SELECT * FROM read_text('{outside}/secret.csv')",
    "SELECT * FROM read_text('../outside/secret.csv')",
    "SELECT * FROM read_text('link.csv')",
    "SELECT * FROM read_text('notes.txt')",
    "SELECT * FROM glob('{outside}/*')",
    "SELECT * FROM read_csv('*.csv')",
    "COPY orders TO '{folder}/out.csv'",
    "COPY (SELECT 1 AS id) TO '{folder}/orders.csv'",
    "COPY orders TO '{outside}/secret.csv'",
    "EXPORT DATABASE '{folder}/out'",
    "ATTACH '{folder}/other.duckdb' AS other",
    "CREATE TABLE t (a INTEGER)",
    "CREATE OR REPLACE VIEW orders AS SELECT 1",
    "DROP VIEW orders",
    "INSERT INTO orders VALUES (3, 'x', NULL)",
    "SET allowed_directories = ['/']",
    "SET allowed_paths = ['{outside}/secret.csv']",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
)


@pytest.mark.parametrize("text", ESCAPES)
def test_duckdb_itself_opens_and_writes_no_other_file(folder, tmp_path, text):
    """With neither judge nor permit before it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.csv").write_text("word\nhunter2\n")
    (folder / "link.csv").symlink_to(outside / "secret.csv")
    (folder / "notes.txt").write_text("hunter2")
    before = digest_files(None, f"files://{folder}"), (outside / "secret.csv").read_bytes()
    there = os.getcwd()
    session = FolderSession(Setup(None, 10**9, 1, 0.0), Folder(str(folder), 10))
    try:
        cursor = session.cursor("")
        with pytest.raises(duckdb.Error):
            print(cursor.execute(text.format(folder=folder, outside=outside)).fetchall())
        session.drop(cursor)
        after = digest_files(None, f"files://{folder}"), (outside / "secret.csv").read_bytes()
        assert after == before
        assert not [name for name in os.listdir(folder) if name.startswith("out")]
    finally:
        os.chdir(there)


def test_a_folder_is_never_for_writing(folder):
    with pytest.raises(TidegateError) as caught:
        check_access(f"files://{folder}", "write")
    assert caught.value.code is Code.CONFIG_INVALID
    check_access(f"files://{folder}", "read")


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ("files://{folder}?files=0", Code.SOURCE_URL),
        ("files://{folder}?nosuch=1", Code.SOURCE_URL),
        ("files://server/data", Code.SOURCE_URL),
        ("files://", Code.SOURCE_URL),
        ("files://{folder}/none", Code.SOURCE_UNREACHABLE),
        ("files://{folder}/orders.csv", Code.SOURCE_URL),
        ("files://{folder}/%00", Code.SOURCE_URL),
    ],
)
async def test_a_url_that_names_no_folder_is_refused_in_words_that_help(case, folder, form, code):
    url = form.format(folder=folder)
    case.source = Source("s1", "shop", url, "files", "duckdb")
    with pytest.raises(TidegateError) as caught:
        async with case.opened():
            pass
    assert caught.value.code is code
    assert caught.value.hint
