"""DuckDB, as tables of data. The functions are those that it lists itself, less those that read
files, run SQL given as text, or change a state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tidegate.products.duckdb import server_panels
from tidegate.sql.dialects.common import (
    INFORMATION_SCHEMA,
    MASKED_COLUMNS,
    PG_CATALOG,
    STANDARD_COLUMNS,
    TYPES,
    spelled_duration,
)
from tidegate.sql.dialects.model import (
    ColumnTypes,
    Dialect,
    LexicalRules,
    SystemTable,
    Write,
    words,
)

_FUNCTIONS = words("""
    abs acos acosh add age ago alias any_value approx_count_distinct approx_quantile approx_top_k
    arbitrary arg_max arg_max_null arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax
    argmin array_agg array_aggr array_aggregate array_append array_apply array_cat array_concat
    array_contains array_cosine_distance array_cosine_similarity array_cross_product array_distance
    array_distinct array_dot_product array_extract array_filter array_grade_up array_has
    array_has_all array_has_any array_indexof array_inner_product array_intersect array_length
    array_negative_dot_product array_negative_inner_product array_pop_back array_pop_front
    array_position array_prepend array_push_back array_push_front array_reduce array_resize
    array_reverse array_reverse_sort array_select array_slice array_sort array_to_json
    array_to_string array_to_string_comma_default array_transform array_unique array_value
    array_where array_zip ascii asin asinh assert_true atan atan2 atanh avg bar base64 bin binom
    bit_and bit_count bit_length bit_or bit_position bit_xor bitstring bitstring_agg
    bitstring_byte_comparable bool_and bool_or cardinality cast cbrt ceil ceiling century
    char_length character_length chr coalesce col_description columns concat concat_ws contains corr
    cos cosh cot count count_if count_star countif covar_pop covar_samp cube cume_dist
    current_catalog current_database current_date current_localtime current_localtimestamp
    current_query current_query_id current_role current_schema current_schemas current_setting
    current_time current_timestamp current_transaction_id current_user currval damerau_levenshtein
    date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname
    dayofmonth dayofweek dayofyear days_in_month decade decimal decode degrees dense_rank divide
    duckdb_columns duckdb_constraints duckdb_databases duckdb_dependencies duckdb_extensions
    duckdb_functions duckdb_indexes duckdb_keywords duckdb_memory duckdb_optimizers duckdb_schemas
    duckdb_sequences duckdb_settings duckdb_tables duckdb_temporary_files duckdb_triggers
    duckdb_types duckdb_views editdist3 element_at encode ends_with entropy enum_code enum_first
    enum_last enum_range enum_range_boundary epoch epoch_ms epoch_ns epoch_us equi_width_bins era
    even exp extract factorial favg fdiv fill filter first first_value flatten floor fmod format
    format_bytes format_pg_type format_type formatreadabledecimalsize formatreadablesize from_base64
    from_binary from_hex from_json from_json_strict fsum gamma gcd gen_random_uuid generate_series
    generate_subscripts geomean geometric_mean get_bit get_current_time get_current_timestamp
    grade_up greatest greatest_common_divisor group_concat grouping grouping_id hamming
    has_any_column_privilege has_column_privilege has_database_privilege has_schema_privilege
    has_table_privilege hash hex histogram histogram_exact histogram_values hive_partition_component
    hour icu_sort_key if ifnull ilike_escape in_search_path inet_client_addr inet_client_port
    inet_server_addr inet_server_port instr is_histogram_other_bin isfinite isinf isnan isnull
    isodow isoyear jaccard jaro_similarity jaro_winkler_similarity json json_array json_array_length
    json_contains json_deep_merge json_each json_exists json_extract json_extract_path
    json_extract_path_text json_extract_string json_group_array json_group_object
    json_group_structure json_insert json_keys json_merge_patch json_merge_patch_diff json_normalize
    json_object json_pretty json_quote json_remove json_replace json_set json_strip_nulls
    json_structure json_transform json_transform_strict json_tree json_type json_valid json_value
    julian kahan_sum kurtosis kurtosis_pop lag last last_day last_value lcase lcm lead least
    least_common_multiple left left_grapheme len length length_grapheme levenshtein lgamma
    like_escape list list_aggr list_aggregate list_any_value list_append list_apply
    list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor list_bool_and
    list_bool_or list_cat list_comprehension list_concat list_contains list_cosine_distance
    list_cosine_similarity list_count list_distance list_distinct list_dot_product list_element
    list_entropy list_extract list_filter list_first list_grade_up list_has list_has_all
    list_has_any list_histogram list_indexof list_inner_product list_intersect list_kurtosis
    list_kurtosis_pop list_last list_mad list_max list_median list_min list_mode
    list_negative_dot_product list_negative_inner_product list_pack list_position list_prepend
    list_product list_reduce list_resize list_reverse list_reverse_sort list_select list_sem
    list_skewness list_slice list_sort list_stddev_pop list_stddev_samp list_string_agg list_sum
    list_transform list_unique list_value list_var_pop list_var_samp list_where list_zip listagg ln
    localtime localtimestamp log log10 log2 lower lpad ltrim lttb mad make_date make_time
    make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz map map_concat map_contains
    map_contains_entry map_contains_value map_entries map_extract map_extract_value map_from_entries
    map_keys map_to_pg_oid map_values max max_by md5 md5_number md5_number_lower md5_number_upper
    mean median microsecond millennium millisecond min min_by minute mismatches mod mode month
    monthname multiply nanosecond nextafter nfc_normalize normalized_interval not_ilike_escape
    not_like_escape notnull now nth_value ntile nullif obj_description octet_length ord overlay
    parse_dirname parse_dirpath parse_filename parse_formatted_bytes parse_path path_join
    percent_rank percentile_cont percentile_disc pg_collation_is_visible pg_conf_load_time
    pg_conversion_is_visible pg_function_is_visible pg_get_constraintdef pg_get_expr pg_get_viewdef
    pg_has_role pg_is_other_temp_schema pg_my_temp_schema pg_opclass_is_visible
    pg_operator_is_visible pg_opfamily_is_visible pg_postmaster_start_time pg_size_pretty pg_sleep
    pg_table_is_visible pg_timezone_names pg_ts_config_is_visible pg_ts_dict_is_visible
    pg_ts_parser_is_visible pg_ts_template_is_visible pg_type_is_visible pg_typeof pi position pow
    power pragma_collations pragma_database_size pragma_platform pragma_show pragma_storage_info
    pragma_table_info pragma_version prefix printf product quantile quantile_cont quantile_disc
    quarter radians random range rank reduce regexp_escape regexp_extract regexp_extract_all
    regexp_full_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table
    regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    repeat replace replace_type reservoir_quantile reverse right right_grapheme rollup round
    round_even roundbankers row row_number row_to_json rpad rtrim second sem session_user set_bit
    sha1 sha256 shobj_description sign signbit sin sinh skewness sleep_ms split split_part sqrt
    st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_crs st_geomfromgeojson st_geomfromwkb
    st_intersects_extent st_setcrs starts_with stats stddev stddev_pop stddev_samp str_split
    str_split_regex strftime string_agg string_split string_split_regex string_to_array
    strip_accents strlen strpos strptime struct_concat struct_contains struct_extract
    struct_extract_at struct_has struct_indexof struct_insert struct_keys struct_pack
    struct_position struct_update struct_values substr substring substring_grapheme subtract suffix
    sum sum_no_overflow sumkahan switch tan tanh time_bucket timetz_byte_comparable timezone
    timezone_hour timezone_minute to_base to_base64 to_binary to_centuries to_days to_decades to_hex
    to_hours to_json to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters
    to_seconds to_timestamp to_weeks to_years today transaction_timestamp translate trim trunc try
    try_cast try_strptime typeof ucase unbin unhex unicode union_extract union_tag union_value
    unnest unpivot_list upper url_decode url_encode user uuid uuid_extract_timestamp
    uuid_extract_version uuidv4 uuidv7 var_pop var_samp variance variant_array_length
    variant_comparator variant_contains variant_exists variant_extract variant_extract_string
    variant_group_array variant_group_object variant_keys variant_normalize variant_type
    variant_typeof version vertex_extract wavg week weekday weekofyear weighted_avg xor year
    yearweek
    """)

_OPERATORS = words("""
    ! != !~ !~* !~~ !~~* # % & && &&& * ** + - -> ->> / // < <-> << <<= <= <=> <> <@ = == => > >= >>
    >>= ? @ @> ^ ^@ | || ~ ~* ~~ ~~* ~~~
    """)

_KNOWN_TO_PARSER = words("""
    != !~ !~* % & && * ** + - -> ->> / // < << <= <> <@ = == => > >= >> ? @> ^ ^@ | || ~ ~~ ~~* ~~~
    """)

_ROOTS = {
    **dict.fromkeys(
        ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "PIVOT", "UNPIVOT", "("), "query"
    ),
    **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "MERGE"), "change"),
    **dict.fromkeys(("ANALYZE", "COMMENT", "VACUUM"), "write"),
    **dict.fromkeys(
        words("""
    ABORT BEGIN COMMIT DEALLOCATE END PREPARE RESET ROLLBACK SET START USE
    """),
        "session",
    ),
    **dict.fromkeys(
        words("ATTACH CHECKPOINT COPY DETACH EXPORT FORCE IMPORT INSTALL LOAD UPDATE_EXTENSIONS"),
        "admin",
    ),
    "TRUNCATE": "destructive",
    "EXPLAIN": "explain",
    "DESCRIBE": "describe",
    "DESC": "describe",
    "SUMMARIZE": "describe",
    "SHOW": "show",
    "PRAGMA": "pragma",
    "CREATE": "create",
    "ALTER": "alter",
    "DROP": "drop",
}

_MASTER = SystemTable(
    "system.main.sqlite_master", "type name tbl_name rootpage sql?", "lower(tbl_name) IN ({tables})"
)
_PARTIAL_TABLES = {
    ("", "sqlite_master"): _MASTER,
    ("", "sqlite_schema"): _MASTER,
    ("", "duckdb_tables"): SystemTable(
        "system.main.duckdb_tables",
        """
        database_name database_oid schema_name schema_oid table_name table_oid comment tags internal
        temporary has_primary_key estimated_size=BIGINT column_count index_count
        check_constraint_count sql?
        """,
        "lower(table_name) IN ({tables})",
    ),
    ("", "duckdb_columns"): SystemTable(
        "system.main.duckdb_columns",
        """
        database_name database_oid schema_name schema_oid table_name table_oid column_name
        column_index comment internal column_default? is_nullable data_type data_type_id
        character_maximum_length numeric_precision numeric_precision_radix numeric_scale tags
        is_generated generation_expression
        """,
        "(schema_name, table_name, column_name) IN ({columns})",
    ),
    ("pg_catalog", "pg_class"): SystemTable(
        "pg_catalog.pg_class",
        """
        oid relname relnamespace reltype reloftype relowner relam relfilenode reltablespace
        relpages=INTEGER reltuples=FLOAT relallvisible=INTEGER reltoastrelid relhasindex relisshared
        relpersistence relkind relnatts relchecks relhasoids relhaspkey relhasrules relhastriggers
        relhassubclass relrowsecurity relispopulated relreplident relispartition relrewrite relacl
        reloptions relpartbound
        """,
    ),
    ("pg_catalog", "pg_attribute"): SystemTable(
        "pg_catalog.pg_attribute",
        """
        attrelid attname atttypid attlen attnum attndims atttypmod attbyval attstorage attalign
        attnotnull atthasdef atthasmissing attidentity attgenerated attisdropped attislocal
        attinhcount attcollation attcompression attacl attoptions attfdwoptions
        attmissingval=VARCHAR
        """,
    ),
    ("pg_catalog", "pg_attrdef"): SystemTable("pg_catalog.pg_attrdef", "oid adrelid adnum adbin?",
        "(adrelid, adnum) IN (SELECT table_oid, column_index FROM system.main.duckdb_columns"
        " WHERE (schema_name, table_name, column_name) IN ({columns}))"),
    ("information_schema", "columns"): SystemTable(
        "information_schema.columns", f"{STANDARD_COLUMNS} column_comment", MASKED_COLUMNS
    ),
}  # fmt: skip


_NESTED = ("STRUCT(", "MAP(", "UNION(", "TUPLE(")


class _Duckdb(Dialect, frozen=True):
    """DuckDB's own spellings. Its types nest."""

    def bytes_literal(self, value: bytes) -> str:
        return f"from_hex('{value.hex()}')"

    def array(self, values: Sequence[Any]) -> str:
        return f"[{', '.join(map(self.literal, values))}]"

    def export_writer(self, kind: str, as_text: Callable[[Any], str | None]) -> Write | None:
        if kind == "INTERVAL":
            return lambda value: self.literal(spelled_duration(value))
        if kind.startswith(("DATE", "TIMESTAMP")) and not kind.endswith("]"):
            return lambda value: self.literal(_ancient(value))
        if kind == "TIME WITH TIME ZONE":
            return lambda value: self.literal(_offset(value))
        if kind.endswith("]"):
            inner = self._writer(kind[: kind.rindex("[")], as_text)
            return lambda value: self._list(value, inner)
        if kind.startswith("STRUCT(") and kind.endswith(")"):
            fields = [self._writer(_behind_name(part), as_text) for part in _parts(kind[7:-1])]
            return lambda value: self._struct(value, fields)
        if kind.startswith("MAP(") and kind.endswith(")"):
            parts = _parts(kind[4:-1])
            keys, values = [self._writer(part, as_text) for part in parts]
            is_listed = parts[0].endswith("]") or parts[0].startswith(_NESTED)
            return lambda value: self._map(value, keys, values, is_listed=is_listed)
        if kind.startswith("TUPLE(") and kind.endswith(")"):
            members = [self._writer(part, as_text) for part in _parts(kind[6:-1])]
            return lambda value: self._tuple(value, members)
        return None

    def _writer(self, kind: str, as_text: Callable[[Any], str | None]) -> Write:
        return self.export_writer(kind, as_text) or self.literal

    def _list(self, value: Any, inner: Write) -> str:
        return "NULL" if value is None else f"[{', '.join(map(inner, value))}]"

    def _struct(self, value: Any, fields: Sequence[Write]) -> str:
        if not isinstance(value, Mapping):
            return self.literal(value)
        pairs = zip(cast("Mapping[str, Any]", value).items(), fields, strict=True)
        shown = [f"{self.literal(name)}: {write(inner)}" for (name, inner), write in pairs]
        return "{" + ", ".join(shown) + "}"

    def _tuple(self, value: Any, members: Sequence[Write]) -> str:
        if not isinstance(value, Sequence) or isinstance(value, str):
            return self.literal(value)
        pairs = zip(members, cast("Sequence[Any]", value), strict=True)
        return f"row({', '.join([write(each) for write, each in pairs])})"

    def _map(self, value: Any, keys: Write, values: Write, *, is_listed: bool) -> str:
        if not isinstance(value, Mapping):
            return self.literal(value)
        pairs = cast("Mapping[Any, Any]", value)
        known, held = list(pairs), list(pairs.values())
        if is_listed and known == ["key", "value"]:
            known, held = held  # keys that Python cannot look up are two lists
        return f"MAP({self._list(known, keys)}, {self._list(held, values)})"


