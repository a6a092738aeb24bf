"""Names that decide about a statement while something is hidden: functions that are refused,
pragmas that are allowed, and the first words of statements about transactions. Data only.

Refused are functions that tell statistics (most common values, ranges), other sessions' texts or
the text of the statement itself, which after rewriting holds the conditions of filters. Allowed
are pragmas that describe and tell no values of columns. What is a system table is a fact of each
dialect, in `sql/dialects`.
"""

from __future__ import annotations

from tidegate.sql.dialects.model import words

REFUSED_FUNCTIONS = words("""
    alias current_query current_query_id getvariable pg_database_size
    pg_get_partition_constraintdef pg_indexes_size pg_mcv_list_items pg_relation_size
    pg_sequence_last_value pg_table_size pg_tablespace_size pg_total_relation_size query query_table
    rtreecheck rtreenode sqlite_stmt stats tidegate_hash
    """)
REFUSED_FUNCTION_STARTS = ("pg_stat_get_", "pg_stat_")
"""Functions that tell the statement's own text, values and counts gathered elsewhere, or read a
table that is named by a string."""
CATALOG_FUNCTION_STARTS = ("duckdb_", "pragma_")
"""Functions that read a catalog: those that are not on the next list are refused."""
CATALOG_FUNCTIONS = words("""
    duckdb_constraints duckdb_databases duckdb_dependencies duckdb_extensions duckdb_functions
    duckdb_indexes duckdb_keywords duckdb_optimizers duckdb_schemas duckdb_settings duckdb_types
    duckdb_views
    pragma_collation_list pragma_collations pragma_compile_options pragma_database_list
    pragma_encoding pragma_foreign_key_list pragma_function_list pragma_index_info pragma_index_list
    pragma_index_xinfo pragma_module_list pragma_platform pragma_pragma_list pragma_table_list
    pragma_user_version pragma_version
    """)
DEFAULT_REVEALING = words("show table_info table_xinfo")
"""Pragmas, and functions by the same name after `pragma_`, that tell defaults of columns."""

ALLOWED_PRAGMAS = words("""
    collation_list compile_options database_list encoding foreign_key_list function_list index_info
    index_list index_xinfo module_list page_size pragma_list schema_version table_info
    table_list table_xinfo user_version
    collations functions platform show show_databases show_tables
    show_tables_expanded version
    """)

TRANSACTION = words("ABORT BEGIN COMMIT END ROLLBACK START")
