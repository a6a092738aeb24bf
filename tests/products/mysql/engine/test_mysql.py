"""MySQL's and MariaDB's values, fences, errors and schema, on the real server."""

import asyncio
import re
import struct
from datetime import datetime

import pytest

import support.mysql_server as mysql_server
from support.engine_cases import CASES
from support.eventually import HANG_S, until
from support.permits import permit_for
from tidegate.app import App
from tidegate.config.model import Config, SourceSettings
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.requests import Call, Query
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.products.mysql.engine.account import privilege_warnings
from tidegate.products.mysql.engine.command_protocol import CommandProtocol
from tidegate.products.mysql.engine.inspect import MOST_DEPTH, Prepared, PreparedCache, first_word
from tidegate.products.mysql.engine.types import well_known_text
from tidegate.products.mysql.engine.url import parse_conninfo
from tidegate.sql.judge import judge

pytestmark = pytest.mark.skipif(not mysql_server.available(), reason="needs mariadb-server-core")


@pytest.fixture
def shop(tmp_path):
    return CASES["mysql"].prepare(tmp_path)


@pytest.fixture
def change(shop):
    """Change the shop from outside, as another program would."""
    name = shop.url.partition("?")[0].rpartition("/")[2]
    return lambda script: mysql_server.shared().script(script, name)


def as_user(shop, user):
    url = shop.url.replace("mysql://root@", f"mysql://{user}@")
    shop.source = Source("s1", "shop", url, "mysql", "mysql")
    return shop


async def refused(shop, engine, text, params=None, **options):
    with pytest.raises(TidegateError) as caught:
        await shop.ask(engine, text, params, **options)
    return caught.value


