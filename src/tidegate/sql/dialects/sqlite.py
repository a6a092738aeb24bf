"""SQLite, as tables of data. The functions are those that its amalgamation and its full-text,
JSON, R-tree and maths extensions bring, less those that load code, reach files or write.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.sql.dialects import sqlite_server
from tidegate.sql.dialects.common import PREDICATES, TYPES
from tidegate.sql.dialects.model import ColumnTypes, Dialect, LexicalRules, SystemTable, words

PRAGMAS = words("""
    analysis_limit application_id auto_vacuum automatic_index busy_timeout cache_size cache_spill
    cell_size_check checkpoint_fullfsync collation_list compile_options data_version database_list
    defer_foreign_keys encoding foreign_key_check foreign_key_list foreign_keys freelist_count
    fullfsync function_list hard_heap_limit ignore_check_constraints index_info index_list
    index_xinfo integrity_check journal_mode journal_size_limit legacy_alter_table locking_mode
    max_page_count mmap_size module_list page_count page_size pragma_list quick_check
    read_uncommitted recursive_triggers reverse_unordered_selects schema_version secure_delete
    soft_heap_limit stats synchronous table_info table_list table_xinfo temp_store threads
    trusted_schema user_version wal_autocheckpoint
    """)
"""Pragmas that only read when no value is given."""

ARGUMENT_PRAGMAS = words("""
    foreign_key_check foreign_key_list index_info index_list index_xinfo integrity_check quick_check
    table_info table_list table_xinfo
    """)
"""Pragmas whose argument names what to read, and sets nothing."""

_FUNCTIONS = words("""
    abs acos acosh asin asinh atan atan2 atanh avg bm25 cast ceil ceiling changes char coalesce
    concat concat_ws cos cosh count cume_dist current_date current_time current_timestamp date
    datetime decimal decimal_add decimal_mul decimal_sub decimal_sum degrees dense_rank exp
    first_value floor format fts5_get_locale fts5_insttoken fts5_locale fts5_source_id
    generate_series geopoly_area geopoly_bbox geopoly_blob
    geopoly_ccw geopoly_contains_point geopoly_group_bbox geopoly_json geopoly_overlap
    geopoly_regular geopoly_svg geopoly_within geopoly_xform glob group_concat hex highlight if
    ifnull iif instr json json_array json_array_insert json_array_length json_each
    json_error_position json_extract json_group_array json_group_object json_insert json_object
    json_patch json_pretty json_quote json_remove json_replace json_set json_tree json_type
    json_valid jsonb jsonb_array jsonb_array_insert jsonb_each jsonb_extract jsonb_group_array
    jsonb_group_object jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set
    jsonb_tree julianday lag last_insert_rowid last_value lead length like likelihood likely ln log
    log10 log2 lower ltrim match matchinfo max median min mod nth_value ntile nullif octet_length
    offsets percent_rank percentile percentile_cont percentile_disc pi pow power printf quote
    radians random randomblob rank regexp replace round row_number rtreecheck rtreedepth rtreenode
    rtrim sign sin sinh snippet soundex sqlite_compileoption_get sqlite_compileoption_used
    sqlite_source_id sqlite_version sqrt strftime string_agg substr substring subtype sum tan tanh
    time timediff total total_changes trim trunc typeof unhex unicode unistr unistr_quote unixepoch
    unlikely upper vec_add vec_bit vec_distance_cosine vec_distance_hamming vec_distance_l1
    vec_distance_l2 vec_f32 vec_int8 vec_length vec_normalize vec_quantize_binary vec_slice vec_sub
    vec_to_json vec_type vec_version zeroblob
    """)

_ROOTS = {
    **dict.fromkeys(("SELECT", "WITH", "VALUES"), "query"),
    **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "REPLACE"), "change"),
    **dict.fromkeys(("ANALYZE", "REINDEX"), "write"),
    **dict.fromkeys(("BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"), "session"),
    **dict.fromkeys(("ATTACH", "DETACH", "VACUUM"), "admin"),
    "EXPLAIN": "explain",
    "PRAGMA": "pragma",
    "CREATE": "create",
    "ALTER": "alter",
    "DROP": "drop",
}

_MASTER = SystemTable(
    "main.sqlite_master", "type name tbl_name rootpage sql?", "lower(tbl_name) IN ({tables})"
)


class _Sqlite(Dialect, frozen=True):
    """SQLite's own spellings."""

    def text_literal(self, value: str) -> str:
        if "\0" in value:
            return f"CAST(X'{value.encode('utf-8', 'replace').hex()}' AS TEXT)"
        return super().text_literal(value)

    def not_finite(self, value: float) -> str:
        return "NULL" if value != value else ("9e999" if value > 0 else "-9e999")

    def without_indexes(self, names: Sequence[str]) -> str:
        return " NOT INDEXED"

    def sortable(self, term: str) -> str:
        return f"{term} COLLATE BINARY"

    def estimated_alike(self, query: str, nulls: Sequence[str]) -> str:
        # No statistics are kept of the schema: it counts as a million rows, its pairs as a billion
        # times a thousand, and the sum as those.
        none = f"SELECT {', '.join(nulls)} FROM sqlite_schema AS a, sqlite_schema AS b WHERE 0"
        return f"SELECT * FROM ({query}) UNION ALL {none}{self.fence}"

    def null_of(self, term: str, kind: str) -> str:
        return "NULL"

    def as_text(self, term: str) -> str:
        return f"CAST({term} AS TEXT)"

    def hash_of(self, key: str, text: str) -> str:
        return f"tidegate_hash({key}, {text})"  # SQLite has no SHA-256: the engine brings it


