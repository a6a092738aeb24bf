"""Resources as virtual tables of SQLite.

SQLite's planner says, in `BestIndex`, which columns a statement binds: the method of a resource is
chosen by that. A value that is known before a row is read (a literal, a member of an IN list) is
fetched and waited for. A value that comes from the row of another table is not waited for: its
fetch is begun, the row is passed over, and the statement is run again once all of them are there
(`statement_run`). So the fetches of a join run at once, whatever the order of its loops, and rows
are only shown of a run that missed nothing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import apsw

from tidegate.errors import Code, TidegateError, masking_refused
from tidegate.products.cloud.documents.accounts import Values, is_spread, spread
from tidegate.products.cloud.engine.fetches import Fetch, Fetches, TableRow
from tidegate.products.cloud.engine.resource_table import ResourceTable, TableMethod
from tidegate.products.cloud.engine.table_roles import TableRole
from tidegate.products.cloud.http.responses import SqlValue

_EQUALS: Final = apsw.SQLITE_INDEX_CONSTRAINT_EQ
_REQUEST_COST: Final = 1_000.0
_INCOMPLETE_COST: Final = 1e12
_LIST_ROWS: Final = 1_000
_KEYED_ROWS: Final = 10
_NUMBER: Final = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*")
_MOST_MEMBERS: Final = 1_000_000
_LAST_NOTED: Final = 63
"""In the columns that SQLite says a loop reads, this one means all that follow it too."""


class Argument(NamedTuple):
    """A bound column. `looks_up`: rows with its value are looked up; else it binds a parameter."""

    place: int
    looks_up: bool
    is_list: bool
    """All members of an IN list come at once."""


class TablePlan(NamedTuple):
    """How one loop of a statement reads a resource. `waits`: no parameter comes from another
    table's row. `unfit` is a bound name that the method does not have. `unbound` is a parameter
    that the statement reads and does not bind: no row has a value of it."""

    method: TableMethod
    arguments: tuple[Argument, ...]
    waits: bool
    unfit: str | None
    unbound: str | None
    constants: tuple[tuple[int, tuple[Any, ...]], ...]
    """Columns that bind parameters by what the text says of them (`TableRole`), and the values."""
    known: Values | None
    """The parameters, where all are literals."""


class Misses:
    """What a run of the statement passed over, because it is not fetched yet."""

    def __init__(self, batch: float) -> None:
        self.fetches: list[Fetch] = []
        self.table: object | None = None
        """The first table that missed something. Others only begin fetches once it has all."""
        self.found_any = False
        self.batch = batch
        """How many fetches a run begins before it pauses for them."""

    def reset(self) -> None:
        self.fetches, self.table, self.found_any = [], None, False


class Paused(Exception):
    """The run has begun enough fetches: it goes on when they have ended."""


class VirtualTable:
    """One reference to a resource in a statement. Its methods have the names that apsw calls."""

    def __init__(
        self,
        number: int,
        table: ResourceTable,
        fetches: Fetches,
        misses: Misses,
        role: TableRole,
    ) -> None:
        self._number = number
        self.table = table
        self.is_kept = role.is_kept
        places = ((table.place_of(name), values) for name, values in role.constants.items())
        self._constants = {place: values for place, values in places if place is not None}
        self._read: set[int] = set()
        self.fetches = fetches
        self.misses = misses
        self.plans: list[TablePlan] = []
        self.lacks: frozenset[int] | None = None
        """Columns that were bound where no method could be used; None: that never happened."""
        self.fits = False
        """Whether a method could be used somewhere."""
        self._indexes: dict[tuple[Any, ...], dict[Any, list[TableRow]]] = {}

    def BestIndexObject(self, info: Any) -> bool:
        bound: dict[int, int] = {}
        known: dict[int, Any] = {}
        lists: set[int] = set()
        later: set[int] = set()
        for at in range(info.nConstraint):
            place = info.get_aConstraint_iColumn(at)
            if info.get_aConstraint_op(at) != _EQUALS or place < 0 or place in bound:
                continue
            if not self._binds(place, info.get_aConstraint_collation(at)):
                continue
            if not info.get_aConstraint_usable(at):
                later.add(place)  # bound where this table's loop is inside of another's
                continue
            bound[place] = at
            if info.get_aConstraintUsage_in(at):
                lists.add(place)
                continue
            value = info.get_aConstraint_rhs(at)
            if value is not None:
                known[place] = value
        barred = self.table.barred
        for place in barred.intersection([*bound, *self._constants]):
            if self.table.columns[place].field is None:
                raise self.parameter_refused(place)
        own = self._constants.keys() - barred
        # All rows of a table that is kept are read twice, of the same calls.
        given = frozenset(own if self.is_kept else bound.keys() - barred | own)
        constant = given if self.is_kept else (frozenset(known) | lists | own) - barred
        if self.is_kept:
            later.clear()
        chosen = self._choose(given)
        if chosen is None:
            seen = given if self.is_kept else frozenset(bound)
            self.lacks = seen if self.lacks is None else self.lacks | seen
            return False
        self.fits = True
        method, unfit = chosen
        used = self._used(info.colUsed)
        listed = self._choose(constant) if constant != given else None
        if (
            listed is not None
            and listed[0] is not method
            and used <= listed[0].fields | constant & listed[0].parameters.keys()
        ):
            # Keys come from another table's rows. The list has all that is asked for: it is fetched
            # once, and the keys are looked up in it.
            method, unfit = listed
        self._use(info, method, unfit, bound, known, lists, used)
        fuller = self._choose(given | later) if later - given else None
        if fuller is not None and _fills(fuller[0], used) > _fills(method, used):
            # Its rows lack columns that the statement reads, which those of another order have.
            info.estimatedCost = _INCOMPLETE_COST
        return True

    def _binds(self, place: int, collation: str) -> bool:
        """Whether a comparison may bind a parameter or look a value up: an API compares each
        character. A parameter of accounts has a collation of its own."""
        return collation == "BINARY" or self.table.is_spread(place)

    def has_column(self, name: str) -> bool:
        """Whether the table has a column of that name in any case of letters."""
        return self.table.place_of(name) is not None

    def note_read(self, name: str) -> None:
        """Note a column that the statement reads, before its plan is made: the planner counts all
        from the 64th on as one."""
        place = self.table.place_of(name)
        if place is not None:
            self._read.add(place)

    def _used(self, noted: set[int]) -> frozenset[int]:
        """The columns that a loop reads, of those that `info.colUsed` has."""
        if _LAST_NOTED not in noted:
            return frozenset(noted)
        later = {place for place in self._read if place >= _LAST_NOTED}
        return frozenset(noted - {_LAST_NOTED} | later)

    @property
    def bound_names(self) -> list[str]:
        """The columns that were bound where no method could be used."""
        return [self.table.columns[place].name for place in self.lacks or ()]

    def _choose(self, given: frozenset[int]) -> tuple[TableMethod, str | None] | None:
        """The first method in the document's order whose required parameters are bound, and that
        takes all that are bound; else the first, and the name of what it does not take."""
        first: tuple[TableMethod, str | None] | None = None
        for method in self.table.methods:
            if not method.required <= given:
                continue
            unfit = next(
                (at for at in given if at not in method.parameters and at not in method.fields
                 and self.table.columns[at].field is None),
                None,
            )  # fmt: skip
            if unfit is None:
                return method, None
            first = first or (method, self.table.columns[unfit].name)
        return first

    def _use(
        self,
        info: Any,
        method: TableMethod,
        unfit: str | None,
        bound: dict[int, int],
        known: dict[int, Any],
        lists: set[int],
        used: frozenset[int],
    ) -> None:
        """Tell SQLite which constraints are taken and what the loop costs."""
        arguments: list[Argument] = []
        cost, rows, waits = _REQUEST_COST, _LIST_ROWS, True
        barred = self.table.barred
        constants = {
            place: values
            for place, values in self._constants.items()
            if place in method.parameters
            and place not in barred
            and (self.is_kept or place not in bound)
        }
        for place, at in bound.items():
            is_parameter = place in method.parameters and place not in barred
            is_parameter = is_parameter and not self.is_kept
            is_list = place in lists
            if not is_parameter:
                if place not in method.fields or is_list or place in known:
                    continue
                cost, rows = 20.0, _KEYED_ROWS
            elif place not in known and not is_list:
                waits = False
                rows = min(rows, 25)
            elif place in known and len(method.required) > 1:
                rows = min(rows, 500)
            if is_list:
                info.set_aConstraintUsage_in(at, True)
            arguments.append(Argument(place, not is_parameter, is_list))
            info.set_aConstraintUsage_argvIndex(at, len(arguments))
            if is_parameter and (
                place in method.required or self.table.columns[place].field is None
            ):
                info.set_aConstraintUsage_omit(at, True)
        values: Values | None = None
        if all(each.place in known and not each.looks_up for each in arguments) and all(
            len(each) == 1 for each in constants.values()
        ):
            pairs = [(method.parameters[a.place].name, known[a.place]) for a in arguments]
            pairs += [(method.parameters[at].name, only) for at, (only,) in constants.items()]
            values = tuple(sorted(pairs))
        unbound = self._unbound(
            method, used - {each.place for each in arguments} - constants.keys()
        )
        self.plans.append(
            TablePlan(
                method, tuple(arguments), waits, unfit, unbound, tuple(constants.items()), values
            )
        )
        info.idxNum = len(self.plans) - 1
        info.idxStr = f"t{self._number}"  # for what reads the plan of the whole statement
        info.estimatedCost = cost + rows
        info.estimatedRows = rows

    def _unbound(self, method: TableMethod, places: frozenset[int]) -> str | None:
        """A parameter among these columns, of which rows then have no value. A statement that does
        not say whose account it asks for uses the provider's own login."""
        provider, columns = self.table.found.provider, self.table.columns
        for place in sorted(places - method.fields):
            column, parameter = columns[place], method.parameters.get(place)
            if column.field is not None or (parameter and is_spread(provider, parameter)):
                continue
            return column.name
        return None

    def parameter_refused(self, place: int) -> TidegateError:
        """The refusal of a value for a parameter that could tell what is masked."""
        name = self.table.columns[place].name
        return masking_refused(
            f"Columns of {self.table.found.path} are masked for this caller, and the provider could"
            f" read them by the parameter {name}",
            f"masking.{self.table.found.path}",
            f"Leave {name} out, and write conditions on columns that are not masked.",
        )

    def begin_fetch(self, plan: TablePlan) -> None:
        """Begin what a loop will read, where that is known."""
        if plan.known is None or plan.unfit is not None or plan.unbound is not None:
            return
        found, method = self.table.found, plan.method.method
        for values in spread(found.provider, method, plan.known):
            rows = self.table.make_rows(plan.method, values)
            self.fetches.begin(found, method, values, rows)

    def Open(self) -> VirtualCursor:
        return VirtualCursor(self)

    def Disconnect(self) -> None:
        pass

    Destroy = Disconnect

    def check_fit(self, plan: TablePlan) -> None:
        """Raises: TidegateError ARGUMENT_INVALID for a bound name that the method does not have,
        and for a parameter that is read and not bound."""
        path, name = self.table.found.path, plan.method.method.name
        if plan.unfit is None and plan.unbound is not None:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"{plan.unbound} is a parameter of {path} and no column of its rows: {name} would"
                " be called without it.",
                hint=f"Bind {plan.unbound} by = or IN, beside other conditions and not in an OR,"
                " or leave it out.",
            )
        if plan.unfit is None:
            return
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The method {name} of {path} has no parameter {plan.unfit}.",
            hint=f"DESCRIBE METHOD {path}.{name} lists them.",
        )

    def rows_of(self, plan: TablePlan, arguments: Sequence[Any]) -> Iterator[TableRow]:
        """The rows that a loop reads. Raises: as `check_fit`; what fetching raises."""
        self.check_fit(plan)
        bindings: list[tuple[str, list[Any]]] = []
        keys: list[tuple[int, Any]] = []
        for argument, value in zip(plan.arguments, arguments, strict=True):
            if argument.looks_up:
                keys.append((argument.place, value))
                continue
            members = _members(value) if argument.is_list else [value]
            members = [each for each in members if each is not None]
            bindings.append((plan.method.parameters[argument.place].name, members))
        for place, members in plan.constants:
            bindings.append((plan.method.parameters[place].name, list(members)))
        combinations = 1
        for _, members in bindings:
            combinations *= len(members)
        if combinations > _MOST_MEMBERS:
            raise TidegateError(Code.ARGUMENT_INVALID, "The IN lists have too many members.")
        names = [name for name, _ in bindings]
        provider, method = self.table.found.provider, plan.method.method
        # Two groups may have the same account: it is asked once.
        sets: list[Values] = list(
            dict.fromkeys(
                call
                for each in itertools.product(*(members for _, members in bindings))
                for call in spread(provider, method, tuple(sorted(zip(names, each, strict=True))))
            )
        )
        fetches = self._fetch(plan, sets)
        rows: Iterator[TableRow]
        if keys:
            rows = iter(self._looked_up(fetches, keys))
        else:
            rows = itertools.chain.from_iterable(each.rows() for each in fetches)
        stated = self._stated(plan)
        return self._compared(rows, stated) if stated else rows

    def _stated(self, plan: TablePlan) -> dict[int, frozenset[Any]]:
        """The parameters of which a row can have another value than the one that was sent, and
        that SQLite compares with it nevertheless."""
        columns, required = self.table.columns, plan.method.required
        return {
            place: frozenset(map(_comparable, values))
            for place, values in plan.constants
            if self.table.is_spread(place)
            or (place in required and columns[place].field is not None)
        }

    def _compared(
        self, rows: Iterator[TableRow], stated: Mapping[int, frozenset[Any]]
    ) -> Iterator[TableRow]:
        """The rows. Raises: TidegateError ARGUMENT_INVALID for one that would be lost."""
        for row in rows:
            for place, values in stated.items():
                if _comparable(row[place]) not in values:
                    name, path = self.table.columns[place].name, self.table.found.path
                    raise TidegateError(
                        Code.ARGUMENT_INVALID,
                        f"Rows of {path} have another {name} than the one that was asked for, so"
                        " this join or OR would lose them.",
                        hint=f"Read {path} in a subquery, (SELECT … FROM {path} WHERE {name} = …),"
                        " and join that.",
                    )
            yield row

    def _fetch(self, plan: TablePlan, sets: list[Values]) -> list[Fetch]:
        """The fetches that are ready to be waited for."""
        found, method = self.table.found, plan.method
        known = [self.fetches.find(found, method.method, values) for values in sets]
        new = sum(1 for each in known if each is None)
        if new:
            if not plan.waits and self.misses.table not in (None, self):
                # What is bound here may come from rows that are there only for now.
                self.misses.found_any = True
                return []
            self.fetches.check_room(new)
        fetches = [
            fetch
            or self.fetches.begin(
                found, method.method, values, self.table.make_rows(method, values)
            )
            for fetch, values in zip(known, sets, strict=True)
        ]
        if plan.waits:
            return fetches
        waiting = [each for each in fetches if not each.has_ended]
        if waiting:
            self.misses.table = self.misses.table or self
            self.misses.found_any = True
            self.misses.fetches += waiting
            if len(self.misses.fetches) >= self.misses.batch:
                raise Paused
        return [each for each in fetches if each.has_ended]

    def _looked_up(self, fetches: list[Fetch], keys: list[tuple[int, Any]]) -> list[TableRow]:
        """The rows with these values; SQLite compares them once more."""
        places = tuple(place for place, _ in keys)
        if any(value is None for _, value in keys):
            return []
        found: list[TableRow] = []
        wanted = tuple(_comparable(value) for _, value in keys)
        for fetch in fetches:
            name = (id(fetch), places)
            index = self._indexes.get(name)
            if index is None:
                index = self._indexes[name] = {}
                for row in fetch.all_rows():
                    index.setdefault(tuple(_comparable(row[at]) for at in places), []).append(row)
            found += index.get(wanted, ())
        return found


