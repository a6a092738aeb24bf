"""Transaction blocks of wire clients on PostgreSQL, where they are transactions of the database."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg import IsolationLevel, errors

from support.command_line import tidegate
from support.eventually import wait_until
from support.operator_terminal import operator_terminal
from support.postgres_surface import PostgresShop
from support.wire_server import WireServer, wire_server

LEDGER = """
DROP TABLE IF EXISTS ledger;
CREATE TABLE ledger (id int PRIMARY KEY, note text, CONSTRAINT late UNIQUE (note)
  DEFERRABLE INITIALLY DEFERRED);
"""


class Ledger:
    """The table of these tests, read past the gate."""

    def __init__(self, shop: PostgresShop) -> None:
        self._conninfo = shop.server.conninfo(shop.database)

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._conninfo, autocommit=True) as direct:
            found = direct.execute(text)
            return found.fetchall() if found.description else []

    def rows(self) -> list[tuple[Any, ...]]:
        return self.ask("SELECT id, note FROM ledger ORDER BY id")

    def transactions(self) -> int:
        """How many transactions the server has open in this database, but for this question."""
        ((count,),) = self.ask(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'"
        )
        return count


@pytest.fixture
def ledger(postgres: PostgresShop) -> Iterator[Ledger]:
    found = Ledger(postgres)
    found.ask(LEDGER)
    yield found
    wait_until(lambda: found.transactions() == 0, "no transaction to be left")
    found.ask("DROP TABLE ledger")


def gate(server: WireServer, **more: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(server.conninfo("pg", **more))


def records(server: WireServer) -> list[dict[str, Any]]:
    folder = Path(server.folder / "state")
    lines = [
        line for path in sorted(folder.rglob("*.jsonl")) for line in path.read_text().splitlines()
    ]
    return [json.loads(line) for line in lines]


def insert(id: int, note: str) -> str:
    return f"INSERT INTO ledger VALUES ({id}, '{note}')"


def test_a_block_is_kept_whole_by_commit_and_leaves_nothing_after_rollback(
    server: WireServer, ledger: Ledger
):
    with gate(server) as one:
        one.execute("INSERT INTO ledger VALUES (%s, %s)", (1, "a"))
        changed = one.execute("UPDATE ledger SET note = 'b' WHERE id = 1 RETURNING note")
        assert (changed.fetchall(), changed.rowcount) == ([("b",)], 1)
        assert ledger.rows() == []
        one.commit()
        assert ledger.rows() == [(1, "b")]
        one.execute("DELETE FROM ledger WHERE id = 1")
        assert one.execute("SELECT count(*) FROM ledger").fetchone() == (0,)
        one.rollback()
        assert ledger.rows() == [(1, "b")]


def test_two_sessions_see_each_others_changes_after_the_commit_alone(
    server: WireServer, ledger: Ledger
):
    with gate(server) as one, gate(server) as two:
        one.execute(insert(1, "a"))
        assert two.execute("SELECT count(*) FROM ledger").fetchone() == (0,)
        one.commit()
        assert two.execute("SELECT count(*) FROM ledger").fetchone() == (1,)


def test_a_repeatable_read_block_reads_twice_the_same(server: WireServer, ledger: Ledger):
    with gate(server) as one, gate(server, user="reader") as two:
        one.autocommit = True
        two.isolation_level = IsolationLevel.REPEATABLE_READ
        assert two.execute("SHOW transaction_isolation").fetchone() == ("repeatable read",)
        with two.cursor(name="held") as cursor:
            cursor.execute("SELECT id FROM ledger ORDER BY id")
            one.execute(insert(1, "a"))
            assert cursor.fetchall() == []
        assert two.execute("SELECT count(*) FROM ledger").fetchone() == (0,)
        two.commit()
        assert two.execute("SELECT count(*) FROM ledger").fetchone() == (1,)


def test_nested_transactions_are_savepoints(server: WireServer, ledger: Ledger):
    with gate(server) as one:
        with one.transaction():
            one.execute(insert(1, "a"))
            with pytest.raises(errors.UniqueViolation), one.transaction():
                one.execute(insert(2, "b"))
                one.execute(insert(1, "again"))
            with one.transaction(force_rollback=True):
                one.execute(insert(3, "c"))
            one.execute(insert(4, "d"))
        assert ledger.rows() == [(1, "a"), (4, "d")]
        with pytest.raises(errors.InvalidSavepointSpecification):
            one.execute("ROLLBACK TO SAVEPOINT nowhere")


def test_a_failed_block_takes_nothing_but_its_end(server: WireServer, ledger: Ledger):
    with gate(server) as one:
        one.execute(insert(1, "a"))
        for text in ("SELECT 1/0", "DROP DATABASE postgres"):
            with pytest.raises((errors.DivisionByZero, errors.InFailedSqlTransaction)):
                one.execute(text)
        assert one.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        done = one.execute("COMMIT")
        assert done.statusmessage == "ROLLBACK"
        assert one.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        # A statement that the gate refuses ends the block as one that the database refuses does.
        for text in (
            "CREATE TABLE other (id int)",
            "SELECT 1 AS id INTO other",
            "LOCK TABLE ledger",
        ):
            one.execute(insert(2, "b"))
            with pytest.raises(psycopg.Error) as refused:
                one.execute(text)
            assert refused.value.sqlstate in ("0A000", "42501"), text
            assert one.execute("COMMIT").statusmessage == "ROLLBACK"
    assert ledger.ask("SELECT count(*) FROM pg_class WHERE relname = 'other'") == [(0,)]
    assert ledger.rows() == []


def test_a_commit_that_the_database_refuses_keeps_nothing(server: WireServer, ledger: Ledger):
    with gate(server) as one:
        one.execute(insert(1, "same"))
        one.execute(insert(2, "same"))
        with pytest.raises(errors.UniqueViolation):
            one.commit()
        assert one.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert one.execute("SELECT count(*) FROM ledger").fetchone() == (0,)


def test_two_writers_in_serializable_blocks_cannot_both_commit(server: WireServer, ledger: Ledger):
    ledger.ask(insert(1, "a"))
    with gate(server) as one, gate(server) as two:
        for each, id in ((one, 2), (two, 3)):
            each.isolation_level = IsolationLevel.SERIALIZABLE
            each.execute("SELECT count(*) FROM ledger")
            each.execute(insert(id, f"by {id}"))
        one.commit()
        with pytest.raises(errors.SerializationFailure):
            two.commit()
    assert [id for id, _ in ledger.rows()] == [1, 2]


def test_the_database_itself_lets_nothing_change_where_a_statement_or_a_token_reads(
    server: WireServer, ledger: Ledger
):
    asked = "SELECT x.mode FROM (SELECT current_setting('transaction_read_only') AS mode) AS x"
    with gate(server, user="reader") as one:
        assert one.execute(asked).fetchone() == ("on",)
        with pytest.raises(errors.InsufficientPrivilege):
            one.execute(insert(1, "a"))
    with gate(server) as writer:
        writer.execute(insert(1, "a"))
        assert writer.execute(asked).fetchone() == ("on",)
        writer.execute(insert(2, "b"))
        with writer.cursor(name="parts") as cursor:
            assert cursor.execute(asked).fetchone() == ("on",)
        writer.execute(insert(3, "c"))
    assert len(ledger.rows()) == 3


def test_a_cursor_with_hold_keeps_what_its_block_saw(server: WireServer, ledger: Ledger):
    with gate(server) as one:
        one.execute("INSERT INTO ledger SELECT n, 'n' || n FROM generate_series(1, 1500) AS n")
        held = one.cursor(name="held", withhold=True)
        held.execute("SELECT id FROM ledger ORDER BY id")
        assert held.fetchone() == (1,)
        one.commit()
        one.execute("DELETE FROM ledger WHERE id < 1000")
        one.commit()
        assert [id for (id,) in held.fetchall()] == list(range(2, 1501))
        held.close()
        one.execute("DECLARE gone CURSOR WITH HOLD FOR SELECT id FROM ledger")
        one.rollback()
        with pytest.raises(errors.InvalidCursorName):
            one.execute("FETCH FROM gone")


def test_modes_of_a_block_come_before_its_first_statement(server: WireServer, ledger: Ledger):
    with gate(server) as one:
        one.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE")
        assert one.execute("SELECT count(*) FROM ledger").fetchone() == (0,)
        with pytest.raises(errors.ActiveSqlTransaction):
            one.execute("SET TRANSACTION READ WRITE")
        one.rollback()
        one.execute(insert(1, "a"))
        one.execute("SET TRANSACTION READ ONLY")
        with pytest.raises(errors.ReadOnlySqlTransaction):
            one.execute(insert(2, "b"))
        one.rollback()
        assert ledger.rows() == []
        one.execute(insert(3, "c"))
        one.execute("SET TRANSACTION READ ONLY")
        assert one.execute("SELECT count(*) FROM ledger").fetchone() == (1,)
        one.commit()
    assert ledger.rows() == [(3, "c")]


def test_settings_of_a_block_end_with_it(server: WireServer, ledger: Ledger):
    with gate(server) as one:
        one.execute("SET LOCAL statement_timeout = '7s'")
        one.execute("SET application_name = 'inside'")
        assert one.execute("SHOW statement_timeout").fetchone() == ("7s",)
        one.rollback()
        assert one.execute("SHOW statement_timeout").fetchone() == ("0",)
        assert one.info.parameter_status("application_name") == ""
        one.execute("SET application_name = 'kept'")
        one.execute("SAVEPOINT a")
        one.execute("SET application_name = 'undone'")
        one.execute("ROLLBACK TO a")
        one.commit()
        assert one.info.parameter_status("application_name") == "kept"


def test_cursors_and_other_statements_take_turns_in_one_block(server: WireServer, ledger: Ledger):
    with gate(server) as one, one.cursor(name="some") as cursor:
        one.execute("INSERT INTO ledger SELECT n, 'n' || n FROM generate_series(1, 3000) AS n")
        cursor.itersize = 700
        cursor.execute("SELECT id FROM ledger ORDER BY id")
        seen = cursor.fetchmany(10)
        one.execute("DELETE FROM ledger WHERE id > 100")
        seen += cursor.fetchmany(1000)
        assert [id for (id,) in seen] == list(range(1, 1011))
        cursor.close()
        assert one.execute("SELECT count(*) FROM ledger").fetchone() == (100,)
        one.commit()
    assert len(ledger.rows()) == 100


def test_a_pipeline_in_a_block_is_kept_or_undone_as_one(server: WireServer, ledger: Ledger):
    with gate(server) as one:
        with one.transaction(), one.pipeline():
            for id in range(1, 21):
                one.execute("INSERT INTO ledger VALUES (%s, %s)", (id, f"n{id}"))
        assert len(ledger.rows()) == 20
        with pytest.raises(errors.UniqueViolation), one.transaction(), one.pipeline():
            one.execute("DELETE FROM ledger WHERE id > 10")
            one.execute(insert(1, "again"))
        assert len(ledger.rows()) == 20
        with one.transaction(), one.cursor() as cursor:
            values = [(id, f"m{id}") for id in range(30, 40)]
            cursor.executemany("INSERT INTO ledger VALUES (%s, %s)", values)
    assert len(ledger.rows()) == 30


async def test_asyncpg_uses_transactions_as_on_postgresql_itself(
    server: WireServer, ledger: Ledger
):
    pg = await asyncpg.connect(
        host="127.0.0.1", port=server.port, user="writer", password=server.secrets["writer"],
        database="pg",
    )  # fmt: skip
    try:
        async with pg.transaction(isolation="repeatable_read"):
            await pg.execute("INSERT INTO ledger VALUES ($1, $2)", 1, "a")
            with pytest.raises(ZeroDivisionError):
                async with pg.transaction():
                    await pg.execute("INSERT INTO ledger VALUES ($1, $2)", 2, "b")
                    raise ZeroDivisionError
            seen = [row["id"] async for row in pg.cursor("SELECT id FROM ledger", prefetch=1)]
            assert seen == [1]
    finally:
        await pg.close()
    assert ledger.rows() == [(1, "a")]


def test_psql_commits_in_a_block_and_chains_the_next(server: WireServer, ledger: Ledger):
    text = (
        f"BEGIN;\n{insert(1, 'a')};\nCOMMIT AND CHAIN;\n{insert(2, 'b')};\nROLLBACK;\n"
        f"BEGIN ISOLATION LEVEL SERIALIZABLE;\n{insert(3, 'c')};\nSAVEPOINT s;\nSELECT nope;\n"
        "ROLLBACK TO s;\nCOMMIT;\n"
    )
    ran = subprocess.run(
        ["psql", "-X", "-q", server.conninfo("pg")], input=text, text=True, capture_output=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert ledger.rows() == [(1, "a"), (3, "c")], ran.stderr


def test_ctrl_c_ends_the_statement_and_leaves_the_block_to_be_rolled_back(
    server: WireServer, ledger: Ledger
):
    with gate(server) as one:
        one.execute(insert(1, "a"))
        one.execute("SAVEPOINT here")
        one.execute("SET LOCAL statement_timeout = '300ms'")
        with pytest.raises(errors.QueryCanceled):
            one.execute("SELECT count(*) FROM generate_series(1, 1000000000)")
        one.execute("ROLLBACK TO SAVEPOINT here")
        one.execute(insert(2, "b"))
        one.commit()
    assert ledger.rows() == [(1, "a"), (2, "b")]


def test_a_client_that_goes_leaves_nothing_and_the_record_says_so(
    server: WireServer, ledger: Ledger
):
    one = gate(server)
    one.execute(insert(1, "vanished"))
    one.close()
    wait_until(lambda: ledger.transactions() == 0, "the transaction to be rolled back")
    assert ledger.rows() == []

    def ends() -> list[str]:
        return [
            record["transaction_end"]
            for record in records(server)
            if record.get("transaction_end") and "vanished" in record.get("statement", "")
        ]

    wait_until(lambda: ends() == ["rolled back"], "the outcome to be recorded")


def test_each_change_is_recorded_with_what_became_of_it(server: WireServer, ledger: Ledger):
    with gate(server) as one:
        one.execute(insert(97101, "first"))
        one.execute("SAVEPOINT s")
        one.execute(insert(97102, "second"))
        one.execute("ROLLBACK TO s")
        during = [each for each in records(server) if "(97101," in each.get("statement", "")]
        assert [each["phase"] for each in during] == ["intent"]
        one.commit()
    found = [each for each in records(server) if each.get("transaction")]
    first = [each for each in found if "(97101," in each.get("statement", "")]
    second = [each for each in found if "(97102," in each.get("statement", "")]
    assert [each["phase"] for each in first] == ["intent", "outcome"]
    assert (first[1]["transaction_end"], first[1]["rows"]) == ("committed", 1)
    assert second[1]["transaction_end"] == "rolled back"
    transaction = first[0]["transaction"]
    kinds = [each["request"] for each in found if each["transaction"] == transaction]
    assert kinds[0] == "begin"
    commit = [
        each["phase"]
        for each in found
        if each["transaction"] == transaction and each["request"] == "commit"
    ]
    assert commit == ["intent", "outcome"]


def test_a_read_in_a_block_is_on_record_at_once_and_a_change_when_the_block_ends(
    server: WireServer, ledger: Ledger
):
    reading, marked = (
        "SELECT count(*) AS held_back FROM ledger",
        "UPDATE ledger SET note = 'held' WHERE id = 0",
    )

    def ended(verb: str) -> int:
        return sum(
            each.get("phase") == "outcome" and "held_back" in each.get("statement", "")
            if verb == "select"
            else each.get("phase") == "outcome" and each.get("statement_class") == "update"
            for each in records(server)
        )

    changes = ended("update")
    with gate(server) as client:
        client.execute(reading)
        client.execute(marked)
        wait_until(lambda: ended("select") == 1, "the read to be on record")
        assert ended("update") == changes
        client.commit()
    wait_until(lambda: ended("update") == changes + 1, "the change to be on record")
    assert ended("select") == 1


def test_one_caller_cannot_take_every_connection(server: WireServer, ledger: Ledger):
    open_ones = [gate(server) for _ in range(4)]
    try:
        for each in open_ones[:3]:
            each.execute("SELECT 1")
        open_ones[3].execute("SET LOCAL statement_timeout = '200ms'")
        with pytest.raises(errors.TooManyConnections):
            open_ones[3].execute("SELECT 1")
        open_ones[3].rollback()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(lambda: open_ones[3].execute("SELECT 2").fetchone())
            open_ones[1].rollback()
            assert waiting.result(timeout=30) == (2,)
        open_ones[3].rollback()
        with gate(server, user="reader") as other:
            assert other.execute("SELECT count(*) FROM ledger").fetchone() == (0,)
        open_ones[0].rollback()
        assert open_ones[3].execute("SELECT 1").fetchone() == (1,)
    finally:
        for each in open_ones:
            each.close()


def test_an_idle_block_is_ended_and_a_killed_server_leaves_nothing(
    postgres: PostgresShop, ledger: Ledger, tmp_path: Path
):
    sources = [
        {"name": "pg", "url": postgres.url, "access": "write"},
        {"name": "one", "url": f"{postgres.url}&pool=1"},
    ]
    with (
        wire_server(tmp_path, sources=sources, pg={"idle_in_transaction_s": 30}) as own,
        closing(gate(own)) as one,
        closing(gate(own)) as two,
    ):
        with (
            psycopg.connect(own.conninfo("one")) as narrow,
            pytest.raises(errors.FeatureNotSupported, match="one connection in this process"),
        ):
            narrow.execute("SELECT 1")
        one.execute("SET idle_in_transaction_session_timeout = '200ms'")
        one.commit()
        one.execute(insert(1, "a"))
        wait_until(lambda: ledger.transactions() == 0, "the idle transaction to be ended")
        with pytest.raises(errors.IdleInTransactionSessionTimeout) as ended:
            one.execute("SELECT 1")
        assert "idle" in str(ended.value)
        two.execute(insert(2, "b"))
        assert ledger.transactions() == 1
        own.process.process.kill()
        wait_until(lambda: ledger.transactions() == 0, "the server to see that the gate is gone")
    assert ledger.rows() == []


def test_a_person_is_asked_before_a_block_has_begun_and_never_within_it(
    postgres: PostgresShop, ledger: Ledger, tmp_path: Path
):
    ledger.ask(insert(9, "secret"))
    asks = {
        "name": "pg", "url": postgres.url, "access": "write", "approval_for": "writes",
        "approval": "inbox", "unattended": "deny",
        "masks": [{"column": "ledger.note", "show": "nothing"}],
    }  # fmt: skip
    with (
        wire_server(tmp_path, sources=[asks], approvals={"wait_s": 30, "dry_run": True}) as own,
        closing(gate(own)) as one,
        ThreadPoolExecutor(1) as pool,
    ):
        state = own.folder / "state"
        change = "DELETE FROM ledger WHERE id = 9"
        waiting = pool.submit(lambda: one.execute(change))

        def pending() -> list[dict[str, Any]]:
            return tidegate("approvals", "list", "--json", state=state).json["approvals"]

        (asked,) = wait_until(pending, "the question to be in the inbox")
        assert ledger.transactions() == 0
        assert tidegate("approvals", "allow", asked["id"], state=state).status == 0
        assert waiting.result(timeout=30).rowcount == 1
        assert ledger.transactions() == 1
        with pytest.raises(psycopg.Error) as refused:
            one.execute("DELETE FROM ledger WHERE id = 8")
        assert "No person was asked" in str(refused.value)
        assert pending() == []
        one.rollback()
        assert ledger.rows() == [(9, "secret")]
        one.read_only = True
        assert one.execute("SELECT id, note FROM ledger").fetchall() == [(9, None)]
        one.rollback()
        assert tidegate("token", "revoke", "writer", state=state).status == 0
        wait_until(lambda: one.pgconn.socket < 0 or gone(one), "the session to be ended")


@pytest.mark.needs("duckdb")
def test_a_source_without_transactions_reads_in_a_block_and_refuses_a_change(
    server: WireServer,
):
    with psycopg.connect(server.conninfo("duck")) as one:
        ((count,),) = one.execute("SELECT count(*) FROM item").fetchall()
        with pytest.raises(errors.FeatureNotSupported) as refused:
            one.execute("DELETE FROM item WHERE id = 1")
        assert "autocommit" in (refused.value.diag.message_hint or "")
        one.rollback()
        with one.transaction(), one.transaction():
            assert one.execute("SELECT count(*) FROM item").fetchone() == (count,)


@pytest.fixture(params=["pg", "shop", "maria"])
def source(request: pytest.FixtureRequest) -> str:
    if request.param == "maria":
        request.getfixturevalue("needs_mariadb")
    return request.param


def test_sqlalchemy_commits_rolls_back_and_nests(server: WireServer, source: str):
    url = sqlalchemy.URL.create(
        "postgresql+psycopg", "writer", server.secrets["writer"], "127.0.0.1", server.port, source
    )
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    add = "INSERT INTO item (id, name) VALUES ({0}, 'tx')"
    seen = sqlalchemy.text("SELECT id FROM item WHERE id > 700 ORDER BY id")

    def ids() -> list[int]:
        with engine.connect() as other:
            return list(other.execute(seen).scalars())

    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(add.format(701)))
        with pytest.raises(sqlalchemy.exc.DBAPIError), connection.begin_nested():
            connection.execute(sqlalchemy.text(add.format(702)))
            connection.execute(sqlalchemy.text(add.format(701)))
        with connection.begin_nested():
            connection.execute(sqlalchemy.text(add.format(703)))
        assert list(connection.execute(seen).scalars()) == [701, 703]
        assert ids() == []
    assert ids() == [701, 703]
    with pytest.raises(ZeroDivisionError), engine.begin() as connection:
        connection.execute(sqlalchemy.text("DELETE FROM item WHERE id > 700"))
        raise ZeroDivisionError
    assert ids() == [701, 703]
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("DELETE FROM item WHERE id > 700"))
    assert ids() == []


async def test_a_change_on_sqlite_that_returns_rows_is_described_to_drivers(server: WireServer):
    shop = await asyncpg.connect(
        host="127.0.0.1", port=server.port, user="writer", password=server.secrets["writer"],
        database="shop",
    )  # fmt: skip
    try:
        async with shop.transaction():
            made = "INSERT INTO item (id, name) VALUES (801, 'x') RETURNING id, name"
            assert tuple(await shop.fetchrow(made)) == (801, "x")
            await shop.execute("DELETE FROM item WHERE id = 801")
    finally:
        await shop.close()
    assert server.rows("SELECT count(*) FROM item WHERE id = 801") == [(0,)]


def gone(connection: psycopg.Connection[Any]) -> bool:
    """Whether the other side has ended the connection."""
    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except psycopg.OperationalError:
        return True
    except psycopg.InternalError:
        return connection.closed  # the end came together with the reply to ROLLBACK
    return False


def test_a_block_of_a_wire_client_is_one_change_that_is_taken_back(
    postgres: PostgresShop, ledger: Ledger, tmp_path: Path
):
    ledger.ask("INSERT INTO ledger VALUES (1, 'a'), (2, 'b')")
    before = ledger.rows()
    source = {"name": "pg", "url": postgres.url, "access": "write"}
    source |= {"undo": "require", "unqualified": "allow"}
    words = ("--config", str(tmp_path / "settings.json"))
    state = tmp_path / "state"
    with wire_server(tmp_path, sources=[source]) as server:
        with gate(server) as one:
            for binary, marks in ((False, "!"), (True, "!!")):
                text = "UPDATE ledger SET note = note || '!' RETURNING id, note, 1.5::numeric"
                changed = one.execute(text, binary=binary)
                found = [(1, f"a{marks}", Decimal("1.5")), (2, f"b{marks}", Decimal("1.5"))]
                assert sorted(changed.fetchall()) == found
            one.execute("SAVEPOINT s")
            one.execute("DELETE FROM ledger")
            one.execute("ROLLBACK TO s")
            one.execute(insert(3, "c"))
        assert len(ledger.rows()) == 3
        (change,) = tidegate("changes", "--json", *words, state=state).json["changes"]
        assert (change["rows"], change["state"]) == (3, "done")
        with operator_terminal() as terminal:
            done = tidegate("undo", change["id"], *words, state=state, terminal=terminal)
        assert done.status == 0, done.err
        assert ledger.rows() == before


def test_what_a_session_did_last_is_told_in_a_block_alone(server: WireServer, ledger: Ledger):
    ledger.ask("DROP TABLE IF EXISTS counted; CREATE TABLE counted (id serial, note text)")
    try:
        with gate(server) as one, gate(server) as other:
            one.autocommit = True
            for text in ("SELECT lastval()", "SELECT currval('counted_id_seq')"):
                with pytest.raises(errors.InsufficientPrivilege, match="other callers"):
                    one.execute(text)
            one.autocommit = False
            one.execute("INSERT INTO counted (note) VALUES ('a')")
            other.execute("INSERT INTO counted (note) VALUES ('b')")
            assert one.execute("SELECT lastval(), currval('counted_id_seq')").fetchone() == (1, 1)
            assert other.execute("SELECT lastval()").fetchone() == (2,)
            one.commit()
            one.autocommit = True
            with pytest.raises(errors.InsufficientPrivilege):  # not from the memory of the block
                one.execute("SELECT lastval(), currval('counted_id_seq')")
    finally:
        ledger.ask("DROP TABLE counted")


@pytest.mark.parametrize("text", ["SELECT", "SELECT FROM ledger", "SELECT FROM ledger WHERE false"])
def test_a_query_without_columns_gives_rows_as_on_postgresql_itself(
    server: WireServer, ledger: Ledger, postgres: PostgresShop, text: str
):
    ledger.ask("INSERT INTO ledger VALUES (1, 'a'), (2, 'b')")
    seen: list[Any] = []
    for conninfo in (server.conninfo("pg"), postgres.server.conninfo(postgres.database)):
        with psycopg.connect(conninfo, autocommit=True) as connection:
            cursor = connection.execute(text)
            simple = connection.pgconn.exec_(text.encode())
            seen.append((cursor.statusmessage, cursor.fetchall(), simple.status, simple.ntuples))
            with connection.cursor().copy(f"COPY ({text}) TO STDOUT") as copy:
                seen[-1] += ([bytes(line) for line in copy],)
    assert seen[0] == seen[1]
