"""What the types of a PostgreSQL database stand for, on each surface that shows columns."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from support.postgres_surface import PostgresShop, served
from support.surface_client import READER, Peer

TYPES = """
CREATE TYPE mood AS ENUM ('fresh', 'it''s old');
CREATE DOMAIN email AS text CHECK (VALUE LIKE '%@%');
CREATE TYPE place AS (town text, moods mood[]);
CREATE TABLE people (id int PRIMARY KEY, state mood, states mood[], mail email, home place);
CREATE VIEW states AS SELECT state AS other FROM people;
CREATE TABLE children (age int) INHERITS (people);
"""
pytestmark = pytest.mark.needs("workbench", "pgedge", "jdbc")
TABLES = ["people", "states", "children"]
ENUM = "enum('fresh', 'it''s old')"
DOMAIN = "domain over text CHECK (VALUE ~~ '%@%'::text)"
COMPOSITE = f"composite (town text, moods mood[] {ENUM})"


async def _shown(directory: Path, masks: list[dict[str, str]]) -> tuple[dict[str, str], list[str]]:
    """What each surface says of the table, its view and its child; and the DDL of each."""
    source = {"name": "shop", "url": PostgresShop.new(TYPES).url, "masks": masks}
    async with served(directory, sources=[source]) as under_test:

        async def peer(name: str) -> Peer:
            made = Peer(under_test.app.surface(name), READER, "2025-11-25")
            await made.open()
            return made

        core, workbench, jdbc = await peer("core"), await peer("workbench"), await peer("jdbc")
        postgres = await peer("postgres")
        listed = (await workbench.result("list_connections"))["structuredContent"]
        described = [
            await workbench.result(
                "describe_table", connection_id=listed["connections"][0]["id"], table=name
            )
            for name in TABLES
        ]
        joined = msgspec.json.decode(await jdbc.text("connect", url="shop"))
        columns = [one["structuredContent"].pop("columns") for one in described]
        return {
            "core": await core.text("describe", tables=TABLES),
            "workbench": str(columns),
            "postgres": await postgres.text("get_schema_info", schema_name="public"),
            "jdbc": str(
                [
                    msgspec.json.decode(
                        await jdbc.text("discover", connectionId=joined["id"], table=name)
                    )
                    for name in TABLES
                ]
            ).replace("\\'", "'"),
        }, [one["structuredContent"]["ddl"] for one in described]


async def test_each_surface_says_what_a_type_stands_for(tmp_path: Path) -> None:
    shown, ddl = await _shown(tmp_path, [])
    for surface in ("workbench", "postgres", "jdbc"):
        for definition in (ENUM, DOMAIN, COMPOSITE):
            assert definition in shown[surface], surface
    assert shown["core"].splitlines()[:2] == [
        f"people(id int pk, state mood? {{fresh,'it''s old'}}, states mood[]? /*{ENUM}*/,"
        f" mail email? /*{DOMAIN}*/, home place? /*{COMPOSITE}*/)",
        "view states(other mood? {fresh,'it''s old'})",
    ]
    assert "CREATE TYPE public.mood AS ENUM ('fresh', 'it''s old');" in ddl[0]


async def test_a_masked_column_does_not_say_what_its_type_admits(tmp_path: Path) -> None:
    names = ("state", "states", "mail", "home")
    shown, ddl = await _shown(
        tmp_path, [{"column": f"people.{name}", "show": "nothing"} for name in names]
    )
    assert "mood" in shown["core"]
    for text in (*shown.values(), *ddl):
        for hidden in ("fresh", "old", "VALUE", "town"):
            assert hidden not in text
