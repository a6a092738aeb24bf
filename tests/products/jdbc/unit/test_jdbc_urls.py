"""What is read of JDBC URLs, and what is refused."""

from __future__ import annotations

import pytest

from tidegate.engines.common.url import UNREADABLE, Location
from tidegate.engines.registry import ENGINES, engine_of, locate
from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.engine.native_url import native_url
from tidegate.products.jdbc.engine.url import (
    absolute_url,
    file_of,
    locate_jdbc,
    names_one_server,
    parse_jdbc_url,
)


@pytest.mark.parametrize(
    ("url", "kind", "dialect"),
    [
        ("jdbc:postgresql://host:5433/db?sslmode=require", "server", "postgres"),
        ("jdbc:mariadb://host/db", "server", "mysql"),
        ("jdbc:h2:mem:x;DB_CLOSE_DELAY=-1", "memory", "h2"),
        ("jdbc:h2:/data/hr", "file", "h2"),
        ("jdbc:h2:~/hr;MODE=PostgreSQL", "file", "h2"),
        ("jdbc:h2:tcp://host/~/hr", "server", "h2"),
        ("jdbc:hsqldb:file:/data/hr;ifexists=true", "file", "hsqldb"),
        ("jdbc:hsqldb:hsql://host/hr", "server", "hsqldb"),
        ("jdbc:derby:memory:hr;create=true", "memory", "derby"),
        ("jdbc:derby:/data/hr", "file", "derby"),
        ("jdbc:derby://host:1527/hr", "server", "derby"),
        ("jdbc:sqlite:/data/hr.db", "file", "sqlite"),
        ("jdbc:sqlite::memory:", "memory", "sqlite"),
        ("jdbc:oracle:thin:@//host:1521/hr", "server", "oracle"),
        ("jdbc:firebird://host/hr", "server", "default"),
        ("jdbc:h2://host/hr", "file", "h2"),
        ("jdbc:h2:tcp:host/hr", "file", "h2"),
        ("jdbc:h2:hsql://host/hr", "file", "h2"),
        ("jdbc:h2:memory:/data/hr", "file", "h2"),
        ("jdbc:h2:mem:x/../hr", "file", "h2"),
        ("jdbc:h2:results", "file", "h2"),
        ("jdbc:hsqldb:tcp://host/hr", "file", "hsqldb"),
        ("jdbc:hsqldb:memory:hr", "file", "hsqldb"),
        ("jdbc:sqlite://host/hr.db", "file", "sqlite"),
        ("jdbc:sqlite:mem:hr.db", "file", "sqlite"),
        ("jdbc:sqlite::memory:/hr.db", "file", "sqlite"),
    ],
)
def test_a_url_says_where_the_database_is_and_what_it_speaks(url, kind, dialect):
    assert parse_jdbc_url(url).kind == kind
    assert engine_of(url) == ("jdbc", dialect)


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM '/tmp/x.sql'",
        "jdbc:h2:/data/hr;init=CREATE ALIAS",
        "jdbc:h2:mem:x;TRACE_LEVEL_FILE=3",
        "jdbc:h2:/data/hr;IFEXISTS=FALSE\n;INIT=x",
        "jdbc:postgresql://h/db?socketFactory=org.example.Factory&socketFactoryArg=x",
        "jdbc:postgresql://h/db?loggerFile=/tmp/x",
        "jdbc:postgresql://h/db?%73ocketFactory=x",
        "jdbc:mysql://h/db?autoDeserialize=true",
        "jdbc:mysql://h/db?allowLoadLocalInfile=true",
        "jdbc:mariadb://h/db?allowLocalInfile=true",
        "jdbc:derby:/data/hr;create=true",
        "jdbc:derby:/data/hr;createFrom=/x",
        "jdbc:hsqldb:file:/data/hr;hsqldb.default_table_type=cached",
        "jdbc:sqlite:/data/hr.db?enable_load_extension=true",
        "jdbc:sqlite::resource:http://example.com/x.db",
        "jdbc:h2:zip:/x.zip!/hr",
        "jdbc:firebird://host/hr?anything=1",
        "jdbc:h2",
        "jdbc::x",
        "jdbc:postgresql://h/db?sslmode=require&sslmode=disable",
    ],
)
def test_what_could_run_code_or_make_files_is_refused(url):
    with pytest.raises(TidegateError) as caught:
        parse_jdbc_url(url)
    assert caught.value.code is Code.SOURCE_URL


