"""The text of an INSERT into a resource, with a placeholder for each value: what SHOW INSERT shows.

Placeholders have the form `{{ .values.NAME }}` of StackQL's templates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tidegate.products.cloud.documents.model import BODY_PREFIX, Method, Parameter, Schema
from tidegate.products.cloud.documents.schema import Schemas

_DEEPEST: Final = 8
_MOST_FIELDS: Final = 2_000


def insert_template(path: str, method: Method, schemas: Schemas, *, is_short: bool) -> str:
    """`is_short`: with what is required alone. Fields that only replies have are left out."""
    taken = [each for each in method.parameters if _is_taken(each, schemas, is_short=is_short)]
    order = {name: at for at, name in enumerate(method.required)}
    taken.sort(key=lambda each: (each.place == "body", order.get(each.name, len(order))))
    writer = _Writer(schemas)
    names = ",\n".join(f"  {_quoted(each.name)}" for each in taken)
    values = ",\n".join(f"  {writer.value(each)}" for each in taken)
    return f"INSERT INTO {path}(\n{names}\n)\nSELECT\n{values}\n;"


def _is_taken(parameter: Parameter, schemas: Schemas, *, is_short: bool) -> bool:
    if parameter.is_required or parameter.place != "body" or is_short:
        return parameter.is_required
    return not _is_read_only(parameter.schema, schemas)


def _is_read_only(schema: Schema, schemas: Schemas) -> bool:
    return bool(schema) and schemas.resolve(schema).get("readOnly") is True


def _quoted(name: str) -> str:
    plain = name.replace("_", "").isalnum() and name.isascii() and not name[0].isdigit()
    return name if plain else '"' + name.replace('"', '""') + '"'


class _Writer:
    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._left = _MOST_FIELDS

    def value(self, parameter: Parameter) -> str:
        """The SQL of a parameter's value."""
        place, schema = f".values.{parameter.name}", parameter.schema
        kind = self._schemas.kind(schema)
        if kind in ("integer", "number", "boolean"):
            return f"{{{{ {place} }}}}"
        is_whole = parameter.place != "body" or parameter.name == f"{BODY_PREFIX}body"
        if kind not in ("object", "array") or is_whole:
            return f"'{{{{ {place} }}}}'"
        return "'" + self._json(place, schema, _DEEPEST).replace("'", "''") + "'"

    def _json(self, place: str, schema: Schema, deepest: int) -> str:
        kind = self._schemas.kind(schema)
        if kind in ("integer", "number", "boolean"):
            return f"{{{{ {place} }}}}"
        if kind == "array":
            item = self._schemas.items(schema) or {}
            return f"[ {self._json(f'{place}[0]', item, deepest - 1)} ]"
        properties: Mapping[str, Any] = self._schemas.properties(schema) if deepest > 0 else {}
        if kind != "object" and not properties:
            return f'"{{{{ {place} }}}}"'
        fields = list(self._fields(place, properties, deepest))
        if not properties:
            fields = [f'"{{{{ {place}[0].key }}}}": "{{{{ {place}[0].val }}}}"']
        return f"{{ {', '.join(fields)} }}"

    def _fields(self, place: str, properties: Mapping[str, Any], deepest: int) -> Iterator[str]:
        for name, each in properties.items():
            self._left -= 1
            if self._left <= 0:
                return
            if not _is_read_only(each, self._schemas):
                yield f'"{name}": {self._json(f"{place}.{name}", each, deepest - 1)}'
