"""The functions that a query on the catalogs may call, with the types that they give. Pure."""

from __future__ import annotations

from collections.abc import Mapping

_BLOCKS: dict[str, str] = {
    "boolean": "has_any_column_privilege has_column_privilege has_database_privilege"
    " has_function_privilege has_schema_privilege has_sequence_privilege has_table_privilege"
    " has_tablespace_privilege has_type_privilege pg_collation_is_visible pg_function_is_visible"
    " pg_has_role pg_index_column_has_property pg_is_in_recovery pg_is_other_temp_schema"
    " pg_opclass_is_visible pg_operator_is_visible pg_relation_is_publishable pg_table_is_visible"
    " pg_type_is_visible row_security_active starts_with to_boolean",
    "integer": "array_length array_lower array_position array_upper cardinality"
    " generate_subscripts inet_server_port pg_backend_pid",
    "bigint": "age pg_database_size pg_indexes_size pg_relation_size pg_stat_get_numscans"
    " pg_table_size pg_tablespace_size pg_total_relation_size txid_current",
    "oid": "pg_my_temp_schema to_regclass to_regtype to_regnamespace",
    "name": "current_catalog current_database current_role current_schema current_user"
    " pg_encoding_to_char pg_get_userbyid session_user user",
    "name[]": "current_schemas",
    "text": "array_to_string col_description current_setting format_type obj_description"
    " pg_get_constraintdef pg_get_expr pg_get_function_arguments"
    " pg_get_function_identity_arguments pg_get_function_result pg_get_functiondef"
    " pg_get_indexdef pg_get_partkeydef pg_get_partition_constraintdef pg_get_ruledef"
    " pg_get_serial_sequence pg_get_statisticsobjdef_columns pg_get_triggerdef pg_get_viewdef"
    " pg_size_pretty pg_tablespace_location quote_ident quote_literal shobj_description version"
    " inet_server_addr inet_client_addr",
    "timestamp with time zone": "pg_conf_load_time pg_postmaster_start_time",
    "regclass": "pg_partition_ancestors",
}
FUNCTIONS: Mapping[str, str] = {
    name: kind for kind, block in _BLOCKS.items() for name in block.split()
}
"""What a query may have without a table, or with those of the catalogs, and what it gives."""

BARE = frozenset(
    ["current_catalog", "current_role", "current_schema", "current_user", "session_user", "user"]
)
"""Functions that are called without brackets."""
GENERAL = frozenset(
    {
        *("count", "max", "min", "sum", "avg", "coalesce", "nullif", "lower", "upper", "length"),
        *("substr", "substring", "replace", "concat", "trim", "string_agg", "array_agg"),
        *("greatest", "least", "abs", "round", "any_value", "bool_or", "bool_and"),
        *("generate_series", "unnest", "array", "regexp_replace", "regexp_match", "position"),
        *("strpos", "split_part", "left", "right", "format", "any", "all", "row_number", "over"),
        *("extract", "case", "when", "then", "else", "in", "and", "or", "not", "exists", "as"),
        *("select", "where", "by", "cast", "values", "on", "like", "distinct"),
    }
)
"""Functions and words before a bracket that say nothing of what is asked."""
SET_FUNCTIONS = frozenset({"unnest", "generate_series", "generate_subscripts"})
"""Functions in FROM that every PostgreSQL has."""
OF_CATALOGS = frozenset({"pg_get_keywords", "pg_listening_channels"})
"""Functions in FROM that give rows of a catalog."""
