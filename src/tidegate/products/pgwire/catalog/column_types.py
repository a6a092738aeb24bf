"""The types of the columns of PostgreSQL's catalogs, by their names. Pure.

Source: PostgreSQL 17, `src/include/catalog/pg_*.h` and `information_schema.sql`. A column has the
same type in every table that has one of its name. Those that are not here are texts.
"""

from __future__ import annotations

_BLOCKS: dict[str, str] = {
    "oid": "oid relnamespace reltype reloftype relowner relam relfilenode reltablespace"
    " reltoastrelid attrelid atttypid attcollation typnamespace typowner typrelid typelem typarray"
    " typbasetype typcollation indexrelid indrelid connamespace conrelid contypid conindid"
    " conparentid confrelid adrelid objoid classoid nspowner datdba dattablespace collnamespace"
    " collowner spcowner rngtypid rngsubtype rngmultitypid relid enumtypid pronamespace proowner"
    " prolang prorettype tgrelid tgconstraint tgparentid tgfoid inhrelid inhparent polrelid"
    " stxrelid stxnamespace stxowner prpubid prrelid pnpubid pnnspid seqrelid seqtypid roleid"
    " member classid objid refclassid refobjid extnamespace extowner ftrelid ftserver srvfdw"
    " srvowner ev_class usesysid opcmethod opcnamespace opcintype opcfamily amhandler castsource"
    " casttarget castfunc oprnamespace oprleft oprright oprresult provariadic setdatabase setrole"
    " evtowner fdwowner fdwhandler fdwvalidator lanowner datid umuser umserver collid",
    "smallint": "attnum attlen typlen relnatts relchecks attndims indnatts indnkeyatts attinhcount"
    " coninhcount adnum tgtype pronargs pronargdefaults",
    "integer": "atttypmod attstattarget typtypmod typndims relpages relallvisible encoding"
    " collencoding datconnlimit rolconnlimit objsubid inhseqno pid stxstattarget refobjsubid"
    " ordinal_position position_in_unique_constraint character_maximum_length numeric_precision"
    " numeric_scale datetime_precision character_octet_length numeric_precision_radix"
    " interval_precision",
    "bigint": "seqstart seqincrement seqmax seqmin seqcache n_live_tup",
    "real": "reltuples enumsortorder",
    '"char"': "relkind relpersistence relreplident attidentity attgenerated attstorage"
    " attcompression typtype typcategory typdelim typalign typstorage contype confupdtype"
    " confdeltype confmatchtype datlocprovider collprovider amtype tgenabled prokind provolatile"
    " ev_type polcmd deptype ev_enabled castcontext castmethod",
    "smallint[]": "conkey confkey tgattr stxkeys",
    "text[]": "relacl reloptions attacl attoptions attfdwoptions nspacl datacl spcacl spcoptions"
    " typacl proacl rolconfig ftoptions srvoptions proargnames extconfig extcondition lanacl"
    " setconfig umoptions evttags",
    "oid[]": "proallargtypes polroles conexclop conpfeqop conppeqop conffeqop",
    "name": "relname attname typname nspname conname datname rolname amname collname spcname"
    " enumname proname tgname polname stxname pubname extname srvname lanname opcname usename"
    " rulename schemaname tablename viewname matviewname indexname tableowner viewowner"
    " matviewowner tablespace catalog_name schema_name schema_owner table_catalog table_schema"
    " table_name column_name constraint_catalog constraint_schema constraint_name"
    " unique_constraint_catalog unique_constraint_schema unique_constraint_name routine_schema"
    " routine_name routine_catalog specific_schema specific_name sequence_schema sequence_name"
    " sequence_catalog udt_catalog udt_schema udt_name domain_catalog domain_schema domain_name"
    " evtname fdwname oprname cfgname dictname prsname tmplname castname slot_name grantor grantee",
    "character varying": "is_nullable data_type table_type is_insertable_into is_typed"
    " column_default is_identity is_generated constraint_type is_deferrable initially_deferred"
    " update_rule delete_rule match_option view_definition is_updatable identity_generation"
    " generation_expression check_clause privilege_type is_grantable routine_type",
}
_TYPES = {name: kind for kind, block in _BLOCKS.items() for name in block.split()}
_WHOLE = frozenset({"oid", "smallint", "integer", "bigint"})


def type_of(column: str) -> str:
    """The type of a column of a catalog, as `format_type` names it. `?` after it: boolean."""
    return "boolean" if column.endswith("?") else _TYPES.get(column, "text")


def known_type(column: str) -> str | None:
    """The type of a column that is neither a text nor boolean by its name alone."""
    return _TYPES.get(column)


def declared(column: str) -> str:
    """How SQLite declares the column: an affinity, then a colon and the type."""
    kind = type_of(column)
    whole = kind in _WHOLE or kind == "boolean"
    return f"{'INT' if whole else 'REAL' if kind == 'real' else 'TEXT'}:{kind}"


def declared_type(declaration: str | None) -> str | None:
    """The type of a column that was declared by `declared`; None for any other."""
    _, _, kind = (declaration or "").partition(":")
    return kind or None
