"""A change through a JDBC driver waits for a person, as on any source."""

from __future__ import annotations

import json

import pytest

from support import jdbc_drivers
from support.jdbc_surface import JdbcPeer, served
from tidegate.model.actors import Actor, Scope

WRITER = Actor("tok_writer", "writer", Scope.READ_WRITE)
TABLE = "CREATE TABLE people (id INTEGER PRIMARY KEY, name VARCHAR(40))"


@pytest.mark.parametrize("decision", ["allowed", "denied"])
async def test_a_change_of_h2_through_core_happens_once_a_person_allowed_it(tmp_path, decision):
    url = jdbc_drivers.new_database("h2", tmp_path, (TABLE,))
    source = {
        "name": "hr",
        "url": url,
        "access": "write",
        "approval_for": "writes",
        "approval": "inbox",
        "options": {"driver_path": jdbc_drivers.driver_path("h2")},
    }
    async with served(tmp_path, sources=[source]) as jdbc:
        core = JdbcPeer(jdbc.app.surface("core"), WRITER, "2025-11-25", ("test", "1"))
        await core.open()

        async def count():
            text = await core.text("query", sql="SELECT count(*) AS n FROM people")
            return json.loads(text)["rows"]

        insert = {"sql": "INSERT INTO people VALUES (1, 'Ada')"}
        assert "approval.needed" in await core.text("query", **insert)
        assert await count() == [[0]]
        (question,) = jdbc.app.approvals.list()
        assert insert["sql"] in repr(question.subject)
        jdbc.app.approvals.resolve(question.id, decision, "the operator")
        after = await core.text("query", **insert)
        if decision == "denied":
            assert "approval.declined" in after
            assert await count() == [[0]]
            return
        assert await count() == [[1]]
        assert "approval.needed" in await core.text("query", **insert)  # it was used once
        assert await count() == [[1]]


async def test_the_surface_jdbc_changes_nothing_where_the_source_admits_changes(tmp_path):
    url = jdbc_drivers.new_database("h2", tmp_path, (TABLE,))
    options = {"driver_path": jdbc_drivers.driver_path("h2")}
    source = {"name": "hr", "url": url, "access": "write", "options": options}
    async with served(tmp_path, sources=[source]) as jdbc:
        peer = jdbc.peer(WRITER)
        id = await peer.connected("hr")
        for text in (
            "INSERT INTO people VALUES (1, 'Ada')",
            "SELECT * FROM FINAL TABLE (INSERT INTO people VALUES (2, 'Eve'))",
            "SELECT FILE_WRITE('x', '/tmp/x')",
        ):
            assert "error" in await peer.recorded(id, text), text
        assert (await peer.recorded(id, "SELECT count(*) FROM people"))["rows"] == [[0]]