def test_a_parameter_that_is_refused_is_named_without_its_value():
    with pytest.raises(TidegateError) as caught:
        parse_jdbc_url("jdbc:postgresql://h/db?ssl_mode=hunter2")
    assert "ssl_mode" in caught.value.message
    assert "sslmode" in caught.value.hint
    assert "hunter2" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("jdbc:postgresql://host:5433/db", Location("host", 5433, "db", "")),
        ("jdbc:postgresql://host/db", Location("host", 5432, "db", "")),
        ("jdbc:h2:/data/hr", Location("", 0, "hr", "")),
        ("jdbc:h2:mem:hr", Location("", 0, "hr", "")),
        ("jdbc:sqlite:/data/hr.db", Location("", 0, "hr", "")),
        ("jdbc:h2:mem:x;INIT=y", UNREADABLE),
    ],
)
def test_a_listing_shows_where_a_database_is(url, location):
    assert locate_jdbc(url) == locate(url) == location


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("jdbc:postgresql://host:5432/db", True),
        ("jdbc:h2:tcp://[::1]:9092/~/hr", True),
        ("jdbc:oracle:thin:@//host:1521/hr", True),
        ("jdbc:oracle:thin:@tcps://host:1521/hr", True),
        ("jdbc:firebird://host:3050/hr", True),
        ("jdbc:jtds:sqlserver://host", True),
        ("jdbc:oracle:thin:@elsewhere:1521/x//host/hr", False),
        ("jdbc:oracle:thin:@host:1521:hr", False),
        ("jdbc:oracle:thin:@(DESCRIPTION=(HOST=elsewhere))//host/hr", False),
        ("jdbc:mysql://host,elsewhere/db", False),
        ("jdbc:mysql://address=(host=elsewhere)/db", False),
        ("jdbc:mysql://elsewhere:1@host/db", False),
        ("jdbc:firebird:elsewhere:1//host/hr", False),
        ("jdbc:firebird://host/../etc/hr.fdb", False),
        ("jdbc:db2://host:1/db:clientRerouteServerListJNDIName=ldap://elsewhere/x;", False),
        ("jdbc:h2:/data/hr", False),
    ],
)
def test_a_url_names_one_server_or_it_is_not_clear_which(url, plain):
    assert names_one_server(parse_jdbc_url(url)) is plain


def test_the_path_of_a_database_in_a_file_is_known():
    assert file_of(parse_jdbc_url("jdbc:h2:file:/data/hr")) == "/data/hr"
    assert file_of(parse_jdbc_url("jdbc:h2:mem:hr")) is None


def test_a_relative_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute_url("jdbc:h2:./hr;MODE=MySQL") == f"jdbc:h2:{tmp_path}/hr;MODE=MySQL"
    assert absolute_url("jdbc:hsqldb:file:hr") == f"jdbc:hsqldb:file:{tmp_path}/hr"
    assert absolute_url("jdbc:sqlite:hr.db") == f"jdbc:sqlite:{tmp_path}/hr.db"
    for same in ("jdbc:h2:mem:hr", "jdbc:postgresql://h/db", "jdbc:h2:/data/hr", "nonsense"):
        assert absolute_url(same) == same


def test_further_parameters_are_written_as_the_database_reads_them():
    h2 = parse_jdbc_url("jdbc:h2:/data/hr;MODE=MySQL")
    assert h2.with_parameters({"IFEXISTS": "TRUE"}) == "jdbc:h2:/data/hr;MODE=MySQL;IFEXISTS=TRUE"
    plain = parse_jdbc_url("jdbc:sqlite:/data/hr.db")
    assert plain.with_parameters({"a": "b", "c": "d"}) == "jdbc:sqlite:/data/hr.db?a=b&c=d"
    assert plain.with_parameters({}) == "jdbc:sqlite:/data/hr.db"


@pytest.mark.parametrize("scheme", ["mysql", "duckdb"])
def test_a_database_whose_engine_is_not_here_is_left_to_its_driver(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"jdbc:{scheme}:///shop"
    assert native_url(url) is not None
    monkeypatch.delitem(ENGINES, scheme)
    assert native_url(url) is None
