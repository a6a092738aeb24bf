"""The rows of `pg_catalog` and `information_schema` for a catalog that the gate has given. Pure.

Source: PostgreSQL 17 documentation, "System Catalogs" and "The Information Schema". A table has the
columns that clients ask for. Of what a source has not (roles, policies, publications, …) the tables
are there and empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tidegate.edges.pgwire.values import wire_type
from tidegate.model.results import ColumnKind
from tidegate.model.schema import Catalog, Table
from tidegate.results.column_kinds import column_of

FIRST_OID = 16_384
PUBLIC = 2_200
"""The oid of the schema of a source without schemas, which is shown as `public`."""
_SYSTEM = 11
_INFORMATION = 13_000
_OWNER = 10
_RELKINDS = {"view": "v", "materialized view": "m", "foreign table": "f"}

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
    " typcollation typdefault typinput",
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
    "pg_collation": "oid collname collnamespace",
    "pg_tablespace": "oid spcname spcowner spcoptions",
    "pg_settings": "name setting",
    "pg_range": "rngtypid rngsubtype rngmultitypid",
    "pg_tables": "schemaname tablename tableowner tablespace hasindexes? hasrules? hastriggers?",
    "pg_views": "schemaname viewname viewowner definition",
    "pg_indexes": "schemaname tablename indexname tablespace indexdef",
    "pg_stat_user_tables": "relid schemaname relname n_live_tup",
    "pg_enum": "oid enumtypid enumsortorder enumlabel",
    "pg_proc": "oid proname pronamespace prokind prorettype proargtypes prolang",
    "pg_trigger": "oid tgrelid tgname tgisinternal? tgconstraint tgenabled tgparentid",
    "pg_inherits": "inhrelid inhparent inhseqno inhdetachpending?",
    "pg_policy": "oid polname polrelid polpermissive? polroles polqual polwithcheck polcmd",
    "pg_statistic_ext": "oid stxrelid stxname stxnamespace stxkind stxstattarget",
    "pg_publication": "oid pubname puballtables?",
    "pg_publication_rel": "oid prpubid prrelid prqual prattrs",
    "pg_publication_namespace": "oid pnpubid pnnspid",
    "pg_sequence": "seqrelid seqtypid seqstart seqincrement seqmax seqmin seqcache seqcycle?",
    "pg_auth_members": "roleid member",
    "pg_depend": "classid objid objsubid refclassid refobjid refobjsubid deptype",
    "pg_extension": "oid extname extnamespace extversion",
    "pg_foreign_table": "ftrelid ftserver ftoptions",
    "pg_foreign_server": "oid srvname srvfdw",
    "pg_matviews": "schemaname matviewname matviewowner definition",
    "pg_rewrite": "oid rulename ev_class ev_type",
    "pg_language": "oid lanname",
    "pg_shdescription": "objoid classoid description",
    "pg_user": "usename usesysid usecreatedb? usesuper?",
    "pg_stat_activity": "pid datname usename state query",
}
"""The columns of each table; those with a `?` are boolean."""

INFORMATION: dict[str, str] = {
    "schemata": "catalog_name schema_name schema_owner",
    "tables": "table_catalog table_schema table_name table_type is_insertable_into is_typed",
    "views": "table_catalog table_schema table_name view_definition",
    "columns": "table_catalog table_schema table_name column_name ordinal_position column_default"
    " is_nullable data_type character_maximum_length numeric_precision numeric_scale"
    " datetime_precision udt_name is_identity is_generated",
    "table_constraints": "constraint_catalog constraint_schema constraint_name table_catalog"
    " table_schema table_name constraint_type",
    "key_column_usage": "constraint_catalog constraint_schema constraint_name table_catalog"
    " table_schema table_name column_name ordinal_position position_in_unique_constraint",
    "constraint_column_usage": "table_catalog table_schema table_name column_name"
    " constraint_schema constraint_name",
    "referential_constraints": "constraint_catalog constraint_schema constraint_name"
    " unique_constraint_schema unique_constraint_name update_rule delete_rule",
    "routines": "routine_schema routine_name data_type",
    "sequences": "sequence_schema sequence_name",
}

_TYPES: tuple[tuple[int, str, int, str, int, ColumnKind], ...] = (
    (16, "bool", 1, "B", 1000, "boolean"),
    (17, "bytea", -1, "U", 1001, "bytes"),
    (20, "int8", 8, "N", 1016, "integer"),
    (21, "int2", 2, "N", 1005, "other"),
    (23, "int4", 4, "N", 1007, "other"),
    (25, "text", -1, "S", 1009, "text"),
    (26, "oid", 4, "N", 1028, "other"),
    (114, "json", -1, "U", 199, "json"),
    (701, "float8", 8, "N", 1022, "float"),
    (1043, "varchar", -1, "S", 1015, "other"),
    (1082, "date", 4, "D", 1182, "date"),
    (1083, "time", 8, "D", 1183, "time"),
    (1114, "timestamp", 8, "D", 1115, "timestamp"),
    (1184, "timestamptz", 8, "D", 1185, "timestamp_tz"),
    (1186, "interval", 16, "T", 1187, "interval"),
    (1266, "timetz", 12, "D", 1270, "time_tz"),
    (1700, "numeric", -1, "N", 1231, "decimal"),
    (2950, "uuid", 16, "U", 2951, "uuid"),
)
FORMATTED = {
    16: "boolean", 17: "bytea", 20: "bigint", 21: "smallint", 23: "integer", 25: "text", 26: "oid",
    114: "json", 701: "double precision", 1043: "character varying", 1082: "date",
    1083: "time without time zone", 1114: "timestamp without time zone",
    1184: "timestamp with time zone", 1186: "interval", 1266: "time with time zone",
    1700: "numeric", 2950: "uuid",
}  # fmt: skip
_UDT = {oid: name for oid, name, *_ in _TYPES}
_ACTIONS = {"NO ACTION": "a", "RESTRICT": "r", "CASCADE": "c", "SET NULL": "n", "SET DEFAULT": "d"}

Row = tuple[Any, ...]


class CatalogRows(NamedTuple):
    """The rows of each table that has some; `definitions` are texts by oid (indexes, views,
    constraints), `comments` by (oid, column)."""

    tables: dict[str, list[Row]]
    information: dict[str, list[Row]]
    definitions: dict[int, str]
    comments: dict[tuple[int, int], str]


def catalog_rows(
    catalog: Catalog,
    databases: Sequence[str],
    database: str,
    user: str,
    settings: Sequence[tuple[str, str]],
) -> CatalogRows:
    """The catalogs of a source as PostgreSQL would show them to this user."""
    return _Writer(catalog, database, user).write(databases, settings)


class _Writer:
    def __init__(self, catalog: Catalog, database: str, user: str) -> None:
        self._catalog = catalog
        self._database = database
        self._user = user
        self._oid = FIRST_OID
        # psql looks for foreign keys of tables with triggers alone: PostgreSQL checks them so.
        self._has_foreign_keys = any(table.foreign_keys for table in catalog.tables)
        self._rows: dict[str, list[Row]] = {name: [] for name in COLUMNS}
        self._information: dict[str, list[Row]] = {name: [] for name in INFORMATION}
        self._definitions: dict[int, str] = {}
        self._comments: dict[tuple[int, int], str] = {}
        self._schemas: dict[str, int] = {}
        self._classes: dict[tuple[str, str], int] = {}

    def _next(self) -> int:
        self._oid += 1
        return self._oid - 1

    def _add(self, table: str, **cells: Any) -> None:
        names = [name.rstrip("?") for name in COLUMNS[table].split()]
        if not cells.keys() <= set(names):
            raise AssertionError(f"{table} has no {cells.keys() - set(names)}")
        flags = {name.rstrip("?") for name in COLUMNS[table].split() if name.endswith("?")}
        self._rows[table].append(
            tuple([cells.get(name, 0 if name in flags else None) for name in names])
        )

    def _inform(self, table: str, **cells: Any) -> None:
        self._information[table].append(
            tuple([cells.get(name) for name in INFORMATION[table].split()])
        )

    def write(self, databases: Sequence[str], settings: Sequence[tuple[str, str]]) -> CatalogRows:
        self._write_fixed(databases, settings)
        for table in self._catalog.tables:
            self._classes[table.schema, table.name] = self._next()
        for table in self._catalog.tables:
            self._write_table(table)
        for table in self._catalog.tables:
            self._write_foreign_keys(table)
        return CatalogRows(self._rows, self._information, self._definitions, self._comments)

    def _write_fixed(self, databases: Sequence[str], settings: Sequence[tuple[str, str]]) -> None:
        add = self._add
        for oid, name in ((_SYSTEM, "pg_catalog"), (_INFORMATION, "information_schema")):
            add("pg_namespace", oid=oid, nspname=name, nspowner=_OWNER)
        shown = [*dict.fromkeys(shown_schema(each) for each in self._catalog.schemas), "public"]
        for name in dict.fromkeys(shown):
            oid = PUBLIC if name == "public" else self._next()
            if name == "public" and self._catalog.schemas and "public" not in shown[:-1]:
                continue
            self._schemas[name] = oid
            add("pg_namespace", oid=oid, nspname=name, nspowner=_OWNER)
            self._inform(
                "schemata", catalog_name=self._database, schema_name=name, schema_owner=self._user
            )
        for name in databases:
            add(
                "pg_database", oid=self._next(), datname=name, datdba=_OWNER, encoding=6,
                datlocprovider="c", datallowconn=1, datconnlimit=-1, datcollate="C", datctype="C",
            )  # fmt: skip
        add(
            "pg_roles", oid=_OWNER, rolname=self._user, rolinherit=1, rolcanlogin=1,
            rolconnlimit=-1,
        )  # fmt: skip
        add("pg_user", usename=self._user, usesysid=_OWNER)
        add("pg_am", oid=2, amname="heap", amtype="t")
        add("pg_am", oid=403, amname="btree", amtype="i")
        add("pg_tablespace", oid=1663, spcname="pg_default", spcowner=_OWNER)
        add("pg_collation", oid=100, collname="default", collnamespace=_SYSTEM)
        for name, setting in settings:
            add("pg_settings", name=name, setting=setting)
        for oid, name, length, category, array, _ in _TYPES:
            shared = {"typnamespace": _SYSTEM, "typowner": _OWNER, "typtype": "b", "typdelim": ","}
            shared |= {"typisdefined": 1, "typrelid": 0, "typbasetype": 0, "typtypmod": -1}
            shared |= {"typndims": 0, "typcollation": 100 if oid in (25, 1043) else 0}
            add(
                "pg_type", oid=oid, typname=name, typlen=length, typcategory=category, typelem=0,
                typarray=array, **shared,
            )  # fmt: skip
            add(
                "pg_type", oid=array, typname=f"_{name}", typlen=-1, typcategory="A", typelem=oid,
                typarray=0, **shared,
            )  # fmt: skip

    def _write_table(self, table: Table) -> None:
        oid, schema = self._classes[table.schema, table.name], shown_schema(table.schema)
        kind = _RELKINDS.get(table.kind, "r")
        has_index = bool(table.indexes) or any(column.key for column in table.columns)
        self._write_class(oid, table, kind, len(table.columns), has_index)
        if table.comment:
            self._comment(oid, 0, table.comment)
        where = {"table_catalog": self._database, "table_schema": schema}
        where["table_name"] = table.name
        is_view = kind in "vm"
        self._inform(
            "tables", **where, table_type="VIEW" if is_view else "BASE TABLE",
            is_insertable_into="NO" if is_view else "YES", is_typed="NO",
        )  # fmt: skip
        owner = {"schemaname": schema}
        if is_view:
            self._definitions[oid] = table.definition or ""
            self._inform("views", **where, view_definition=table.definition)
            self._add(
                "pg_views", **owner, viewname=table.name, viewowner=self._user,
                definition=table.definition,
            )  # fmt: skip
        else:
            self._add(
                "pg_tables", **owner, tablename=table.name, tableowner=self._user,
                hasindexes=int(has_index),
            )  # fmt: skip
            self._add(
                "pg_stat_user_tables", relid=oid, **owner, relname=table.name,
                n_live_tup=table.approximate_rows,
            )  # fmt: skip
        for number, column in enumerate(table.columns, 1):
            self._write_column(oid, table, number)
            if column.comment:
                self._comment(oid, number, column.comment)
        self._write_keys(oid, table)

    def _write_class(
        self, oid: int, table: Table, kind: str, columns: int, has_index: bool, name: str = ""
    ) -> None:
        self._add(
            "pg_class", oid=oid, relname=name or table.name,
            relnamespace=self._schemas.get(shown_schema(table.schema), PUBLIC), reltype=0,
            reloftype=0, relowner=_OWNER, relam=403 if kind == "i" else 2 if kind == "r" else 0,
            relfilenode=oid, reltablespace=0, relpages=0,
            reltuples=-1 if table.approximate_rows is None else table.approximate_rows,
            reltoastrelid=0, relhasindex=int(has_index), relpersistence="p", relkind=kind,
            relnatts=columns, relchecks=0,
            relhastriggers=int(kind == "r" and self._has_foreign_keys), relispopulated=1,
            relreplident="d",
        )  # fmt: skip

    def _write_column(self, oid: int, table: Table, number: int) -> None:
        info = table.columns[number - 1]
        column = column_of(info.name, info.type)
        kind = wire_type(column, "")
        modifier = -1
        self._add(
            "pg_attribute", attrelid=oid, attname=info.name, atttypid=kind.oid, attlen=kind.size,
            attnum=number, attndims=0, atttypmod=modifier, attnotnull=int(not info.nullable),
            atthasdef=int(info.default is not None), attidentity="", attgenerated="",
            attislocal=1, attinhcount=0, attcollation=100 if kind.oid == 25 else 0,
            attstorage="p", attcompression="", attstattarget=-1,
        )  # fmt: skip
        if info.default is not None:
            self._add("pg_attrdef", oid=self._next(), adrelid=oid, adnum=number, adbin=info.default)
        self._inform(
            "columns", table_catalog=self._database, table_schema=shown_schema(table.schema),
            table_name=table.name, column_name=info.name, ordinal_position=number,
            column_default=info.default, is_nullable="YES" if info.nullable else "NO",
            data_type=FORMATTED.get(kind.oid, "text"), udt_name=_UDT.get(kind.oid, "text"),
            character_maximum_length=column.precision if column.kind == "text" else None,
            numeric_precision=column.precision if column.kind == "decimal" else None,
            numeric_scale=column.scale, is_identity="NO", is_generated="NEVER",
        )  # fmt: skip

    def _numbers(self, table: Table, names: Sequence[str]) -> list[int]:
        places = {column.name: number for number, column in enumerate(table.columns, 1)}
        return [places.get(name, 0) for name in names]

    def _write_keys(self, oid: int, table: Table) -> None:
        keys = sorted([(each.key, each.name) for each in table.columns if each.key])
        primary = [name for _, name in keys]
        has_primary = any(index.primary for index in table.indexes)
        if primary and not has_primary:
            self._write_index(oid, table, f"{table.name}_pkey", primary, unique=True, primary=True)
        for index in table.indexes:
            self._write_index(
                oid, table, index.name, index.columns, unique=index.unique, primary=index.primary
            )

    def _write_index(
        self, oid: int, table: Table, name: str, columns: Sequence[str], *, unique: bool,
        primary: bool,
    ) -> None:  # fmt: skip
        index = self._next()
        numbers = self._numbers(table, columns)
        schema = shown_schema(table.schema)
        self._write_class(index, table, "i", len(columns), False, name)
        self._add(
            "pg_index", indexrelid=index, indrelid=oid, indnatts=len(columns),
            indnkeyatts=len(columns), indisunique=int(unique), indisprimary=int(primary),
            indimmediate=1, indisvalid=1, indisready=1, indislive=1,
            indkey=" ".join(map(str, numbers)),
            indoption=" ".join("0" for _ in numbers), indclass=" ".join("0" for _ in numbers),
        )  # fmt: skip
        for number, column in enumerate(columns, 1):
            self._add(
                "pg_attribute", attrelid=index, attname=column, atttypid=25, attlen=-1,
                attnum=number, attndims=0, atttypmod=-1, attidentity="", attgenerated="",
                attislocal=1, attinhcount=0, attcollation=0, attstorage="p", attcompression="",
            )  # fmt: skip
        listed = ", ".join(columns)
        word = "UNIQUE INDEX" if unique else "INDEX"
        definition = f"CREATE {word} {name} ON {schema}.{table.name} USING btree ({listed})"
        self._definitions[index] = definition
        self._add(
            "pg_indexes", schemaname=schema, tablename=table.name, indexname=name,
            indexdef=definition,
        )  # fmt: skip
        if unique:
            kind, title = ("p", "PRIMARY KEY") if primary else ("u", "UNIQUE")
            self._write_constraint(oid, table, name, kind, title, columns, index)

    def _write_constraint(
        self, oid: int, table: Table, name: str, kind: str, title: str, columns: Sequence[str],
        index: int, **cells: Any,
    ) -> None:  # fmt: skip
        constraint, schema = self._next(), shown_schema(table.schema)
        listed = ", ".join(columns)
        self._definitions[constraint] = cells.pop("definition", f"{title} ({listed})")
        self._add(
            "pg_constraint", oid=constraint, conname=name,
            connamespace=self._schemas.get(schema, PUBLIC), contype=kind, convalidated=1,
            conrelid=oid, contypid=0, conindid=index, conparentid=0,
            confrelid=cells.get("confrelid", 0), confupdtype=cells.get("update", " "),
            confdeltype=cells.get("delete", " "), confmatchtype="s", conislocal=1, coninhcount=0,
            conkey=_array(self._numbers(table, columns)), confkey=cells.get("confkey"),
        )  # fmt: skip
        named = {"constraint_schema": schema, "constraint_name": name}
        where = {"table_catalog": self._database, "table_schema": schema}
        where["table_name"] = table.name
        self._inform(
            "table_constraints", constraint_catalog=self._database, **named, **where,
            constraint_type=title,
        )  # fmt: skip
        for number, column in enumerate(columns, 1):
            self._inform(
                "key_column_usage", constraint_catalog=self._database, **named, **where,
                column_name=column, ordinal_position=number,
                position_in_unique_constraint=number if kind == "f" else None,
            )  # fmt: skip
            if kind != "f":
                self._inform("constraint_column_usage", **named, **where, column_name=column)

    def _write_foreign_keys(self, table: Table) -> None:
        oid = self._classes[table.schema, table.name]
        tables = {(each.schema, each.name): each for each in self._catalog.tables}
        for number, key in enumerate(table.foreign_keys, 1):
            place = (key.schema or table.schema, key.table)
            other = tables.get(place)
            if other is None:
                continue  # a table that the caller may not see
            name = key.name or f"{table.name}_fkey{number}"
            referenced = key.references or tuple(
                [each.name for each in sorted(other.columns, key=lambda one: one.key) if each.key]
            )
            definition = (
                f"FOREIGN KEY ({', '.join(key.columns)}) REFERENCES"
                f" {other.name}({', '.join(referenced)})"
            )
            update, delete = key.on_update.upper(), key.on_delete.upper()
            definition += "" if update == "NO ACTION" else f" ON UPDATE {update}"
            definition += "" if delete == "NO ACTION" else f" ON DELETE {delete}"
            self._write_constraint(
                oid, table, name, "f", "FOREIGN KEY", key.columns, 0, definition=definition,
                confrelid=self._classes[place], update=_ACTIONS.get(update, "a"),
                delete=_ACTIONS.get(delete, "a"),
                confkey=_array(self._numbers(other, referenced)),
            )  # fmt: skip
            schema = shown_schema(table.schema)
            self._inform(
                "referential_constraints", constraint_catalog=self._database,
                constraint_schema=schema, constraint_name=name,
                unique_constraint_schema=shown_schema(other.schema), update_rule=update,
                delete_rule=delete,
            )  # fmt: skip

    def _comment(self, oid: int, column: int, text: str) -> None:
        self._comments[oid, column] = text
        self._add("pg_description", objoid=oid, classoid=1259, objsubid=column, description=text)


def shown_schema(name: str) -> str:
    """A schema's name for clients: what has none is in `public`, where they look first."""
    return name or "public"


def _array(numbers: Sequence[int]) -> str:
    """An array of numbers, as JSON: the form in which the emulation keeps arrays."""
    return "[" + ",".join(map(str, numbers)) + "]"


def kinds() -> Iterator[tuple[str, ColumnKind]]:
    """The kind of each column, by its name, which is the same in every table that has it."""
    for block in COLUMNS.values():
        for name in block.split():
            if name.endswith("?"):
                yield name.rstrip("?"), "boolean"
