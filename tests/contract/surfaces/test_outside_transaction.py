"""What PostgreSQL runs outside a transaction, and what is said of it: nothing undoes it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contract.surfaces.engine_shops import PostgresShop
from contract.surfaces.test_administration import Scene
from support.eventually import HANG_S, wait_until
from tidegate.model.source_settings import RunAs


@pytest.fixture
def postgres(tmp_path: Path) -> PostgresShop:
    return PostgresShop(tmp_path)


def test_postgres_makes_and_drops_an_index_concurrently(postgres: PostgresShop) -> None:
    scene = Scene(postgres)
    scene.ran("CREATE INDEX CONCURRENTLY by_city ON customers (city)")
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'by_city'::regclass"
    assert postgres.look(valid) == [(True,)]
    scene.ran("REINDEX INDEX CONCURRENTLY by_city", "DROP INDEX CONCURRENTLY by_city")
    assert postgres.look("SELECT to_regclass('by_city')") == [(None,)]
    found = [record for record in scene.records() if "CONCURRENTLY" in record.get("statement", "")]
    assert {record["effect"] for record in found} == {"write", "destructive"}
    assert all(record["outside_transaction"] for record in found if "verdict" in record)


def test_an_index_that_fails_concurrently_says_what_stays(postgres: PostgresShop) -> None:
    scene = Scene(postgres)
    error = scene.refused("CREATE UNIQUE INDEX CONCURRENTLY one ON orders (customer_id)")
    assert "outside a transaction" in error.text
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'one'::regclass"
    assert postgres.look(valid) == [(False,)]
    assert scene.records()[-1]["outside_transaction"]


def test_a_procedure_of_postgres_may_commit_and_the_record_says_so(postgres: PostgresShop) -> None:
    postgres.server.ask(
        "CREATE PROCEDURE step(city text) LANGUAGE plpgsql AS $$ BEGIN"
        " UPDATE customers SET city = step.city WHERE id = 1; COMMIT;"
        " UPDATE customers SET city = 'lost' WHERE id = 1; RAISE EXCEPTION 'halfway'; END $$",
        postgres.name,
    )
    scene = Scene(postgres)
    error = scene.refused("CALL step('kept')")
    assert "halfway" in error.text and "outside a transaction" in error.text
    assert postgres.look("SELECT city FROM customers WHERE id = 1") == [("kept",)]
    assert "outside a transaction" in scene.shown[0]
    assert scene.records()[-1]["outside_transaction"]


@pytest.mark.parametrize("ends", ["the time is up", "the connection breaks"])
def test_a_procedure_that_is_stopped_after_it_committed_says_that_this_stays(
    postgres: PostgresShop, ends: str
) -> None:
    postgres.server.ask(
        "CREATE PROCEDURE step() LANGUAGE plpgsql AS $$ BEGIN"
        " UPDATE customers SET city = 'kept' WHERE id = 1; COMMIT; PERFORM pg_sleep(60); END $$",
        postgres.name,
    )
    scene = Scene(postgres)
    kept = "SELECT city FROM customers WHERE id = 1"
    if ends == "the time is up":
        scene.seconds = 1
        error = scene.refused("CALL step()")
        assert error.code == "limit.time"
        assert "what it had done by then stays" in error.text
    else:
        with ThreadPoolExecutor(1) as other:
            refused = other.submit(scene.refused, "CALL step()")
            wait_until(lambda: postgres.look(kept) == [("kept",)], "the procedure has committed")
            postgres.server.ask(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE state = 'active' AND query = 'CALL step()'",
                postgres.name,
            )
            error = refused.result(HANG_S)
        assert error.code == "source.unreachable"
        assert "check what it has done" in error.text
    assert postgres.look(kept) == [("kept",)]
    assert scene.records()[-1]["outside_transaction"]


def test_a_source_with_roles_runs_nothing_outside_a_transaction(postgres: PostgresShop) -> None:
    scene = Scene(postgres, run_as=RunAs(role="postgres"))
    error = scene.refused("CREATE INDEX CONCURRENTLY by_city ON customers (city)")
    assert error.code == "policy.denied"
    assert postgres.look("SELECT to_regclass('by_city')") == [(None,)]
