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
}
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
            effect = Effect.WRITE if text.startswith("INSERT") else Effect.READ
            with pytest.raises(TidegateError) as caught:
                await case.ask(engine, text, effect=effect)
            details = caught.value.details
            found[text] = str(details.get(EQUIVALENT_SQLSTATE) or details["sqlstate"])
    assert found == STATES
