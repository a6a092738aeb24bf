"""Spark SQL, and Hive's language as far as it is the same, as tables of data.

Only reads run: a change of Spark's has no transaction, and leaves files. Of its functions those are
left out that call Java (`reflect`, `java_method`) or programs (TRANSFORM ... USING), or say where
files are. A raw string (`r'...'`) knows no escapes, other strings do, and a comment goes on after a
backslash at the end of its line: what would be read differently is refused. "format.`path`" is any
file of Spark's server; `products/jdbc/engine/known_databases.py` switches that off as well.
Source: `SqlBaseLexer.g4` and the list of built-in functions of Spark 4.
"""

from __future__ import annotations

import re

from tidegate.sql.dialects import default
from tidegate.sql.dialects.common import PREDICATES
from tidegate.sql.dialects.model import Dialect, LexicalRules, words

_OUTWARD = words("transform reduce nextval openjson")
_FUNCTIONS = words("""
    acosh add_months aes_encrypt aggregate approx_count_distinct approx_percentile array
    array_agg array_append array_compact array_contains array_distinct array_except array_insert
    array_intersect array_join array_max array_min array_position array_prepend array_remove
    array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii asinh atanh
    base64 bigint bin binary bit_and bit_count bit_get bit_or bit_xor bool_and bool_or boolean
    bround btrim cardinality cbrt char charindex chr collate collect_list collect_set contains
    conv corr cosh count_if count_min_sketch covar_pop covar_samp crc32 csc cube curdate
    current_catalog current_database current_schema current_timezone date_add date_diff
    date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day
    dayname dayofmonth dayofweek dayofyear decode double e element_at elt encode endswith
    equal_null every exists explode explode_outer expm1 extract factorial filter find_in_set
    first first_value flatten float forall format_number format_string from_csv from_json
    from_unixtime from_utc_timestamp get get_json_object getbit grouping_id hash hex
    histogram_numeric hour hypot if ifnull ilike initcap inline inline_outer instr int
    is_variant_null isnan isnotnull isnull json_array_length json_object_keys json_tuple
    kurtosis last last_day lcase levenshtein listagg locate log1p log2 luhn_check make_date
    make_dt_interval make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz
    make_ym_interval map map_concat map_contains_key map_entries map_filter map_from_arrays
    map_from_entries map_keys map_values map_zip_with mask max_by md5 mean median min_by minute
    mode month months_between named_struct nanvl negative next_day now nullifzero nvl nvl2
    octet_length parse_json percentile percentile_approx pmod posexplode posexplode_outer
    positive printf quarter radians rand randn random randstr range regexp regexp_count
    regexp_extract regexp_extract_all regexp_instr regexp_replace regexp_substr regr_avgx
    regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat
    replace reverse rint rlike rollup schema_of_csv schema_of_json sec second sentences sequence
    sha sha1 sha2 shiftleft shiftright shiftrightunsigned shuffle signum sinh size skewness
    slice smallint some sort_array soundex space split split_part stack startswith std
    stddev_samp str_to_map string struct substr substring_index tanh timestamp timestamp_micros
    timestamp_millis timestamp_seconds timestampadd timestampdiff tinyint to_binary to_char
    to_csv to_date to_json to_number to_timestamp to_timestamp_ltz to_timestamp_ntz
    to_unix_timestamp to_utc_timestamp to_varchar to_variant_object transform_keys
    transform_values translate trunc try_add try_aes_decrypt try_avg try_cast try_divide
    try_element_at try_multiply try_parse_json try_subtract try_sum try_to_binary try_to_number
    try_to_timestamp try_variant_get typeof ucase unbase64 unhex uniform unix_date unix_micros
    unix_millis unix_seconds unix_timestamp unnest url_decode url_encode uuid variant_explode
    variant_get version weekday weekofyear width_bucket window window_time xpath xpath_boolean
    xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string xxhash64
    year zeroifnull zip_with
    """)
_FORMATS = words("""
    avro binaryfile csv delta hive hudi iceberg image jdbc json kafka libsvm orc parquet rate
    socket text xml
    """)
"""What Spark reads a file of by `format.`path``, where that is on."""

_PLAIN = re.compile(r"[\w .,:;/+@-]*", re.ASCII)


class _Spark(Dialect, frozen=True):
    """Spark's own spellings."""

    def text_literal(self, value: str) -> str:
        # What an escape means depends on the session's settings: such a text is sent as its bytes.
        if _PLAIN.fullmatch(value):
            return f"'{value}'"
        return f"CAST(X'{value.encode().hex()}' AS STRING)"


DIALECT = _Spark(
    name="spark",
    title="Spark",
    parser="spark",
    lexical_rules=LexicalRules(
        operators=PREDICATES | words("|| == <=> ! ~ & | ^ -> << >>"),
        comments="ambiguous",
        executable_comments=True,
        backslashes="ambiguous",
        string_prefixes="xX",
        double_quoted="string",
        backticks=True,
    ),
    roots={
        **dict.fromkeys(("SELECT", "WITH", "VALUES", "TABLE", "("), "query"),
        **dict.fromkeys(("DESCRIBE", "DESC"), "describe"),
        "EXPLAIN": "explain",
        "SHOW": "show",
        **dict.fromkeys(words("CACHE REFRESH RESET SET UNCACHE USE"), "session"),
        **dict.fromkeys(
            words("""
    ADD ALTER ANALYZE CREATE DELETE DROP GRANT INSERT LOAD MERGE MSCK REVOKE TRUNCATE UPDATE
            """),
            "admin",
        ),
    },
    functions=(default.DIALECT.functions | _FUNCTIONS) - _OUTWARD,
    keywords=words("LATERAL PIVOT TABLESAMPLE UNPIVOT"),
    secrets=tuple([f"{name}.*" for name in sorted(_FORMATS)]),
    shows=words("CATALOGS COLUMNS DATABASES SCHEMAS TABLES VIEWS"),
    reserved_verbs=default.DIALECT.reserved_verbs,
    code_clauses=default.DIALECT.code_clauses,
    reads_files=True,
    explains_queries_only=True,
    quote_mark="`",
    text_type="STRING",
    writing_rules=("The database is Spark. Names are quoted with backticks.",),
)
