"""What tools send when they connect and show the tree of a database, shortened.

The forms are known from logs of servers and from the tools' open sources: DBeaver 25 (on pgjdbc),
DataGrip 2025, Metabase 0.55, Power BI (on Npgsql), Tableau (on ODBC and pgjdbc), pgAdmin 4, pgcli.
The texts are our own.
"""

from __future__ import annotations

CONNECTED = "SELECT current_schema(), session_user"
IS_ARRAY = (
    "SELECT typinput = 'pg_catalog.array_in'::regproc AS is_array, typtype, typname, pg_type.oid"
    " FROM pg_catalog.pg_type LEFT JOIN (SELECT ns.oid AS nspoid, ns.nspname, r.r FROM"
    " pg_namespace AS ns JOIN (SELECT s.r, (current_schemas(false))[s.r] AS nspname FROM"
    " generate_series(1, array_upper(current_schemas(false), 1)) AS s(r)) AS r USING (nspname))"
    " AS sp ON sp.nspoid = typnamespace WHERE pg_type.oid = '1009' ORDER BY sp.r, pg_type.oid DESC"
)
CURRENT_TRANSACTION = (
    "select case when pg_catalog.pg_is_in_recovery() then null else"
    " (pg_catalog.txid_current() % 4294967296)::varchar::bigint end as current_txid"
)
INDEXES = (
    "SELECT i.*, i.indkey AS keys, c.relname, c.relnamespace, c.relam, c.reltablespace,"
    " tc.relname AS tabrelname, dsc.description, pg_catalog.pg_get_expr(i.indpred,"
    " i.indrelid) AS pred_expr, pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) AS expr,"
    " pg_catalog.pg_relation_size(i.indexrelid) AS index_rel_size,"
    " pg_catalog.pg_stat_get_numscans(i.indexrelid) AS index_num_scans FROM"
    " pg_catalog.pg_index i INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid INNER"
    " JOIN pg_catalog.pg_class tc ON tc.oid = i.indrelid LEFT OUTER JOIN"
    " pg_catalog.pg_description dsc ON i.indexrelid = dsc.objoid"
    " ORDER BY tabrelname, c.relname"
)
SIZES = (
    "SELECT c.oid, pg_catalog.pg_total_relation_size(c.oid) AS total_rel_size,"
    " pg_catalog.pg_relation_size(c.oid) AS rel_size FROM pg_class c"
    " WHERE c.relnamespace = 2200"
)
LOCKS = (
    "select L.transactionid::varchar::bigint as transaction_id from pg_catalog.pg_locks L"
    " where L.transactionid is not null order by pg_catalog.age(L.transactionid) desc limit 1"
)

NOT_SUPPORTED = {
    ("pg", CURRENT_TRANSACTION): "txid_current() takes a number of PostgreSQL's",
    ("masked", CURRENT_TRANSACTION): "txid_current() takes a number of PostgreSQL's",
    ("masked", INDEXES): "the size of an index tells how many rows a filter hides",
    ("masked", SIZES): "the size of a table tells how many rows a filter hides",
    ("masked", LOCKS): "locks tell what other sessions do",
}
"""What is refused, by source and statement, with the reason."""

