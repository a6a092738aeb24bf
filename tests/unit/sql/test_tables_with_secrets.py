"""Each table that may hold secrets, or statements of others, is refused by its name."""

from __future__ import annotations

import pytest

from tidegate.sql.judge import judge

TABLES = {
    "postgres": (
        "pg_authid", "pg_shadow", "pg_user_mapping", "pg_user_mappings", "pg_subscription",
        "pg_largeobject", "pg_statistic", "pg_statistic_ext_data", "pg_file_settings",
        "pg_hba_file_rules", "pg_ident_file_mappings", "pg_config", "pg_prepared_statements",
        "information_schema.user_mapping_options", "pg_toast.pg_toast_1", "pg_stat_statements",
        "monitoring.pg_stat_statements", "pg_stat_monitor", "pg_store_plans", "pg_qualstats_all",
    ),
    "mysql": (
        "mysql.user", "mysql.global_priv", "sys.session", "information_schema.processlist",
        "information_schema.user_privileges", "information_schema.user_attributes",
        "information_schema.innodb_trx", "performance_schema.threads",
        "information_schema.optimizer_trace", "information_schema.query_cache_info",
    ),
    "duckdb": (
        "duckdb_secrets()", "duckdb_logs", "duckdb_log_contexts()", "duckdb_prepared_statements()",
        "pg_catalog.pg_prepared_statements",
    ),
    "h2": (
        "information_schema.sessions", "information_schema.query_statistics",
        "information_schema.session_state",
    ),
    "hsqldb": (
        "information_schema.system_users", "system_users", "information_schema.system_sessions",
        "system_lobs.blocks",
    ),
    "derby": (
        "syscs_diag.statement_cache", "syscs_diag.transaction_table", "syscs_diag.lock_table",
        "sys.sysusers",
    ),
    "oracle": ("v$sql", "gv$sql", "dba_users", "cdb_users", "sys.user$"),
    "tsql": ("sys.dm_exec_requests", "master.sys.sql_logins"),
    "sqlite": ("sqlite_dbpage", "sqlite_stmt", "bytecode", "tables_used"),
    "default": (
        "system.users", "mysql.user", "sys.sql_logins", "shop.sys.users", "master.logins",
        "msdb.jobs", "pg_authid", "pg_shadow", "pg_catalog.pg_authid", "dba_users", "cdb_users",
        "v$sql", "gv$sql", "all_audit_trail", "user$", "performance_schema.threads",
        "information_schema.processlist",
    ),
}  # fmt: skip
CASES = [(dialect, table) for dialect, tables in TABLES.items() for table in tables]


@pytest.mark.parametrize(("dialect", "table"), CASES)
def test_a_table_with_secrets_is_refused_wherever_it_stands(dialect: str, table: str) -> None:
    for text in (
        f"SELECT * FROM {table}",
        f"SELECT 1 WHERE EXISTS (SELECT 1 FROM {table.upper()})",
        f"WITH x AS (SELECT * FROM {table}) SELECT * FROM x",
    ):
        assert judge(text, dialect).effect.label in ("admin", "unknown"), text


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "duckdb"])
def test_a_comment_that_only_mysql_runs_is_a_comment_elsewhere(dialect: str) -> None:
    assert judge("SELECT 1 /*! INTO t */ /*+ hint */", dialect).effect.label == "read"
    assert judge("SELECT 1 /*! INTO t */", "mysql").effect.label == "unknown"
