"""The rows of `pg_catalog` and `information_schema` for a catalog that the gate has given. Pure.

Source: PostgreSQL 17 documentation, "System Catalogs" and "The Information Schema".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tidegate.model.results import ColumnKind
from tidegate.model.schema import Catalog, Table
from tidegate.products.pgwire.catalog.layout import COLUMNS, INFORMATION
from tidegate.products.pgwire.values import field_of, wire_type
from tidegate.results.column_kinds import column_of

FIRST_OID = 16_384
PUBLIC = 2_200
"""The oid of the schema of a source without schemas, which is shown as `public`."""
_SYSTEM = 11
_INFORMATION = 13_000
_OWNER = 10
_TABLESPACE = 1663
_RELKINDS = {"view": "v", "materialized view": "m", "foreign table": "f"}

_TYPES: tuple[tuple[int, str, int, str, int, ColumnKind], ...] = (
    (16, "bool", 1, "B", 1000, "boolean"),
    (18, "char", 1, "Z", 1002, "other"),
    (19, "name", 64, "S", 1003, "other"),
    (22, "int2vector", -1, "A", 1006, "other"),
    (24, "regproc", 4, "N", 1008, "other"),
    (30, "oidvector", -1, "A", 1013, "other"),
    (700, "float4", 4, "N", 1021, "other"),
    (1042, "bpchar", -1, "S", 1014, "other"),
    (2205, "regclass", 4, "N", 2210, "other"),
    (2206, "regtype", 4, "N", 2211, "other"),
    (3802, "jsonb", -1, "U", 3807, "other"),
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
    16: "boolean", 17: "bytea", 18: '"char"', 19: "name", 20: "bigint", 21: "smallint",
    22: "int2vector", 23: "integer", 24: "regproc", 25: "text", 26: "oid", 30: "oidvector",
    114: "json", 700: "real", 701: "double precision", 1042: "character",
    1043: "character varying", 1082: "date", 1083: "time without time zone",
    1114: "timestamp without time zone", 1184: "timestamp with time zone", 1186: "interval",
    1266: "time with time zone", 1700: "numeric", 2205: "regclass", 2206: "regtype", 2950: "uuid",
    3802: "jsonb",
}  # fmt: skip
_UDT = {oid: name for oid, name, *_ in _TYPES}
ARRAY_TYPES = {array: oid for oid, _, _, _, array, _ in _TYPES}
"""The type of the elements, by the oid of an array's type."""
SYSTEM_CLASSES = {
    "pg_type": 1247, "pg_attribute": 1249, "pg_proc": 1255, "pg_class": 1259, "pg_database": 1262,
    "pg_constraint": 2606, "pg_index": 2610, "pg_namespace": 2615, "pg_trigger": 2620,
    "pg_attrdef": 2604, "pg_cast": 2605, "pg_rewrite": 2618, "pg_description": 2609,
    "pg_language": 2612, "pg_operator": 2617, "pg_tablespace": 1213, "pg_am": 2601,
    "pg_authid": 1260, "pg_roles": 12000, "pg_extension": 3079, "pg_collation": 3456,
    "pg_enum": 3501, "pg_policy": 3256, "pg_event_trigger": 3466, "pg_foreign_server": 1417,
    "pg_foreign_data_wrapper": 2328, "pg_opclass": 2616, "pg_publication": 6104,
    "pg_sequence": 2224, "pg_depend": 2608, "pg_settings": 12001, "pg_inherits": 2611,
}  # fmt: skip
"""The oids of the catalogs themselves, as in `classoid`."""
_RECEIVE_OID = 10_000
"""Of the function that reads arrays; that of another type follows it by the type's oid."""
_UNDERSCORED = frozenset(
    "date interval json jsonb numeric time timestamp timestamptz timetz uuid".split()  # noqa: SIM905
)
"""Types whose functions have their name with an underscore after it."""
_LANGUAGES = ("internal", "c", "sql")
_KEYWORDS = (
    "all analyse analyze and any array as asc asymmetric both case cast check collate column"
    " constraint create current_catalog current_date current_role current_time current_timestamp"
    " current_user default deferrable desc distinct do else end except false fetch for foreign from"
    " grant group having in initially intersect into lateral leading limit localtime localtimestamp"
    " not null offset on only or order placing primary references returning select session_user"
    " some symmetric system_user table then to trailing true union unique user using variadic when"
    " where window with"
)
"""The words that PostgreSQL reserves."""
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
        # psql asks for foreign keys of tables with triggers alone: PostgreSQL checks them so.
        self._has_foreign_keys = any(table.foreign_keys for table in catalog.tables)
        self._rows: dict[str, list[Row]] = {name: [] for name in COLUMNS}
        self._information: dict[str, list[Row]] = {name: [] for name in INFORMATION}
        self._definitions: dict[int, str] = {}
        self._comments: dict[tuple[int, int], str] = {}
        self._schemas: dict[str, int] = {}
        self._classes: dict[tuple[str, str], int] = {}
        self._unique: dict[tuple[int, tuple[str, ...]], tuple[int, str]] = {}
        """Oid and name of the unique index over the columns of a class."""

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
                dattablespace=_TABLESPACE,
            )  # fmt: skip
        add(
            "pg_roles", oid=_OWNER, rolname=self._user, rolinherit=1, rolcanlogin=1,
            rolconnlimit=-1,
        )  # fmt: skip
        add("pg_user", usename=self._user, usesysid=_OWNER)
        add("pg_am", oid=2, amname="heap", amtype="t")
        add("pg_am", oid=403, amname="btree", amtype="i")
        add("pg_tablespace", oid=_TABLESPACE, spcname="pg_default", spcowner=_OWNER)
        add("pg_collation", oid=100, collname="default", collnamespace=_SYSTEM)
        for name, setting in settings:
            add(
                "pg_settings", name=name, setting=setting, category="Client", context="user",
                vartype="string", source="default",
            )  # fmt: skip
        for number, word in enumerate(_LANGUAGES, 12):
            add("pg_language", oid=number, lanname=word, lanowner=_OWNER)
        for word in _KEYWORDS.split():
            add("pg_keywords", word=word, catcode="R", catdesc="reserved")
        self._inform("information_schema_catalog_name", catalog_name=self._database)
        self._inform("enabled_roles", role_name=self._user)
        for oid, name, length, category, array, _ in _TYPES:
            shared = {"typnamespace": _SYSTEM, "typowner": _OWNER, "typtype": "b", "typdelim": ","}
            shared |= {"typisdefined": 1, "typrelid": 0, "typbasetype": 0, "typtypmod": -1}
            shared |= {"typndims": 0, "typcollation": 100 if oid in (25, 1043) else 0}
            shared |= {"typalign": "i", "typstorage": "p" if length > 0 else "x"}
            stem = f"{name}_" if name in _UNDERSCORED else name
            add(
                "pg_type", oid=oid, typname=name, typlen=length, typcategory=category, typelem=0,
                typarray=array, typbyval=int(0 < length <= 8), typinput=f"{stem}in",
                typoutput=f"{stem}out", typreceive=f"{stem}recv", typsend=f"{stem}send", **shared,
            )  # fmt: skip
            add(
                "pg_type", oid=array, typname=f"_{name}", typlen=-1, typcategory="A", typelem=oid,
                typarray=0, typinput="array_in", typoutput="array_out",
                typreceive="array_recv", typsend="array_send", **shared,
            )  # fmt: skip
            self._write_function(_RECEIVE_OID + oid, f"{stem}recv", oid)
        self._write_function(_RECEIVE_OID, "array_recv", 2277)

    def _write_function(self, oid: int, name: str, gives: int) -> None:
        self._add(
            "pg_proc", oid=oid, proname=name, pronamespace=_SYSTEM, proowner=_OWNER, prokind="f",
            provolatile="s", pronargs=1, prorettype=gives, proargtypes="2281", prolang=12,
            prosrc=name, proisstrict=1,
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
        modifier = field_of(column, kind, 0).modifier
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
            udt_catalog=self._database, udt_schema="pg_catalog", is_updatable="YES",
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
            self._unique.setdefault((oid, tuple(columns)), (index, name))
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
            constraint_type=title, is_deferrable="NO", initially_deferred="NO",
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
            index, unique = self._unique.get((self._classes[place], referenced), (0, None))
            self._write_constraint(
                oid, table, name, "f", "FOREIGN KEY", key.columns, index, definition=definition,
                confrelid=self._classes[place], update=_ACTIONS.get(update, "a"),
                delete=_ACTIONS.get(delete, "a"),
                confkey=_array(self._numbers(other, referenced)),
            )  # fmt: skip
            schema = shown_schema(table.schema)
            self._inform(
                "referential_constraints", constraint_catalog=self._database,
                constraint_schema=schema, constraint_name=name,
                unique_constraint_catalog=self._database, unique_constraint_name=unique,
                unique_constraint_schema=shown_schema(other.schema), match_option="NONE",
                update_rule=update, delete_rule=delete,
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