STATEMENTS: dict[str, tuple[str, ...]] = {
    "DBeaver": (
        "SET extra_float_digits = 3",
        "SET application_name = 'DBeaver 25.1.5 - Main <x>'",
        CONNECTED,
        "SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN"
        " pg_catalog.pg_description d ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid ="
        " 'pg_namespace'::regclass ORDER BY nspname",
        "SELECT n.nspname = ANY(current_schemas(true)), n.nspname, t.typname FROM"
        " pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid"
        " WHERE t.oid = 1009",
        IS_ARRAY,
        "SHOW search_path",
        "SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datname = 'x'",
        "SELECT * FROM pg_catalog.pg_settings WHERE name = 'standard_conforming_strings'",
        "SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords()"
        " WHERE word <> ALL ('{a,abs,all}'::text[])",
        "SELECT version()",
        "SELECT * FROM pg_catalog.pg_enum WHERE 1<>1 LIMIT 1",
        "SELECT reltype FROM pg_catalog.pg_class WHERE 1<>1 LIMIT 1",
        "SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) AS"
        " base_type_name, d.description FROM pg_catalog.pg_type t LEFT OUTER JOIN"
        " pg_catalog.pg_type et ON et.oid = t.typelem LEFT OUTER JOIN pg_catalog.pg_class c ON"
        " c.oid = t.typrelid LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid = d.objoid"
        " WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c')"
        " AND (et.typcategory IS NULL OR et.typcategory <> 'C')",
        "SELECT a.oid, a.*, pd.description FROM pg_catalog.pg_roles a LEFT JOIN"
        " pg_catalog.pg_shdescription pd ON a.oid = pd.objoid ORDER BY a.rolname",
        "SELECT i.*, c.relnamespace FROM pg_catalog.pg_inherits i, pg_catalog.pg_class c"
        " WHERE i.inhrelid = 0 AND c.oid = i.inhparent ORDER BY i.inhseqno",
        "SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS"
        " partition_expr FROM pg_catalog.pg_class c LEFT OUTER JOIN pg_catalog.pg_description d"
        " ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass"
        " WHERE c.relnamespace = 2200 AND c.relkind NOT IN ('i', 'I', 'c')",
        "SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value,"
        " dsc.description FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON"
        " a.attrelid = c.oid LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON a.attrelid = ad.adrelid"
        " AND a.attnum = ad.adnum LEFT OUTER JOIN pg_catalog.pg_description dsc ON"
        " c.oid = dsc.objoid AND a.attnum = dsc.objsubid WHERE NOT a.attisdropped"
        " ORDER BY a.attnum",
        "SELECT c.oid, c.*, t.relname AS tabrelname, rt.relnamespace AS refnamespace,"
        " d.description, CASE WHEN c.contype = 'c' THEN"
        " substring(pg_get_constraintdef(c.oid), 7) ELSE NULL END AS consrc_copy FROM"
        " pg_catalog.pg_constraint c INNER JOIN pg_catalog.pg_class t ON t.oid = c.conrelid LEFT"
        " OUTER JOIN pg_catalog.pg_class rt ON rt.oid = c.confrelid LEFT OUTER JOIN"
        " pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid ="
        " 'pg_constraint'::regclass ORDER BY c.oid",
        INDEXES,
        SIZES,
    ),
    "DataGrip": (
        "SET application_name = 'DataGrip 2025.2.3'",
        "select current_database() as a, current_schemas(false) as b",
        "SHOW TRANSACTION ISOLATION LEVEL",
        "select round(extract(epoch from pg_postmaster_start_time() at time zone 'UTC'))"
        " as startup_time",
        LOCKS,
        CURRENT_TRANSACTION,
        "select N.oid::bigint as id, datname as name, D.description, datistemplate as is_template,"
        ' datallowconn as allow_connections, pg_catalog.pg_get_userbyid(N.datdba) as "owner"'
        " from pg_catalog.pg_database N left join pg_catalog.pg_shdescription D on N.oid ="
        " D.objoid order by case when datname = pg_catalog.current_database() then -1::bigint"
        " else N.oid::bigint end",
        "select N.oid::bigint as id, N.xmin as state_number, nspname as name, D.description from"
        " pg_catalog.pg_namespace N left join pg_catalog.pg_description D on N.oid = D.objoid"
        " order by case when nspname = pg_catalog.current_schema() then -1::bigint"
        " else N.oid::bigint end",
        IS_ARRAY,
        "show DateStyle",
        "select name, is_dst from pg_catalog.pg_timezone_names union distinct"
        " select abbrev as name, is_dst from pg_catalog.pg_timezone_abbrevs",
        "select R.oid::bigint as role_id, rolname as role_name, rolsuper is_super, rolconfig"
        " config, D.description from pg_catalog.pg_roles R left join"
        " pg_catalog.pg_shdescription D on D.objoid = R.oid",
        "select member id, roleid role_id, admin_option from pg_catalog.pg_auth_members"
        " order by id, roleid::text",
        "select T.oid::bigint as id, T.spcname as name, T.xmin as state_number,"
        " pg_catalog.pg_tablespace_location(T.oid) as location, T.spcoptions as options"
        " from pg_catalog.pg_tablespace T",
        "select T.oid as object_id, T.spcacl as acl from pg_catalog.pg_tablespace T union all"
        " select T.oid as object_id, T.datacl as acl from pg_catalog.pg_database T",
        "SELECT e.typdelim FROM pg_catalog.pg_type t, pg_catalog.pg_type e"
        " WHERE t.oid = '1009' and t.typelem = e.oid",
        "SELECT e.oid, n.nspname = ANY(current_schemas(true)), n.nspname, e.typname FROM"
        " pg_catalog.pg_type t JOIN pg_catalog.pg_type e ON t.typelem = e.oid JOIN"
        " pg_catalog.pg_namespace n ON t.typnamespace = n.oid WHERE t.oid = '1009'",
        "select ssl from pg_stat_ssl where pid = pg_backend_pid()",
    ),
    "Metabase": (
        "SELECT 1",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        "SET application_name = 'Metabase v0.55.1'",
        'SELECT nspname AS "TABLE_SCHEM", current_database() AS "TABLE_CATALOG" FROM'
        " pg_catalog.pg_namespace WHERE nspname <> 'pg_toast' AND (nspname !~ '^pg_temp_' OR"
        " nspname = (pg_catalog.current_schemas(true))[1]) AND (nspname !~ '^pg_toast_temp_' OR"
        " nspname = replace((pg_catalog.current_schemas(true))[1], 'pg_temp_',"
        " 'pg_toast_temp_')) ORDER BY \"TABLE_SCHEM\"",
        "with table_privileges as (select NULL as role, t.schemaname as schema, t.objectname as"
        " table, pg_catalog.has_any_column_privilege(current_user, '\"' || replace(t.schemaname,"
        " '\"', '\"\"') || '\"' || '.' || '\"' || replace(t.objectname, '\"', '\"\"') || '\"',"
        " 'update') as update, pg_catalog.has_table_privilege(current_user, '\"' ||"
        " replace(t.schemaname, '\"', '\"\"') || '\"' || '.' || '\"' || replace(t.objectname,"
        " '\"', '\"\"') || '\"', 'delete') as delete from (select schemaname, tablename as"
        " objectname from pg_catalog.pg_tables union select schemaname, viewname as objectname"
        " from pg_catalog.pg_views union select schemaname, matviewname as objectname from"
        " pg_catalog.pg_matviews) t where t.schemaname !~ '^pg_' and t.schemaname <>"
        " 'information_schema' and pg_catalog.has_schema_privilege(current_user, t.schemaname,"
        " 'usage')) select t.* from table_privileges t",
        'SELECT "n"."nspname" AS "schema", "c"."relname" AS "name", CASE "c"."relkind" WHEN \'r\''
        " THEN 'TABLE' WHEN 'v' THEN 'VIEW' ELSE NULL END AS \"type\", \"d\".\"description\" AS"
        ' "description", "stat"."n_live_tup" AS "estimated_row_count" FROM'
        ' "pg_catalog"."pg_class" AS "c" INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON'
        ' "c"."relnamespace" = "n"."oid" LEFT JOIN "pg_catalog"."pg_description" AS "d" ON'
        ' ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = \'0\') AND ("d"."classoid" ='
        ' \'pg_class\'::regclass) LEFT JOIN "pg_stat_user_tables" AS "stat" ON'
        ' ("n"."nspname" = "stat"."schemaname") AND ("c"."relname" = "stat"."relname") WHERE'
        ' ("n"."nspname" !~ \'^pg_\') AND ("n"."nspname" <> \'information_schema\') AND c.relkind'
        " in ('r', 'p', 'v', 'f', 'm') ORDER BY \"type\" ASC, \"schema\" ASC, \"name\" ASC",
        "show timezone",
    ),
    "Power BI": (
        "/*** Load all supported types ***/ SELECT ns.nspname, a.typname, a.oid, a.typrelid,"
        " a.typbasetype, CASE WHEN pg_proc.proname = 'array_recv' THEN 'a' ELSE a.typtype END AS"
        " type, CASE WHEN pg_proc.proname = 'array_recv' THEN a.typelem WHEN a.typtype = 'r'"
        " THEN rngsubtype ELSE 0 END AS elemoid, CASE WHEN pg_proc.proname IN ('array_recv',"
        " 'oidvectorrecv') THEN 3 WHEN a.typtype = 'r' THEN 2 ELSE 0 END AS ord FROM pg_type AS a"
        " JOIN pg_namespace AS ns ON (ns.oid = a.typnamespace) JOIN pg_proc ON pg_proc.oid ="
        " a.typreceive LEFT OUTER JOIN pg_class AS cls ON (cls.oid = a.typrelid) LEFT OUTER JOIN"
        " pg_type AS b ON (b.oid = a.typelem) LEFT OUTER JOIN pg_range ON (pg_range.rngtypid ="
        " a.oid) WHERE a.typtype IN ('b', 'r', 'e', 'd') AND (b.typtype IS NULL OR b.typtype IN"
        " ('b', 'r', 'e', 'd')) ORDER BY ord",
        "/*** Load enum fields ***/ SELECT pg_type.oid, enumlabel FROM pg_enum JOIN pg_type ON"
        " pg_type.oid = enumtypid ORDER BY oid, enumsortorder",
        "select character_set_name from INFORMATION_SCHEMA.character_sets",
        "select TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE from INFORMATION_SCHEMA.tables where"
        " TABLE_SCHEMA not in ('information_schema', 'pg_catalog')"
        " order by TABLE_SCHEMA, TABLE_NAME",
        "select COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE, case when (data_type like '%unsigned%')"
        " then DATA_TYPE || ' unsigned' else DATA_TYPE end as DATA_TYPE from"
        " INFORMATION_SCHEMA.columns where TABLE_SCHEMA = 'x' and TABLE_NAME = 'item'"
        " order by TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION",
        "select i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME as INDEX_NAME, ii.COLUMN_NAME,"
        " ii.ORDINAL_POSITION, case when i.CONSTRAINT_TYPE = 'PRIMARY KEY' then 'Y' else 'N' end"
        " as PRIMARY_KEY from INFORMATION_SCHEMA.table_constraints i inner join"
        " INFORMATION_SCHEMA.key_column_usage ii on i.CONSTRAINT_SCHEMA = ii.CONSTRAINT_SCHEMA"
        " and i.CONSTRAINT_NAME = ii.CONSTRAINT_NAME and i.TABLE_NAME = ii.TABLE_NAME where"
        " i.TABLE_NAME = 'item' and i.CONSTRAINT_TYPE in ('PRIMARY KEY', 'UNIQUE') order by 1, 3",
        "DISCARD ALL",
    ),
    "Tableau": (
        "SET DateStyle = 'ISO'",
        "SET extra_float_digits = 2",
        "show transaction_isolation",
        "select oid, typbasetype from pg_type where typname = 'lo'",
        "select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum, a.attlen,"
        " a.atttypmod, a.attnotnull, c.relhasrules, c.relkind, c.oid, pg_get_expr(d.adbin,"
        " d.adrelid), case t.typtype when 'd' then t.typbasetype else 0 end, t.typtypmod, 0,"
        " attidentity, c.relhassubclass from (((pg_catalog.pg_class c inner join"
        " pg_catalog.pg_namespace n on n.oid = c.relnamespace and c.relname like 'item') inner"
        " join pg_catalog.pg_attribute a on (not a.attisdropped) and a.attnum > 0 and a.attrelid"
        " = c.oid) inner join pg_catalog.pg_type t on t.oid = a.atttypid) left outer join"
        " pg_attrdef d on a.atthasdef and d.adrelid = a.attrelid and d.adnum = a.attnum order by"
        " n.nspname, c.relname, attnum",
        "select c.relname, n.nspname, c.relkind from pg_catalog.pg_class c inner join"
        " pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'v', 'm',"
        " 'f', 'p') and n.nspname not in ('pg_catalog', 'information_schema') order by n.nspname",
    ),
    "pgAdmin": (
        "SET DateStyle=ISO; SET client_min_messages=notice; SELECT set_config('bytea_output',"
        " 'hex', false); SET client_encoding='UTF8';",
        "SELECT version()",
        "SELECT CASE WHEN (SELECT count(extname) FROM pg_catalog.pg_extension WHERE extname ="
        " 'bdr') > 0 THEN 'pgd' WHEN (SELECT COUNT(*) FROM pg_replication_slots) > 0 THEN 'log'"
        " ELSE NULL END AS type",
        "SELECT db.oid AS did, db.datname, db.datallowconn, pg_encoding_to_char(db.encoding) AS"
        " serverencoding, has_database_privilege(db.oid, 'CREATE') AS cancreate, datistemplate"
        " FROM pg_catalog.pg_database db WHERE db.datname = current_database()",
        "SELECT roles.oid AS id, roles.rolname AS name, roles.rolsuper AS is_superuser,"
        " CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END AS can_create_role,"
        " CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreatedb END AS can_create_db FROM"
        " pg_catalog.pg_roles AS roles WHERE rolname = current_user",
        "SELECT nsp.oid, nsp.nspname AS name, has_schema_privilege(nsp.oid, 'CREATE') AS"
        " can_create, has_schema_privilege(nsp.oid, 'USAGE') AS has_usage, des.description FROM"
        " pg_catalog.pg_namespace nsp LEFT OUTER JOIN pg_catalog.pg_description des ON"
        " (des.objoid = nsp.oid AND des.classoid = 'pg_namespace'::regclass) WHERE nspname NOT"
        " LIKE E'pg\\\\_%' ORDER BY nspname",
        "SELECT rel.oid, rel.relname AS name, (SELECT count(*) FROM pg_catalog.pg_trigger WHERE"
        " tgrelid = rel.oid AND tgisinternal = FALSE) AS triggercount, (SELECT count(1) FROM"
        " pg_catalog.pg_inherits WHERE inhrelid = rel.oid LIMIT 1) AS is_inherits FROM"
        " pg_catalog.pg_class rel WHERE rel.relkind IN ('r', 's', 't', 'p') AND"
        " rel.relnamespace = 2200::oid AND NOT rel.relispartition ORDER BY rel.relname",
        "SELECT DISTINCT dep.deptype, dep.classid, cl.relkind FROM pg_catalog.pg_depend dep"
        " LEFT JOIN pg_catalog.pg_class cl ON dep.objid = cl.oid WHERE dep.refobjid = 1::oid",
        "SELECT gss_authenticated, encrypted FROM pg_catalog.pg_stat_gssapi"
        " WHERE pid = pg_backend_pid()",
    ),
    "pgcli": (
        "SELECT * FROM unnest(current_schemas(true))",
        "SELECT n.nspname schema_name, c.relname table_name FROM pg_catalog.pg_class c LEFT JOIN"
        " pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind ="
        " ANY('{r,p,f}') ORDER BY 1, 2",
        "SELECT nsp.nspname schema_name, cls.relname table_name, att.attname column_name,"
        " att.atttypid::regtype::text type_name, att.atthasdef AS has_default,"
        " pg_catalog.pg_get_expr(def.adbin, def.adrelid, true) AS default FROM"
        " pg_catalog.pg_attribute att INNER JOIN pg_catalog.pg_class cls ON att.attrelid = cls.oid"
        " INNER JOIN pg_catalog.pg_namespace nsp ON cls.relnamespace = nsp.oid LEFT OUTER JOIN"
        " pg_attrdef def ON def.adrelid = att.attrelid AND def.adnum = att.attnum WHERE"
        " cls.relkind = ANY('{r,v}') AND NOT att.attisdropped AND att.attnum > 0 ORDER BY 1, 2",
        "SELECT s_p.nspname AS parentschema, t_p.relname AS parenttable, unnest((select"
        " array_agg(attname ORDER BY i) from (select unnest(confkey) as attnum,"
        " generate_subscripts(confkey, 1) as i) x JOIN pg_catalog.pg_attribute c USING(attnum)"
        " WHERE c.attrelid = fk.confrelid)) AS parentcolumn, t_c.relname AS childtable FROM"
        " pg_catalog.pg_constraint fk JOIN pg_catalog.pg_class t_p ON t_p.oid = fk.confrelid JOIN"
        " pg_catalog.pg_namespace s_p ON s_p.oid = t_p.relnamespace JOIN pg_catalog.pg_class t_c"
        " ON t_c.oid = fk.conrelid WHERE fk.contype = 'f'",
        "SELECT n.nspname schema_name, t.typname type_name FROM pg_catalog.pg_type t INNER JOIN"
        " pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE (t.typrelid = 0 OR (SELECT"
        " c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid)) AND NOT EXISTS("
        "SELECT 1 FROM pg_catalog.pg_type el WHERE el.oid = t.typelem AND el.typarray = t.oid)"
        " AND n.nspname <> 'pg_catalog' ORDER BY 1, 2",
        "SELECT d.datname FROM pg_catalog.pg_database d ORDER BY 1",
    ),
}