class VirtualCursor:
    """One loop over a virtual table. `Column` is the row's own method: it is called most often."""

    def __init__(self, table: VirtualTable) -> None:
        self._table = table
        self._rows: Iterator[TableRow] = iter(())
        self._row: TableRow = ()
        self._is_over = True
        self.Column: Callable[[int], SqlValue] = self._no_row

    def _no_row(self, place: int) -> SqlValue:
        return None

    def Filter(self, number: int, text: str | None, arguments: Sequence[Any] | None) -> None:
        self._rows = self._table.rows_of(self._table.plans[number], arguments or ())
        self._is_over = False
        self.Next()

    def Next(self) -> None:
        row = next(self._rows, None)
        if row is None:
            self._is_over = True
            return
        self._row = row
        self.Column = row.__getitem__

    def Eof(self) -> bool:
        return self._is_over

    def Rowid(self) -> int:
        # The same row in each loop: a fetch keeps what it has given for as long as the statement
        # runs, and SQLite tells by this which rows of a RIGHT or FULL JOIN have found a match.
        return id(self._row)

    def Close(self) -> None:
        self._rows = iter(())


class TableModule:
    """Makes the virtual tables of one statement, by the names that it gives them."""

    def __init__(self, tables: dict[str, VirtualTable]) -> None:
        self._tables = tables

    def Create(
        self, connection: Any, module: str, database: str, name: str, *arguments: str
    ) -> tuple[str, VirtualTable]:
        made = self._tables[name]
        return made.table.schema, made

    Connect = Create


def _fills(method: TableMethod, used: frozenset[int]) -> int:
    """How many of the columns that a statement uses the method's rows have."""
    return len(used & (method.fields | method.parameters.keys()))


def _members(value: Any) -> list[Any]:
    """The members of an IN list in an order of their own: SQLite gives a set."""
    return sorted(value, key=lambda each: (type(each).__name__, each))


def _comparable(value: Any) -> Any:
    """What is equal for all values that SQLite may find equal, by whatever affinity."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        text = value.strip()
        return int(text) if text.lstrip("+-").isdigit() and len(text) < 4_000 else float(text)
    return value
