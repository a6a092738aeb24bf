"""What SHOW and DESCRIBE say: rows of the documents' contents. Sends no request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.document_catalog import DocumentCatalog, Found
from tidegate.products.cloud.documents.model import Method, Schema, View
from tidegate.products.cloud.documents.names import folded, snake_case
from tidegate.products.cloud.documents.schema import Schemas
from tidegate.products.cloud.documents.template_functions import to_json
from tidegate.products.cloud.http.requests import no_operation
from tidegate.products.cloud.language.insert_template import insert_template
from tidegate.products.cloud.language.statements import (
    DescribeStatement,
    ShownCondition,
    ShowStatement,
)
from tidegate.sql.finding import Refusal

VIEW_METHOD: Final = "__view__"
"""Names the view by which a resource is read that has no method for SELECT."""
INSERT_COLUMN: Final = "insert_statement"
_VERBS: Final = ("select", "insert", "delete", "update", "replace", "exec")
"""The order in which SHOW METHODS has the verbs; those of one verb are sorted by their names."""
_DEEPEST: Final = 8
_MOST_PROPERTIES: Final = 2_000
_ANNOTATIONS: Final = ("type", "format", "enum", "pattern", "minimum", "maximum", "default")


class Rows(NamedTuple):
    """A result: names of columns, and rows in their order."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def show(statement: ShowStatement, documents: DocumentCatalog) -> Rows:
    """Raises: TidegateError TABLE_UNKNOWN, DOCUMENT_INVALID."""
    if statement.matching is not None:
        found = documents.search(statement.matching)
        return Rows(
            ("path", "provider", "service", "resource"), [(each.path, *each) for each in found]
        )
    if statement.shown == "providers":
        rows = Rows(("name", "version"), [*documents.provider_versions()])
    elif statement.shown == "services":
        provider = documents.provider(statement.path[0])
        rows = Rows(
            ("id", "name", "title", "description"),
            [
                (each.id, each.name, each.title, each.description)
                for each in provider.services.values()
            ],
        )
    elif statement.shown == "resources":
        rows = _resources(documents, statement.path)
    elif statement.shown == "insert":
        rows = _insert(documents.resource(statement.path), is_short=statement.is_short)
    else:
        rows = _methods(documents.resource(statement.path))
    if not statement.is_extended and rows.columns[-1] == "description":
        rows = Rows(rows.columns[:-1], [each[:-1] for each in rows.rows])
    for each in _conditions(statement, rows.columns):
        rows = _filtered(rows, each)
    return rows


def _conditions(statement: ShowStatement, columns: tuple[str, ...]) -> tuple[ShownCondition, ...]:
    if statement.like is None:
        return statement.conditions
    name = next(each for each in columns if each in ("name", "MethodName", INSERT_COLUMN))
    return (ShownCondition(name, "LIKE", statement.like), *statement.conditions)


def _filtered(rows: Rows, condition: ShownCondition) -> Rows:
    """Raises: TidegateError ARGUMENT_INVALID for a column that there is not."""
    names = [folded(each) for each in rows.columns]
    if folded(condition.column) not in names:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"What is shown has no column {condition.column[:80]}.",
            hint=f"It has {', '.join(rows.columns)}.",
        )
    at = names.index(folded(condition.column))
    if condition.operator == "LIKE":
        pattern = _like(condition.value)
        return Rows(rows.columns, [row for row in rows.rows if pattern.fullmatch(str(row[at]))])
    is_wanted = condition.operator == "="
    return Rows(
        rows.columns,
        [row for row in rows.rows if (str(row[at]) == condition.value) is is_wanted],
    )


def describe(statement: DescribeStatement, documents: DocumentCatalog) -> Rows:
    """Raises: TidegateError TABLE_UNKNOWN, DOCUMENT_INVALID."""
    found = documents.resource(statement.path[:3])
    if len(statement.path) == 4:
        return _method(found, statement.path[3])
    method = first_select(found)
    rows: list[tuple[Any, ...]] = []
    if method is not None:
        for name, schema in columns_of(found, method).items():
            kind = found.document.schemas.kind(schema) or "any"
            rows.append((name, kind, str(schema.get("description") or "")))
    elif view := _reading_view(found):
        rows = [(name, "any", "") for name in _view_columns(view)]
    columns = ("name", "type", "description")
    if not statement.is_extended:
        return Rows(columns[:2], [each[:2] for each in rows])
    return Rows(columns, rows)


def first_select(found: Found) -> Method | None:
    """The method that decides the columns of a resource; None if it has none for SELECT."""
    names = found.resource.verbs.get("select", ())
    return found.resource.methods[names[0]] if names else None


def columns_of(found: Found, method: Method) -> dict[str, Schema]:
    """The columns of a method's rows by their SQL names. Raises: TidegateError
    DOCUMENT_INVALID."""
    response = method.response
    if response.schema is None:
        return {}
    columns: dict[str, Schema] = {}
    schemas = found.document.schemas
    for name, schema in schemas.columns(response.schema, response.object_key).items():
        shown = snake_case(name) if found.provider.renames_columns else name
        while shown in columns:
            shown += "_"
        columns[shown] = schemas.resolve(schema) if schema else {}
    return columns


def find_method_by_name(found: Found, name: str) -> Method:
    """Raises: TidegateError TABLE_UNKNOWN."""
    for key, method in found.resource.methods.items():
        if key.casefold() == name.casefold():
            return method
    raise TidegateError(
        Code.TABLE_UNKNOWN,
        f"There is no method of {found.path} with the name `{name[:120]}`.",
        hint=f"SHOW METHODS IN {found.path} lists them.",
    )


