"""Errors of statements have the SQLSTATE that PostgreSQL gives, where it has one for the same."""

import pytest

from tidegate.errors import EQUIVALENT_SQLSTATE, TidegateError
from tidegate.model.statements import Effect

SETUP = (
    "CREATE TABLE kinds (id INTEGER PRIMARY KEY)",
    "CREATE TABLE things (id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL UNIQUE,"
    " size INTEGER CHECK (size > 0), kind INTEGER REFERENCES kinds (id))",
    "INSERT INTO things VALUES (1, 'one', 1, NULL)",
)
STATES = {
    "INSERT INTO things VALUES (1, 'other', 1, NULL)": "23505",
    "INSERT INTO things VALUES (2, 'one', 1, NULL)": "23505",
    "INSERT INTO things VALUES (2, NULL, 1, NULL)": "23502",
    "INSERT INTO things VALUES (2, 'two', -1, NULL)": "23514",
    "SELECT nowhere FROM things": "42703",
    "SELECT id FROM nowhere": "42P01",
    "SELECT id FROM things JOIN kinds USING (nowhere)": "42703",
    "UPDATE things SET nowhere = 1 WHERE id = 1": "42703",
    "INSERT INTO things (nowhere) VALUES (1)": "42703",
    "INSERT INTO kinds VALUES (1, 2, 3)": "42601",
    "INSERT INTO things (id, name) VALUES (1)": "42601",
    "SELECT 1 UNION SELECT 1, 2": "42601",
    "SELECT (SELECT 1, 2)": "42601",
    "SELECT id FROM things JOIN kinds ON 1 = 1": "42702",
    "SELECT abs(1, 2, 3)": "42883",
    "SELECT name FROM things WHERE max(id) > 1": "42803",
    "CREATE TABLE kinds (id INTEGER)": "42P07",
    "CREATE TABLE twice (id INTEGER, id INTEGER)": "42701",
    "ALTER TABLE kinds ADD COLUMN id INTEGER": "42701",
}
_BY_EFFECT = {"INSERT": Effect.WRITE, "UPDATE": Effect.WRITE, "CREATE": Effect.ADMIN}
_BY_EFFECT |= {"ALTER": Effect.ADMIN}
NATIVE = ("sqlite", "duckdb", "postgres", "mysql")


async def test_errors_have_the_sqlstates_of_postgresql(case):
    name = case.name.partition("-")[0]
    if name not in NATIVE:  # what a driver gives is passed on
        return
    found: dict[str, str] = {}
    async with case.opened() as engine:
        for text in SETUP:
            effect = Effect.WRITE if text.startswith("INSERT") else Effect.ADMIN
            await case.ask(engine, text, effect=effect)
        for text in STATES:
            effect = _BY_EFFECT.get(text.partition(" ")[0], Effect.READ)
            with pytest.raises(TidegateError) as caught:
                await case.ask(engine, text, effect=effect)
            details = caught.value.details
            found[text] = str(details.get(EQUIVALENT_SQLSTATE) or details["sqlstate"])
    assert found == STATES
