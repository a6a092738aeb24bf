"""The state through PgBouncer in transaction mode: no two transactions need to share a session."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import support.pgbouncer as pgbouncer
import support.postgres_server as postgres_server
from contract.stores.test_moving import fill, read
from contract.stores.test_overlapping_writes import BOUNDS, question
from tidegate.errors import TidegateError
from tidegate.store.postgres.state import PostgresState

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(pgbouncer.program() is None, reason="pgbouncer is not installed"),
]


@pytest.fixture
def gates(tmp_path):
    server = postgres_server.shared()
    name = server.new_database()
    pooler = pgbouncer.before(server.directory, server.port)
    opened = [PostgresState(pooler.url(name), tmp_path) for _ in range(3)]
    yield opened
    for each in opened:
        each.close()


def test_each_area_reads_what_another_gate_wrote(gates):
    fill(gates[0])
    found = read(gates[1])
    assert found[:5] == read(gates[2])[:5] and len(found[0]) == 1
    assert gates[1].versions.of("tokens") == gates[2].versions.of("tokens")


def test_grants_bounds_and_locks_hold_for_twelve_callers_over_four_connections(gates):
    def ask(number):
        try:
            gates[number % 3].approvals.admit(question(f"a{number}", f"d{number}"), BOUNDS)
        except TidegateError:
            return 0
        return 1

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(ask, range(90))) == 50
        assert gates[0].approvals.resolve("a1", "allowed", "ada", "", 110.0, until=900.0,
                                          most_uses=3)  # fmt: skip
        used = pool.map(lambda n: gates[n % 3].approvals.answer("d1", BOUNDS, 120.0), range(24))
        assert len([each for each in used if each]) == 3
        made = pool.map(lambda n: gates[n % 3].shared.secret("seal"), range(24))
        assert len(set(made)) == 1
        counted = pool.map(
            lambda n: gates[n % 3].shared.add_failure("ip", 1.0, most=8, window_s=60.0), range(24)
        )
        assert sum(counted) == 3
