"""MySQL and MariaDB, as tables of data. Functions that take locks, move sequences, read files or
set a state of the session are left out.
"""

from __future__ import annotations

from tidegate.sql.dialects.common import JSON_HANDLING, PREDICATES, STANDARD, TYPES
from tidegate.sql.dialects.model import Dialect, Lexis, words

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

DIALECT = Dialect(
    name="mysql",
    parser="mysql",
    lexis=Lexis(
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
    functions=_FUNCTIONS | STANDARD | TYPES,
    keywords=frozenset({"PARTITION"}),
    bare_functions=frozenset({"last_insert_id"}),
    changing_functions=frozenset({"last_insert_id", "nextval", "setval"}),
    change_words=frozenset({"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE"}),
    index_words=frozenset({"INDEX", "KEY", "UNIQUE"}),
    attributes=frozenset({"nextval"}),
    secrets=(
        "mysql.*",
        "sys.*",
        "information_schema.processlist",
        "information_schema.user_privileges",
        "information_schema.user_attributes",
        "information_schema.innodb_trx",
        "performance_schema.*",
    ),
    admitted=words("""
    mysql.help_category mysql.help_keyword mysql.help_relation mysql.help_topic mysql.time_zone
    mysql.time_zone_name mysql.time_zone_transition mysql.time_zone_transition_type
    performance_schema.global_status performance_schema.global_variables
    performance_schema.session_status performance_schema.session_variables
    """),
    shows=words("""
    CHARACTER CHARSET COLLATION COLUMNS COUNT CREATE DATABASES ENGINE ENGINES ERRORS EVENTS EXTENDED
    FIELDS FULL FUNCTION GLOBAL INDEX INDEXES KEYS OPEN PACKAGE PLUGINS PRIVILEGES PROCEDURE
    PROCESSLIST SCHEMAS SESSION STATUS STORAGE TABLE TABLES TRIGGERS VARIABLES WARNINGS
    """),
    stand_ins={},
    compound=frozenset({"TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE"}),
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
)
