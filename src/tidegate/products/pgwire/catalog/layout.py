"""Which tables and columns the emulation of PostgreSQL's catalogs has. Pure.

Source: PostgreSQL 17 documentation, "System Catalogs" and "The Information Schema". A table has the
columns that clients ask for. Of what a source has not (roles, policies, publications, …) the tables
are there and empty.
"""

from __future__ import annotations

COLUMNS: dict[str, str] = {
    "pg_namespace": "oid nspname nspowner nspacl",
    "pg_class": "oid relname relnamespace reltype reloftype relowner relam relfilenode"
    " reltablespace relpages reltuples reltoastrelid relhasindex? relisshared? relpersistence"
    " relkind relnatts relchecks relhasrules? relhastriggers? relhassubclass? relrowsecurity?"
    " relforcerowsecurity?"
    " relispopulated? relreplident relispartition? relacl reloptions relpartbound",
    "pg_attribute": "attrelid attname atttypid attlen attnum attndims atttypmod attnotnull?"
    " atthasdef? atthasmissing? attidentity attgenerated attisdropped? attislocal? attinhcount"
    " attcollation attoptions attacl attstorage attcompression attstattarget attfdwoptions",
    "pg_type": "oid typname typnamespace typowner typlen typbyval? typtype typcategory"
    " typisdefined? typdelim typrelid typelem typarray typnotnull? typbasetype typtypmod typndims"
    " typcollation typdefault typdefaultbin typinput typoutput typreceive typsend typmodin"
    " typmodout typanalyze typalign typstorage typispreferred? typacl typsubscript",
    "pg_index": "indexrelid indrelid indnatts indnkeyatts indisunique? indisprimary? indimmediate?"
    " indisexclusion? indisclustered? indisvalid? indisready? indislive? indisreplident? indkey"
    " indoption indclass indexprs indpred indnullsnotdistinct?",
    "pg_constraint": "oid conname connamespace contype condeferrable? condeferred? convalidated?"
    " conrelid contypid conindid conparentid confrelid confupdtype confdeltype confmatchtype"
    " conislocal? coninhcount connoinherit? conkey confkey conbin",
    "pg_attrdef": "oid adrelid adnum adbin",
    "pg_description": "objoid classoid objsubid description",
    "pg_database": "oid datname datdba encoding datlocprovider datistemplate? datallowconn?"
    " datconnlimit datcollate datctype daticulocale datlocale datacl dattablespace",
    "pg_roles": "oid rolname rolsuper? rolinherit? rolcreaterole? rolcreatedb? rolcanlogin?"
    " rolconnlimit rolvaliduntil rolreplication? rolbypassrls? rolconfig",
    "pg_am": "oid amname amtype",
    "pg_collation": "oid collname collnamespace collowner collprovider collisdeterministic?"
    " collencoding collcollate collctype",
    "pg_tablespace": "oid spcname spcowner spcacl spcoptions",
    "pg_settings": "name setting unit category short_desc context vartype source boot_val"
    " reset_val",
    "pg_range": "rngtypid rngsubtype rngmultitypid",
    "pg_tables": "schemaname tablename tableowner tablespace hasindexes? hasrules? hastriggers?",
    "pg_views": "schemaname viewname viewowner definition",
    "pg_indexes": "schemaname tablename indexname tablespace indexdef",
    "pg_stat_user_tables": "relid schemaname relname n_live_tup",
    "pg_enum": "oid enumtypid enumsortorder enumlabel",
    "pg_proc": "oid proname pronamespace proowner prolang prokind prosecdef? proleakproof?"
    " proisstrict? proretset? provolatile pronargs pronargdefaults prorettype proargtypes"
    " proallargtypes proargmodes proargnames prosrc proacl provariadic procost prorows",
    "pg_trigger": "oid tgrelid tgname tgisinternal? tgconstraint tgenabled tgparentid tgtype tgfoid"
    " tgattr tgdeferrable? tginitdeferred? tgnargs tgargs tgqual tgoldtable tgnewtable",
    "pg_inherits": "inhrelid inhparent inhseqno inhdetachpending?",
    "pg_policy": "oid polname polrelid polpermissive? polroles polqual polwithcheck polcmd",
    "pg_statistic_ext": "oid stxrelid stxname stxnamespace stxkind stxstattarget",
    "pg_publication": "oid pubname puballtables?",
    "pg_publication_rel": "oid prpubid prrelid prqual prattrs",
    "pg_publication_namespace": "oid pnpubid pnnspid",
    "pg_sequence": "seqrelid seqtypid seqstart seqincrement seqmax seqmin seqcache seqcycle?",
    "pg_auth_members": "roleid member grantor admin_option?",
    "pg_depend": "classid objid objsubid refclassid refobjid refobjsubid deptype",
    "pg_extension": "oid extname extowner extnamespace extrelocatable? extversion extconfig"
    " extcondition",
    "pg_foreign_table": "ftrelid ftserver ftoptions",
    "pg_foreign_server": "oid srvname srvowner srvfdw srvtype srvversion srvacl srvoptions",
    "pg_matviews": "schemaname matviewname matviewowner definition",
    "pg_rewrite": "oid rulename ev_class ev_type ev_enabled is_instead? ev_qual ev_action",
    "pg_language": "oid lanname lanowner lanispl? lanpltrusted? lanacl",
    "pg_shdescription": "objoid classoid description",
    "pg_user": "usename usesysid usecreatedb? usesuper? userepl? usebypassrls? valuntil useconfig",
    "pg_stat_activity": "datid datname pid usesysid usename application_name client_addr"
    " client_hostname client_port backend_start xact_start query_start state_change wait_event"
    " wait_event_type state query backend_type",
    "pg_opclass": "oid opcmethod opcname opcnamespace opcowner opcfamily opcintype opcdefault?",
    "pg_operator": "oid oprname oprnamespace oprowner oprkind oprleft oprright oprresult",
    "pg_aggregate": "aggfnoid aggkind",
    "pg_cast": "oid castsource casttarget castfunc castcontext castmethod",
    "pg_foreign_data_wrapper": "oid fdwname fdwowner fdwhandler fdwvalidator fdwacl fdwoptions",
    "pg_user_mapping": "oid umuser umserver umoptions",
    "pg_user_mappings": "umid srvid srvname umuser usename umoptions",
    "pg_event_trigger": "oid evtname evtevent evtowner evtfoid evtenabled evttags",
    "pg_db_role_setting": "setdatabase setrole setconfig",
    "pg_locks": "locktype database relation transactionid pid mode granted?",
    "pg_replication_slots": "slot_name plugin slot_type datoid database temporary? active?",
    "pg_prepared_xacts": "transaction gid prepared owner database",
    "pg_prepared_statements": "name statement prepare_time parameter_types from_sql?",
    "pg_cursors": "name statement is_holdable? is_binary? is_scrollable? creation_time",
    "pg_partitioned_table": "partrelid partstrat partnatts partdefid partattrs",
    "pg_conversion": "oid conname",
    "pg_sequences": "schemaname sequencename sequenceowner data_type start_value last_value",
    "pg_available_extensions": "name default_version installed_version comment",
    "pg_group": "groname grosysid grolist",
    "pg_seclabel": "objoid classoid objsubid provider label",
    "pg_timezone_names": "name abbrev utc_offset is_dst?",
    "pg_timezone_abbrevs": "abbrev utc_offset is_dst?",
    "pg_stat_ssl": "pid ssl? version cipher bits client_dn",
    "pg_stat_gssapi": "pid gss_authenticated? principal encrypted?",
    "pg_stat_database": "datid datname numbackends xact_commit xact_rollback tup_returned",
    "pg_statio_user_tables": "relid schemaname relname heap_blks_read heap_blks_hit",
    "pg_stat_all_tables": "relid schemaname relname n_live_tup n_dead_tup last_vacuum",
    "pg_statio_all_tables": "relid schemaname relname heap_blks_read heap_blks_hit",
    "pg_stats": "schemaname tablename attname inherited? null_frac avg_width n_distinct",
    "pg_keywords": "word catcode catdesc",
    "pg_no_rows": "pg_listening_channels",
}
"""The columns of each table; those with a `?` are boolean."""
BOOLEAN_COLUMNS = frozenset(
    name.rstrip("?") for block in COLUMNS.values() for name in block.split() if name.endswith("?")
)

