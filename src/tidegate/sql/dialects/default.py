"""The tables for every dialect that has none of its own: only what means the same nearly
everywhere, and whatever databases read differently is refused.
"""

from __future__ import annotations

from tidegate.sql.dialects.common import PREDICATES, STANDARD, TYPES
from tidegate.sql.dialects.model import Dialect, LexicalRules, words

_VERBS = words("""
    ALTER ANALYZE ATTACH BACKUP BEGIN BULK CALL CHECKPOINT COMMIT COPY CREATE DBCC DEALLOCATE
    DECLARE DELETE DENY DETACH DISABLE DO DROP ENABLE EXEC EXECUTE EXPORT FLUSH GO GRANT HANDLER
    IMPORT INSERT INSTALL INTO KILL LOAD LOCK MERGE OPTIMIZE OUTFILE PRAGMA PREPARE PRINT PROCEDURE
    PURGE RAISERROR RECONFIGURE RENAME REPLACE RESET RESTORE REVERT REVOKE ROLLBACK SAVE SAVEPOINT
    SET SETTINGS SETUSER SHUTDOWN SYSTEM TRUNCATE UNLOCK UPDATE UPDATETEXT USE VACUUM WAITFOR WHILE
    WRITETEXT
    """)

_FUNCTIONS = words("""
    add_months adddays addmonths addyears any any_value anyif anylast approx_count_distinct
    approx_distinct approx_percentile approx_quantiles arg_max arg_min argmax argmin array array_agg
    array_construct array_contains array_distinct array_join array_length array_max array_min
    array_size array_sort array_to_string arrayconcat arraycount arraydistinct arrayexists
    arrayfilter arrayjoin arraymap arraysort arraysum ascii avgif bar base64 bin bit_and bit_or
    bit_xor bitand bool_and bool_or cardinality casewhen cbrt char charindex choose chr cityhash64
    coalesce collect_list collect_set concat_ws contains conv convert corr cot count_if countif
    covar_pop covar_samp crc32 cube curdate curtime date_add date_diff date_format date_part
    date_sub date_trunc dateadd datediff datefromparts datename datepart datesub datetime_add
    datetime_diff datetime_sub datetime_trunc day day_of_week dayname dayofmonth dayofweek dayofyear
    days db_name decode difference digits div div0 element_at elt empty ends_with endswith eomonth
    every explode extractall field filter find_in_set first flatten format format_date
    format_datetime format_timestamp formatdatetime formatreadablequantity formatreadablesize
    from_base64 from_unixtime generate_array generate_date_array generate_series generate_uuid
    getbit getdate getutcdate greatest grouparray grouping_id groupuniqarray has hasall hasany hash
    hex hour hours if iff ifnull iif indexof initcap inline instr intdiv isjson isnull isnumeric
    json_arrayagg json_contains json_extract json_extract_path_text json_extract_scalar json_keys
    json_length json_modify json_objectagg json_table json_type json_unquote jsonextract
    jsonextractbool jsonextractfloat jsonextractint jsonextractstring jsonhas last last_day lcase
    least len lengthutf8 listagg locate log2 lowerutf8 map_entries map_keys map_values max_by maxif
    md5 median min_by minif minute minutes mode modulo month monthname months_between multiif nanvl
    neighbor newid next_day notempty now nullifzero numbers nvl nvl2 object_agg object_construct
    object_id object_keys object_name oct openjson parse_date parse_datetime parse_json
    parse_timestamp parsedatetime patindex percentile_approx posexplode position
    positioncaseinsensitive posstr quarter quotename rand random random_uuid ratio_to_report reduce
    regexp_contains regexp_count regexp_extract regexp_instr regexp_like regexp_replace
    regexp_substr regr_intercept regr_r2 regr_slope remainder repeat replaceall replaceone
    replaceregexpall replicate reverse rollup runningdifference safe_cast safe_divide schema_name
    second seconds sequence sha sha1 sha2 sha256 sha512 siphash64 soundex space split split_part
    splitbychar splitbystring square starts_with startswith stdev stdevp str_to_date string_split
    strpos strtok struct stuff substr substring_index substringutf8 subtractdays subtractmonths
    subtractyears sumif suser_sname sys_connect_by_path sysdate sysdatetime system_range
    systimestamp sysutcdatetime timestamp_add timestamp_diff timestamp_millis timestamp_seconds
    timestamp_sub timestamp_trunc timestampadd timestampdiff to_base64 to_char to_date to_decimal
    to_double to_json to_number to_timestamp to_varchar todate todatetime todatetime64 today
    todayofmonth todayofweek todecimal32 todecimal64 tofloat32 tofloat64 tohour toint16 toint32
    toint64 toint8 tominute tomonday tomonth topk tosecond tostartofday tostartoffiveminutes
    tostartofhour tostartofinterval tostartofminute tostartofmonth tostartofquarter tostartofweek
    tostartofyear tostring touint16 touint32 touint64 touint8 tounixtimestamp toyear toyyyymm
    toyyyymmdd transform translate truncate try try_cast try_convert try_to_date try_to_number ucase
    unhex uniq uniqcombined uniqexact uniqhll12 unix_seconds unix_timestamp unnest upperutf8
    user_name uuid var varp visitparamextractstring week weekofyear width_bucket xxhash64 year
    zeroifnull
    """)
