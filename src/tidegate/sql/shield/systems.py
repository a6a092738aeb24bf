"""What a statement may name beside the tables of the catalogue while something is hidden: system
tables that describe and hold no values of columns. Data only.

Left out are statistics (most common values, ranges), other sessions' texts and the text of the
statement itself, which after rewriting holds the filter and the key of the hashes.
"""

from __future__ import annotations

from tidegate.sql.dialects.model import words

_STANDARD = words("""
    check_constraints columns constraint_column_usage constraint_table_usage domains
    key_column_usage parameters referential_constraints routines schemata sequences
    table_constraints tables triggers views
    """)

_PG_CATALOG = words("""
    pg_am pg_attrdef pg_attribute pg_cast pg_class pg_collation pg_constraint pg_database pg_depend
    pg_description pg_enum pg_extension pg_foreign_table pg_index pg_indexes pg_inherits pg_language
    pg_matviews pg_namespace pg_opclass pg_operator pg_partitioned_table pg_policies pg_policy
    pg_proc pg_range pg_roles pg_rules pg_sequence pg_settings pg_tables pg_tablespace
    pg_timezone_abbrevs pg_timezone_names pg_trigger pg_type pg_user pg_views
    """)

TABLES: dict[str, dict[str, frozenset[str]]] = {
    "postgres": {"pg_catalog": _PG_CATALOG, "information_schema": _STANDARD},
    "mysql": {
        "information_schema": _STANDARD
        | words("character_sets collations engines events partitions statistics"),
        "": frozenset({"dual"}),
    },
    "sqlite": {
        "main": words("sqlite_master sqlite_schema"),
        "": words("""
    pragma_collation_list pragma_compile_options pragma_database_list pragma_encoding
    pragma_foreign_key_list pragma_function_list pragma_index_info pragma_index_list
    pragma_index_xinfo pragma_module_list pragma_pragma_list pragma_table_info pragma_table_list
    pragma_table_xinfo pragma_user_version
    """),
    },
    "duckdb": {
        "pg_catalog": _PG_CATALOG,
        "information_schema": _STANDARD,
        "": words("""
    duckdb_columns duckdb_constraints duckdb_databases duckdb_indexes duckdb_schemas duckdb_tables
    duckdb_types duckdb_views pragma_database_list sqlite_master sqlite_schema
    """),
    },
}
"""By dialect and schema; "" holds those that are known without one."""

SEARCHED = {"postgres": "pg_catalog", "duckdb": "pg_catalog", "sqlite": "main"}
"""The system schema in which names without a schema are found."""

FUNCTIONS = words("""
    alias current_query current_query_id getvariable pg_mcv_list_items pragma_storage_info
    query query_table rtreecheck rtreenode sqlite_stmt stats tidegate_hash
    """)
FUNCTION_STARTS = ("pg_stat_get_", "pg_stat_")
"""Functions that tell the statement's own text, values gathered elsewhere, or read a table that is
named by a string."""

TABLE_MACROS = words("histogram histogram_values")
"""Functions that, in a table's place, read the table that their first argument names (DuckDB)."""

PRAGMAS = words("""
    collation_list compile_options database_list encoding foreign_key_list function_list index_info
    index_list index_xinfo module_list page_count page_size pragma_list schema_version table_info
    table_list table_xinfo user_version
    collations database_size functions metadata_info platform show show_databases show_tables
    show_tables_expanded version
    """)

SHOWS: dict[str, frozenset[str]] = {
    "mysql": words("""
    CHARACTER CHARSET COLLATION COLUMNS CREATE DATABASES ENGINES FIELDS FULL INDEX INDEXES KEYS
    SCHEMAS TABLE TABLES VARIABLES
    """),
    "duckdb": words("TABLES ALL DATABASES SCHEMAS"),
}

SETTINGS = words("CHARACTER CHARSET COLLATION ENGINES VARIABLES")
"""What SHOW may tell of MySQL to who may use listed tables alone."""

TRANSACTION = words("ABORT BEGIN COMMIT END ROLLBACK START")