VALUES = [
    ("CAST(18446744073709551615 AS UNSIGNED)", 2**64 - 1),
    ("CAST(-5 AS SIGNED)", -5),
    ("CAST('12345678901234567890.123456789' AS DECIMAL(30,9))", "12345678901234567890.123456789"),
    ("CAST('-0.50' AS DECIMAL(3,2))", "-0.50"),
    ("1e308", 1e308),
    ("CAST('2026-01-02' AS DATE)", "2026-01-02"),
    ("CAST('0000-00-00' AS DATE)", "0000-00-00"),
    ("CAST('2026-01-02 03:04:05' AS DATETIME)", datetime(2026, 1, 2, 3, 4, 5)),
    ("CAST('2026-01-02 03:04:05.6' AS DATETIME(1))", datetime(2026, 1, 2, 3, 4, 5, 600_000)),
    ("CAST('23:59:59.5' AS TIME(1))", "23:59:59.500000"),
    ("CAST('00:00:00' AS TIME)", "00:00:00"),
    ("CAST('838:59:59' AS TIME)", "P34DT82799S"),
    ("CAST('-01:00:00.25' AS TIME(2))", "-PT3600.25S"),
    ("CAST('48:00:00' AS TIME)", "P2D"),
    ("b'101'", b"\x05"),
    ("NULL", None),
    ("''", ""),
    ("x''", b""),
    ("TRUE", 1),
    ("ST_GeomFromText('POINT(1 2.5)')", "POINT(1 2.5)"),
    (
        "ST_GeomFromText('MULTIPOLYGON(((0 0,4 0,4 4,0 0),(1 1,2 1,2 2,1 1)))')",
        "MULTIPOLYGON(((0 0,4 0,4 4,0 0),(1 1,2 1,2 2,1 1)))",
    ),
    ("CAST('a' AS BINARY)", b"a"),
    ("_latin1 x'e9'", "é"),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
async def test_a_value_is_the_same_by_both_protocols(shop, text, value):
    async with shop.opened() as engine:
        assert await shop.ask(engine, f"SELECT {text}") == [(value,)]
        assert await shop.ask(engine, f"SELECT {text} FROM (SELECT ? AS p) AS q", (1,)) == [
            (value,)
        ]


COLUMNS = """
CREATE TABLE every (
  id INT PRIMARY KEY AUTO_INCREMENT COMMENT 'the key', tiny TINYINT UNSIGNED, flag BOOLEAN,
  medium MEDIUMINT, big BIGINT UNSIGNED, single FLOAT, price DECIMAL(10,2), born YEAR, bits BIT(12),
  day DATE, at DATETIME(3), moment TIMESTAMP(6) NULL, span TIME, code CHAR(4), bin BINARY(2),
  word VARCHAR(40), size ENUM('s','m'), tags SET('a','b'), doc JSON, blobby BLOB, small TINYTEXT,
  place POINT, doubled INT AS (medium * 2) STORED, uid UUID, UNIQUE KEY words (word, size)
) COMMENT 'of every type';
SET sql_mode = '';
INSERT INTO every (tiny, flag, medium, big, single, price, born, bits, day, at, moment, span, code,
  bin, word, size, tags, doc, blobby, small, place, uid) VALUES
  (255, TRUE, -8388608, 18446744073709551615, 0.1, 12.5, 2026, b'100000000001', '0000-00-00',
   '2026-02-00 00:00:00', '2026-01-02 03:04:05.000600', '-25:00:00', 'ab', x'00ff', '', 'm', 'a,b',
   '{"a": 1}', x'00', 'tiny', POINT(1, 2), '123e4567-e89b-12d3-a456-426655440000')
"""
EXPECTED = {
    "tiny": (255, "tinyint unsigned"),
    "flag": (1, "tinyint(1)"),
    "medium": (-8388608, "mediumint"),
    "big": (2**64 - 1, "bigint unsigned"),
    "single": (0.1, "float"),
    "price": ("12.50", "decimal(10,2)"),
    "born": (2026, "year"),
    "bits": (2049, "bit(12)"),
    "day": ("0000-00-00", "date"),
    "at": ("2026-02-00 00:00:00.000", "datetime(3)"),
    "moment": ("2026-01-02T03:04:05.000600Z", "timestamp(6)"),
    "span": ("-P1DT3600S", "time"),
    "code": ("ab", "char(4)"),
    "bin": (b"\x00\xff", "binary(2)"),
    "word": ("", "varchar(40)"),
    "size": ("m", "enum"),
    "tags": ("a,b", "set"),
    "doc": ('{"a": 1}', "longtext"),
    "blobby": (b"\x00", "blob"),
    "small": ("tiny", "tinytext"),
    "place": ("POINT(1 2)", "geometry"),
    "doubled": (-16777216, "int"),
    "uid": ("123e4567-e89b-12d3-a456-426655440000", "char(36)"),
}


@pytest.mark.parametrize("params", [None, (1,)])
async def test_a_column_of_every_type_is_read_and_named(shop, change, params):
    change("SET time_zone = '+00:00';" + COLUMNS)
    names = list(EXPECTED)
    where = "" if params is None else " WHERE id = ?"
    async with shop.opened() as engine:
        text = f"SELECT {', '.join(names)} FROM every{where}"
        cursor = await shop.start(engine, text, params)
        (row,) = await cursor.fetch(10)
        await cursor.close()
    found = {
        name: (value, column.type)
        for name, value, column in zip(names, row, cursor.columns, strict=True)
    }
    if params is not None:  # here the server leaves out digits that are zero
        found["at"] = (found["at"][0].removesuffix(".000000") + ".000", found["at"][1])
    assert found == EXPECTED


async def test_the_catalog_tells_what_the_server_knows(shop, change):
    change(COLUMNS)
    change(
        "CREATE TABLE child (a INT, b VARCHAR(40), CONSTRAINT up FOREIGN KEY (a)"
        " REFERENCES every (id) ON DELETE CASCADE ON UPDATE RESTRICT)"
    )
    async with shop.opened() as engine:
        every = (await shop.browse(engine, "catalog", table="every")).tables[0]
        child = (await shop.browse(engine, "catalog", table="child")).tables[0]
    columns = {column.name: column for column in every.columns}
    assert (every.comment, every.kind) == ("of every type", "table")
    assert (columns["id"].extra, columns["id"].comment) == ("auto_increment", "the key")
    assert columns["doubled"].extra == "generated stored"
    assert columns["price"].type == "decimal(10,2)"
    assert columns["word"].default is None
    words = next(index for index in every.indexes if index.name == "words")
    assert (words.columns, words.unique, words.primary) == (("word", "size"), True, False)
    (key,) = child.foreign_keys
    assert (key.name, key.on_delete, key.on_update) == ("up", "CASCADE", "RESTRICT")


async def test_another_database_is_shown_when_asked_for_by_name(shop, change):
    other = mysql_server.shared().new_database()
    change(f"CREATE TABLE {other}.elsewhere (a INT)")
    async with shop.opened() as engine:
        for narrowed in ({"schema": other}, {"database": other}):
            catalog = await shop.browse(engine, "catalog", **narrowed)
            assert [table.name for table in catalog.tables] == ["elsewhere"]
            assert catalog.default_schema == other
        request = Query(Statement("SELECT COUNT(*) FROM elsewhere"), limits=Limits(), schema=other)
        cursor = await engine.run(shop.permit(request), Cancellation())
        assert await cursor.fetch(2) == [(0,)]
        await cursor.close()
        assert await shop.ask(engine, "SELECT COUNT(*) FROM items") == [(10,)]


async def test_the_stamp_follows_the_schema(shop, change):
    async with shop.opened() as engine:
        stamp = await engine.schema_version()
        change("ALTER TABLE void ADD COLUMN c INT")
        assert await engine.schema_version() != stamp


async def test_the_server_says_how_many_connections_it_admits(shop):
    ((most,),) = mysql_server.shared().script("SELECT @@max_connections")
    async with shop.opened() as engine:
        assert await engine.read_connection_limit() == most


async def test_a_stored_function_is_refused_wherever_it_hides(shop, change):
    change(
        "CREATE FUNCTION bin_to_uuid(a INT) RETURNS INT DETERMINISTIC RETURN 1;"
        "CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1;"
        "CREATE VIEW direct AS SELECT f() AS a; CREATE VIEW deep AS SELECT * FROM direct;"
        "CREATE VIEW plain AS SELECT UPPER(name) AS name FROM items"
    )
    async with shop.opened() as engine:
        for text in (
            "SELECT f()",
            "SELECT * FROM direct",
            "SELECT * FROM deep",
            "SELECT bin_to_uuid(1)",
        ):
            assert (await refused(shop, engine, text)).code is Code.SQL_FUNCTION
            opinion = await engine.inspect(Statement(text), judge(text, "mysql"))
            assert opinion.effect > Effect.READ or text == "SELECT f()"
        assert len(await shop.ask(engine, "SELECT * FROM plain")) == 10


async def test_views_nested_more_deeply_than_is_looked_at_are_refused(shop, change):
    """Behind the last one that is looked at anything could be called."""
    views = ["CREATE VIEW v0 AS SELECT name FROM items"]
    views += [f"CREATE VIEW v{n} AS SELECT name FROM v{n - 1}" for n in range(1, MOST_DEPTH + 1)]
    change("; ".join(views))
    async with shop.opened() as engine:
        assert len(await shop.ask(engine, f"SELECT * FROM v{MOST_DEPTH - 3}")) == 10
        error = await refused(shop, engine, f"SELECT * FROM v{MOST_DEPTH}")
        assert (error.code, "nested too deeply" in error.message) == (Code.SQL_FUNCTION, True)


async def test_a_view_whose_definition_is_hidden_is_refused_with_a_way_out(shop, change):
    change("CREATE VIEW plain AS SELECT name FROM items")
    change("CREATE USER IF NOT EXISTS narrow; GRANT SELECT ON *.* TO narrow")
    async with as_user(shop, "narrow").opened() as engine:
        error = await refused(shop, engine, "SELECT * FROM plain")
        assert "SHOW VIEW" in error.message
        assert len(await shop.ask(engine, "SELECT * FROM items")) == 10


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 /*!50000 INTO OUTFILE 'stolen' */",
        "SELECT 1 /*! INTO DUMPFILE 'stolen' */",
        "SELECT 1 /*M! INTO OUTFILE 'stolen' */",
        "SELECT 1 /*M!100000 INTO @x */",
        "/*!50000 DROP TABLE parts */",
        "/*M!50000 DELETE FROM parts */",
        "SELECT 1 /*!50000 ; DROP TABLE parts */",
        "/*! SET GLOBAL max_connections = 97 */",
        "EXPLAIN /*!50000 ANALYZE */ SELECT 1 INTO OUTFILE 'stolen'",
    ],
)
@pytest.mark.parametrize("user", ["root", "reader"])
async def test_an_executable_comment_is_code(shop, user, text):
    async with as_user(shop, user).opened() as engine:
        before = await shop.digest(engine)
        with pytest.raises(TidegateError):
            await shop.ask(engine, text)
        assert await shop.digest(engine) == before