INFORMATION: dict[str, str] = {
    "schemata": "catalog_name schema_name schema_owner",
    "tables": "table_catalog table_schema table_name table_type is_insertable_into is_typed",
    "views": "table_catalog table_schema table_name view_definition",
    "columns": "table_catalog table_schema table_name column_name ordinal_position column_default"
    " is_nullable data_type character_maximum_length character_octet_length numeric_precision"
    " numeric_precision_radix numeric_scale datetime_precision interval_type interval_precision"
    " character_set_name collation_catalog collation_schema collation_name domain_catalog"
    " domain_schema domain_name udt_catalog udt_schema udt_name is_identity identity_generation"
    " is_generated generation_expression is_updatable",
    "table_constraints": "constraint_catalog constraint_schema constraint_name table_catalog"
    " table_schema table_name constraint_type is_deferrable initially_deferred",
    "key_column_usage": "constraint_catalog constraint_schema constraint_name table_catalog"
    " table_schema table_name column_name ordinal_position position_in_unique_constraint",
    "constraint_column_usage": "table_catalog table_schema table_name column_name"
    " constraint_schema constraint_name",
    "referential_constraints": "constraint_catalog constraint_schema constraint_name"
    " unique_constraint_catalog unique_constraint_schema unique_constraint_name match_option"
    " update_rule delete_rule",
    "check_constraints": "constraint_catalog constraint_schema constraint_name check_clause",
    "routines": "specific_catalog specific_schema specific_name routine_catalog routine_schema"
    " routine_name routine_type data_type routine_definition external_language",
    "parameters": "specific_catalog specific_schema specific_name ordinal_position parameter_mode"
    " parameter_name data_type",
    "sequences": "sequence_catalog sequence_schema sequence_name data_type",
    "triggers": "trigger_catalog trigger_schema trigger_name event_manipulation"
    " event_object_schema event_object_table action_statement action_timing",
    "table_privileges": "grantor grantee table_catalog table_schema table_name privilege_type"
    " is_grantable",
    "role_table_grants": "grantor grantee table_catalog table_schema table_name privilege_type"
    " is_grantable",
    "element_types": "object_catalog object_schema object_name object_type data_type",
    "character_sets": "character_set_catalog character_set_schema character_set_name",
    "information_schema_catalog_name": "catalog_name",
    "enabled_roles": "role_name",
}
