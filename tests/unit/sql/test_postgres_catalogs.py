"""Every table of PostgreSQL's catalogs is decided on: shown while something is masked, or not."""

from __future__ import annotations

import pytest

from support import postgres_server
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import words

WITHHELD = words("""
    pg_aios pg_authid pg_backend_memory_contexts pg_config pg_cursors pg_file_settings
    pg_hba_file_rules pg_ident_file_mappings pg_largeobject pg_largeobject_metadata pg_locks
    pg_parameter_acl pg_prepared_statements pg_prepared_xacts pg_replication_origin
    pg_replication_origin_status pg_sequences pg_shadow pg_shmem_allocations
    pg_shmem_allocations_numa pg_statistic pg_statistic_ext_data pg_stats pg_stats_ext
    pg_stats_ext_exprs pg_subscription pg_subscription_rel pg_user_mapping pg_user_mappings
    pg_wait_events
    _pg_foreign_data_wrappers _pg_foreign_servers _pg_foreign_table_columns _pg_foreign_tables
    _pg_user_mappings column_options foreign_data_wrapper_options foreign_data_wrappers
    foreign_server_options foreign_servers foreign_table_options user_mapping_options user_mappings
    """)
"""Values of columns, their statistics, secrets, and what other sessions or the server do."""
WITHHELD_STARTS = ("pg_stat_", "pg_statio_")
_LISTED = (
    "SELECT n.nspname, c.relname FROM pg_class AS c JOIN pg_namespace AS n"
    " ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'v')"
    " AND n.nspname IN ('pg_catalog', 'information_schema')"
)


@pytest.mark.parametrize("kind", postgres_server.KINDS)
def test_a_table_of_a_catalog_is_either_shown_or_withheld_for_a_reason(kind: str):
    server = postgres_server.shared(kind)
    shown = find("postgres").system_tables
    undecided: list[str] = []
    for schema, name in server.ask(_LISTED):
        is_shown = name in shown[schema]
        is_withheld = name in WITHHELD or (not is_shown and name.startswith(WITHHELD_STARTS))
        if is_shown == is_withheld:
            undecided.append(f"{schema}.{name}")
    assert not undecided


@pytest.mark.parametrize("name", ["pg_stat_user_tables", "pg_stat_all_tables", "pg_class"])
def test_what_replaces_a_table_of_statistics_names_columns_that_it_has(name: str):
    columns = {
        row[0]
        for row in postgres_server.shared().ask(
            f"SELECT attname FROM pg_attribute WHERE attrelid = 'pg_catalog.{name}'::regclass"
            " AND attnum > 0"
        )
    }
    listed = find("postgres").partial_tables["pg_catalog", name].columns.split()
    kept = {word.removesuffix("?") for word in listed if "=" not in word}
    assert kept <= columns
    assert {word.partition("=")[0] for word in listed} <= columns
