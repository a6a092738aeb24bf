"""Which tests are left to the whole tier; all others are the quick tier's, `pytest --quick`.

A file or a folder of `WHOLE` is not collected in the quick tier. In the folders of `ENGINES`, which
run a contract on every engine, SQLite and PostgreSQL stand for the others. A single slow test says
`@pytest.mark.whole`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent

WHOLE = {
    "processes that are killed, connections that are cut, disks that are full": (
        "faults", "products/datalog/contract/test_faults.py", "products/duckdb/faults",
        "products/jdbc/faults", "products/mysql/faults", "products/shipping/faults",
        "wire/test_long_work_killed.py",
    ),
    "a search through many generated statements": (
        "fuzz", "hidden_data", "properties/sql/test_judge_mutations.py",
        "products/cloud/contract/test_random_queries.py",
        "products/datalog/contract/test_planner_against_facts.py",
        "products/datalog/contract/test_rules_and_scopes.py", "products/mysql/security",
        "properties/sql/test_judge_bounds.py", "read_only_fuzz",
        "security/authz/test_repeated_matrix.py", "security/judge/test_judge_against_servers.py",
        "security/masking/test_shadowing_macros.py",
    ),
    "every form of one thing on engines, of which other files of the contract take one": (
        "contract/search/test_bm25_search.py", "contract/search/test_embedding_job.py",
        "contract/search/test_odd_vectors.py", "contract/search/test_postgres_search.py",
        "contract/undo/test_statement_forms.py",
    ),
    "many tunnels, sockets, clients or megabytes": (
        "contract/engines/test_slow_reader.py", "contract/engines/test_tunnel.py",
        "contract/surfaces/test_values_of_large_tables.py",
        "products/pgwire/contract/test_floods.py", "security/attacks/test_attack_memory.py",
        "products/console/http/test_console_gates.py", "wire/test_any_gate.py",
    ),
    "clients of others, each a process; the wire tests speak to the server themselves": (
        "products/cloud/wire", "products/datalog/wire/test_datalog_sdk.py",
        "products/pgedge/wire/test_postgres_clients.py", "products/pgwire/contract/test_drivers.py",
        "products/pgwire/contract/test_jdbc.py", "products/pgwire/contract/test_other_clients.py",
        "products/pgwire/contract/test_postgres_fdw.py", "products/pgwire/contract/test_psql.py",
        "products/pgwire/contract/test_sqlalchemy.py",
        "products/workbench/surface/test_workbench_clients.py", "wire/test_bridge_clients.py",
        "wire/test_conformance.py", "wire/test_inspector.py", "wire/test_inspector_refusals.py",
        "wire/test_long_work_clients.py", "wire/test_proxies.py", "wire/test_python_sdk1.py",
        "wire/test_typescript_sdk.py",
    ),
    "servers and drivers beyond those of the smoke tests": (
        "products/aws/contract", "products/vault/cli", "products/vault/contract",
        "products/cloud/contract/test_aws.py", "products/cloud/contract/test_prism.py",
        "products/cloud/contract/test_real_apis.py",
        "products/datalog/contract/test_remote_server.py",
        "products/datalog/contract/test_surface_session.py",
        "products/jdbc/engine", "products/jdbc/surface/test_jdbc_parameters.py",
        "products/jdbc/unit/test_java_and_scala.py",
    ),
    "a page in a browser; the inbox and the demo are driven in the quick tier": tuple(
        path.relative_to(TESTS).as_posix()
        for path in sorted((TESTS / "products/console/browser").glob("test_*.py"))
        if path.stem not in ("test_demo", "test_inbox", "test_page_sources")
    ),
    "commands and servers that are started again for each case": (
        "cli/test_bridge.py", "cli/test_bridge_recovery.py", "cli/test_demo.py",
        "cli/test_doctor.py", "cli/test_failed_connections.py", "cli/test_install.py",
        "cli/test_setup.py", "cli/test_source_harden.py", "cli/test_source_harden_apply.py",
        "cli/test_system_keyring.py", "cli/test_unread_output.py", "products/backup/cli",
        "products/cloud/cli",
        "products/datalog/cli", "products/duckdb/cli", "products/jdbc/cli", "products/otel/wire",
        "wire/test_gate.py", "wire/test_statuses.py", "wire/test_two_gates.py",
        "wire/test_webhook.py",
    ),
    "tutorials and guides that are typed from top to bottom, the package that is built": (
        "docs/test_howtos.py", "docs/test_package.py", "docs/test_tutorials.py", "channels",
    ),
    "the measurements' own code": ("bench",),
}  # fmt: skip
"""Folders and files of `tests`, by why the quick tier goes without them."""

ENGINES = (
    "contract/engines", "contract/rows", "contract/search", "contract/surfaces", "contract/undo",
    "products/console/contract", "products/workbench", "security/attacks", "security/authz",
    "security/masking",
)  # fmt: skip
OTHERS = frozenset({
    "duckdb", "files", "mariadb", "mysql", "postgres-debian", "jdbc-derby", "jdbc-h2",
    "jdbc-hsqldb", "jdbc-mariadb", "jdbc-postgresql", "jdbc-sqlite",
})  # fmt: skip
"""The engines that SQLite and PostgreSQL stand for, as parameters of tests name them."""

_PLACES = frozenset(TESTS / place for places in WHOLE.values() for place in places)


def add_option(parser: pytest.Parser) -> None:
    """`--quick`, which conftest.py hands to the functions below."""
    parser.addoption("--quick", action="store_true", help="only the quick tier of tests/tiers.py")


def is_whole(path: Path) -> bool:
    """Whether a file or a folder is left to the whole tier."""
    return path in _PLACES or not _PLACES.isdisjoint(path.parents)


def is_whole_case(item: pytest.Item) -> bool:
    """Whether one test of a file of the quick tier is left to the whole tier."""
    if item.get_closest_marker("whole") is not None:
        return True
    inside = item.path.relative_to(TESTS).as_posix()
    return inside.startswith(tuple(f"{folder}/" for folder in ENGINES)) and bool(
        engines_of(item) & OTHERS
    )


def engines_of(item: pytest.Item) -> set[str]:
    """The names among a test's parameters which may be engines. A case in words begins with it."""
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return set()
    named = {value for value in callspec.params.values() if isinstance(value, str)}
    return named | {callspec.id.partition(":")[0]}


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the quick tier's tests among those that were collected."""
    left = [item for item in items if is_whole_case(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not is_whole_case(item)]