def _resources(documents: DocumentCatalog, path: tuple[str, ...]) -> Rows:
    provider = documents.provider(path[0])
    _, document = documents.service(provider, path[1])
    rows: list[tuple[Any, ...]] = []
    for name in document.resource_names:
        resource = document.resource(name)
        if resource is not None:
            rows.append((resource.name, resource.id, resource.title, resource.description))
    return Rows(("name", "id", "title", "description"), rows)


def _methods(found: Found) -> Rows:
    verbs = {name: found.resource.verb_of(name) for name in found.resource.methods}
    rows: list[tuple[Any, ...]] = [
        (method.name, ", ".join(method.required), verbs[name].upper(), method.description)
        for name, method in sorted(
            found.resource.methods.items(), key=lambda each: (_VERBS.index(verbs[each[0]]), each[0])
        )
    ]
    if view := _reading_view(found):
        rows.append((VIEW_METHOD, ", ".join(sorted(view.required)), "SELECT", ""))
    return Rows(("MethodName", "RequiredParams", "SQLVerb", "description"), rows)


def _insert(found: Found, *, is_short: bool) -> Rows:
    """Raises: TidegateError ARGUMENT_INVALID where no method is for INSERT."""
    names = found.resource.verbs.get("insert", ())
    if not names:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            no_operation(found.path),
            hint="None of its methods is for INSERT.",
            details={"resource": found.path},
        )
    method = found.resource.methods[names[0]]
    text = insert_template(found.path, method, found.document.schemas, is_short=is_short)
    return Rows((INSERT_COLUMN,), [(text,)])


def _reading_view(found: Found) -> View | None:
    """The view by which a resource is read that has no method for it."""
    if found.resource.verbs.get("select") or not found.resource.views:
        return None
    return found.resource.views[0]


def _view_columns(view: View) -> list[str]:
    """The names that a view gives its columns; none if its text cannot be read."""
    from tidegate.sql.parse import parse  # the parser is slow to load

    try:
        tree: Any = parse(view.sql.strip().rstrip(";"), "sqlite", len(view.sql))
    except Refusal:
        return []
    names: list[str] = [each.alias_or_name for each in tree.selects]
    return [each for each in names if each not in ("", "*")]


def _method(found: Found, name: str) -> Rows:
    columns = ("name", "type", "param_type", "shape", "description")
    view = _reading_view(found)
    if view is not None and name.casefold() == VIEW_METHOD:
        shape = to_json({})
        rows = [(each, "any", "input_required", shape, "") for each in sorted(view.required)]
        rows += [(each, "any", "output", shape, "") for each in _view_columns(view)]
        return Rows(columns, rows)
    method = find_method_by_name(found, name)
    schemas = found.document.schemas
    rows = [
        _described(schemas, each.name, each.schema, each.description, kind)
        for kind, wanted in (("input_required", True), ("input_optional", False))
        for each in method.parameters
        if each.is_required is wanted
    ]
    if not method.response.status.startswith("204"):
        rows += [
            _described(schemas, column, schema, "", "output")
            for column, schema in columns_of(found, method).items()
        ]
    return Rows(columns, rows)


def _described(
    schemas: Schemas, name: str, schema: Schema, description: str, kind: str
) -> tuple[Any, ...]:
    resolved: Schema = schemas.resolve(schema) if schema else {}
    shape = to_json(_shape(schemas, resolved, _DEEPEST, _Budget()))
    text = description or str(resolved.get("description") or "")
    return name, schemas.kind(resolved) or "any", kind, shape, text


class _Budget:
    """How many properties a shape may still show: schemas refer to themselves and to each other."""

    left = _MOST_PROPERTIES


def _shape(schemas: Schemas, schema: Schema, deepest: int, budget: _Budget) -> dict[str, Any]:
    """The part of a JSON schema that says what a value looks like."""
    kind = schemas.kind(schema)
    shape: dict[str, Any] = {key: schema[key] for key in _ANNOTATIONS if key in schema}
    if kind:
        shape["type"] = kind
    if deepest <= 0 or budget.left <= 0:
        return shape
    members = schemas.items(schema) if kind == "array" else None
    if members is not None:
        shape["items"] = _shape(schemas, schemas.resolve(members), deepest - 1, budget)
    if kind in ("object", ""):
        properties = dict(_properties(schemas, schema, deepest, budget))
        if properties:
            shape["properties"] = properties
            required = sorted(schemas.required(schema) & properties.keys())
            if required:
                shape["required"] = required
    return shape


def _properties(
    schemas: Schemas, schema: Schema, deepest: int, budget: _Budget
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, each in schemas.properties(schema).items():
        budget.left -= 1
        if budget.left <= 0:
            return
        yield name, _shape(schemas, schemas.resolve(each), deepest - 1, budget)


def _like(pattern: str) -> re.Pattern[str]:
    """LIKE of SQLite: `%` and `_`, whatever the case.

    Each part between two `%` is taken where it comes first, and no other place is tried: however
    many there are, the time grows with their number only.
    """
    first, *parts = [
        "".join("." if each == "_" else re.escape(each) for each in part)
        for part in pattern.split("%")
    ]
    middle = "".join(f"(?>.*?{part})" for part in parts[:-1] if part)
    last = f".*{parts[-1]}" if parts else ""
    return re.compile(f"{first}{middle}{last}", re.IGNORECASE | re.DOTALL)