async def test_the_sessions_settings_are_those_that_the_judge_reads_by(shop):
    mysql_server.shared().script("SET GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,ANSI'")
    try:
        async with shop.opened() as engine:
            assert await shop.ask(engine, """SELECT "text", 'it\\'s', 'a' || 'b'""") == [
                ("text", "it's", 0)
            ]
            ((zone, charset),) = await shop.ask(
                engine, "SELECT @@time_zone, @@character_set_connection", effect=Effect.ADMIN
            )
    finally:
        mysql_server.shared().script("SET GLOBAL sql_mode = DEFAULT")
    assert (zone, charset) == ("+00:00", "utf8mb4")


@pytest.mark.parametrize(
    ("text", "reset"),
    [
        ("SELECT 'a@b' LIKE '%_@_%' AS fits", False),
        ("SELECT 'set' AS word, \"lock\" AS other /* use */", False),
        ("SELECT CAST('a' AS CHAR CHARACTER SET utf8mb4) AS text", False),
        ("SELECT @a AS kept", True),
        ("SELECT last_insert_id() AS kept", True),
    ],
)
async def test_a_session_is_reset_after_what_may_leave_something_and_not_for_a_string(
    shop, text, reset
):
    # A reset sets the session's counters to nothing.
    shop.source = Source("s1", "shop", f"{shop.url}&pool=1", "mysql", "mysql")
    counter = "SHOW SESSION STATUS LIKE 'Com_select'"
    async with shop.opened() as engine:
        for _ in range(9):
            await shop.ask(engine, "SELECT 1")
        ((_, before),) = await shop.ask(engine, counter)
        await shop.ask(engine, text)
        ((_, after),) = await shop.ask(engine, counter)
    assert (int(after) < int(before)) is reset


