"""Every setting that the edge keeps itself takes the values that PostgreSQL takes, shows them as it
shows them, and refuses the others with its SQLSTATE: both get the same texts."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from support.postgres_surface import PostgresShop
from support.wire_server import WireServer
from tidegate.engines.postgres.search_path import pinned_path
from tidegate.products.pgwire.command_tokens import QUOTED, RESERVED

TIMES = [
    "0", "1500", "2min", "120000", "'1500ms'", "'2 min'", "' 2min '", "'1.5s'", "90.7", "'0x10'",
    "'010'", "'1h'", "'0.1d'", "'24.5d'", "'25d'", "'500us'", "'5 parsecs'", "'2MIN'", "-1", "''",
    "'2147483647'", "'2147483648'", "'1e3'", "'.5s'", "'abc'", "'1 2'", "on", "1e400", "'nan'",
]  # fmt: skip
BOOLEANS = [
    "on", "off", "true", "FALSE", "'t'", "'f'", "'of'", "'o'", "yes", "'n'", "1", "0", "2", "'tru'",
    "' on'", "''", "bogus", "'onn'",
]  # fmt: skip
LEVELS = [
    "serializable", "'repeatable read'", "'READ COMMITTED'", "'read uncommitted'", "'repeatable'",
    "''", "'read  committed'", "1", "snapshot", "'serializable '",
]  # fmt: skip
VALUES = {
    "application_name": [
        "x", "Foo", "'Foo'", '"Foo"', "''", "'a','b'", "a, b", "'grün'", f"'{'a' * 70}'", "1.50",
        "-5", "007", "true", "ON", "select", "'it''s'", "E'a\\tb'", "user", "values", "1e3", "+4",
        "9999999999", "$$x$$", "0x1F",
    ],
    "bytea_output": ["hex", "HEX", "'hex'", "x", "''", "1", "'hex ', hex", "on", "'he'", "base64"],
    "client_encoding": [
        "utf8", "'UTF-8'", "UNICODE", "'utf 8'", "bogus", "''", "'u t f 8'", "'UTF_8'", "'uTf8'",
        "utf16",
    ],
    "client_min_messages": [
        "bogus", "debug5", "DEBUG1", "debug", "log", "info", "'Notice'", "warning", "error",
        "fatal", "panic", "1", "''",
    ],
    "default_table_access_method": ["heap", "'heap'", "bogus", "''", "HEAP", "1", "'Heap'", "btree",
                                    "'a','b'", "'heap '"],
    "default_tablespace": ["''", "pg_default", "bogus", "1", "'no such'", "'a','b'", "pg_global",
                           "PG_DEFAULT", "'PG_DEFAULT'", "DEFAULT"],
    "default_transaction_isolation": LEVELS,
    "default_transaction_deferrable": ["off", "'f'", "0", "no", "bogus", "2", "''", "1.5", "'o'",
                                       "'of'"],
    "default_transaction_read_only": BOOLEANS,
    "extra_float_digits": ["1", "2", "3", "99", "4", "'3'", "' 2'", "'0x2'", "1.4", "2.5", "'1s'",
                           "'kB'", "-16", "''", "on", "1e1", "'2 '"],
    "idle_in_transaction_session_timeout": TIMES,
    "integer_datetimes": ["on", "off", "1", "bogus", "''", "'a','b'", "DEFAULT", "true", "2", "x"],
    "intervalstyle": ["postgres", "POSTGRES", "'postgres'", "bogus", "''", "1", "'a','b'", "iso",
                      "'postgres '", "sql"],
    "is_superuser": ["on", "off", "1", "bogus", "''", "'a','b'", "true", "2", "x", "no"],
    "jit": BOOLEANS,
    "lock_timeout": TIMES,
    "max_identifier_length": ["63", "64", "1", "bogus", "''", "'a','b'", "true", "2", "x", "no"],
    "max_index_keys": ["32", "64", "1", "bogus", "''", "'a','b'", "true", "2", "x", "no"],
    "row_security": BOOLEANS,
    "search_path": [
        '"$user", public', "'$user', public", "\"$user\"", "'$user'", "public", "PUBLIC",
        "'Public'", '"Public"', "'public, x'", "''", '""', "'a\"b'", "user", '"user"', "'select'",
        "values", "'values'", "1", "1.5", "-1", "public, 1", "public,", "x1, _y, a$b", "'a$b'",
        "'grün'", "grün", "true", "on", "'pg_temp'", "public, DEFAULT", "(SELECT 1)", "'$USER'",
        "$user",
        "E'a\\nb'", "'a''b'", "between, 'between'", "name, 'name'", f"'{'a' * 70}'", "'A', 'b c'",
    ],
    "server_encoding": ["UTF8", "bogus", "''", "1", "LATIN1"],
    "server_version": ["'15'", "'a','b'", "1"],
    "server_version_num": ["150000", "'a','b'", "x"],
    "standard_conforming_strings": ["on", "'true'", "1", "yes", "'y'", "bogus", "''", "2", "'tr'",
                                    "'o'"],
    "statement_timeout": TIMES,
    "synchronize_seqscans": BOOLEANS,
    "transaction_isolation": LEVELS,
    "transaction_read_only": ["off", "'f'", "0", "no", "bogus", "2", "''", "'o'", "'of'", "'n'"],
    "DateStyle": ["ISO, DMY", "'ISO, DMY'", "iso, 'dmy'", "DMY", "ymd, iso", "bogus", "ISO, bogus",
                  "''", "1", "'ISO','DMY','MDY'", "ISO, ISO", "us", "European", "DEFAULT",
                  "'DMY', DEFAULT"],
    "TimeZone": ["'Asia/Tokyo'", "UTC", "bogus", "''", "1", "-7.5", "'a','b'", "utc", "LOCAL",
                 "+3", "'UTC', 'UTC'", "99999", "'Europe/berlin'", "INTERVAL"],
    "temp_tablespaces": ["''", "bogus", "a, b", "'a','b'", "DEFAULT"],
    "work_mem": ["'a','b'", "bogus", "''", "'5 parsecs'", "1, 2"],
    "nonsense": ["1", "'a','b'", "DEFAULT"],
}  # fmt: skip


def told(connection: psycopg.Connection[Any], text: str) -> str | None:
    """The SQLSTATE of a statement; its tag, or the first value of its first row."""
    try:
        cursor = connection.execute(text)  # type: ignore[arg-type]
    except psycopg.Error as error:
        return error.sqlstate
    row = None if cursor.description is None else cursor.fetchone()
    return cursor.statusmessage if row is None else row[0]


def said(conninfo: str, name: str, values: list[str], *, way: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with psycopg.connect(conninfo, autocommit=True, application_name="own") as connection:
        for value in values:
            connection.execute("BEGIN") if way == "local" else None
            found[value] = [
                told(connection, way_of(way).format(name=name, value=value)),
                *([] if way == "local" or name in OWN else [told(connection, f"SHOW {name}")]),
                connection.info.parameter_status(name) if name in REPORTED else None,
            ]
            connection.execute("ROLLBACK") if way == "local" else None
            told(connection, f"RESET {name}")
    return found


OURS: dict[str, dict[str, str]] = {
    "default_tablespace": dict.fromkeys(["pg_default", "pg_global", "PG_DEFAULT"], "22023"),
    "default_table_access_method": {"btree": "22023"},
    "application_name": {"E'a\\tb'": "0A000"},
    "search_path": {"E'a\\nb'": "0A000"},
    "temp_tablespaces": {"''": "22023"},
}
"""What PostgreSQL takes, or refuses otherwise, and we refuse so."""

OWN = {"is_superuser", "jit"}
"""What is another for the account of the test and for a caller."""
REPORTED = {"application_name", "DateStyle", "TimeZone", "client_encoding"}


def way_of(way: str) -> str:
    return {
        "set": "SET {name} = {value}",
        "local": "SET LOCAL {name} TO {value}",
        "config": "SELECT set_config('{name}', {value}, false)",
    }[way]


@pytest.mark.parametrize("way", ["set", "local", "config"])
@pytest.mark.parametrize("name", VALUES)
def test_a_setting_takes_and_shows_the_values_of_postgresql(
    server: WireServer, postgres: PostgresShop, name: str, way: str
):
    values = VALUES[name]
    if way == "config":
        values = [value for value in values if value.startswith("'") and "," not in value]
    direct = said(postgres.server.conninfo(postgres.database), name, values, way=way)
    gate = said(server.conninfo("pg"), name, values, way=way)
    wrong = {
        value: (gate[value], direct[value])
        for value in values
        if gate[value] != direct[value] and gate[value][0] != OURS.get(name, {}).get(value)
    }
    assert not wrong, "\n".join(
        f"{value}: {ours}, and PostgreSQL {theirs}" for value, (ours, theirs) in wrong.items()
    )


EVERYWHERE = [
    "application_name", "bytea_output", "client_encoding", "client_min_messages",
    "default_transaction_isolation", "default_transaction_read_only", "extra_float_digits",
    "idle_in_transaction_session_timeout", "intervalstyle", "max_index_keys", "statement_timeout",
    "transaction_isolation", "transaction_read_only",
]  # fmt: skip


@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_source_of_another_kind_takes_the_same_values(
    server: WireServer, postgres: PostgresShop, name: str
):
    direct = said(postgres.server.conninfo(postgres.database), name, VALUES[name], way="set")
    gate = said(server.conninfo("lite"), name, VALUES[name], way="set")
    refused = OURS.get(name, {})
    assert {value: each for value, each in gate.items() if each[0] != refused.get(value)} == {
        value: each for value, each in direct.items() if gate[value][0] != refused.get(value)
    }


def test_the_key_words_are_those_of_postgresql(postgres: PostgresShop):
    rows = postgres.ask("SELECT word, catcode FROM pg_get_keywords() WHERE catcode <> 'U'")
    assert {word for word, kind in rows if kind == "R"} == RESERVED
    assert {word for word, _ in rows} == QUOTED


PATHS = ['"$user", public', "$user, public", "$USER", "'$user'", "'$user', public"]


@pytest.mark.parametrize("path", PATHS)
def test_the_path_of_a_user_stays_the_accounts(path: str):
    written = path.replace("'", '"')
    assert pinned_path(written, "own").split(", ")[0] == "own"
    assert pinned_path(f'PG_CATALOG, "pg_temp", {written}', "own").startswith("own")
    assert pinned_path('"$USER", "a, b"', "own") == '"$USER", "a, b", pg_temp'