def _parts(inside: str) -> list[str]:
    """What commas part, outside of parentheses and quotes."""
    parts, depth, quote = [""], 0, ""
    for sign in inside:
        if sign in ("'", '"') and quote in ("", sign):
            quote = "" if quote else sign
        elif not quote:
            depth += (sign in "([") - (sign in ")]")
            if sign == "," and not depth:
                parts.append("")
                continue
        parts[-1] += sign
    return [part.strip() for part in parts]


def _behind_name(field: str) -> str:
    """The type of a field: `"a b" INTEGER` or `a INTEGER`."""
    found = re.match(r'(?:"(?:[^"]|"")*"|\S+)\s+', field)
    return field[found.end() :] if found else field


def _offset(value: Any) -> Any:
    return f"{value[:-1]}+00" if isinstance(value, str) and value.endswith("Z") else value


def _ancient(value: Any) -> Any:
    """DuckDB's spelling of `0044-03-15 BC`, also before a time of day."""
    return re.sub(r" BC\b", " (BC)", value) if isinstance(value, str) else value


DIALECT = _Duckdb(
    name="duckdb",
    temporary_schemas=frozenset({"temp"}),
    null_order="last",
    ordered_kinds=words("""
    integer decimal float text bytes date time timestamp timestamp_tz boolean uuid
    """),
    unordered_types="enum|bit|timestamp_ns|varint|bignum",
    plan_format="operators",
    column_types=ColumnTypes(
        {
            "integer": "BIGINT",
            "float": "DOUBLE",
            "boolean": "BOOLEAN",
            "date": "DATE",
            "time": "TIME",
            "timestamp": "TIMESTAMP",
            "timestamp_tz": "TIMESTAMP WITH TIME ZONE",
            "bytes": "BLOB",
        },
        text="VARCHAR",
        decimal="decimal(38,{scale})",
        most_digits=38,
        most_scale=20,
    ),
    server_panels=server_panels.PANELS,
    plan_figures="tidegate.products.duckdb.plan_figures:duckdb_figures",
    plan_prefixes=("EXPLAIN (FORMAT JSON) ", "EXPLAIN (ANALYZE, FORMAT JSON) "),
    row_id="rowid",
    driver_types="duckdb-jdbc",
    escape_functions={"char": "chr", "log": "ln", "rand": "random", "truncate": "trunc"},
    vectors="arrays",
    reserved_words="tidegate.products.duckdb.reserved_words:WORDS",
    table_forms="tidegate.products.duckdb.table_forms:WRITER",
    search="tidegate.products.duckdb.search",
    function_names="SELECT DISTINCT schema_name, function_name FROM duckdb_functions()"
    " WHERE NOT internal",
    writing_rules=("The database is DuckDB. Its functions are much like those of PostgreSQL.",),
    samples_rows=True,
    knows_bounds=True,
    plain_selects=True,
    parser="duckdb",
    session_state=frozenset({"currval"}),
    lexical_rules=LexicalRules(
        operators=_OPERATORS,
        operator_runs=True,
        executable_comments=False,
        backslashes="plain",
        parameters=r"\$[A-Za-z0-9_]++",
        comments="nested",
        escape_strings=True,
        dollar_strings=True,
        string_prefixes="xXbB",
    ),
    roots=_ROOTS,
    infix=words("ESCAPE GLOB ILIKE OVERLAPS SIMILAR"),
    functions=_FUNCTIONS | TYPES,
    changing_functions=frozenset({"nextval"}),
    definition_words=frozenset({"STRUCT"}),
    table_functions=frozenset({"query_table"}),
    secrets=("duckdb_secrets", "duckdb_logs*", "*pg_prepared_statements"),
    shows=frozenset({"TABLES", "ALL", "DATABASES", "SCHEMAS"}),
    pragmas=words("""
    collations database_list database_size functions metadata_info platform show_databases
    show_tables show_tables_expanded version
    """),
    argument_pragmas=frozenset({"table_info", "storage_info", "show"}),
    stand_ins=dict.fromkeys(_OPERATORS - _KNOWN_TO_PARSER, "||"),
    keywords=words("PIVOT PIVOT_LONGER PIVOT_WIDER UNPIVOT"),
    explain_words=frozenset({"ANALYZE"}),
    administration=words("routine"),
    respellings=(("USING KEY ( * )", ""),),
    methods=True,
    reads_files=True,
    title="DuckDB",
    in_files=True,
    database_as_schema=True,
    numbered_parameters=True,
    no_question_operator=True,
    has_information_schema=True,
    selects_into=False,
    describes_in_queries=True,
    show_describes=True,
    limit_takes_percent=True,
    fence=" LIMIT 9223372036854775807",
    scans_as_stored=True,
    system_tables={
        "pg_catalog": PG_CATALOG,
        "information_schema": INFORMATION_SCHEMA,
        "": words("""
    duckdb_columns duckdb_constraints duckdb_databases duckdb_indexes duckdb_schemas duckdb_tables
    duckdb_types duckdb_views pragma_database_list sqlite_master sqlite_schema
    """),
    },
    partial_tables=_PARTIAL_TABLES,
    system_schema="pg_catalog",
    table_clauses=frozenset({"sample", "pivots"}),
    table_macros=words("histogram histogram_values"),
    masked_shows=words("TABLES ALL DATABASES SCHEMAS"),
    own_functions="any case",
    own_functions_by_name=True,
)