async def test_nothing_of_a_session_is_left_for_the_next_caller(shop):
    shop.source = Source("s1", "shop", f"{shop.url}&pool=1", "mysql", "mysql")
    async with shop.opened() as engine:
        text = "SET @left = 1, SESSION group_concat_max_len = 7, sql_mode = 'ANSI_QUOTES'"
        await shop.ask(engine, text, effect=Effect.ADMIN)
        text = 'SELECT @left, @@group_concat_max_len, "text"'
        ((left, length, word),) = await shop.ask(engine, text, effect=Effect.ADMIN)
        assert (left, word) == (None, "text")
        assert length > 7
        text = "CREATE TEMPORARY TABLE scratch (a INT)"
        await shop.ask(engine, text, effect=Effect.ADMIN)
        assert (await refused(shop, engine, "SELECT * FROM scratch")).details["mysql"] == 1146


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ((), Code.ARGUMENT_INVALID),
        ((1, 2), Code.ARGUMENT_INVALID),
        ((2**64,), Code.ARGUMENT_INVALID),
        ((float("nan"),), Code.ARGUMENT_INVALID),
        (({1, 2},), Code.ARGUMENT_INVALID),
        (("\ud800",), Code.ARGUMENT_INVALID),
    ],
)
async def test_parameters_that_do_not_fit_are_reported(shop, params, code):
    async with shop.opened() as engine:
        assert (await refused(shop, engine, "SELECT ?", params)).code is code
        assert await shop.ask(engine, "SELECT ?", ("'; DROP TABLE items -- \\",)) == [
            ("'; DROP TABLE items -- \\",)
        ]


@pytest.mark.parametrize(
    ("text", "number", "hint"),
    [
        ("SELECT * FROM nowhere", 1146, "list the tables"),
        ("SELECT missing FROM items", 1054, "columns"),
        ("SELECT id FROM items, void", 1052, "before the column"),
    ],
)
async def test_an_unknown_name_hints_where_to_look(shop, text, number, hint):
    async with shop.opened() as engine:
        error = await refused(shop, engine, text)
    assert (error.code, error.details["mysql"]) == (Code.SQL_FAILED, number)
    assert hint in error.hint


