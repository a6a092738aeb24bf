"""The words that a dialect does not take for a name unless they are quoted, in lower case.

Found by asking each database for a column and a table of every keyword that it, or another of
them, has: PostgreSQL 18, SQLite 3.54, DuckDB and MariaDB, with MySQL 8's further words. A test asks
again.
"""

from __future__ import annotations

from tidegate.sql.dialects.model import words

_COMMON = words("""
    all and as case check collate constraint create default distinct else except false foreign
    from group having in intersect into is join limit not null on or order primary references
    returning select table then to true union unique using when where
    """)

_SYNTAX = words("""
    alter any between cross cube describe drop fetch for force glob grant ilike inner insert lateral
    like lock notnull offset outer qualify regexp revoke rlike rollup tablesample values window with
    xor
    """)
"""What our analysis of statements reads as syntax in every dialect."""

RESERVED = {
    "sqlite": _COMMON
    | _SYNTAX
    | words("""
    add alter between cast commit current_date current_time current_timestamp deferrable delete
    drop escape exists index insert isnull nothing notnull raise set transaction update values
    """),
    "duckdb": _COMMON
    | _SYNTAX
    | words("""
    analyse analyze anti any array asc asof asymmetric at authorization binary both by cast
    collation column concurrently cross deferrable desc describe do end fetch for freeze full
    glob ilike initially inner isnull lambda lateral leading left like natural notnull offset
    only outer overlaps pivot pivot_longer pivot_wider placing positional qualify right semi
    show similar some summarize symmetric tablesample trailing unpack unpivot variadic verbose
    window with
    """),
    "postgres": _COMMON
    | _SYNTAX
    | words("""
    analyse analyze any array asc asymmetric authorization binary both cast collation column
    concurrently cross current_catalog current_date current_role current_schema current_time
    current_timestamp current_user deferrable desc do end fetch for freeze full grant ilike
    initially inner isnull lateral leading left like localtime localtimestamp natural notnull
    offset only outer overlaps placing right session_user similar some symmetric system_user
    tablesample trailing user variadic verbose window with
    """),
    "mysql": _COMMON
    | _SYNTAX
    | words("""
    accessible add alter analyze asc asensitive before between bigint binary blob both by call
    cascade change char character column condition continue convert cross cube cume_dist
    current_date current_role current_time current_timestamp current_user cursor databases
    day_hour day_microsecond day_minute day_second dec decimal declare delayed delete
    delete_domain_id dense_rank desc describe deterministic distinctrow div do_domain_ids double
    drop dual each elseif empty enclosed escaped exists exit explain fetch first_value float
    float4 float8 for force fulltext function grant grouping groups high_priority
    hour_microsecond hour_minute hour_second if ignore ignore_domain_ids index infile inner
    inout insensitive insert int int1 int2 int3 int4 int8 integer interval iterate json_table
    key keys kill lag last_value lateral lead leading leave left like linear lines load
    localtime localtimestamp lock long longblob longtext loop low_priority
    master_demote_to_replica master_demote_to_slave master_ssl_verify_server_cert match maxvalue
    mediumblob mediumint mediumtext middleint minute_microsecond minute_second mod modifies
    natural no_write_to_binlog nth_value ntile numeric of offset optimize optionally out outer
    outfile over page_checksum parse_vcol_expr partition percent_rank portion precision
    procedure purge range rank read read_write reads real recursive ref_system_id regexp release
    rename repeat replace require resignal restrict return revoke right rlike row row_number
    rows schemas second_microsecond sensitive separator set show signal smallint spatial
    specific sql sql_big_result sql_buffer_result sql_cache sql_calc_found_rows sql_no_cache
    sql_small_result sqlexception sqlstate sqlwarning ssl starting stats_auto_recalc
    stats_persistent stats_sample_pages straight_join system terminated tinyblob tinyint
    tinytext trailing trigger undo unlock unsigned update usage use utc_date utc_time
    utc_timestamp values varbinary varchar varcharacter varying while window with write xor
    year_month zerofill
    """),
}
"""By the name of the dialect."""

ALL = frozenset[str]().union(*RESERVED.values())
"""For a dialect that is not listed."""
