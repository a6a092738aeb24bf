"""MySQL and MariaDB, as tables of data. Functions that take locks, move sequences, read files or
set a state of the session are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tidegate.products.mysql import server_panels
from tidegate.sql.dialects.common import (
    DURATION,
    INFORMATION_SCHEMA,
    JSON_HANDLING,
    MASKED_COLUMNS,
    PREDICATES,
    STANDARD,
    TYPES,
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
    add_months adddate addtime aes_decrypt aes_encrypt ascii benchmark bin bin_to_uuid bit_and
    bit_count bit_or bit_xor char charset chr coercibility collation column_add column_check
    column_create column_delete column_exists column_get column_json column_list compress
    connection_id conv convert convert_tz crc32 crc32c curdate current_role curtime database
    date_add date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear decode default
    elt encrypt export_set extractvalue field find_in_set format format_bytes format_pico_time
    found_rows from_base64 from_days from_unixtime geomfromtext get_format gtid_subset gtid_subtract
    hex hour if ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa insert instr interval is_ipv4
    is_ipv4_compat is_ipv4_mapped is_ipv6 is_uuid isnull json_array_append json_array_insert
    json_compact json_contains json_contains_path json_depth json_detailed json_equals json_extract
    json_insert json_key_value json_keys json_length json_loose json_merge json_merge_patch
    json_merge_preserve json_normalize json_object_to_array json_overlaps json_pretty json_quote
    json_remove json_replace json_schema_valid json_search json_set json_storage_size json_table
    json_type json_unquote json_valid kdf last_day lastval lcase length lengthb locate log2 make_set
    makedate maketime match md5 median microsecond mid minute month monthname name_const
    natural_sort_key now nvl nvl2 oct old_password ord password percentile_cont period_add
    period_diff point pow quarter quote rand random_bytes regexp_instr regexp_replace regexp_substr
    repeat reverse row_count rownum schema sec_to_time second session_user sformat sha sha1 sha2
    sleep soundex space st_area st_asgeojson st_astext st_buffer st_centroid st_contains st_distance
    st_distance_sphere st_geomfromtext st_intersects st_latitude st_length st_longitude
    st_pointfromtext st_srid st_within st_x st_y statement_digest statement_digest_text std
    str_to_date strcmp subdate substring_index subtime sys_guid sysdate system_user time_format
    time_to_sec timediff timestampadd timestampdiff to_base64 to_char to_days to_seconds truncate
    ucase uncompress uncompressed_length unhex unix_timestamp updatexml user utc_date utc_time
    utc_timestamp uuid uuid_to_bin validate_password_strength values vec_distance
    vec_distance_cosine vec_distance_euclidean vec_fromtext vec_totext version week weekday
    weekofyear weight_string year yearweek
    """)

_ROOTS = {
    **dict.fromkeys(("SELECT", "WITH", "VALUES", "TABLE", "("), "query"),
    **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "REPLACE"), "change"),
    **dict.fromkeys(("RENAME", "OPTIMIZE", "REPAIR", "CHECK"), "write"),
    **dict.fromkeys(
        words("""
    BEGIN CLOSE COMMIT DEALLOCATE FETCH GET HANDLER LOCK OPEN RELEASE RESIGNAL ROLLBACK SAVEPOINT
    SET SIGNAL START UNLOCK USE XA
    """),
        "session",
    ),
    **dict.fromkeys(
        words("""
    BACKUP BINLOG CACHE CHANGE CLONE FLUSH GRANT IMPORT INSTALL KILL LOAD PURGE RESET RESTART REVOKE
    SHUTDOWN STOP UNINSTALL
    """),
        "admin",
    ),
    "TRUNCATE": "destructive",
    "EXPLAIN": "explain",
    "DESCRIBE": "explain",
    "DESC": "explain",
    "ANALYZE": "analyze",
    "SHOW": "show",
    "CREATE": "create",
    "ALTER": "alter",
    "DROP": "drop",
}

# No list of sessions: MySQL's holds the text of every statement, and the gate refuses it.
_VIEWS = {
    "sessions": "SHOW GLOBAL STATUS LIKE 'Threads%'",
    "metrics": "SHOW GLOBAL STATUS",
    "slow_queries": "SHOW GLOBAL STATUS LIKE 'Slow%'",
    "errors": "SHOW GLOBAL STATUS LIKE 'Aborted%'",
}

