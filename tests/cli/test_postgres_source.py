"""What `tidegate source test` says of an account of PostgreSQL."""

import support.postgres_server as postgres_server


def test_a_superuser_is_warned_of_and_a_plain_role_is_not(run):
    server = postgres_server.shared("wheel")
    name = server.new_database()
    server.ask(
        "CREATE TABLE towns (id int PRIMARY KEY); CREATE TABLE walls (id int PRIMARY KEY);"
        "CREATE ROLE visitor LOGIN; GRANT SELECT ON towns TO visitor",
        name,
    )
    run("source", "add", "superuser", server.url(name))
    run("source", "add", "visitor", server.url(name, user="visitor"))
    (warning, *_) = run("source", "test", "superuser", "--json").json["warnings"]
    assert "superuser" in warning
    plain = run("source", "test", "visitor", "--json").json
    assert [warning for warning in plain["warnings"] if "SELECT 1 took" not in warning] == []
    assert plain["server_version"].startswith("PostgreSQL")
    assert run("query", "visitor", "SELECT count(*) FROM towns").status == 0
    refused = run("query", "visitor", "SELECT count(*) FROM walls")
    assert (refused.status, "Ask the operator" in refused.err) == (65, True)
