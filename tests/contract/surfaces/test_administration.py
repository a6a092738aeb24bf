"""What administers a database runs for a caller with full access, on a source whose owner admits
it, once a person has approved exactly that text; and otherwise leaves the database as it was."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from contract.surfaces.engine_shops import (
    DuckdbShop,
    EngineShop,
    MariadbShop,
    PostgresShop,
    SqliteShop,
)
from support.audit_records import records
from support.surface_client import OWNER, WRITER, Peer
from tidegate.approvals.render import describe
from tidegate.config.model import Config, LimitSettings
from tidegate.model.actors import Actor, Scope
from tidegate.model.source_settings import Mask, RowFilter, RunAs
from tidegate.surfaces import core
from tidegate.surfaces.confirmation import PHRASE

NAME = f"nine_{os.getpid()}"
"""Accounts belong to a whole server, which tests share."""
SECRET = "correct-horse-9"

LISTED = OWNER.__class__("tok_listed", "listed", Scope.FULL_ACCESS, tables=frozenset({"orders"}))


class Answer(NamedTuple):
    """What `core` says: the columns and the rows of a result, or the text of an error."""

    text: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    note: str = ""
    code: str = ""

    @classmethod
    def of(cls, reply: dict[str, Any]) -> Answer:
        (block,) = reply["result"]["content"]
        text = block["text"]
        if reply["result"].get("isError"):
            return cls(text, code=text.partition(":")[0])
        told = msgspec.json.decode(text)
        return cls(text, told.get("columns", ()), told.get("rows", ()), told.get("note", ""))


class Scene:
    """One shop behind one gate, with the person who approves."""

    def __init__(self, shop: EngineShop, **settings: Any) -> None:
        self.shop = shop
        self.gate = shop.gate(**({"access": "admin", "approval": "inbox"} | settings))
        self.shown: list[str] = []
        self.seconds = 30

    @asynccontextmanager
    async def caller(self, actor: Actor = OWNER) -> AsyncIterator[Peer]:
        """A caller of the gate, which is open meanwhile."""
        async with self.gate.opened():
            config = Config(limits=LimitSettings(timeout_s=self.seconds))
            peer = Peer(core.surface(self.gate, config=config), actor)
            await peer.open()
            yield peer

    def run(self, *texts: str, actor: Actor = OWNER, approve: bool = True) -> list[Answer]:
        """The answers to the statements, each approved in the inbox and sent again."""
        return asyncio.run(self._run(texts, actor, approve))

    async def _run(self, texts: tuple[str, ...], actor: Actor, approve: bool) -> list[Answer]:
        answers: list[Answer] = []
        async with self.caller(actor) as peer:
            for text in texts:
                answer = await send(peer, text)
                for question in self.gate.approvals.list() if approve else ():
                    self.shown.append(describe(question))
                    self.gate.approvals.resolve(question.id, "allowed", "operator")
                    answer = await send(peer, text)
                answers.append(answer)
        return answers

    def ran(self, *texts: str, actor: Actor = OWNER) -> list[Answer]:
        """The results of statements that must run."""
        answers = self.run(*texts, actor=actor)
        for text, answer in zip(texts, answers, strict=True):
            assert not answer.code, (text, answer)
        return answers

    def refused(self, text: str, actor: Actor = OWNER) -> Answer:
        """The error of a statement that must be refused whoever approves."""
        (answer,) = self.run(text, actor=actor)
        assert answer.code, (text, answer)
        return answer

    def records(self) -> list[dict[str, Any]]:
        return records(self.shop.directory)


async def send(peer: Peer, text: str) -> Answer:
    """The answer to a statement, which comes with the phrase where it drops something."""
    confirmed = {"confirm": PHRASE} if text.startswith("DROP ") else {}
    return Answer.of(await peer.call("query", sql=text, **confirmed))


@pytest.fixture
def postgres(tmp_path: Path) -> PostgresShop:
    return PostgresShop(tmp_path)


@pytest.fixture
def mariadb(tmp_path: Path) -> MariadbShop:
    return MariadbShop(tmp_path)


@pytest.fixture
def sqlite(tmp_path: Path) -> SqliteShop:
    return SqliteShop(tmp_path)


@pytest.fixture
def duckdb(tmp_path: Path) -> DuckdbShop:
    return DuckdbShop(tmp_path)


# It runs.


def test_postgres_makes_an_account_grants_and_takes_back(postgres: PostgresShop) -> None:
    name = f"{NAME}_pg"
    scene = Scene(postgres)
    try:
        scene.ran(
            f"CREATE USER {name} PASSWORD '{SECRET}'",
            f"GRANT SELECT ON customers TO {name}",
            f"GRANT UPDATE (city) ON customers TO {name}",
            f"REVOKE UPDATE (city) ON customers FROM {name}",
        )
        can = f"SELECT has_table_privilege('{name}', 'customers', 'SELECT')"
        assert postgres.look(can) == [(True,)]
        (acl,) = postgres.look("SELECT relacl::text FROM pg_class WHERE relname = 'customers'")[0]
        assert f"{name}=r/" in acl
        scene.ran(f"REVOKE ALL ON customers FROM {name}", f"DROP ROLE {name}")
        assert postgres.look(f"SELECT 1 FROM pg_roles WHERE rolname = '{name}'") == []
    finally:
        postgres.server.ask(
            f"DO $$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') THEN"
            f" DROP OWNED BY {name}; DROP ROLE {name}; END IF; END $$",
            postgres.name,
        )


def test_postgres_makes_and_runs_code(postgres: PostgresShop) -> None:
    scene = Scene(postgres)
    results = scene.ran(
        "CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ begin NEW.city := upper(NEW.city); return NEW; end $$",
        "CREATE TRIGGER loud BEFORE INSERT OR UPDATE ON customers FOR EACH ROW"
        " EXECUTE FUNCTION shout()",
        "UPDATE customers SET city = 'oslo' WHERE id = 1",
        "CREATE PROCEDURE forget(who int, INOUT left_over int) LANGUAGE plpgsql AS"
        " $$ begin delete from orders where customer_id = who;"
        " select count(*) into left_over from orders; end $$",
        "CALL forget(1, 0)",
        "DROP TRIGGER loud ON customers",
        "DROP FUNCTION shout()",
    )
    assert results[4].rows == [[1]]
    assert postgres.look("SELECT city FROM customers WHERE id = 1") == [("OSLO",)]
    assert postgres.count("orders") == 1
    assert postgres.look("SELECT tgname FROM pg_trigger WHERE tgname = 'loud'") == []


def test_postgres_vacuums_outside_a_transaction_and_the_record_says_so(
    postgres: PostgresShop,
) -> None:
    before = "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'orders'"
    assert postgres.look(before) == [(0,)]
    scene = Scene(postgres)
    scene.ran("VACUUM (ANALYZE) orders", "SELECT count(*) FROM orders")
    postgres.look("SELECT pg_stat_force_next_flush()")
    assert postgres.look(before) == [(1,)]
    (intent, outcome) = [
        record
        for record in scene.records()
        if record.get("statement", "").startswith("VACUUM") and record["phase"] != "refusal"
    ]
    assert intent["phase"] == "intent" and intent["effect"] == "admin"
    assert intent["rule"] == "sql.administration" and intent["approval"]
    assert intent["outside_transaction"] and outcome["outside_transaction"]
    assert "outside a transaction" in scene.shown[0]


def test_a_session_that_ran_outside_a_transaction_reads_only_again(postgres: PostgresShop) -> None:
    postgres.url += "&pool=1"
    scene = Scene(postgres)
    scene.ran("VACUUM orders")
    (reply,) = scene.run("SELECT current_setting('default_transaction_read_only')")
    assert reply.rows == [["on"]]


def test_postgres_copies_to_the_caller(postgres: PostgresShop) -> None:
    (all_rows, some) = Scene(postgres).ran(
        "COPY orders TO STDOUT",
        "COPY (SELECT id, full_name FROM customers ORDER BY id) TO STDOUT (FORMAT csv, HEADER)",
    )
    assert all_rows.rows[0] == ["1\t1\t2026-01-02\t120.50"]
    assert len(all_rows.rows) == 3
    assert some.columns == ["copy"]
    assert some.rows[:3] == [["id,full_name"], ["1,Ada Lovelace"], ["2,葛飾 北斎"]]


def test_a_copy_that_is_cut_or_fails_leaves_the_source_usable(postgres: PostgresShop) -> None:
    scene = Scene(postgres)
    replies = scene.run(
        "COPY (SELECT n, repeat('x', 2000) FROM generate_series(1, 20000) AS n) TO STDOUT",
        "COPY (SELECT 10 / (5 - n) FROM generate_series(1, 10) AS n) TO STDOUT",
        "COPY missing TO STDOUT",
        "SELECT count(*) FROM orders",
    )
    assert replies[0].note.startswith("first ")
    assert "division by zero" in replies[1].text
    assert "missing" in replies[2].text
    assert replies[3].rows == [[3]]


def test_a_copy_without_end_is_stopped_by_its_time_limit(postgres: PostgresShop) -> None:
    scene = Scene(postgres)
    scene.seconds = 1
    slow, after = scene.run(
        "COPY (SELECT count(*) FROM generate_series(1, 100000000000) AS n) TO STDOUT",
        "SELECT count(*) FROM orders",
    )
    assert slow.code == "limit.time", slow
    assert after.rows == [[3]]


def test_mariadb_makes_an_account_grants_and_takes_back(mariadb: MariadbShop) -> None:
    name = f"{NAME}_my"
    scene = Scene(mariadb)
    try:
        scene.ran(
            f"CREATE USER '{name}'@'%' IDENTIFIED BY '{SECRET}'",
            f"GRANT SELECT ON {mariadb.name}.* TO '{name}'@'%'",
            f"GRANT INSERT ON customers TO '{name}'@'%'",
            f"REVOKE INSERT ON customers FROM '{name}'@'%'",
        )
        grants = str(mariadb.look(f"SHOW GRANTS FOR '{name}'@'%'"))
        assert "GRANT SELECT ON" in grants and "INSERT" not in grants
        assert f"'{name}'@'%'" in scene.shown[0], "the person sees whose account it is"
        scene.ran(f"DROP USER '{name}'@'%'")
        assert mariadb.look(f"SELECT 1 FROM mysql.user WHERE user = '{name}'") == []
        assert scene.records()[-1]["outside_transaction"]
    finally:
        mariadb.server.script(f"DROP USER IF EXISTS '{name}'@'%'")


def test_mariadb_makes_and_runs_code(mariadb: MariadbShop) -> None:
    results = Scene(mariadb).ran(
        "CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC RETURN n * 2",
        "CREATE TRIGGER loud BEFORE UPDATE ON customers FOR EACH ROW"
        " SET NEW.city = upper(NEW.city)",
        "UPDATE customers SET city = 'oslo' WHERE id = 1",
        "CREATE PROCEDURE forget(IN who INT) BEGIN DELETE FROM orders WHERE customer_id = who;"
        " SELECT count(*) AS left_over FROM orders; SELECT 'second'; END",
        "CALL forget(1)",
        "SELECT 1",
        "OPTIMIZE TABLE orders",
        "ANALYZE TABLE orders",
        "DROP TRIGGER loud",
        "DROP PROCEDURE forget",
    )
    assert results[4].columns == ["left_over"] and results[4].rows == [[1]]
    assert results[5].rows == [[1]]
    assert mariadb.look("SELECT city FROM customers WHERE id = 1") == [("OSLO",)]
    assert mariadb.count("orders") == 1
    assert mariadb.look(f"SHOW TRIGGERS FROM {mariadb.name}") == []
    assert mariadb.look(f"SELECT {mariadb.name}.twice(4)") == [(8,)]


def test_sqlite_vacuums_and_makes_triggers(sqlite: SqliteShop) -> None:
    sqlite.script(
        "CREATE TABLE log (id INTEGER);"
        "CREATE TABLE filler (t TEXT);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000)"
        " INSERT INTO filler SELECT hex(randomblob(200)) FROM n; DELETE FROM filler;"
    )
    free = "PRAGMA freelist_count"
    assert sqlite.look(free)[0][0] > 10
    scene = Scene(sqlite)
    scene.ran(
        "VACUUM",
        "CREATE TRIGGER noted AFTER UPDATE ON customers BEGIN"
        " INSERT INTO log (id) VALUES (new.id); END",
        "UPDATE customers SET city = 'Oslo' WHERE id = 2",
    )
    assert sqlite.look(free) == [(0,)]
    assert sqlite.look("SELECT id FROM log") == [(2,)]
    assert any(record.get("outside_transaction") for record in scene.records())
    scene.ran("DROP TRIGGER noted")
    assert sqlite.look("SELECT name FROM sqlite_schema WHERE type = 'trigger'") == []


def test_duckdb_makes_macros_and_vacuums(duckdb: DuckdbShop) -> None:
    Scene(duckdb).ran(
        "CREATE MACRO twice(n) AS n * 2", "VACUUM", "ANALYZE orders", "CREATE MACRO gone() AS 1",
        "DROP MACRO gone",
    )  # fmt: skip
    assert duckdb.look("SELECT twice(21)") == [(42,)]
    names = "SELECT function_name FROM duckdb_functions() WHERE NOT internal"
    assert duckdb.look(names) == [("twice",)]


# It does not run.

MAKE = {
    "postgres": "CREATE FUNCTION made() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$",
    "mariadb": "CREATE PROCEDURE made() SELECT 1",
    "sqlite": "CREATE TRIGGER made AFTER INSERT ON orders BEGIN SELECT 1; END",
    "duckdb": "CREATE MACRO made() AS 1",
}
MADE = {
    "postgres": "SELECT 1 FROM pg_proc WHERE proname = 'made'",
    "mariadb": "SELECT 1 FROM information_schema.routines WHERE routine_name = 'made'"
    " AND routine_schema = DATABASE()",
    "sqlite": "SELECT 1 FROM sqlite_schema WHERE name = 'made'",
    "duckdb": "SELECT 1 FROM duckdb_functions() WHERE function_name = 'made'",
}


def _engine(shop: EngineShop) -> str:
    return type(shop).__name__.removesuffix("Shop").lower()


@pytest.mark.parametrize(
    ("settings", "actor", "said"),
    [
        ({"access": "write"}, OWNER, "does not admit statements that administer"),
        ({"access": "read"}, OWNER, "read-only"),
        ({}, WRITER, "need the scope fullAccess"),
        ({"changes": "deny"}, OWNER, "source refuses statements that change"),
        ({"masks": (Mask("customers.email"),)}, OWNER, "hidden from this caller"),
        ({"filters": (RowFilter("orders", "id = 1"),)}, OWNER, "hidden from this caller"),
        ({}, LISTED, "hidden from this caller"),
    ],
)
def test_without_the_right_nothing_is_made_and_nobody_is_asked(
    engine_shop: EngineShop, settings: dict[str, Any], actor: Actor, said: str
) -> None:
    scene = Scene(engine_shop, **settings)
    error = scene.refused(MAKE[_engine(engine_shop)], actor)
    assert said in error.text, error
    assert not scene.shown
    assert engine_shop.look(MADE[_engine(engine_shop)]) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"approval": "any", "unattended": "allow"},
        {"approval_for": "nothing", "agents": "allow", "approval": "any", "unattended": "allow"},
        {"approval": "inbox"},
    ],
)
def test_no_setting_replaces_the_person(engine_shop: EngineShop, settings: dict[str, Any]) -> None:
    scene = Scene(engine_shop, **settings)
    (reply,) = scene.run(MAKE[_engine(engine_shop)], approve=False)
    assert reply.code == "approval.needed", reply
    assert engine_shop.look(MADE[_engine(engine_shop)]) == []


def test_an_approval_is_for_one_run_of_one_text(engine_shop: EngineShop) -> None:
    engine = _engine(engine_shop)
    scene = Scene(engine_shop)

    async def scene_of_two() -> list[Answer]:
        async with scene.caller() as peer:
            await send(peer, MAKE[engine])
            (question,) = scene.gate.approvals.list()
            scene.gate.approvals.resolve(question.id, "allowed", "operator")
            other = await send(peer, MAKE[engine].replace("made", "other"))
            first = await send(peer, MAKE[engine])
            again = await send(peer, MAKE[engine])
            return [other, first, again]

    other, first, again = asyncio.run(scene_of_two())
    assert other.code == "approval.needed"
    assert not first.code
    assert again.code == "approval.needed"
    assert engine_shop.look(MADE[engine].replace("made", "other")) == []


def test_a_drop_needs_the_phrase_as_well(engine_shop: EngineShop) -> None:
    engine = _engine(engine_shop)
    scene = Scene(engine_shop)
    scene.ran(MAKE[engine])
    kind = MAKE[engine].split()[1]

    async def drop() -> Answer:
        async with scene.caller() as peer:
            return Answer.of(await peer.call("query", sql=f"DROP {kind} made"))

    assert asyncio.run(drop()).code == "policy.confirm"
    assert len(engine_shop.look(MADE[engine])) == 1


def test_maintenance_runs_beside_masks_since_it_shows_nothing(sqlite: SqliteShop) -> None:
    Scene(sqlite, masks=(Mask("customers.email"),)).ran("VACUUM")


def test_a_source_that_maps_callers_to_roles_is_not_administered(postgres: PostgresShop) -> None:
    scene = Scene(postgres, run_as=RunAs(role="postgres"))
    error = scene.refused(MAKE["postgres"])
    assert "maps callers to roles" in error.text
    assert postgres.look(MADE["postgres"]) == []


POSTGRES_OUTSIDE = (
    "COPY customers TO PROGRAM 'cat > {file}'",
    "COPY customers TO '{file}'",
    "COPY customers FROM PROGRAM 'echo x'",
    "COPY (SELECT lo_export(1, '{file}')) TO STDOUT",
    "COPY pg_authid TO STDOUT",
    "GRANT pg_execute_server_program TO postgres",
    "GRANT EXECUTE ON FUNCTION pg_read_file(text) TO public",
    'GRANT "pg_write_server_files" TO postgres',
    "CREATE ROLE {name} SUPERUSER",
    "CREATE ROLE {name} IN ROLE pg_read_server_files",
    "ALTER ROLE postgres SET session_preload_libraries = 'x'",
    "CREATE FUNCTION made() RETURNS oid LANGUAGE sql AS $$ SELECT lo_import('/etc/passwd') $$",
    "CREATE FUNCTION made() RETURNS int LANGUAGE sql AS 'SELECT pg_read_file(''/x'')::int'",
    "CREATE FUNCTION made() RETURNS oid LANGUAGE sql AS $$ SELECT \"lo_import\"('/etc/passwd') $$",
    "CREATE FUNCTION made() RETURNS void LANGUAGE plpgsql AS $$ begin execute 'COPY'; end $$",
    "CREATE FUNCTION made() RETURNS void LANGUAGE plpgsql AS"
    " $$ begin copy customers to program 'cat'; end $$",
    "CREATE FUNCTION made() RETURNS int AS 'libc', 'getpid' LANGUAGE c",
    "CREATE FUNCTION made() RETURNS int LANGUAGE internal AS 'pg_backend_pid'",
    "CREATE FUNCTION made(t text DEFAULT pg_read_file('/x')) RETURNS text LANGUAGE sql"
    " AS 'SELECT 1'",
    "CREATE FUNCTION made() RETURNS text LANGUAGE sql RETURN pg_read_file('/etc/passwd')",
    "CREATE FUNCTION made() RETURNS text BEGIN ATOMIC SELECT pg_read_file('/etc/passwd'); END",
    "CREATE FUNCTION made() RETURNS int LANGUAGE sql SET role = 'postgres' AS 'SELECT 1'",
    "CREATE TRIGGER made BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION lo_manage(total)",
    "CREATE USER MAPPING FOR postgres SERVER x",
    "CREATE EXTENSION dblink",
    "CREATE SERVER made FOREIGN DATA WRAPPER postgres_fdw",
    "CALL dblink_connect('host=127.0.0.1')",
    "CALL made(lo_import('/etc/passwd'))",
    "EXPLAIN ANALYZE CALL made()",
    "ALTER SYSTEM SET archive_command = 'cat > {file}'",
    "DO $$ begin perform lo_import('/etc/passwd'); end $$",
)
MARIADB_OUTSIDE = (
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE void",
    "GRANT FILE ON *.* TO root@localhost",
    "GRANT ALL ON *.* TO root@localhost",
    "GRANT SELECT ON mysql.* TO root@localhost",
    "GRANT SELECT ON `m_sql`.* TO root@localhost",
    "GRANT SELECT ON `%`.* TO root@localhost",
    "GRANT PROXY ON root@localhost TO {name}",
    "CREATE FUNCTION made RETURNS STRING SONAME 'lib.so'",
    "CREATE PROCEDURE made() SELECT 1 INTO OUTFILE '{file}'",
    "CREATE PROCEDURE made() SELECT load_file('/etc/passwd')",
    "CREATE PROCEDURE made() BEGIN PREPARE s FROM 'SELECT 1'; EXECUTE s; END",
    "CREATE PROCEDURE made() EXECUTE IMMEDIATE 'SELECT 1'",
    "CREATE PROCEDURE made() SET GLOBAL general_log = 1",
    "CREATE PROCEDURE made() SET @@global.general_log = 1",
    "CREATE PROCEDURE made() SELECT * FROM mysql.user",
    "CREATE PROCEDURE made() STOP SLAVE",
    "CREATE DEFINER = root@localhost PROCEDURE made() SELECT 1",
    "CREATE EVENT made ON SCHEDULE EVERY 1 DAY DO SELECT 1",
    "CREATE SERVER made FOREIGN DATA WRAPPER mysql OPTIONS (HOST '127.0.0.1')",
    "INSTALL PLUGIN made SONAME 'x.so'",
    "CALL sys.execute_prepared_stmt('SELECT 1')",
    "CALL made((SELECT load_file('/etc/passwd')))",
)
SQLITE_OUTSIDE = (
    "VACUUM INTO '{file}'",
    "VACUUM main INTO '{file}'",
    "VACUUM temp",
    "ATTACH '{file}' AS x",
    "CREATE TRIGGER made AFTER INSERT ON orders BEGIN SELECT load_extension('x'); END",
    "CREATE TRIGGER made AFTER INSERT ON orders BEGIN SELECT writefile('{file}', 'x'); END",
    "CREATE TEMP TRIGGER made AFTER INSERT ON orders BEGIN SELECT 1; END",
    "PRAGMA writable_schema = 1",
)
DUCKDB_OUTSIDE = (
    "COPY customers TO '{file}'",
    "CREATE MACRO made() AS TABLE SELECT * FROM read_text('/etc/passwd')",
    "CREATE MACRO made() AS TABLE SELECT * FROM '/etc/passwd.csv'",
    "CREATE MACRO made() AS TABLE FROM '/etc/passwd.csv'",
    "CREATE MACRO made() AS getenv('HOME')",
    "CREATE TEMP MACRO made() AS 1",
    "INSTALL httpfs",
    "ATTACH '{file}'",
)
_OUTSIDE = {
    PostgresShop: POSTGRES_OUTSIDE,
    MariadbShop: MARIADB_OUTSIDE,
    SqliteShop: SQLITE_OUTSIDE,
    DuckdbShop: DUCKDB_OUTSIDE,
}


def _digest(shop: EngineShop) -> str:
    if isinstance(shop, PostgresShop):
        return shop.server.digest(shop.name)
    if isinstance(shop, MariadbShop):
        everyone = "SELECT user, host, File_priv, Super_priv, Grant_priv FROM mysql.user"
        routines = "SELECT routine_name FROM information_schema.routines WHERE routine_schema = "
        settings = "SELECT @@global.general_log"
        databases = "SELECT db, user FROM mysql.db"
        return str(
            [
                shop.look(query)
                for query in (everyone, routines + f"'{shop.name}'", settings, databases)
            ]
        ) + str(sorted(shop.server.files()))
    schema = (
        "SELECT name, sql FROM sqlite_master" if isinstance(shop, SqliteShop) else MADE["duckdb"]
    )
    return str(shop.look(schema)) + str(shop.count("orders"))


@pytest.mark.parametrize("kind", list(_OUTSIDE), ids=lambda kind: kind.product)
def test_files_programs_and_the_network_stay_refused_whoever_approves(
    kind: type[EngineShop], tmp_path: Path
) -> None:
    shop = kind(tmp_path)
    scene = Scene(shop)
    file = tmp_path / "written"
    before = _digest(shop)
    texts = [
        text.replace("{file}", str(file)).replace("{name}", f"{NAME}_out")
        for text in _OUTSIDE[kind]
    ]
    for text, reply in zip(texts, scene.run(*texts), strict=True):
        assert reply.code.startswith(("policy.", "sql.", "engine.unsupported")), (text, reply)
        assert ". " in reply.text, "a hint"
    assert not scene.shown, "nobody is asked about what never runs"
    assert not file.exists()
    assert _digest(shop) == before


# Passwords.


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (
            PostgresShop,
            (
                "CREATE USER {name} PASSWORD '{secret}'",
                "ALTER ROLE {name} ENCRYPTED PASSWORD $x${secret}$x$",
                "CREATE ROLE {name} PASSWORD '{secret}'",
            ),
        ),
        (
            MariadbShop,
            (
                "CREATE USER {name} IDENTIFIED BY '{secret}'",
                "ALTER USER {name} IDENTIFIED VIA mysql_native_password USING PASSWORD('{secret}')",
                "CREATE USER '{name}'@'%' IDENTIFIED BY \"{secret}\"",
            ),
        ),
    ],
    ids=["PostgreSQL", "MariaDB"],
)
def test_a_password_is_in_no_record_card_history_or_state(
    kind: type[EngineShop],
    texts: tuple[str, ...],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    shop = kind(tmp_path)
    scene = Scene(shop)
    name = f"{NAME}_pw"
    told = [text.format(name=name, secret=SECRET) for text in texts]
    try:
        replies = scene.run(*told)
        assert not replies[0].code and not replies[1].code, replies
        assert replies[2].code, "the account exists"
        assert SECRET not in str(replies)
    finally:
        if isinstance(shop, PostgresShop):
            shop.server.ask(f"DROP ROLE IF EXISTS {name}")
        else:
            shop.script(f"DROP USER IF EXISTS {name}")
    assert len(scene.shown) == 3
    assert all(SECRET not in card and "***" in card and name in card for card in scene.shown)
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name != "shop.db":
            assert SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in caplog.text
    out, err = capfd.readouterr()
    assert SECRET not in out + err
    assert msgspec.json.encode(scene.records())