_PARTIAL_TABLES = {
    ("information_schema", "tables"): SystemTable(
        "information_schema.TABLES",
        """
        TABLE_CATALOG TABLE_SCHEMA TABLE_NAME TABLE_TYPE ENGINE VERSION ROW_FORMAT TABLE_ROWS=n
        AVG_ROW_LENGTH=n DATA_LENGTH=n MAX_DATA_LENGTH=n INDEX_LENGTH=n DATA_FREE=n AUTO_INCREMENT=n
        CREATE_TIME UPDATE_TIME=n CHECK_TIME=n TABLE_COLLATION CHECKSUM=n CREATE_OPTIONS
        TABLE_COMMENT
        """,
    ),
    ("information_schema", "columns"): SystemTable(
        "information_schema.COLUMNS",
        """
        TABLE_CATALOG TABLE_SCHEMA TABLE_NAME COLUMN_NAME ORDINAL_POSITION COLUMN_DEFAULT?
        IS_NULLABLE DATA_TYPE CHARACTER_MAXIMUM_LENGTH CHARACTER_OCTET_LENGTH NUMERIC_PRECISION
        NUMERIC_SCALE DATETIME_PRECISION CHARACTER_SET_NAME COLLATION_NAME COLUMN_TYPE COLUMN_KEY
        EXTRA PRIVILEGES COLUMN_COMMENT GENERATION_EXPRESSION
        """,
        MASKED_COLUMNS,
    ),
    ("information_schema", "statistics"): SystemTable(
        "information_schema.STATISTICS",
        """
        TABLE_CATALOG TABLE_SCHEMA TABLE_NAME NON_UNIQUE INDEX_SCHEMA INDEX_NAME SEQ_IN_INDEX
        COLUMN_NAME COLLATION CARDINALITY=n SUB_PART PACKED NULLABLE INDEX_TYPE COMMENT
        INDEX_COMMENT
        """,
    ),
    ("information_schema", "partitions"): SystemTable(
        "information_schema.PARTITIONS",
        """
        TABLE_CATALOG TABLE_SCHEMA TABLE_NAME PARTITION_NAME SUBPARTITION_NAME
        PARTITION_ORDINAL_POSITION SUBPARTITION_ORDINAL_POSITION PARTITION_METHOD
        SUBPARTITION_METHOD PARTITION_EXPRESSION SUBPARTITION_EXPRESSION PARTITION_DESCRIPTION=n
        TABLE_ROWS=n AVG_ROW_LENGTH=n DATA_LENGTH=n MAX_DATA_LENGTH=n INDEX_LENGTH=n DATA_FREE=n
        CREATE_TIME UPDATE_TIME=n CHECK_TIME=n CHECKSUM=n PARTITION_COMMENT NODEGROUP
        TABLESPACE_NAME
        """,
    ),
}
"""The columns that MySQL and MariaDB have in common."""


class _Mysql(Dialect, frozen=True):
    """The spellings of MySQL and MariaDB."""

    def text_literal(self, value: str) -> str:
        if "\\" in value or "\0" in value:
            # In hexadecimal: whether a backslash escapes depends on the server's sql_mode.
            digits = value.encode("utf-8", "replace").hex()
            return f"CONVERT(X'{digits}' USING utf8mb4)"
        return super().text_literal(value)

    def not_finite(self, value: float) -> str:
        return "NULL"

    def without_indexes(self, names: Sequence[str]) -> str:
        return f" IGNORE INDEX ({', '.join(map(self.quote, names))})"

    def sortable(self, term: str) -> str:
        return f"CAST({term} AS BINARY)"

    def null_of(self, term: str, kind: str) -> str:
        return f"IF(TRUE, NULL, {term})"  # of the column's type, which CAST could not name

    def as_text(self, term: str) -> str:
        return f"CAST({term} AS CHAR CHARACTER SET utf8mb4)"

    def hash_of(self, key: str, text: str) -> str:
        # Of NULL nothing is computed: MAKE_SET would return what a failed CONCAT leaves, the key.
        return f"IF({text} IS NULL, NULL, SHA2(CONCAT({key}, {text}), 256))"

    def concat(self, *terms: str) -> str:
        return f"CONCAT({', '.join(terms)})"

    def length(self, text: str) -> str:
        return f"CHAR_LENGTH({text})"

    def export_writer(self, kind: str, as_text: Callable[[Any], str | None]) -> Write | None:
        return {"timestamp": self._moment, "time": self._time, "geometry": self._shape}.get(
            kind.partition("(")[0]
        )

    def _moment(self, value: Any) -> str:
        """A moment in UTC, whatever the time zone of the session that replays it."""
        if not (isinstance(value, str) and value.endswith("Z")):
            return self.literal(value)
        plain = self.literal(value[:-1].replace("T", " "))
        return f"CONVERT_TZ({plain}, '+00:00', @@session.time_zone)"

    def _time(self, value: Any) -> str:
        found = re.fullmatch(DURATION, value, re.ASCII) if isinstance(value, str) else None
        if found is None:
            return self.literal(value)
        whole, _, fraction = (found[5] or "0").partition(".")
        hours, rest = divmod(int(found[4] or 0) * 86_400 + int(whole), 3600)
        clock = f"{found[1]}{hours:02}:{rest // 60:02}:{rest % 60:02}"
        return self.literal(f"{clock}.{fraction}" if fraction else clock)

    def _shape(self, value: Any) -> str:
        written = self.literal(value)
        return f"ST_GeomFromText({written})" if isinstance(value, str) else written


