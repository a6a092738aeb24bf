"""A proxy names the callers for whom it speaks, and no other client may."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from support.cloud_backing import Backing, backing_server
from support.cloud_surface import DELETE, RESOURCE, UPDATE
from support.command_line import tidegate
from support.eventually import wait_until
from tidegate.model.statements import DryRun

pytestmark = pytest.mark.needs("cloud")


@pytest.fixture(scope="module")
def backing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backing]:
    with backing_server(tmp_path_factory.mktemp("backing")) as running:
        yield running


def name_caller(connection: psycopg.Connection, caller: str) -> None:
    connection.execute(sql.SQL("SET tidegate.on_behalf_of = {}").format(sql.Literal(caller)))


def test_a_change_that_a_proxy_passes_on_is_not_asked_again_and_names_its_caller(
    backing: Backing,
) -> None:
    with backing.connect("proxy") as connection:
        name_caller(connection, "Ada's agent")
        assert connection.execute(UPDATE).rowcount == 1
    assert backing.desk.tickets["1"]["title"] == "Changed"
    lines = backing.audited(UPDATE)
    assert [each["phase"] for each in lines] == ["intent", "outcome"]
    assert {each["on_behalf_of"] for each in lines} == {"Ada's agent"}
    assert {each["actor_name"] for each in lines} == {"proxy"}


def test_a_proxy_that_names_no_caller_is_asked_about_as_everyone_is(backing: Backing) -> None:
    writes = len(backing.desk.writes)
    with (
        backing.connect("proxy") as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="approve"),
    ):
        connection.execute(DELETE)
    assert len(backing.desk.writes) == writes


@pytest.mark.parametrize(
    "name", ["tidegate.on_behalf_of", "TideGate.On_Behalf_Of", "tidegate.plan"]
)
@pytest.mark.parametrize("text", ["SET {0} = 'x'", "SELECT set_config('{0}', 'x', false)"])
def test_only_a_proxy_can_name_a_caller(backing: Backing, name: str, text: str) -> None:
    writes = len(backing.desk.writes)
    with backing.connect("writer") as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="Only a proxy"):
            connection.execute(text.format(name).encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(DELETE)
    assert len(backing.desk.writes) == writes


def test_a_digest_says_which_requests_a_change_is_and_binds_it_to_them(backing: Backing) -> None:
    other = UPDATE.replace("Changed", "Other")
    with backing.connect("proxy") as connection:
        name_caller(connection, "agent")
        sent = len(backing.desk.requests)
        digests = [
            str(connection.execute(f"EXPLAIN DIGEST {each}".encode()).fetchall()[0][0])
            for each in (UPDATE, UPDATE, other)
        ]
        assert len(backing.desk.requests) == sent
        assert digests[0] == digests[1] != digests[2]
        connection.execute(f"SET tidegate.plan = '{digests[0]}'".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="other requests"):
            connection.execute(other.encode())
        assert len(backing.desk.requests) == sent
        connection.execute(UPDATE)
        assert [each[0] for each in backing.desk.requests[sent:]] == ["PATCH"]


def test_a_preview_shows_the_requests_and_the_present_state_and_changes_nothing(
    backing: Backing,
) -> None:
    writes = len(backing.desk.writes)
    with backing.connect("reader") as connection:
        ((found,),) = connection.execute(f"EXPLAIN PREVIEW {UPDATE}".encode()).fetchall()
    shown = json.loads(str(found))
    assert shown["affected"] == 1
    assert shown["requests"][0].startswith("desk: PATCH")
    assert len(shown["before"]) == len(shown["after"]) == 1
    assert set(shown) <= set(DryRun.__struct_fields__)
    assert len(backing.desk.writes) == writes


@pytest.mark.parametrize("kind", ["DIGEST", "PREVIEW"])
def test_a_digest_or_preview_of_a_query_is_refused(backing: Backing, kind: str) -> None:
    with (
        backing.connect("reader") as connection,
        pytest.raises(psycopg.errors.SyntaxError, match="followed by a change"),
    ):
        connection.execute(f"EXPLAIN {kind} SELECT 1".encode())


def test_what_a_provider_said_and_what_was_cut_are_in_the_details(backing: Backing) -> None:
    notices: list[str | None] = []
    with backing.connect("reader") as connection:
        connection.add_notice_handler(lambda each: notices.append(each.message_detail))
        with pytest.raises(psycopg.Error) as failed:
            connection.execute(f"SELECT id FROM {RESOURCE} WHERE team = 'failing'")
        connection.execute("SET tidegate.max_rows = 1")
        rows = connection.execute(f"SELECT id FROM {RESOURCE} WHERE team = 'red'").fetchall()
    detail = failed.value.diag.message_detail
    assert detail is not None
    assert json.loads(detail[detail.index("{") :]) == {"http_status": 403, "retryable": False}
    assert len(rows) == 1
    assert json.loads(notices[0] or "") == {
        "kind": "rows", "limit": 1, "returned": 1, "calls": 1, "pages": 1,
    }  # fmt: skip


def test_a_session_says_what_it_speaks(backing: Backing) -> None:
    with backing.connect("reader") as connection:
        pgconn = connection.pgconn
        assert pgconn.parameter_status(b"tidegate.dialect") == b"cloud"
        assert pgconn.parameter_status(b"tidegate.version")
        with pytest.raises(psycopg.errors.CantChangeRuntimeParam):
            connection.execute("SET tidegate.dialect = 'sqlite'")


def test_taking_the_right_away_ends_the_sessions_that_have_it(backing: Backing) -> None:
    # The last test of the file: the token is no proxy's any more.
    with backing.connect("proxy") as connection:
        name_caller(connection, "agent")
        state = backing.server.folder / "state"
        ended = tidegate("token", "edit", "proxy", "--no-proxy", state=state)
        assert ended.status == 0, ended.err

        def has_ended() -> bool:
            try:
                connection.execute("SELECT 1 AS n")
            except psycopg.Error:
                return connection.closed
            return False

        wait_until(has_ended, "the end of the session")
    with (
        backing.connect("proxy") as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="Only a proxy"),
    ):
        name_caller(connection, "agent")