DIALECT = _Sqlite(
    name="sqlite",
    temporary_schemas=frozenset({"temp"}),
    null_order="least",
    column_types=ColumnTypes(
        {
            "integer": "INTEGER",
            "float": "REAL",
            "boolean": "BOOLEAN",
            "date": "DATE",
            "timestamp": "TIMESTAMP",
            "bytes": "BLOB",
        },
        text="TEXT",
        decimal="NUMERIC",
        most_digits=15,
        most_scale=15,  # the rest would be a float
    ),
    server_panels=sqlite_server.PANELS,
    trigger_query="SELECT name, sql FROM sqlite_master"
    " WHERE type = 'trigger' AND tbl_name = {table} ORDER BY 1",
    plan_format="rows",
    row_id="rowid",
    driver_types="sqlite-jdbc",
    escape_functions={"log": "ln", "rand": "random", "substring": "substr", "truncate": "trunc"},
    typed_literals=False,
    vectors="bytes",
    reserved_words="tidegate.sql.dialects.reserved_words:SQLITE",
    table_forms="tidegate.sql.table_forms.sqlite:WRITER",
    search="tidegate.search.sqlite",
    reused_parameters=True,
    writing_rules=(
        "The database is SQLite. Dates are texts such as 2024-05-31; use strftime and date.",
        "Multiply by 1.0 before a division of integers that should have decimals.",
    ),
    row_number="rowid",
    plain_selects=True,
    parser="sqlite",
    statement_state=words("changes last_insert_rowid total_changes"),
    lexical_rules=LexicalRules(
        operators=PREDICATES | words("== || -> ->> << >> & | ~"),
        executable_comments=False,
        backslashes="plain",
        parameters=r"\?[0-9]*+|[:@$](?:[A-Za-z0-9_$\x80-\U0010ffff]|::)++(?!\()",
        string_prefixes="xX",
        backticks=True,
        bracketed_names=True,
    ),
    roots=_ROOTS,
    infix=words("ESCAPE GLOB MATCH REGEXP"),
    functions=_FUNCTIONS | TYPES | frozenset(f"pragma_{name}" for name in ARGUMENT_PRAGMAS),
    bare_functions=frozenset(f"pragma_{name}" for name in PRAGMAS),
    secrets=("pragma_*", "sqlite_dbpage", "sqlite_stmt", "bytecode", "tables_used"),
    admitted=frozenset(f"pragma_{name}" for name in PRAGMAS),
    pragmas=PRAGMAS,
    argument_pragmas=ARGUMENT_PRAGMAS,
    modules=words("FTS5 FTS5VOCAB GEOPOLY RTREE RTREE_I32"),
    stand_ins={},
    compound=frozenset({"TRIGGER"}),
    administration=words("maintenance trigger"),
    explain_words=frozenset({"QUERY", "PLAN"}),
    respellings=(
        ("UNSIGNED BIG INT", "2"),
        ("JSONB_EXTRACT (", "JSON_EXTRACT ("),
        ("FROM GENERATE_SERIES (", "0 JSON_EACH 2"),
        ("JOIN GENERATE_SERIES (", "0 JSON_EACH 2"),
    ),
    title="SQLite",
    numbered_questions=True,
    in_files=True,
    ctes_see_all=True,
    untyped_columns=True,
    tables_take_arguments=True,
    outside_tables=words("csv fsdir lines lines_read readfile vsv zipfile"),
    in_reads_tables=True,
    update_or=True,
    updates_to_default=False,
    fence=" LIMIT -1",
    row_names=("rowid", "_rowid_", "oid"),
    reads_row="typeof({}) <> ''",
    system_tables={
        "main": words("sqlite_master sqlite_schema"),
        "": words("""
    pragma_collation_list pragma_compile_options pragma_database_list pragma_encoding
    pragma_foreign_key_list pragma_function_list pragma_index_info pragma_index_list
    pragma_index_xinfo pragma_module_list pragma_pragma_list pragma_table_info pragma_table_list
    pragma_table_xinfo pragma_user_version
    """),
    },
    partial_tables={("main", "sqlite_master"): _MASTER, ("main", "sqlite_schema"): _MASTER},
    system_schema="main",
    plans_reveal_sizes=False,
    plan_words="EXPLAIN QUERY PLAN ",  # EXPLAIN alone names pages, which follow from sizes
    globs=True,
    colon_casts=False,
)
