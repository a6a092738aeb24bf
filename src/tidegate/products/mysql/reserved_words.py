"""The words that are names in quotes alone in MariaDB, with those that MySQL 8 has besides."""

from tidegate.sql.dialects.model import words
from tidegate.sql.dialects.reserved_words import EVERYWHERE

WORDS = EVERYWHERE | words("""
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
    """)
