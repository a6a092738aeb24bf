"""PostgreSQL, as tables of data.

The functions are those of pg_catalog that its catalog calls immutable or stable, less some that
run SQL or reach files, plus volatile ones that only tell something, plus those of well-known
extensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from tidegate.sql.dialects import postgres_server
from tidegate.sql.dialects.common import (
    INFORMATION_SCHEMA,
    MASKED_COLUMNS,
    PG_CATALOG,
    STANDARD_COLUMNS,
    TYPES,
    spelled_duration,
)
from tidegate.sql.dialects.model import Dialect, LexicalRules, SystemTable, Write, words

_FUNCTIONS = words("""
    _pg_expandarray abbrev abs acldefault aclexplode acos acosd acosh age akeys any_value area
    array_agg array_append array_cat array_dims array_fill array_length array_lower array_ndims
    array_position array_positions array_prepend array_remove array_replace array_reverse
    array_sample array_shuffle array_sort array_to_json array_to_string array_to_tsvector
    array_upper ascii asin asind asinh atan atan2 atan2d atand atanh avals avg binary_quantize bit
    bit_and bit_count bit_length bit_or bit_xor bool bool_and bool_or box bpchar btrim cardinality
    casefold cash_words cast cbrt ceil ceiling center char char_length character_length chr cidr
    circle clock_timestamp coalesce col_description collation concat concat_ws convert convert_from
    convert_to corr cos cosd cosh cosine_distance cot cotd count covar_pop covar_samp crc32 crc32c
    crypt cube cume_dist current_database current_query current_schema current_schemas
    current_setting current_time current_timestamp current_user currval date date_add date_bin
    date_part date_subtract date_trunc datemultirange daterange decode degrees dense_rank diagonal
    diameter difference digest div dmetaphone dmetaphone_alt each encode enum_first enum_last
    enum_range erf erfc every exp extract factorial family first_value float4 float8 floor format
    format_type gamma gcd gen_random_bytes gen_random_uuid gen_salt generate_series
    generate_subscripts get_bit get_byte get_current_ts_config getdatabaseencoding getpgusername
    greatest grouping halfvec hamming_distance has_any_column_privilege has_column_privilege
    has_database_privilege has_foreign_data_wrapper_privilege has_function_privilege
    has_language_privilege has_largeobject_privilege has_parameter_privilege has_schema_privilege
    has_sequence_privilege has_server_privilege has_table_privilege has_tablespace_privilege
    has_type_privilege hash_array hash_numeric hash_record hashint2 hashint4 hashint8 hashtext
    hashtextextended height hmac host hostmask hstore hstore_to_json hstore_to_jsonb
    icu_unicode_version inet_client_addr inet_client_port inet_server_addr inet_server_port initcap
    inner_product int2 int4 int4multirange int4range int8 int8multirange int8range interval
    is_normalized isclosed isempty isfinite ishorizontal isnull isopen isparallel isperp isvertical
    jaccard_distance json_agg json_agg_strict json_array json_array_element json_array_elements
    json_array_elements_text json_array_length json_arrayagg json_build_array json_build_object
    json_each json_each_text json_exists json_extract_path json_extract_path_text json_object
    json_object_agg json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict
    json_object_field json_object_keys json_objectagg json_populate_record json_populate_recordset
    json_query json_scalar json_serialize json_strip_nulls json_table json_to_record
    json_to_recordset json_to_tsvector json_typeof json_value jsonb_agg jsonb_agg_strict
    jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array
    jsonb_build_object jsonb_concat jsonb_contained jsonb_contains jsonb_delete jsonb_delete_path
    jsonb_each jsonb_each_text jsonb_exists jsonb_exists_all jsonb_exists_any jsonb_extract_path
    jsonb_extract_path_text jsonb_hash jsonb_insert jsonb_object jsonb_object_agg
    jsonb_object_agg_strict jsonb_object_agg_unique jsonb_object_agg_unique_strict jsonb_object_keys
    jsonb_path_exists jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz jsonb_path_query
    jsonb_path_query_array jsonb_path_query_array_tz jsonb_path_query_first
    jsonb_path_query_first_tz jsonb_path_query_tz jsonb_populate_record jsonb_populate_record_valid
    jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls jsonb_to_record
    jsonb_to_recordset jsonb_to_tsvector jsonb_typeof justify_days justify_hours justify_interval
    l1_distance l2_distance l2_norm l2_normalize lag last_value lastval lcm lead least left length
    levenshtein levenshtein_less_equal lgamma like line ln localtime localtimestamp log log10 lower
    lower_inc lower_inf lpad lseg ltrim macaddr macaddr8 macaddr8_set7bit make_date make_interval
    make_time make_timestamp make_timestamptz masklen max md5 metaphone min min_scale mod mode money
    multirange mxid_age name netmask network normalize notnull now npoints nth_value ntile nullif
    num_nonnulls num_nulls numeric nummultirange numnode numrange obj_description octet_length oid
    oidvectortypes overlaps overlay parse_ident path pclose percent_rank percentile_cont
    percentile_disc pg_available_extension_versions pg_available_extensions pg_backend_pid
    pg_basetype pg_blocking_pids pg_char_to_encoding pg_client_encoding pg_collation_actual_version
    pg_collation_for pg_collation_is_visible pg_column_compression pg_column_is_updatable
    pg_column_size pg_conf_load_time pg_conversion_is_visible pg_current_snapshot pg_current_wal_lsn
    pg_current_xact_id_if_assigned pg_database_size pg_describe_object pg_encoding_max_length
    pg_encoding_to_char pg_extension_update_paths pg_filenode_relation pg_function_is_visible
    pg_get_acl pg_get_catalog_foreign_keys pg_get_constraintdef pg_get_expr
    pg_get_function_arg_default pg_get_function_arguments pg_get_function_identity_arguments
    pg_get_function_result pg_get_function_sqlbody pg_get_functiondef pg_get_indexdef
    pg_get_keywords pg_get_object_address pg_get_partition_constraintdef pg_get_partkeydef
    pg_get_publication_tables pg_get_replica_identity_index pg_get_ruledef pg_get_serial_sequence
    pg_get_statisticsobjdef pg_get_statisticsobjdef_columns pg_get_statisticsobjdef_expressions
    pg_get_triggerdef pg_get_userbyid pg_get_viewdef pg_has_role pg_identify_object
    pg_identify_object_as_address pg_index_column_has_property pg_index_has_property
    pg_indexam_has_property pg_indexam_progress_phasename pg_indexes_size pg_input_error_info
    pg_input_is_valid pg_is_in_recovery pg_is_other_temp_schema pg_jit_available
    pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_lsn
    pg_my_temp_schema pg_numa_available pg_opclass_is_visible pg_operator_is_visible
    pg_opfamily_is_visible pg_options_to_table pg_partition_ancestors pg_partition_root
    pg_partition_tree pg_postmaster_start_time pg_relation_filenode pg_relation_is_publishable
    pg_relation_is_updatable pg_relation_size pg_sequence_last_value pg_sequence_parameters
    pg_settings_get_flags pg_show_all_settings pg_size_bytes pg_size_pretty pg_sleep pg_sleep_for
    pg_sleep_until pg_snapshot_xip pg_snapshot_xmax pg_snapshot_xmin pg_split_walfile_name
    pg_stat_get_analyze_count pg_stat_get_archiver pg_stat_get_autoanalyze_count
    pg_stat_get_autovacuum_count pg_stat_get_backend_activity_start pg_stat_get_backend_client_addr
    pg_stat_get_backend_client_port pg_stat_get_backend_dbid pg_stat_get_backend_idset
    pg_stat_get_backend_pid pg_stat_get_backend_start pg_stat_get_backend_userid
    pg_stat_get_backend_wait_event pg_stat_get_backend_wait_event_type
    pg_stat_get_backend_xact_start pg_stat_get_bgwriter_buf_written_checkpoints
    pg_stat_get_bgwriter_buf_written_clean pg_stat_get_bgwriter_maxwritten_clean
    pg_stat_get_bgwriter_requested_checkpoints pg_stat_get_bgwriter_stat_reset_time
    pg_stat_get_bgwriter_timed_checkpoints pg_stat_get_blocks_fetched pg_stat_get_blocks_hit
    pg_stat_get_buf_alloc pg_stat_get_buf_fsync_backend pg_stat_get_buf_written_backend
    pg_stat_get_checkpoint_sync_time pg_stat_get_checkpoint_write_time
    pg_stat_get_checkpointer_buffers_written pg_stat_get_checkpointer_num_requested
    pg_stat_get_checkpointer_num_timed pg_stat_get_checkpointer_stat_reset_time
    pg_stat_get_checkpointer_sync_time pg_stat_get_checkpointer_write_time
    pg_stat_get_db_active_time pg_stat_get_db_blk_read_time pg_stat_get_db_blk_write_time
    pg_stat_get_db_blocks_fetched pg_stat_get_db_blocks_hit pg_stat_get_db_checksum_failures
    pg_stat_get_db_checksum_last_failure pg_stat_get_db_conflict_all
    pg_stat_get_db_conflict_bufferpin pg_stat_get_db_conflict_lock pg_stat_get_db_conflict_snapshot
    pg_stat_get_db_conflict_startup_deadlock pg_stat_get_db_conflict_tablespace
    pg_stat_get_db_deadlocks pg_stat_get_db_idle_in_transaction_time pg_stat_get_db_numbackends
    pg_stat_get_db_session_time pg_stat_get_db_sessions pg_stat_get_db_sessions_abandoned
    pg_stat_get_db_sessions_fatal pg_stat_get_db_sessions_killed pg_stat_get_db_stat_reset_time
    pg_stat_get_db_temp_bytes pg_stat_get_db_temp_files pg_stat_get_db_tuples_deleted
    pg_stat_get_db_tuples_fetched pg_stat_get_db_tuples_inserted pg_stat_get_db_tuples_returned
    pg_stat_get_db_tuples_updated pg_stat_get_db_xact_commit pg_stat_get_db_xact_rollback
    pg_stat_get_dead_tuples pg_stat_get_function_calls pg_stat_get_function_self_time
    pg_stat_get_function_total_time pg_stat_get_ins_since_vacuum pg_stat_get_last_analyze_time
    pg_stat_get_last_autoanalyze_time pg_stat_get_last_autovacuum_time pg_stat_get_last_vacuum_time
    pg_stat_get_lastscan pg_stat_get_live_tuples pg_stat_get_mod_since_analyze pg_stat_get_numscans
    pg_stat_get_progress_info pg_stat_get_replication_slot pg_stat_get_slru
    pg_stat_get_snapshot_timestamp pg_stat_get_subscription pg_stat_get_subscription_stats
    pg_stat_get_tuples_deleted pg_stat_get_tuples_fetched pg_stat_get_tuples_hot_updated
    pg_stat_get_tuples_inserted pg_stat_get_tuples_newpage_updated pg_stat_get_tuples_returned
    pg_stat_get_tuples_updated pg_stat_get_vacuum_count pg_stat_get_wal pg_stat_get_wal_senders
    pg_statistics_obj_is_visible pg_table_is_visible pg_table_size pg_tablespace_databases
    pg_tablespace_location pg_tablespace_size pg_timezone_abbrevs pg_timezone_abbrevs_abbrevs
    pg_timezone_abbrevs_zone pg_timezone_names pg_total_relation_size pg_trigger_depth
    pg_ts_config_is_visible pg_ts_dict_is_visible pg_ts_parser_is_visible pg_ts_template_is_visible
    pg_type_is_visible pg_typeof pg_visible_in_snapshot pg_wal_lsn_diff pg_walfile_name
    pg_walfile_name_offset pg_xact_status phraseto_tsquery pi plainto_tsquery point point_distance
    polygon popen position pow power querytree quote_ident quote_literal quote_nullable radians
    radius random random_normal range_adjacent range_agg range_contains range_intersect
    range_intersect_agg range_lower range_merge range_overlaps rank regclass regexp_count
    regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array
    regexp_split_to_table regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy repeat replace reverse right rollup round row_number
    row_security_active row_to_json rpad rtrim scale session_user set_bit set_byte set_masklen
    setweight sha224 sha256 sha384 sha512 shobj_description show_trgm sign similar_to_escape
    similarity sin sind sinh skeys slope soundex sparsevec split_part sqrt starts_with
    statement_timestamp stddev stddev_pop stddev_samp strict_word_similarity string_agg
    string_to_array string_to_table strip strpos substr substring subvector sum svals system_user
    tan tand tanh text textlen time timeofday timestamp timestamptz timetz timezone to_ascii to_bin
    to_bm25query to_char to_date to_hex to_json to_jsonb to_number to_oct to_regclass
    to_regcollation to_regnamespace to_regoper to_regoperator to_regproc to_regprocedure to_regrole
    to_regtype to_regtypemod to_timestamp to_tsquery to_tsvector transaction_timestamp translate
    treat trim trim_array trim_scale trunc ts_debug ts_delete ts_filter ts_headline ts_lexize
    ts_parse ts_rank ts_rank_cd ts_token_type tsmultirange tsquery_phrase tsrange tstzmultirange
    tstzrange tsvector_to_array txid_current_if_assigned txid_current_snapshot txid_snapshot_xip
    txid_snapshot_xmax txid_snapshot_xmin txid_visible_in_snapshot unaccent unicode_assigned
    unicode_version unistr unnest upper upper_inc upper_inf uuid_extract_timestamp
    uuid_extract_version uuid_generate_v1 uuid_generate_v1mc uuid_generate_v3 uuid_generate_v4
    uuid_generate_v5 uuid_hash uuidv4 uuidv7 var_pop var_samp varbit varchar variance vector
    vector_dims vector_norm version websearch_to_tsquery width width_bucket word_similarity xid xml
    xml_is_well_formed xml_is_well_formed_content xml_is_well_formed_document xmlagg xmlattributes
    xmlcomment xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot
    xmlserialize xmltable xmltext xpath xpath_exists
    """)

_GEOMETRY = words("""
    st_area st_asbinary st_asewkb st_asewkt st_asgeojson st_astext st_azimuth st_boundary st_buffer
    st_centroid st_closestpoint st_collect st_contains st_convexhull st_coveredby st_covers
    st_crosses st_difference st_disjoint st_distance st_distancesphere st_dwithin st_endpoint
    st_envelope st_equals st_expand st_extent st_geogfromtext st_geohash st_geometrytype
    st_geomfromgeojson st_geomfromtext st_geomfromwkb st_intersection st_intersects st_isempty
    st_isvalid st_length st_linefromtext st_makebox2d st_makeenvelope st_makeline st_makepoint
    st_makepolygon st_npoints st_numgeometries st_overlaps st_perimeter st_point st_pointfromtext
    st_pointn st_pointonsurface st_polygon st_setsrid st_simplify st_srid st_startpoint st_touches
    st_transform st_union st_within st_x st_xmax st_xmin st_y st_ymax st_ymin st_z
    """)

_ATTRIBUTES = words("""
    brin_desummarize_range brin_summarize_new_values brin_summarize_range currtid2 cursor_to_xml
    cursor_to_xmlschema database_to_xml database_to_xml_and_xmlschema database_to_xmlschema dblink
    dblink_connect dblink_exec gin_clean_pending_list lo_close lo_creat lo_create lo_export
    lo_from_bytea lo_get lo_import lo_lseek lo_lseek64 lo_open lo_put lo_tell lo_tell64 lo_truncate
    lo_truncate64 lo_unlink loread lowrite nextval pg_advisory_lock pg_advisory_lock_shared
    pg_advisory_unlock pg_advisory_unlock_all pg_advisory_unlock_shared pg_advisory_xact_lock
    pg_advisory_xact_lock_shared pg_backup_start pg_backup_stop pg_cancel_backend
    pg_control_checkpoint pg_control_init pg_control_recovery pg_control_system
    pg_copy_logical_replication_slot pg_copy_physical_replication_slot
    pg_create_logical_replication_slot pg_create_physical_replication_slot pg_create_restore_point
    pg_current_logfile pg_current_wal_flush_lsn pg_current_wal_insert_lsn pg_current_xact_id
    pg_database_collation_actual_version pg_drop_replication_slot pg_export_snapshot
    pg_extension_config_dump pg_get_backend_memory_contexts pg_get_multixact_members
    pg_get_shmem_allocations pg_get_wal_replay_pause_state pg_get_wal_resource_managers
    pg_hba_file_rules pg_ident_file_mappings pg_import_system_collations pg_is_wal_replay_paused
    pg_isolation_test_session_is_blocked pg_last_committed_xact pg_lock_status
    pg_log_backend_memory_contexts pg_logical_emit_message pg_logical_slot_get_binary_changes
    pg_logical_slot_get_changes pg_logical_slot_peek_binary_changes pg_logical_slot_peek_changes
    pg_ls_archive_statusdir pg_ls_dir pg_ls_logdir pg_ls_logicalmapdir pg_ls_logicalsnapdir
    pg_ls_replslotdir pg_ls_tmpdir pg_ls_waldir pg_nextoid pg_notification_queue_usage pg_notify
    pg_prepared_xact pg_promote pg_read_binary_file pg_read_file pg_read_file_old
    pg_relation_filepath pg_reload_conf pg_replication_origin_advance pg_replication_origin_create
    pg_replication_origin_drop pg_replication_origin_progress pg_replication_origin_session_is_setup
    pg_replication_origin_session_progress pg_replication_origin_session_reset
    pg_replication_origin_session_setup pg_replication_origin_xact_reset
    pg_replication_origin_xact_setup pg_replication_slot_advance pg_rotate_logfile
    pg_rotate_logfile_old pg_safe_snapshot_blocking_pids pg_show_all_file_settings
    pg_show_replication_origin_status pg_stat_clear_snapshot pg_stat_file pg_stat_force_next_flush
    pg_stat_get_recovery_prefetch pg_stat_get_xact_blocks_fetched pg_stat_get_xact_blocks_hit
    pg_stat_get_xact_function_calls pg_stat_get_xact_function_self_time
    pg_stat_get_xact_function_total_time pg_stat_get_xact_numscans pg_stat_get_xact_tuples_deleted
    pg_stat_get_xact_tuples_fetched pg_stat_get_xact_tuples_hot_updated
    pg_stat_get_xact_tuples_inserted pg_stat_get_xact_tuples_returned
    pg_stat_get_xact_tuples_updated pg_stat_have_stats pg_stat_reset pg_stat_reset_replication_slot
    pg_stat_reset_shared pg_stat_reset_single_function_counters pg_stat_reset_single_table_counters
    pg_stat_reset_slru pg_stat_reset_subscription_stats pg_stop_making_pinned_objects pg_switch_wal
    pg_terminate_backend pg_try_advisory_lock pg_try_advisory_lock_shared
    pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared pg_wal_replay_pause
    pg_wal_replay_resume pg_xact_commit_timestamp pg_xact_commit_timestamp_origin query_to_xml
    query_to_xml_and_xmlschema query_to_xmlschema schema_to_xml schema_to_xml_and_xmlschema
    schema_to_xmlschema set_config setseed setval suppress_redundant_updates_trigger table_to_xml
    table_to_xml_and_xmlschema table_to_xmlschema ts_rewrite ts_stat tsvector_update_trigger
    tsvector_update_trigger_column txid_current txid_status unique_key_recheck
    """)
"""Functions that must not be called, by whatever notation: after a dot a name can be a call."""

_OPERATORS = words("""
    !! != !~ !~* !~~ !~~* # ## #- #> #>> % %> %>> & && &&& &< &<| &> * *< *<= *<> *= *> *>= + - ->
    ->> -|- / < <#> <% <%> <&> <+> <-> <->> <->>> << <<% <<-> <<<-> <<= <<| <= <=> <> <@ <@> <^ <~>
    = => > >= >> >>= >^ ? ?# ?& ?- ?-| ?| ?|| @ @-@ @> @? @@ @@@ ^ ^@ | |&> |/ |=| |>> || ||/ ~ ~*
    ~<=~ ~<~ ~= ~>=~ ~>~ ~~ ~~*
    """)

_KNOWN_TO_PARSER = words("""
    != !~ !~* !~~ !~~* # #- #> #>> % & && &< &> * + - -> ->> -|- / < <-> << <= <> <@ = => > >= >> ?
    ?& ?| @> @@ ^ | || ~ ~* ~~ ~~*
    """)

_LITERAL_TYPES = (
    "BOX CIDR CIRCLE INET JSONPATH LINE LSEG MACADDR MACADDR8 MONEY PATH PG_LSN POINT POLYGON"
    " TID TSQUERY TSVECTOR TXID_SNAPSHOT"
)
"""Types whose name may come before a string."""

_IDENTIFIERS = (
    "OID", "REGCLASS", "REGCOLLATION", "REGCONFIG", "REGDICTIONARY", "REGNAMESPACE", "REGOPER",
    "REGOPERATOR", "REGPROC", "REGPROCEDURE", "REGROLE", "REGTYPE",
)  # fmt: skip
"""Types of which the parser knows no arrays."""

_RESPELLINGS = (
    *((f":: {name} [ ]", ":: INT [ ]") for name in _IDENTIFIERS),
    *((f"{name} '", "1") for name in _LITERAL_TYPES.split()),
    ("BIT VARYING '", "2"),
    ("AT LOCAL", "AT TIME ZONE '"),
    ("TO SECOND ( # )", "0 1"),
    ("SECOND ( # )", "0"),
    ("NUMERIC ( # , - # )", "0"),
    ("DECIMAL ( # , - # )", "0"),
    ("USING >", ""),
    ("USING <", ""),
    ("USING ( * ) AS @", "ON TRUE"),
    ("COLLATION FOR (", "PG_COLLATION_FOR ("),
    ("SIMILAR ' ESCAPE '", ", 1 , 3"),
    *(
        (f"{word} @{n * ' , @'} SET", f"{word} 1 SET")
        for word in ("BY", "CYCLE")
        for n in (1, 2, 3)
    ),
    ("UESCAPE '", ""),
    ("OVERRIDING SYSTEM VALUE", ""),
    ("OVERRIDING USER VALUE", ""),
    ("INTO ONLY @", "0 2"),
    ("RETURNING WITH ( * )", "0"),
)

_WORDED = dict.fromkeys(
    words("""
    JSON JSON_ARRAY JSON_ARRAYAGG JSON_EXISTS JSON_OBJECT JSON_OBJECTAGG JSON_QUERY JSON_SCALAR
    JSON_SERIALIZE JSON_VALUE XMLEXISTS XMLNAMESPACES XMLPARSE XMLPI XMLROOT XMLSERIALIZE
    """),
    "JSON_BUILD_ARRAY",
) | dict.fromkeys(("JSON_TABLE", "XMLTABLE"), "JSON_ARRAY_ELEMENTS")

_ROOTS = {
    **dict.fromkeys(("SELECT", "WITH", "VALUES", "TABLE", "("), "query"),
    **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "MERGE"), "change"),
    **dict.fromkeys(("COMMENT", "REFRESH", "ANALYZE", "ANALYSE", "REINDEX", "CLUSTER"), "write"),
    **dict.fromkeys(
        words("""
    ABORT BEGIN CLOSE COMMIT DEALLOCATE DECLARE DISCARD END FETCH LISTEN LOCK MOVE NOTIFY RELEASE
    RESET ROLLBACK SAVEPOINT SET START UNLISTEN
    """),
        "session",
    ),
    **dict.fromkeys(
        words("""
    CHECKPOINT COPY GRANT IMPORT LOAD REASSIGN REVOKE SECURITY VACUUM
    """),
        "admin",
    ),
    "TRUNCATE": "destructive",
    "EXPLAIN": "explain",
    "SHOW": "show",
    "CREATE": "create",
    "ALTER": "alter",
    "DROP": "drop",
}

_VIEWS = {
    "sessions": (
        "SELECT pid, usename, datname, application_name, state, wait_event_type,"
        " query_start FROM pg_stat_activity WHERE backend_type = 'client backend'"
        " ORDER BY query_start DESC NULLS LAST"
    ),
    "metrics": (
        "SELECT datname, numbackends, xact_commit, xact_rollback, blks_read, blks_hit,"
        " tup_returned, tup_fetched, tup_inserted, tup_updated, tup_deleted, deadlocks,"
        " temp_bytes FROM pg_stat_database WHERE datname IS NOT NULL ORDER BY datname"
    ),
    "slow_queries": (
        "SELECT pid, usename, datname, state, now() - query_start AS running_for"
        " FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend'"
        " ORDER BY query_start"
    ),
    "errors": (
        "SELECT datname, conflicts, deadlocks, checksum_failures FROM pg_stat_database"
        " WHERE datname IS NOT NULL ORDER BY datname"
    ),
}

_CATALOG = words("""
    pg_aggregate pg_amop pg_amproc pg_auth_members pg_available_extension_versions
    pg_available_extensions pg_conversion pg_db_role_setting pg_default_acl pg_event_trigger
    pg_foreign_data_wrapper pg_foreign_server pg_group pg_init_privs pg_opfamily pg_publication
    pg_publication_namespace pg_publication_rel pg_publication_tables pg_replication_slots
    pg_rewrite pg_seclabel pg_seclabels pg_shdepend pg_shdescription pg_shseclabel
    pg_stat_all_tables pg_stat_gssapi pg_stat_ssl pg_stat_sys_tables pg_stat_user_tables
    pg_statistic_ext pg_transform pg_ts_config pg_ts_config_map pg_ts_dict pg_ts_parser
    pg_ts_template
    """)
"""Further tables of the catalog that hold no values of columns. Of `pg_stat_…` those that psql and
BI tools ask when they connect or list tables, without their counts (`_PARTIAL_TABLES`)."""
_STANDARD = words("""
    administrable_role_authorizations applicable_roles attributes character_sets
    check_constraint_routine_usage collation_character_set_applicability collations
    column_column_usage column_domain_usage column_privileges column_udt_usage
    data_type_privileges domain_constraints domain_udt_usage element_types enabled_roles
    foreign_tables information_schema_catalog_name role_column_grants role_routine_grants
    role_table_grants role_udt_grants role_usage_grants routine_column_usage routine_privileges
    routine_routine_usage routine_sequence_usage routine_table_usage sql_features
    sql_implementation_info sql_parts sql_sizing table_privileges transforms
    triggered_update_columns udt_privileges usage_privileges user_defined_types view_column_usage
    view_routine_usage view_table_usage
    """)

_ACTIVITY = """
    relid schemaname relname seq_scan=bigint last_seq_scan=timestamptz seq_tup_read=bigint
    idx_scan=bigint last_idx_scan=timestamptz idx_tup_fetch=bigint n_tup_ins=bigint
    n_tup_upd=bigint n_tup_del=bigint n_tup_hot_upd=bigint n_tup_newpage_upd=bigint
    n_live_tup=bigint n_dead_tup=bigint n_mod_since_analyze=bigint n_ins_since_vacuum=bigint
    last_vacuum=timestamptz last_autovacuum=timestamptz last_analyze=timestamptz
    last_autoanalyze=timestamptz vacuum_count=bigint autovacuum_count=bigint analyze_count=bigint
    autoanalyze_count=bigint
    """
"""Columns of pg_stat_user_tables and its like. Counts of rows would tell what a filter hides."""

_PARTIAL_TABLES = {
    **{
        ("pg_catalog", name): SystemTable(f"pg_catalog.{name}", _ACTIVITY)
        for name in ("pg_stat_all_tables", "pg_stat_sys_tables", "pg_stat_user_tables")
    },
    ("pg_catalog", "pg_class"): SystemTable(
        "pg_catalog.pg_class",
        """
        oid relname relnamespace reltype reloftype relowner relam relfilenode reltablespace
        relpages=integer reltuples=real relallvisible=integer reltoastrelid relhasindex relisshared
        relpersistence relkind relnatts relchecks relhasrules relhastriggers relhassubclass
        relrowsecurity relforcerowsecurity relispopulated relreplident relispartition relrewrite
        relacl reloptions relpartbound=pg_node_tree
        """,
    ),
    ("pg_catalog", "pg_attribute"): SystemTable(
        "pg_catalog.pg_attribute",
        """
        attrelid attname atttypid attlen attnum atttypmod attndims attbyval attalign attstorage
        attcompression attnotnull atthasdef atthasmissing attidentity attgenerated attisdropped
        attislocal attinhcount attcollation attstattarget attacl attoptions attfdwoptions
        attmissingval=text[]
        """,
    ),
    ("pg_catalog", "pg_attrdef"): SystemTable(
        "pg_catalog.pg_attrdef",
        "oid adrelid adnum adbin?",
        "(adrelid, adnum) IN (SELECT a.attrelid, a.attnum FROM pg_catalog.pg_attribute AS a"
        " JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE (n.nspname, c.relname, a.attname) IN ({columns}))",
    ),
    ("information_schema", "columns"): SystemTable(
        "information_schema.columns", STANDARD_COLUMNS, MASKED_COLUMNS
    ),
}
"""Their columns since version 14."""

_STATEMENT_KEEPERS = (
    *("pg_stat_statements*", "pg_stat_plans", "pg_stat_monitor*", "pg_store_plans*"),
    *("pg_show_plans", "pg_stat_kcache*", "pg_qualstats*"),
)
"""Views of extensions, which may be in any schema."""

_SESSION_VIEWS = {
    "pg_stat_activity": "SELECT datid, datname, pid, leader_pid, usesysid, usename,"
    " application_name, client_addr, client_hostname, client_port, backend_start, xact_start,"
    " query_start, state_change, wait_event_type, wait_event, state, backend_xid, backend_xmin,"
    " CASE WHEN pid = pg_catalog.pg_backend_pid() THEN query_id END AS query_id,"
    " CASE WHEN query <> '' AND pid <> pg_catalog.pg_backend_pid() THEN '<hidden>' ELSE query"
    " END AS query, backend_type FROM pg_catalog.pg_stat_activity"
}
"""Callers share an account, to which the server shows the statements of all. Columns since version
14, in their order. A text stays one, so that the filters on it that tools send keep their rows."""


class _Postgres(Dialect, frozen=True):
    """PostgreSQL's own spellings."""

    def beginning(self, text: str, length: int) -> str:
        return f"left({text}, {length})"

    def marker(self, place: int) -> str:
        return f"${place}"

    def text_literal(self, value: str) -> str:
        plain = super().text_literal(value)
        if "\\" not in value:
            return plain
        escaped = plain.replace("\\", "\\\\")
        return f"E{escaped}"

    def bytes_literal(self, value: bytes) -> str:
        return f"decode('{value.hex()}', 'hex')"

    def array(self, values: Sequence[Any]) -> str:
        return f"ARRAY[{', '.join(map(self.literal, values))}]" if values else "'{}'"

    def export_writer(self, kind: str, as_text: Callable[[Any], str | None]) -> Write | None:
        """What is not a number is a literal without a type, which the column's type reads."""
        shaped = spelled_duration if kind.removesuffix("[]") == "interval" else None
        if kind.endswith("[]"):
            return lambda value: self.literal(
                None if value is None else _array(value, shaped or _same, as_text)
            )
        return None if shaped is None else lambda value: self.literal(shaped(value))

    def estimated_alike(self, query: str, nulls: Sequence[str]) -> str:
        # Each call counts as a hundred rows, whatever it is given.
        call = "pg_catalog.json_array_elements('[]')"
        none = f"SELECT {', '.join(nulls)} FROM {call} AS a, {call} AS b"
        return f"SELECT * FROM ({query}) AS q UNION ALL {none}"

    def without_distinct(self, query: str, nulls: Sequence[str]) -> str:
        # PostgreSQL knows no statistics of what comes out of UNION ALL, and reads one part of it.
        return f"{query} UNION ALL SELECT {', '.join(nulls)} WHERE false"

    def sortable(self, term: str) -> str:
        return f'CAST({term} AS pg_catalog.text) COLLATE pg_catalog."C"'

    def as_text(self, term: str) -> str:
        return f"CAST({term} AS pg_catalog.text)"

    def hash_of(self, key: str, text: str) -> str:
        bytes_ = f"pg_catalog.convert_to(CAST({key} AS pg_catalog.text) || {text}, 'UTF8')"
        return f"pg_catalog.encode(pg_catalog.sha256({bytes_}), 'hex')"

    def length(self, text: str) -> str:
        return f"pg_catalog.length({text})"

    def position(self, text: str, sought: str) -> str:
        return f"pg_catalog.strpos({text}, {sought})"

    def substr(self, text: str, *bounds: str) -> str:
        return f"pg_catalog.{super().substr(text, *bounds)}"


