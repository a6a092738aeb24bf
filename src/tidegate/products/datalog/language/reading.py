"""What a request reads of a database, as far as its text shows: attributes and functions."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError
from tidegate.products.datalog.language.functions import (
    AGGREGATES,
    NESTED,
    OF_ENTITY,
    PLAIN,
    SEARCHES,
)
from tidegate.products.datalog.language.values import Keyword, List, Map, Set, Symbol, Value, Vector

ID = "db/id"
"""Not an attribute: the entity's own number."""


class ReadSet:
    """Collects what is read. `attributes` are names without the colon, reverse references under
    the name of their attribute. `everything`: it may read attributes that it does not name.
    `placed` are those of the attributes that are in the place of an attribute, and not among
    values. `followed` are those that a pull follows without a pattern: where one refers to a
    component, all of that is shown."""

    def __init__(self) -> None:
        self.attributes: set[str] = set()
        self.placed: set[str] = set()
        self.followed: set[str] = set()
        self.functions: set[str] = set()
        self.everything = False

    def attribute(self, value: Value) -> None:
        """Note what is in the place of an attribute: a variable may be any."""
        if isinstance(value, Keyword):
            self.named(value.name)
            self.placed.add(name_of(value.name))
        else:
            self.everything = True

    def named(self, name: str) -> None:
        """Note an attribute by its name; `ns/_name` is the way back along `ns/name`."""
        forward = name_of(name)
        if forward != ID:
            self.attributes.add(forward)

    def data(self, value: Value) -> None:
        """Note what a constant or an input may name. Each keyword counts: it may end where an
        attribute is expected, or in a reference to an entity by a value (`[:user/email "x"]`).

        Raises: TidegateError DATALOG_FUNCTION for a symbol, which may end where a function is.
        """
        match value:
            case Keyword(name):
                self.named(name)
            case Symbol(name):
                raise function_refused(name, "values hold no symbols")
            case Vector(items) | List(items) | Set(items):
                for each in items:
                    self.data(each)
            case Map(pairs):
                for key, each in pairs:
                    self.data(key)
                    self.data(each)
            case _:
                return

    def function(self, symbol: Value) -> str:
        """Note a call in a clause. Raises: TidegateError DATALOG_FUNCTION unless it is built in."""
        if not isinstance(symbol, Symbol):
            raise unknown_form("A call begins with the name of a function")
        name = symbol.name
        if name not in PLAIN and name not in OF_ENTITY and name not in SEARCHES and name != NESTED:
            raise function_refused(name)
        self.functions.add(name)
        return name

    def aggregate(self, symbol: Symbol) -> None:
        """Note a call in `:find`. Raises: TidegateError DATALOG_FUNCTION unless it is built in."""
        if symbol.name not in AGGREGATES:
            raise function_refused(symbol.name)
        self.functions.add(symbol.name)


def name_of(name: str) -> str:
    """The attribute that a name leads along: `ns/_name` is `ns/name`, `_name` is `name`."""
    space, slash, rest = name.rpartition("/")
    return f"{space}{slash}{rest[1:]}" if rest.startswith("_") and len(rest) > 1 else name


def function_refused(
    name: str, why: str = "it is not one of the functions of Datalog"
) -> TidegateError:
    """The refusal of a function."""
    return TidegateError(
        Code.DATALOG_FUNCTION,
        f"`{name[:60]}` is not called here: {why}",
        details={"function": name[:60]},
    )


def unknown_form(problem: str) -> TidegateError:
    """The refusal of a form of which it is not known what it would do."""
    return TidegateError(Code.DATALOG_UNKNOWN, problem)