async def test_a_plain_account_is_reported_without_its_name(shop, change):
    change("CREATE USER IF NOT EXISTS nobody_much; GRANT SELECT ON items TO nobody_much")
    async with as_user(shop, "nobody_much").opened() as engine:
        error = await refused(shop, engine, "SELECT * FROM parts")
        assert "nobody_much" not in error.message
        assert error.details["mysql"] == 1142
        assert engine.status.warnings == ()


async def test_an_account_that_may_write_is_warned_of(shop):
    async with shop.opened() as engine:
        assert any("FILE" in warning for warning in engine.status.warnings)
    async with as_user(shop, "reader").opened() as engine:
        assert engine.status.warnings == ()


def test_grants_are_read_whatever_they_are_on():
    assert privilege_warnings(["GRANT USAGE ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*1'"]) == ()
    assert privilege_warnings(["GRANT SELECT (`a`, `b`), SHOW VIEW ON `d`.`t` TO `a`@`%`"]) == ()
    (warning,) = privilege_warnings(["GRANT SELECT, INSERT ON `my db`.* TO `a`@`%`"])
    assert "INSERT" in warning
    (warning,) = privilege_warnings(["GRANT SELECT, FILE ON *.* TO `a`@`%`"])
    assert "FILE" in warning


async def test_an_explanation_comes_as_text_and_as_json(shop):
    async with shop.opened() as engine:
        assert await shop.explain(engine, "SELECT * FROM items WHERE id = ?", (1,))
        ((text,),) = await shop.explain(engine, "FORMAT=JSON SELECT * FROM items")
        assert "query_block" in text
        assert await shop.explain(engine, "DELETE FROM items WHERE id = 1")
        assert await shop.ask(engine, "SELECT COUNT(*) FROM items") == [(10,)]


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("mysql://u@h/d?tls=maybe", "tls"),
        ("mysql://u@h/d?colour=red", "colour"),
        ("mysql://u@h/d?pool=0", "pool"),
        ("mysql://u@h:0/d", "port"),
        ("mysql://u@h/d?pool=1&pool=2", "pool"),
        ("mysql://u@h/d?socket=a%00b", "NUL"),
        ("mysql://u@@h/d", "URL"),
    ],
)
def test_a_url_that_cannot_be_read_is_reported(url, part):
    with pytest.raises(TidegateError) as caught:
        parse_conninfo(url)
    assert caught.value.code is Code.SOURCE_URL
    assert part in caught.value.message


def test_a_url_is_read_in_all_its_parts(monkeypatch):
    monkeypatch.setenv("MY_PASSWORD", "a/b@c")
    url = "mariadb://u%40x:${ENV:MY_PASSWORD}@[::1]:3307/my%20db?connect_timeout=3&tls=require"
    target = parse_conninfo(url)
    assert (target.user, target.password, target.host) == ("u@x", "a/b@c", "::1")
    assert (target.port, target.database, target.tls) == (3307, "my db", "require")
    assert target.connect_s == 3.0


async def test_a_server_without_tls_is_refused_where_tls_is_required(monkeypatch):
    monkeypatch.setenv("MYTEST_PASSWORD", mysql_server.PASSWORD)
    case = CASES["mysql"]
    server = mysql_server.shared()
    for options, works in (("", True), ("&tls=off", True), ("&tls=require", False)):
        case = type(case)("tcp", case.make, case.spelling, case.digest_of)
        case.source = Source("s", "s", server.tcp_url(options=options), "mysql", "mysql")
        if works:
            async with case.opened() as engine:
                assert await case.ask(engine, "SELECT 1") == [(1,)]
        else:
            with pytest.raises(TidegateError) as caught:
                async with case.opened():
                    pass
            assert caught.value.code is Code.SOURCE_UNREACHABLE


@pytest.fixture(scope="module")
def encrypted():
    """A server that offers TLS, with a certificate of its own making."""
    server = mysql_server.Server(tls=True)
    yield server
    server.close()


