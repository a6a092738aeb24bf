"""The columns of a resource as a table: those of its rows, and those that bind parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from tidegate.errors import masking_refused
from tidegate.model.data_rules import Show
from tidegate.products.cloud.documents.accounts import Values, is_spread
from tidegate.products.cloud.documents.document_catalog import Found
from tidegate.products.cloud.documents.model import Method, Parameter, Schema, View
from tidegate.products.cloud.documents.names import folded, snake_case
from tidegate.products.cloud.documents.schema import ANONYMOUS
from tidegate.products.cloud.engine.fetches import MakeRows, TableRow
from tidegate.products.cloud.engine.hidden_rows import RowFilter, masked_row
from tidegate.products.cloud.http.responses import SqlValue
from tidegate.products.cloud.language.data_rules import ResourceRules
from tidegate.products.cloud.language.descriptions import columns_of

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

    def __init__(
        self, found: Found, wanted: Collection[str] = (), rules: ResourceRules | None = None
    ) -> None:
        """`rules` say what is hidden from the caller. Raises: TidegateError POLICY_MASKED if they
        name a column that there is not."""
        self.found = found
        self._rules = rules
        self._shown: dict[int, Show] = {}
        self._filter: RowFilter | None = None
        self.barred: frozenset[int] = frozenset()
        """Columns that bind no parameter, because a provider could read what is masked by it."""
        if rules is not None:
            # The operator's spelling comes first: of two that differ in case one is a column.
            wanted = list(dict.fromkeys([*sorted(rules.columns), *wanted]))
        self.columns: list[TableColumn] = []
        self._places: dict[str, int] = {}
        self._spread: set[int] = set()
        methods = reading_methods(found)
        fields = [self._add_fields(method) for method in methods]
        common = _common_parameters(methods)
        if not any(fields):
            # The document says nothing of the rows: they are there as a whole.
            self._add(ANONYMOUS, "", ANONYMOUS)
        if any(set(each) <= {ANONYMOUS} for each in map(self._names_of, fields)):
            bound = {folded(p.name) for method in methods for p in method.parameters}
            for name in wanted:
                if folded(name) not in bound:
                    self._add(name, "", name, is_hidden=True)
        self.methods = [
            self._method(method, common, filled)
            for method, filled in zip(methods, fields, strict=True)
        ]
        if rules is not None:
            self._hide(rules)

    def _hide(self, rules: ResourceRules) -> None:
        known = {folded(each.name) for each in self.columns}
        bound = [p for method in self.methods for p in method.method.parameters]
        for place, column in enumerate(self.columns):
            show = rules.show_of(column.name)
            if show is not None:
                self._shown[place] = show
        for name in rules.masks:
            if name not in known and not any(map(rules.hides, bound)) and self.methods:
                raise masking_refused(
                    f"The mask `{rules.path}.{name}` names a column that `{rules.path}` does not"
                    " have",
                    f"mask.{rules.path}.{name}",
                    "Ask the operator to correct the rule: until then the resource is not read.",
                )
        barred: set[int] = set()
        for method in self.methods:
            names = frozenset([
                folded(self.columns[at].name) for at in method.fields if at not in self._shown
            ])  # fmt: skip
            for at, parameter in method.parameters.items():
                if rules.may_tell(parameter, names):
                    barred.add(at)
        self.barred = frozenset(barred)
        plain = list(self.columns)  # a condition sees values as they are
        for place, show in self._shown.items():
            if show != "nothing":
                self.columns[place] = self.columns[place]._replace(declared="TEXT")
        if rules.conditions:
            declared = [(quoted(each.name), each.declared) for each in plain]
            self._filter = RowFilter(declared, rules)

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

    def requirement_of(self, place: int) -> str | None:
        """Which methods of SELECT need a value for a column, in words; None if none does."""
        methods = [each.method.name for each in self.methods if place in each.required]
        if not methods:
            return None
        whose = "every SELECT" if len(methods) == len(self.methods) else ", ".join(methods)
        return f"Required by {whose}: name it in WHERE."

    def make_rows(self, table_method: TableMethod, values: Values) -> MakeRows:
        """What turns the cells of a response to a call with `values` into rows of this table, less
        what is hidden. The rows raise: TidegateError POLICY_MASKED.

        A field of the response comes before a parameter of the same name.
        """
        row, rules = self._make_row(table_method, values), self._rules

        def rows(cells: Iterable[Mapping[str, SqlValue]]) -> list[TableRow]:
            made = [row(each) for each in cells]
            if self._filter is not None:
                made = self._filter.kept(made)
            if rules is not None and self._shown:
                made = [masked_row(each, self._shown, rules) for each in made]
            return made

        return rows

    def _make_row(
        self, table_method: TableMethod, values: Values
    ) -> Callable[[Mapping[Any, SqlValue]], TableRow]:
        given: dict[str, Any] = dict(values)
        bound: list[SqlValue] = [None] * len(self.columns)
        for place, parameter in table_method.parameters.items():
            if parameter.name in given:
                bound[place] = given[parameter.name]
        # What only binds a parameter has the field None, which no response has.
        fields = [column.field for column in self.columns]

        def row(cells: Mapping[Any, SqlValue]) -> TableRow:
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

    def is_spread(self, place: int) -> bool:
        """Whether a value of a column may mean several, such as a group of accounts."""
        return place in self._spread

    def place_of(self, name: str) -> int | None:
        """The number of a column, by its name in any case of letters."""
        return self._places.get(folded(name))


def reading_methods(found: Found) -> list[Method]:
    """The methods that SELECT may use: none that changes, whatever the document says of it. A POST
    reads if the document has it under `select`."""
    named = (found.resource.methods[name] for name in found.resource.verbs.get("select", ()))
    return [each for each in named if each.http_verb not in _CHANGING]


def renames(found: Found) -> bool:
    """Whether columns of a resource may have other names in SQL than the API has for them."""
    return found.provider.renames_columns or any(each.casing for each in reading_methods(found))


def wire_names(found: Found) -> dict[str, str]:
    """The columns' names in SQL by those that the API has for them, in small letters, where these
    are other names and no column's own."""
    names: dict[str, str] = {}
    own: set[str] = set()
    for method in reading_methods(found):
        response = method.response
        for each in method.parameters:
            own.add(each.name.casefold())
            names.setdefault(each.wire_name.casefold(), each.name)
        if response.schema is None:
            continue
        columns = found.document.schemas.columns(response.schema, response.object_key)
        for name in columns:
            shown = snake_case(name) if found.provider.renames_columns else name
            own.add(shown.casefold())
            names.setdefault(name.casefold(), shown)
    return {wire: name for wire, name in names.items() if wire not in own}


def _common_parameters(methods: list[Method]) -> set[str]:
    """Parameters that every method requires: they are visible columns."""
    required: list[set[str]] = [
        {folded(p.name) for p in method.parameters if p.is_required} for method in methods
    ]
    return required[0].intersection(*required[1:]) if required else set()


def quoted(name: Any) -> str:
    """A name in double quotes."""
    return '"' + str(name).replace('"', '""') + '"'
