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


MAY_CHANGE_ALL = """
DELETE FROM people
DELETE FROM people WHERE name LIKE '%'
DELETE FROM people WHERE id * 0 = 0
DELETE FROM people WHERE "ID" IS NOT NULL
DELETE FROM people WHERE name IS NOT NULL
DELETE FROM people WHERE 1 IN (1)
UPDATE people SET name = 'x' WHERE NOT false
DELETE FROM people WHERE coalesce(1, 0) = 1
DELETE FROM people WHERE coalesce(id, 1) > 0
DELETE FROM people p WHERE p.id = id + 0
DELETE FROM people WHERE EXISTS (SELECT 1)
DELETE FROM people WHERE CHAR_LENGTH(name) >= 0
DELETE FROM people WHERE id IN (SELECT id + 0 FROM people)
DELETE FROM people WHERE id >= (SELECT min(id) FROM people)
DELETE FROM people WHERE id BETWEEN 1 AND id
DELETE FROM people WHERE id = 1 OR name <> ''
DELETE FROM people WHERE NOT (id = 7)
DELETE FROM people WHERE name REGEXP ''
DELETE FROM people WHERE CURRENT_DATE > DATE '2000-01-01'
DELETE FROM people LIMIT 900
DELETE FROM people FETCH FIRST 900 ROWS ONLY
MERGE INTO people USING people s ON people.id = s.id + 0 WHEN MATCHED THEN DELETE
MERGE INTO people p USING (SELECT 1 AS id) s ON s.id = 1 WHEN MATCHED THEN DELETE
"""
CHANGES_SOME = """
DELETE FROM people WHERE id = 1
DELETE FROM people WHERE 2 = (id)
DELETE FROM people p WHERE p.id IN (3, 4) AND name LIKE '%'
UPDATE people SET name = 'x' WHERE "ID" BETWEEN 5 AND 5 + 1
UPDATE people SET name = 'x' WHERE lower(name) = 'n8'
MERGE INTO people p USING (SELECT 7 AS id) s ON p.id = 7 WHEN MATCHED THEN DELETE
DELETE FROM people WHERE name < 'n1' OR id = 8
"""


async def test_where_no_rows_are_compared_a_text_that_leaves_it_open_is_asked_about(tmp_path):
    rows = tuple(f"INSERT INTO people VALUES ({id}, 'n{id}')" for id in range(1, 10))
    url = jdbc_drivers.new_database("h2", tmp_path, (TABLE, *rows))
    options = {"driver_path": jdbc_drivers.driver_path("h2")}
    sources = [
        {"name": name, "url": url, "access": "write", "options": options, "unqualified": how}
        for name, how in (("hr", "confirm"), ("strict", "deny"))
    ]
    async with served(tmp_path, sources=sources) as jdbc:
        core = JdbcPeer(jdbc.app.surface("core"), WRITER, "2025-11-25", ("test", "1"))
        await core.open()
        whole = "SELECT count(*), count(CASE WHEN name = 'n' || id THEN 1 END) FROM people"

        async def contents():
            return json.loads(await core.text("query", sql=whole, source="hr"))["rows"]

        for text in MAY_CHANGE_ALL.strip().splitlines():
            assert "policy.confirm" in await core.text("query", sql=text, source="hr"), text
        text = MAY_CHANGE_ALL.strip().splitlines()[1]
        phrase = "I understand this is irreversible"
        asked = await core.text("query", sql=text, source="hr", confirm=phrase)
        assert "approval.needed" in asked
        refused = await core.text("query", sql=text, source="strict")
        assert "policy.denied" in refused
        assert "compare a column of the table with a constant" in refused
        assert await contents() == [[9, 9]]
        for text in CHANGES_SOME.strip().splitlines():
            assert "policy." not in await core.text("query", sql=text, source="hr"), text
        assert await contents() == [[3, 1]]