@pytest.mark.parametrize(
    ("options", "works", "hidden"),
    [
        ("", True, True),
        ("&tls=off", True, False),
        ("&tls=require", True, True),
        ("&tls=verify", False, False),
        ("&tls_ca={ca}", True, True),
        ("&tls_ca=/nowhere.pem", False, False),
    ],
)
async def test_tls_is_used_as_the_url_says(encrypted, monkeypatch, options, works, hidden):
    monkeypatch.setenv("MYTEST_PASSWORD", mysql_server.PASSWORD)
    options = options.format(ca=encrypted.directory / "cert.pem")
    url = encrypted.tcp_url(encrypted.new_database(), options=options)
    case = CASES["mysql"]
    case = type(case)("tls", case.make, case.spelling, case.digest_of)
    case.source = Source("s", "s", url, "mysql", "mysql")
    if not works:
        with pytest.raises(TidegateError) as caught:
            async with case.opened():
                pass
        assert caught.value.code in (Code.SOURCE_UNREACHABLE, Code.SOURCE_URL)
        said = "certificate is not trusted" if "verify" in options else "cannot be read"
        assert said in caught.value.message
        return
    async with case.opened() as engine:
        ((_, cipher),) = await case.ask(engine, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        assert bool(cipher) is hidden
        cursor = await case.start(engine, case.spelling.wide_rows.format(n=50_000, width=1000))
        assert len(await cursor.fetch(700)) == 700
        await cursor.close()
        assert len(await case.ask(engine, case.spelling.rows.format(n=30_000))) == 30_000


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("  select 1", "SELECT"),
        ("/* x */ -- y\n# z\n(SELECT 1)", "SELECT"),
        ("/*! DROP TABLE x */ SELECT 1", ""),
        ("/*M! x */", ""),
        ("", ""),
        ("--x", ""),
    ],
)
def test_the_first_word_is_found_behind_comments(text, word):
    assert first_word(text) == word


@pytest.mark.parametrize(
    "data", [b"", b"\x01", b"\x01\x63\0\0\0", b"\x01\x02\0\0\0\xff\xff\xff\x7f"]
)
def test_a_shape_that_cannot_be_read_is_no_text(data):
    with pytest.raises((ValueError, IndexError, struct.error)):
        well_known_text(data)


def activity(shop):
    """What the server says it is doing for the shop."""
    database = shop.url.partition("?")[0].rpartition("/")[2]
    return mysql_server.shared().script(
        "SELECT INFO FROM information_schema.PROCESSLIST"
        f" WHERE DB = '{database}' AND COMMAND IN ('Query', 'Execute')"
    )


async def test_no_view_shows_what_other_sessions_run(shop):
    """MariaDB would: to the account that all callers share, and behind views of it."""
    database = shop.url.partition("?")[0].rpartition("/")[2]
    mysql_server.shared().script(
        "CREATE VIEW direct AS SELECT ID, INFO FROM information_schema.PROCESSLIST;"
        "CREATE VIEW behind AS SELECT LEFT(INFO, 9) AS q FROM direct;"
        "CREATE VIEW waiting AS SELECT trx_query FROM information_schema.INNODB_TRX;"
        "CREATE VIEW traced AS SELECT QUERY FROM information_schema.OPTIMIZER_TRACE",
        database,
    )
    async with shop.opened() as engine:
        for table in ("direct", "behind", "waiting", "traced"):
            text = f"SELECT * FROM {table}"
            assert (await shop.inspect(engine, text)).effect > Effect.READ
            with pytest.raises(TidegateError):
                await shop.ask(engine, text)
    for text in (
        "SHOW ENGINE INNODB STATUS", "SHOW FULL PROCESSLIST", "SHOW PROCESSLIST", "SHOW GRANTS"
    ):  # fmt: skip
        refused = judge(text, "mysql")
        assert refused.effect > Effect.READ
        # What is no SHOW of the source at all is "unknown", and the wire takes it for a setting.
        assert (refused.code, refused.rule) == (Code.POLICY_DENIED.value, "show.private")
        assert "information_schema" not in (refused.hint or "")
    assert judge("SHOW ENGINES", "mysql").effect is Effect.READ


