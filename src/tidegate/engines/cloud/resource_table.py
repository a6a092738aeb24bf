"""The columns of a resource as a table: those of its rows, and those that bind parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from tidegate.cloud.accounts import Values, is_spread
from tidegate.cloud.descriptions import columns_of
from tidegate.cloud.document_catalog import Found
from tidegate.cloud.model import Method, Parameter, Schema, View
from tidegate.cloud.names import folded
from tidegate.cloud.responses import SqlValue
from tidegate.cloud.schema import ANONYMOUS
from tidegate.engines.cloud.fetches import MakeRow, TableRow

MOST_COLUMNS: Final = 1_900
"""SQLite has a limit of 2,000."""
_CHANGING: Final = frozenset({"PUT", "PATCH", "DELETE"})
_TYPES: Final = {
    "integer": "INTEGER", "number": "NUMERIC", "boolean": "BOOLEAN", "string": "TEXT",
}  # fmt: skip

_SPREAD: Final = " COLLATE NOCASE"
"""For a column whose constant may mean several values: with another collation than BINARY, SQLite
does not write the constant in the place of the column elsewhere in the statement. It forgets the
collation of a hidden column."""


class TableColumn(NamedTuple):
    """`field` is the name in the rows of a response, None for what only binds a parameter."""

    name: str
    declared: str
    field: str | None
    is_hidden: bool


class TableMethod(NamedTuple):
    """A method that SELECT may use. `parameters` are its own by the number of the column that binds
    them; `fields` the columns that its rows fill."""

    method: Method
    parameters: Mapping[int, Parameter]
    required: frozenset[int]
    fields: frozenset[int]


class ResourceTable:
    """A resource as a table. `wanted` are names in the statement, which become columns where the
    document leaves open what a row has."""

    def __init__(self, found: Found, wanted: Collection[str] = ()) -> None:
        self.found = found
        self.columns: list[TableColumn] = []
        self._places: dict[str, int] = {}
        self._spread: set[int] = set()
        methods = reading_methods(found)
        fields = [self._add_fields(method) for method in methods]
        common = _common_parameters(methods)
        if any(set(each) <= {ANONYMOUS} for each in map(self._names_of, fields)):
            bound = {folded(p.name) for method in methods for p in method.parameters}
            for name in wanted:
                if folded(name) not in bound:
                    self._add(name, "", name, is_hidden=True)
        self.methods = [
            self._method(method, common, filled)
            for method, filled in zip(methods, fields, strict=True)
        ]

    @property
    def views(self) -> tuple[View, ...]:
        """The document's own SELECTs of the resource."""
        return self.found.resource.views

    @property
    def schema(self) -> str:
        """CREATE TABLE with the columns, as a virtual table declares them."""
        shown = [
            f"{quoted(each.name)} {each.declared}{' HIDDEN' if each.is_hidden else ''}"
            f"{_SPREAD if place in self._spread else ''}"
            for place, each in enumerate(self.columns)
        ]
        return f"CREATE TABLE t({', '.join(shown)})"

    def make_row(self, table_method: TableMethod, values: Values) -> MakeRow:
        """What turns the cells of a response to a call with `values` into a row of this table.

        A field of the response comes before a parameter of the same name.
        """
        given: dict[str, Any] = dict(values)
        bound: list[SqlValue] = [None] * len(self.columns)
        for place, parameter in table_method.parameters.items():
            if parameter.name in given:
                bound[place] = given[parameter.name]
        # What only binds a parameter has the field None, which no response has.
        fields = [column.field for column in self.columns]

        def row(cells: Mapping[str | None, SqlValue]) -> TableRow:
            return tuple(map(cells.get, fields, bound))

        return row

    def _names_of(self, places: Collection[int]) -> list[str]:
        return [self.columns[at].name for at in places]

    def _add_fields(self, method: Method) -> frozenset[int]:
        kind = self.found.document.schemas.kind
        places: set[int] = set()
        for name, schema in columns_of(self.found, method).items():
            declared = _TYPES.get(kind(schema), "") if schema else ""
            place = self._add(name, declared, name)
            if place is not None:
                places.add(place)
        return frozenset(places)

    def _method(
        self, method: Method, common: Collection[str], fields: frozenset[int]
    ) -> TableMethod:
        parameters: dict[int, Parameter] = {}
        for parameter in method.parameters:
            name = parameter.name
            spreads = is_spread(self.found.provider, parameter)
            is_hidden = folded(name) not in common and not spreads
            place = self._add(name, self._type(parameter.schema), None, is_hidden=is_hidden)
            if place is not None and spreads:
                self._spread.add(place)
            if place is not None:
                parameters.setdefault(place, parameter)
        required = frozenset(
            place for place, parameter in parameters.items() if parameter.is_required
        )
        return TableMethod(method, parameters, required, fields)

    def _type(self, schema: Schema) -> str:
        return _TYPES.get(self.found.document.schemas.kind(schema), "") if schema else ""

    def _add(
        self, name: str, declared: str, field: str | None, *, is_hidden: bool = False
    ) -> int | None:
        """The place of a column, which is added if there is none of that name in any case of
        letters, as SQLite compares names; None if there is no room."""
        key = folded(name)
        place = self._places.get(key)
        if place is None:
            if len(self.columns) >= MOST_COLUMNS:
                return None
            place = self._places[key] = len(self.columns)
            self.columns.append(TableColumn(name, declared, field, is_hidden))
        return place

    def place_of(self, name: str) -> int | None:
        """The number of a column, by its name in any case of letters."""
        return self._places.get(folded(name))


def reading_methods(found: Found) -> list[Method]:
    """The methods that SELECT may use: none that changes, whatever the document says of it. A POST
    reads if the document has it under `select`."""
    named = (found.resource.methods[name] for name in found.resource.verbs.get("select", ()))
    return [each for each in named if each.http_verb not in _CHANGING]


def _common_parameters(methods: list[Method]) -> set[str]:
    """Parameters that every method requires: they are visible columns."""
    required: list[set[str]] = [
        {folded(p.name) for p in method.parameters if p.is_required} for method in methods
    ]
    return required[0].intersection(*required[1:]) if required else set()


def quoted(name: Any) -> str:
    """A name in double quotes."""
    return '"' + str(name).replace('"', '""') + '"'