def _array(values: Any, shaped: Callable[[Any], Any], as_text: Callable[[Any], str | None]) -> str:
    """PostgreSQL's own text of an array: `{1,NULL,"a b"}`."""
    if not isinstance(values, list):
        return str(values)
    parts = [_element(value, shaped, as_text) for value in cast("list[Any]", values)]
    return "{" + ",".join(parts) + "}"


def _element(value: Any, shaped: Callable[[Any], Any], as_text: Callable[[Any], str | None]) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return _array(value, shaped, as_text)
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    written = as_text(shaped(value)) or ""
    return '"' + written.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _same(value: Any) -> Any:
    return value


_STATISTICS = """
SELECT attname, most_common_vals::text::text[], (histogram_bounds::text::text[])[1],
 (histogram_bounds::text::text[])[array_length(histogram_bounds::text::text[], 1)]
 FROM pg_catalog.pg_stats WHERE schemaname = {schema} AND tablename = {table} AND NOT inherited
""".replace("\n", "")

DIALECT = _Postgres(
    name="postgres",
    temporary_schemas=frozenset({"pg_temp"}),
    null_order="greatest",
    ordered_kinds=words("""
    integer decimal float text bytes date time timestamp timestamp_tz time_tz boolean uuid
    """),
    unordered_types=r"xml\b",
    trigger_query="SELECT t.tgname, t.tgtype FROM pg_catalog.pg_trigger AS t"
    " JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE n.nspname = {schema} AND c.relname = {table} AND NOT t.tgisinternal ORDER BY 1",
    plan_format="nodes",
    plan_figures="tidegate.sql.plan_figures:postgres_figures",
    plan_prefixes=("EXPLAIN (FORMAT JSON) ", "EXPLAIN (ANALYZE, FORMAT JSON) "),
    row_id="ctid",
    driver_types="pgjdbc",
    escape_functions={
        "char": "chr",
        "ifnull": "coalesce",
        "log": "ln",
        "log10": "log",
        "rand": "random",
        "truncate": "trunc",
    },
    vectors="typed",
    reserved_words="tidegate.sql.dialects.reserved_words:POSTGRES",
    table_forms="tidegate.sql.table_forms.postgres:WRITER",
    search="tidegate.search.postgres",
    function_names="SELECT DISTINCT routine_schema, routine_name FROM information_schema.routines"
    " WHERE routine_type = 'FUNCTION' AND routine_schema <> 'pg_catalog'",
    writing_rules=(
        "The database is PostgreSQL. A name with capital letters must be in double quotes.",
        "Cast to numeric before a division of integers that should have decimals.",
    ),
    samples_pages=True,
    pads_chars=True,
    statistics=_STATISTICS,
    plain_selects=True,
    parser="postgres",
    masked_shows=None,
    session_state=words("currval lastval"),
    lexical_rules=LexicalRules(
        operators=_OPERATORS,
        operator_runs=True,
        executable_comments=False,
        backslashes="plain",
        parameters=r"\$[0-9]++",
        comments="nested",
        escape_strings=True,
        dollar_strings=True,
        string_prefixes="bBxXnN",
        names_fold=False,
    ),
    roots=_ROOTS,
    infix=words("ESCAPE ILIKE OVERLAPS SIMILAR"),
    functions=_FUNCTIONS | _GEOMETRY | TYPES,
    changing_functions=frozenset({"merge_action", "nextval", "setval"}),
    function_schemas=frozenset({"pg_catalog", "information_schema"}),
    attributes=_ATTRIBUTES,
    secrets=(
        *_STATEMENT_KEEPERS,
        *(f"*.{name}" for name in _STATEMENT_KEEPERS),
        "pg_authid",
        "pg_shadow",
        "pg_user_mapping",
        "pg_user_mappings",
        "pg_subscription",
        "pg_largeobject",
        "pg_statistic",
        "pg_statistic_ext_data",
        "pg_file_settings",
        "pg_hba_file_rules",
        "pg_ident_file_mappings",
        "pg_config",
        "pg_prepared_statements",
        "information_schema.user_mapping_options",
        "pg_toast.*",
    ),
    stand_ins=dict.fromkeys(_OPERATORS - _KNOWN_TO_PARSER, "||"),
    compound=frozenset({"FUNCTION", "PROCEDURE"}),
    administration=words("account call copy maintenance rights routine trigger"),
    concurrent_indexes=True,
    procedures_commit=True,
    routine_languages=words("SQL PLPGSQL"),
    server_prefixes=("pg_", "lo_", "dblink"),
    settings_tables=frozenset({"pg_settings"}),
    explain_words=frozenset({"ANALYZE", "ANALYSE", "VERBOSE"}),
    respellings=_RESPELLINGS,
    worded=_WORDED,
    title="PostgreSQL",
    folds_quoted=False,
    numbered_parameters=True,
    is_postgres=True,
    has_information_schema=True,
    explain_creates=True,
    fence=" OFFSET 0",
    scans_as_stored=True,
    as_stored=" /* as stored */",
    # An index is read for a bitmap, which gives rows by their place in the table; and no plan is
    # better for the number of pages, which follows from the lengths of masked values.
    stored_order=(
        ("enable_indexscan", "off"),
        ("enable_indexonlyscan", "off"),
        ("seq_page_cost", "0"),
        ("random_page_cost", "0"),
    ),
    system_tables={
        "pg_catalog": PG_CATALOG | _CATALOG,
        "information_schema": INFORMATION_SCHEMA | _STANDARD,
    },
    partial_tables=_PARTIAL_TABLES,
    session_views=_SESSION_VIEWS,
    system_schema="pg_catalog",
    system_prefix="pg_",
    labels_by_text=False,
    tables_are_types=True,
    setting_shows=None,
    server_views=_VIEWS,
    server_panels=postgres_server.PANELS,
    server_texts=postgres_server.TEXTS,
    cancel_session=postgres_server.CANCEL,
    own_functions="as written",
    own_functions_by_name=True,
)
