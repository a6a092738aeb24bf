"""What `tidegate source test` says of an account of MariaDB."""

import pytest

import support.mysql_server as mysql_server

pytestmark = pytest.mark.skipif(not mysql_server.available(), reason="needs mariadb-server-core")


def test_an_account_that_could_write_is_warned_of(run):
    server = mysql_server.shared()
    name = server.new_database()
    server.script("CREATE TABLE towns (id INT PRIMARY KEY)", name)
    run("source", "add", "may-write", server.url(name))
    run("source", "add", "may-read", server.url(name, user="reader"))
    warned = run("source", "test", "may-write", "--json").json["warnings"]
    assert any("FILE" in warning for warning in warned)
    assert any("read-only transaction is no" in warning for warning in warned)
    plain = run("source", "test", "may-read", "--json").json
    assert [warning for warning in plain["warnings"] if "SELECT 1 took" not in warning] == []
    assert plain["server_version"].startswith("MariaDB")
    reported = run("query", "may-read", "SELECT COUNT(*) FROM towns")
    assert reported.status == 0