async def test_a_name_without_its_database_is_judged_by_where_the_statement_runs(shop, tmp_path):
    mysql_server.shared().script(
        "CREATE TABLE processlist (id INT); INSERT INTO processlist VALUES (7)",
        shop.url.partition("?")[0].rpartition("/")[2],
    )
    config = Config(sources=(SourceSettings("shop", shop.url),))
    (tmp_path / "place").mkdir(mode=0o700)
    app = App(config, tmp_path / "place")

    async def rows(text, **place):
        actor = Actor("agent", "agent", Scope.READ_ONLY)
        call = Call(actor, "core", "query", Query(Statement(text), **place), "shop")
        return (await app.gateway.handle(call)).payload.rows

    try:
        assert await rows("SELECT * FROM processlist") == b"[[7]]"
        for text in ("SELECT * FROM processlist", "SELECT INFO FROM `PROCESSLIST` AS p"):
            for place in ({"database": "information_schema"}, {"schema": "Information_Schema"}):
                with pytest.raises(TidegateError) as caught:
                    await rows(text, **place)
                assert caught.value.details["rule"] == "table.secret"
        assert await rows("SELECT 1 FROM tables LIMIT 1", database="information_schema")
    finally:
        await app.close()
    home = Source(
        "s1", "shop", re.sub(r"/test_\w+", "/information_schema", shop.url), "mysql", "mysql"
    )
    engine = await open_engine(home)
    try:
        with pytest.raises(TidegateError, match="internal state"):
            await engine.run(permit_for(home, Query(Statement("SELECT * FROM processlist"))), NEVER)
    finally:
        await engine.close()


@pytest.mark.parametrize("how", ["cancel", "time", "gone", "close"])
async def test_a_statement_that_is_stopped_is_gone_from_the_process_list(shop, how):
    async with shop.opened() as engine:
        cancellation = Cancellation()
        limits = Limits(timeout_s=1 if how == "time" else HANG_S)
        text = shop.spelling.runaway
        task = asyncio.ensure_future(
            shop.ask(engine, text, limits=limits, cancellation=cancellation)
        )
        await until(lambda: activity(shop) or task.done(), "the statement in the server")
        assert how == "time" or not task.done()
        if how == "cancel":
            cancellation.cancel()
        elif how == "gone":
            task.cancel()
        elif how == "close":
            await engine.close()
        with pytest.raises((TidegateError, asyncio.CancelledError)):
            await task
        # The server tells us first, and then tidies up.
        await until(lambda: not activity(shop), "the statement's end in the server")


@pytest.mark.parametrize("steps", range(4))
@pytest.mark.parametrize("text", [b"SELECT id, name FROM items WHERE id = ?", b"SELECT", b"DO 1"])
async def test_a_line_is_in_order_after_its_caller_went_away_while_a_statement_was_prepared(
    shop, text, steps
):
    line = await CommandProtocol.connect(parse_conninfo(shop.url))
    try:
        asked = asyncio.ensure_future(line.prepare(text))
        for _ in range(steps):
            await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait({asked})
        await line.settle()
        assert line.unanswered == 0
        line.query(b"SELECT 1, 2")
        fields = await line.answer()
        assert len(fields.definitions) == 2
        await line.skip()
        assert line.open
    finally:
        line.close()
        await line.closed()


def test_only_short_texts_that_read_are_kept_as_known():
    cache = PreparedCache()
    reads, changes = Prepared(Effect.READ, ""), Prepared(Effect.WRITE, "")
    long = "SELECT '" + "x" * 100_000 + "'"
    cache.put(("SELECT 1", "shop"), reads)
    cache.put(("DELETE FROM t", "shop"), changes)
    cache.put((long, "shop"), reads)
    assert cache.get(("SELECT 1", "shop")) is not None
    assert cache.get(("SELECT 1", "other")) is None
    assert cache.get(("DELETE FROM t", "shop")) is None
    assert cache.get((long, "shop")) is None


async def test_a_query_is_analyzed_and_a_change_or_a_table_is_not(shop):
    before = await shop.digest(None)
    async with shop.opened() as engine:
        for text in (
            "ANALYZE SELECT * FROM items",
            "analyze format=json SELECT count(*) FROM items",
            "/* a */ ANALYZE WITH a AS (SELECT id FROM items) SELECT * FROM a",
        ):
            assert await shop.ask(engine, text), text
        for text in (
            "ANALYZE TABLE items",
            "ANALYZE UPDATE items SET name = 'x'",
            "ANALYZE FORMAT=JSON DELETE FROM items",
            "ANALYZE INSERT INTO items VALUES (99, 'a')",
            "SHOW WARNINGS",
            "SHOW COUNT(*) ERRORS",
            "SHOW ERRORS LIMIT 1",
        ):
            with pytest.raises(TidegateError):
                await shop.ask(engine, text)
    assert await shop.digest(None) == before
