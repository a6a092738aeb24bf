"""What the catalogs say of one object: its name, oid, type, comment and definition. Pure."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# The functions of SQLite take and give anything.

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tidegate.products.pgwire.catalog.layout import COLUMNS
from tidegate.products.pgwire.catalog.tables import (
    ARRAY_TYPES,
    FORMATTED,
    SYSTEM_CLASSES,
    CatalogRows,
)
from tidegate.products.pgwire.errors import refused

_NUMERIC = 1700
_SIZED = frozenset({1042, 1043})
_SYSTEM = 11
_NAME_PART = re.compile(r'"((?:[^"]|"")*)"|([^."]+)')


class CatalogObjects:
    """Finds the objects of the catalogs. `functions` are for SQLite; `schemas` names by oid."""

    def __init__(self, rows: CatalogRows) -> None:
        self._definitions = rows.definitions
        self._comments = rows.comments
        self.schemas = {row[0]: str(row[1]) for row in rows.tables["pg_namespace"]}
        self._names = {oid: name for name, oid in SYSTEM_CLASSES.items()}
        self._places: dict[int, str] = dict.fromkeys(self._names, "pg_catalog")
        self._classes = {("pg_catalog", name): oid for name, oid in SYSTEM_CLASSES.items()}
        for oid, name, namespace, *_ in rows.tables["pg_class"]:
            schema = self.schemas.get(namespace, "")
            self._names[oid], self._places[oid] = str(name), schema
            self._classes.setdefault((schema, str(name)), oid)
        self._by_name: dict[str, int] = {}
        for (_, name), oid in self._classes.items():
            self._by_name.setdefault(name, oid)
        self._types = {row[0]: str(row[1]) for row in rows.tables["pg_type"]}
        self._type_oids = {name: oid for oid, name in self._types.items()}
        self._type_oids |= {name: oid for oid, name in FORMATTED.items()}
        self._type_oids |= {
            f"{FORMATTED[element]}[]": array for array, element in ARRAY_TYPES.items()
        }
        places = [name.rstrip("?") for name in COLUMNS["pg_attribute"].split()]
        oid, name, number = map(places.index, ("attrelid", "attname", "attnum"))
        self._attributes = {
            (row[oid], row[number]): str(row[name]) for row in rows.tables["pg_attribute"]
        }

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The functions, by the names under which queries call them."""
        return {
            "name_of_class": self._class_name,
            "name_of_type": lambda oid: None if oid is None else self._formatted(oid, -1),
            "name_of_namespace": lambda oid: self.schemas.get(_number(oid), _shown(oid)),
            "name_of_function": _shown,
            "name_of_role": _shown,
            "oid_of_class": self._class_oid,
            "oid_of_type": self._type_oid,
            "oid_of_namespace": self._namespace_oid,
            "oid_of_function": lambda name: None if name is None else _parts(name)[-1],
            "oid_of_role": lambda name: name,
            "to_regclass": self._find_class,
            "to_regtype": lambda name: self._find_type(str(name)),
            "to_regnamespace": lambda name: next(
                (oid for oid, each in self.schemas.items() if each == name), None
            ),
            "format_type": lambda oid, modifier=-1: (
                None if oid is None else self._formatted(oid, modifier)
            ),
            "obj_description": lambda oid, *_: self._comments.get((_number(oid), 0)),
            "col_description": lambda oid, number: self._comments.get(
                (_number(oid), _number(number))
            ),
            "pg_partition_ancestors": lambda oid: None if oid is None else _number(oid),
            "pg_get_expr": lambda text, *_: text,
            "pg_get_indexdef": self._index_definition,
            "pg_get_constraintdef": lambda oid, *_: self._definitions.get(_number(oid)),
            "pg_get_viewdef": lambda oid, *_: self._definitions.get(_number(oid)),
        }

    def is_in(self, oid: Any, schema: str) -> int | None:
        """Whether a class is found without the name of its schema."""
        if oid is None:
            return None
        return int(self._places.get(_number(oid)) in (schema, "pg_catalog"))

    def _class_name(self, oid: Any) -> str | None:
        return self._names.get(_number(oid), _shown(oid))

    def _find_class(self, name: Any) -> int | None:
        if name is None:
            return None
        parts = _parts(name)
        if len(parts) > 1:
            return self._classes.get((parts[-2], parts[-1]))
        return self._by_name.get(parts[-1])

    def _class_oid(self, name: Any) -> int | None:
        """`name::regclass`; a number is an oid."""
        if name is None or isinstance(name, int):
            return name
        if str(name).isdecimal():
            return int(name)
        found = self._find_class(name)
        if found is None:
            raise refused("42P01", f'The relation "{str(name)[:80]}" does not exist.')
        return found

    def _find_type(self, name: str) -> int | None:
        bare = name.lower().removeprefix("pg_catalog.").strip()
        plain = re.sub(r"\([^)]*\)", "", bare)
        if plain.endswith("[]") and plain[:-2] in self._type_oids:
            element = self._type_oids[plain[:-2]]
            return next((array for array, oid in ARRAY_TYPES.items() if oid == element), None)
        return self._type_oids.get(plain, self._type_oids.get(plain.strip('"')))

    def _type_oid(self, name: Any) -> int | None:
        if name is None or isinstance(name, int):
            return name
        if str(name).isdecimal():
            return int(name)
        found = self._find_type(str(name))
        if found is None:
            raise refused("42704", f'The type "{str(name)[:80]}" does not exist.')
        return found

    def _namespace_oid(self, name: Any) -> int | None:
        if name is None or isinstance(name, int):
            return name
        wanted = _parts(name)[-1]
        for oid, each in self.schemas.items():
            if each == wanted:
                return oid
        if wanted.isdecimal():
            return int(wanted)
        raise refused("3F000", f'The schema "{wanted[:80]}" does not exist.')

    def _formatted(self, oid: Any, modifier: Any) -> str:
        number = _number(oid)
        element = ARRAY_TYPES.get(number)
        if element is not None:
            return f"{self._formatted(element, modifier)}[]"
        name = FORMATTED.get(number) or self._types.get(number) or ("-" if number == 0 else "???")
        if not isinstance(modifier, int) or modifier < 4:
            return name
        if number == _NUMERIC:
            return f"{name}({modifier - 4 >> 16},{modifier - 4 & 0xFFFF})"
        return f"{name}({modifier - 4})" if number in _SIZED else name

    def _index_definition(self, oid: Any, number: Any = 0, *_: Any) -> str | None:
        if isinstance(number, int) and number > 0:
            return self._attributes.get((_number(oid), number))
        return self._definitions.get(_number(oid))


def _number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return -1


def _shown(value: Any) -> str | None:
    return None if value is None else "-" if value == 0 else str(value)


def _parts(name: Any) -> list[str]:
    """The parts of a name, as PostgreSQL folds them."""
    found = [
        quoted.replace('""', '"') if quoted else plain.strip().lower()
        for quoted, plain in _NAME_PART.findall(str(name))
    ]
    return found or [""]
