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
    alias current_query current_query_id getvariable pg_mcv_list_items pragma_storage_info
    query query_table rtreecheck rtreenode sqlite_stmt stats tidegate_hash
    """)
REFUSED_FUNCTION_STARTS = ("pg_stat_get_", "pg_stat_")
"""Functions that tell the statement's own text, values gathered elsewhere, or read a table that is
named by a string."""

ALLOWED_PRAGMAS = words("""
    collation_list compile_options database_list encoding foreign_key_list function_list index_info
    index_list index_xinfo module_list page_count page_size pragma_list schema_version table_info
    table_list table_xinfo user_version
    collations database_size functions metadata_info platform show show_databases show_tables
    show_tables_expanded version
    """)

TRANSACTION = words("ABORT BEGIN COMMIT END ROLLBACK START")