"""Of Oracle, SQL Server, Snowflake, BigQuery, Trino, Spark, ClickHouse, H2, Derby, HSQLDB and Db2:
what only computes, so that another database's function of that name does as well."""

_DESCRIBING = words("""
    sys.all_columns sys.all_objects sys.check_constraints sys.columns sys.databases
    sys.default_constraints sys.extended_properties sys.foreign_key_columns sys.foreign_keys
    sys.index_columns sys.indexes sys.key_constraints sys.objects sys.partitions sys.schemas
    sys.sequences sys.sysaliases sys.syscolumns sys.sysconglomerates sys.sysconstraints
    sys.sysforeignkeys sys.syskeys sys.sysschemas sys.systables sys.sysviews sys.tables sys.types
    sys.views
    """)

_HINTS = ("NOLOCK", "READUNCOMMITTED", "READCOMMITTED", "READPAST", "NOEXPAND")
_DURATIONS = ("DAY", "DAYS", "MONTH", "MONTHS", "YEAR", "YEARS", "HOUR", "HOURS", "MINUTES")

_RESPELLINGS = (
    *(
        (f"SELECT {distinct}TOP {count}{ties}", f"SELECT {distinct}")
        for distinct in ("", "DISTINCT ")
        for count in ("#", "( # )", "( ? )")
        for ties in (" PERCENT WITH TIES", " WITH TIES", " PERCENT", "")
    ),
    *((f"WITH ( {hint} )", "") for hint in _HINTS),
    ("OPTION ( MAXRECURSION # )", ""),
    ("OPTION ( RECOMPILE )", ""),
    ("FOR JSON PATH", ""),
    ("FOR JSON AUTO", ""),
    ("FOR XML AUTO", ""),
    ("FOR XML RAW", ""),
    ("FOR XML PATH", ""),
    ("MINUS SELECT", "EXCEPT SELECT"),
    ("MINUS (", "EXCEPT ("),
    ("ORDER SIBLINGS BY", "ORDER BY"),
    ("( + )", ""),
    ("KEEP ( DENSE_RANK FIRST", "OVER ("),
    ("KEEP ( DENSE_RANK LAST", "OVER ("),
    ("WITH UR", ""),
    ("CURRENT DATE", "CURRENT_DATE"),
    ("CURRENT TIME", "CURRENT_TIME"),
    ("CURRENT TIMESTAMP", "CURRENT_TIMESTAMP"),
    *((f"{sign} # {unit}", f"{sign} 1") for sign in "+-" for unit in _DURATIONS),
)

DIALECT = Dialect(
    name="default",
    keeps_global_temporary=True,
    parser="",
    lexical_rules=LexicalRules(
        operators=PREDICATES | frozenset({"||"}),
        parameters=r"\?|:[A-Za-z_][A-Za-z0-9_]*+|@@?[A-Za-z_][A-Za-z0-9_]*+",
        comments="ambiguous",
        slash_comments=True,
        executable_comments=True,
        backslashes="ambiguous",
        string_prefixes="nN",
        backticks=True,
        bracketed_names=True,
    ),
    roots={
        **dict.fromkeys(("SELECT", "WITH", "VALUES", "TABLE", "("), "query"),
        **dict.fromkeys(("DESCRIBE", "DESC"), "describe"),
        "EXPLAIN": "explain",
        "SHOW": "show",
        **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"), "change"),
        **dict.fromkeys(
            ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "SET", "START", "USE"), "session"
        ),
        **dict.fromkeys(
            ("GRANT", "REVOKE", "DENY", "BACKUP", "RESTORE", "SHUTDOWN", "SYSTEM"), "admin"
        ),
        "TRUNCATE": "destructive",
        "CREATE": "create",
        "ALTER": "alter",
        "DROP": "drop",
    },
    functions=STANDARD | TYPES | _FUNCTIONS,
    keywords=frozenset({"APPLY", "KEEP", "OPTION", "PIVOT", "TOP", "UNPIVOT"}),
    attributes=frozenset({"nextval", "currval"}),
    statement_state=words("""
    @@error @@error_count @@fetch_status @@identity @@insert_id @@last_insert_id @@nestlevel
    @@rowcount @@trancount @@warning_count
    """),
    secrets=(
        "system.*",
        "mysql.*",
        "sys.*",
        "*.sys.*",
        "master.*",
        "msdb.*",
        "pg_authid",
        "pg_shadow",
        "pg_catalog.*",
        "pg_stat_activity",
        "pg_stat_statements*",
        "*audit_trail*",
        "dba_*",
        "cdb_*",
        "v$*",
        "gv$*",
        "user$",
        "performance_schema.*",
        "information_schema.processlist",
    ),
    admitted=_DESCRIBING,
    shows=words("CATALOGS COLUMNS DATABASES SCHEMAS TABLES VIEWS WAREHOUSES"),
    respellings=_RESPELLINGS,
    reserved_verbs=_VERBS,
    code_clauses=words("ENGINE EXTERNAL LANGUAGE"),
    assigns=True,
    reads_files=True,
    remotes=True,
    explains_queries_only=True,
)