DIALECT = _Mysql(
    name="mysql",
    reserved_words="tidegate.products.mysql.reserved_words:WORDS",
    table_forms="tidegate.products.mysql.table_forms:WRITER",
    function_names="SELECT DISTINCT ROUTINE_SCHEMA, ROUTINE_NAME FROM information_schema.ROUTINES"
    " WHERE ROUTINE_TYPE = 'FUNCTION'",
    null_order="least",
    # Its times may be longer than a day, or negative: then they are read as a duration.
    ordered_kinds=words("integer decimal float text bytes date timestamp"),
    # By the place in the list, by a beginning of the text, and by digits that are not shown.
    unordered_types=r"enum|set|bit|uuid|inet|.*text|.*blob|float"
    r"|.*char\((25[6-9]|2[6-9]\d|[3-9]\d\d|\d{4,})",
    trigger_query="SELECT TRIGGER_NAME, ACTION_TIMING, EVENT_MANIPULATION"
    " FROM information_schema.TRIGGERS"
    " WHERE EVENT_OBJECT_SCHEMA = {schema} AND EVENT_OBJECT_TABLE = {table} ORDER BY 1",
    plan_format="query blocks",
    plan_figures="tidegate.products.mysql.plan_figures:mysql_figures",
    plan_prefixes=("EXPLAIN FORMAT=JSON ", "ANALYZE FORMAT=JSON "),
    writing_rules=(
        "The database is MySQL or MariaDB. Quote names with backticks.",
        "There is no FULL JOIN; use date functions of MySQL, such as DATE_SUB and DATE_FORMAT.",
    ),
    plain_selects=True,
    parser="mysql",
    lexical_rules=LexicalRules(
        operators=PREDICATES | words("<=> && || ! -> ->> << >> & | ^ ~ :="),
        parameters=(r"\?|@@?(?:[A-Za-z0-9_$.\x80-\U0010ffff]++|`[^`]*+`|'[^'\\]*+'|\"[^\"\\]*+\")"),
        dash_comment_needs_space=True,
        hash_comments=True,
        executable_comments=True,
        backslashes="escape",
        string_prefixes="bBxXnN",
        double_quoted="string",
        backticks=True,
    ),
    roots=_ROOTS,
    infix=words("DIV ESCAPE REGEXP RLIKE XOR"),
    functions=_FUNCTIONS | STANDARD | TYPES,
    keywords=frozenset({"PARTITION"}),
    bare_functions=frozenset({"last_insert_id"}),
    statement_state=words("""
    found_rows row_count @@error_count @@identity @@insert_id @@last_gtid @@last_insert_id
    @@rand_seed1 @@rand_seed2 @@warning_count
    """)
    | {"SHOW COUNT", "SHOW ERRORS", "SHOW WARNINGS"},
    session_state=words("last_insert_id lastval"),
    changing_functions=frozenset({"last_insert_id", "nextval", "setval"}),
    change_words=frozenset({"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE"}),
    definition_words=frozenset({"ADD", "COLUMN"}),
    index_words=frozenset({"FULLTEXT", "INDEX", "KEY", "SPATIAL", "UNIQUE"}),
    attributes=frozenset({"nextval"}),
    secrets=(
        "mysql.*",
        "sys.*",
        "information_schema.processlist",
        "information_schema.user_privileges",
        "information_schema.user_attributes",
        "information_schema.innodb_trx",
        "information_schema.optimizer_trace",
        "information_schema.query_cache_info",
        "performance_schema.*",
    ),
    admitted=words("""
    mysql.help_category mysql.help_keyword mysql.help_relation mysql.help_topic mysql.time_zone
    mysql.time_zone_name mysql.time_zone_transition mysql.time_zone_transition_type
    performance_schema.global_status performance_schema.global_variables
    performance_schema.session_status performance_schema.session_variables
    """),
    shows=words("""
    CHARACTER CHARSET COLLATION COLUMNS CREATE DATABASES ENGINES EVENTS EXTENDED
    FIELDS FULL FUNCTION GLOBAL INDEX INDEXES KEYS OPEN PACKAGE PLUGINS PRIVILEGES PROCEDURE
    SCHEMAS SESSION STATUS STORAGE TABLE TABLES TRIGGERS VARIABLES
    """),
    stand_ins={},
    compound=frozenset({"TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE"}),
    administration=words("account call rights routine trigger"),
    definitions_commit=True,
    system_databases=("mysql", "sys", "performance_schema", "information_schema"),
    routine_languages=words("SQL"),
    explain_words=frozenset({"ANALYZE", "EXTENDED", "PARTITIONS", "FORMAT"}),
    respellings=(
        *JSON_HANDLING,
        ("HIGH_PRIORITY DISTINCT", "1"),
        ("HIGH_PRIORITY DISTINCTROW", "DISTINCT"),
        ("DISTINCTROW", "DISTINCT"),
        ("SEPARATOR ' LIMIT #", "0 1"),
        ("SEPARATOR ' LIMIT # , #", "0 1"),
        ("{ @ ' }", "2"),
        ("{ OJ", ""),
        ("{ FN", ""),
        ("}", ""),
        ("ROWS EXAMINED #", ""),
        ("CYCLE @ RESTRICT", ""),
        ("CYCLE @ , @ RESTRICT", ""),
        ("NEXT VALUE FOR @", "NEXTVAL ( 3 )"),
    ),
    assigns=True,
    title="MySQL",
    has_information_schema=True,
    titles={"mariadb": "MariaDB"},
    quote_mark="`",
    variable_sigil="@",
    database_prefix=False,
    reads_other_databases=True,
    dummy_tables=frozenset({"dual"}),
    values_parses=False,
    table_engines=words("ARIA HEAP INNODB MEMORY MYISAM NDB NDBCLUSTER ROCKSDB"),
    view_options=True,
    with_before_change=False,
    empty_insert="() VALUES ()",
    changes_joins=True,
    explains_tables=True,
    fence=" LIMIT 18446744073709551615",
    system_tables={
        "information_schema": INFORMATION_SCHEMA
        | words("character_sets collations engines events partitions statistics"),
        "": frozenset({"dual"}),
    },
    partial_tables=_PARTIAL_TABLES,
    longest_label=250,
    masked_shows=words("""
    CHARACTER CHARSET COLLATION COLUMNS CREATE DATABASES ENGINES FIELDS FULL INDEX INDEXES KEYS
    SCHEMAS TABLES VARIABLES
    """),
    counting_shows=words("INDEX INDEXES KEYS"),
    describing_shows=words("COLUMNS FIELDS FULL"),
    setting_shows=words("CHARACTER CHARSET COLLATION ENGINES VARIABLES"),
    driver_types="connector-j",
    signs_join=True,
    text_type="CHAR",
    exact_collation=" COLLATE utf8mb4_bin",
    server_views=_VIEWS,
    column_types=ColumnTypes(
        {
            "integer": "bigint",
            "float": "double",
            "boolean": "boolean",
            "date": "date",
            "time": "time(6)",
            "timestamp": "datetime(6)",
            "bytes": "longblob",
        },
        text="longtext",
        short_text="varchar(255)",
        decimal="decimal(65,{scale})",
        most_digits=65,
        most_scale=30,
    ),
    server_panels=server_panels.PANELS,
    server_texts=server_panels.TEXTS,
    cancel_session=server_panels.CANCEL,
    colon_casts=False,
    own_functions="schema as written",
)
