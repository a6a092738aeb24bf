"""Judges a Datalog query, its rules and its inputs: which attributes and functions it uses.

A form that is not listed here is refused. Source: the grammar in `datalevin.parser` 1.2.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidegate.products.datalog.language.functions import (
    ARITHMETIC,
    MAKERS_OF_VALUES,
    NESTED,
    OF_ENTITY,
    PLAIN,
    SEARCHES,
)
from tidegate.products.datalog.language.json_values import decode, encode
from tidegate.products.datalog.language.pull import judge_pull
from tidegate.products.datalog.language.reader import read
from tidegate.products.datalog.language.reading import ReadSet, function_refused, unknown_form
from tidegate.products.datalog.language.values import Keyword, List, Map, Symbol, Value, Vector
from tidegate.products.datalog.language.writer import write

SECTIONS = frozenset(
    {
        "find", "with", "in", "where", "having", "keys", "strs", "syms", "order-by", "limit",
        "offset", "timeout",
    }
)  # fmt: skip
_COMPARES = ("<", "<=", ">", ">=", "=", "nil?", "and", "or", "not", "?", "*")
"""Symbols in a search of documents: comparisons, and any field or fields."""
_RULES = Symbol("%")
_DATABASE = Symbol("$")

Sections = dict[str, tuple[Value, ...]]


def judge_query(query: Value, inputs: Sequence[Value] = ()) -> ReadSet:
    """What a query reads. `inputs` are the values for all of `:in` but the database, which is the
    first. Rules may be a text of EDN.

    Raises: TidegateError DATALOG_FUNCTION, DATALOG_UNKNOWN, and what reading rules raises.
    """
    reading = ReadSet()
    _Query(reading, query, inputs).judge()
    return reading


def sections_of(query: Value) -> Sections:
    """The parts of a query by name, written as a vector or as a map.

    Raises: TidegateError DATALOG_UNKNOWN.
    """
    sections: Sections = {}
    if isinstance(query, Map):
        for key, value in query.pairs:
            items = value.items if isinstance(value, (Vector, List)) else (value,)
            _add(sections, key, items)
        return sections
    if not isinstance(query, (Vector, List)):
        raise unknown_form("A query is a vector or a map")
    begins = [at for at, each in enumerate(query.items) if isinstance(each, Keyword)]
    if not begins or begins[0] != 0:
        raise unknown_form("A query begins with :find")
    for begin, end in zip(begins, [*begins[1:], len(query.items)], strict=True):
        _add(sections, query.items[begin], query.items[begin + 1 : end])
    return sections


def _add(sections: Sections, key: Value, items: tuple[Value, ...]) -> None:
    if not isinstance(key, Keyword) or key.name not in SECTIONS:
        named = str(key) if isinstance(key, (Keyword, Symbol)) else "a value"
        raise unknown_form(f"{named[:40]} is no part of a query")
    if key.name in sections:
        raise unknown_form(f":{key.name} is there twice")
    sections[key.name] = items


def written_again(text: str, inputs: Sequence[Any]) -> tuple[str, list[Any]]:
    """A query and its inputs, as JSON values, written from what was read of them: nothing that
    another reader could take otherwise is left. Raises: TidegateError."""
    query = read(text)
    bindings = sections_of(query).get("in", (_DATABASE,))[1:]
    values: list[Any] = []
    for at, given in enumerate(inputs):
        value = decode(given)
        if isinstance(value, str) and at < len(bindings) and bindings[at] == _RULES:
            value = read(value)
        values.append(encode(value, exact=True))
    return write(query), values


def is_variable(value: Value) -> bool:
    return isinstance(value, Symbol) and value.name.startswith("?")


def _is_source(value: Value) -> bool:
    return isinstance(value, Symbol) and value.name.startswith("$")


def _is_plain(value: Value) -> bool:
    """Whether a symbol is a name: no variable, source, rules or `_`."""
    return isinstance(value, Symbol) and not (
        value.name.startswith(("?", "$")) or value.name in ("%", "_")
    )


class _Query:
    def __init__(
        self, reading: ReadSet, query: Value, inputs: Sequence[Value], nested: bool = False
    ) -> None:
        self._reading = reading
        self._sections = sections_of(query)
        self._inputs = inputs
        self._nested = nested
        self._database = _DATABASE
        self._collections: set[Symbol] = set()
        self._rules: set[str] = set()
        self._patterns: dict[Symbol, Value] = {}

    def judge(self) -> None:
        sections = self._sections
        if not sections.get("find"):
            raise unknown_form("A query needs :find")
        self._bind(sections.get("in", (_DATABASE,)))
        for clause in sections.get("where", ()):
            self._clause(clause, self._database)
        for element in self._find_elements():
            self._find(element)
        for predicate in sections.get("having", ()):
            self._having(predicate)
        for name in ("with", "keys", "strs", "syms"):
            if not all(isinstance(each, Symbol) for each in sections.get(name, ())):
                raise unknown_form(f":{name} takes names")
        for name in ("limit", "offset", "timeout"):
            self._number(name)
        self._order()

    # :in and inputs

    def _bind(self, given: tuple[Value, ...]) -> None:
        if not given or not isinstance(given[0], Symbol) or not _is_source(given[0]):
            raise unknown_form("The first part of :in is the database, as $")
        self._database = given[0]
        if len(self._inputs) != len(given) - 1:
            raise unknown_form(
                f":in names {len(given) - 1} inputs and {len(self._inputs)} are given"
            )
        for binding, value in zip(given[1:], self._inputs, strict=True):
            if binding == _RULES:
                if self._nested:
                    raise unknown_form("A nested query takes no rules")
                self._judge_rules(value)
            elif isinstance(binding, Symbol) and _is_source(binding):
                self._collections.add(binding)
                self._input(value)
            elif isinstance(binding, Symbol) and _is_plain(binding):
                self._patterns[binding] = value
                judge_pull(value, self._reading)
            else:
                self._binding(binding)
                self._input(value)

    def _input(self, value: Value) -> None:
        if self._nested and (is_variable(value) or (_is_source(value) and value != _DATABASE)):
            return
        self._reading.data(value)

    def _binding(self, binding: Value) -> None:
        """A variable, `_`, or a vector of such, in which `...` may follow."""
        if is_variable(binding) or binding == Symbol("_"):
            return
        if isinstance(binding, (Vector, List)) and binding.items:
            items = binding.items
            if len(items) == 2 and items[1] == Symbol("..."):
                items = items[:1]
            for each in items:
                self._binding(each)
            return
        raise unknown_form("A binding is a variable, or a vector of variables")

    def _judge_rules(self, given: Value) -> None:
        rules = read(given) if isinstance(given, str) else given
        if not isinstance(rules, (Vector, List)):
            raise unknown_form("Rules are a vector of rules")
        branches = [_branch(rule) for rule in rules.items]
        self._rules = {name for name, _, _ in branches}
        for _, arguments, clauses in branches:
            self._binding(Vector(arguments))
            for clause in clauses:
                self._clause(clause, self._database)

    # :where

    def _clause(self, clause: Value, source: Symbol) -> None:
        items = _items(clause, "A clause")
        explicit = False
        if _is_source(items[0]):
            source, items, explicit = self._known_source(items[0]), items[1:], True
            if not items:
                raise unknown_form("A clause is empty")
        head = items[0]
        if isinstance(head, Symbol) and head.name in ("not", "or", "and"):
            self._clauses(items[1:], source)
        elif isinstance(head, Symbol) and head.name in ("not-join", "or-join"):
            if len(items) < 2:
                raise unknown_form(f"{head.name} needs variables and clauses")
            self._join_variables(items[1])
            self._clauses(items[2:], source)
        elif not explicit and len(items) <= 2 and _is_call(head):
            if len(items) == 2:
                self._binding(items[1])
            self._call(_items(head, "A call"))
        elif isinstance(head, Symbol) and _is_plain(head):
            self._rule_call(head, items[1:])
        else:
            self._pattern(items, source)

    def _clauses(self, clauses: tuple[Value, ...], source: Symbol) -> None:
        if not clauses:
            raise unknown_form("A clause of clauses is empty")
        for each in clauses:
            self._clause(each, source)

    def _join_variables(self, given: Value) -> None:
        for each in _items(given, "The variables of a join"):
            if not is_variable(each):
                self._join_variables(each)

    def _known_source(self, source: Value) -> Symbol:
        if isinstance(source, Symbol) and (source == self._database or source in self._collections):
            return source
        raise unknown_form(f"{source} is not in :in")

    def _rule_call(self, name: Symbol, arguments: tuple[Value, ...]) -> None:
        if name.name not in self._rules:
            raise unknown_form(f"There is no rule `{name.name[:60]}` among the rules of :in")
        for each in arguments:
            if not isinstance(each, Symbol):
                self._reading.data(each)

    def _pattern(self, items: tuple[Value, ...], source: Symbol) -> None:
        for each in items:
            if isinstance(each, Symbol) and not (is_variable(each) or each.name == "_"):
                raise unknown_form(f"{each.name[:60]} has no meaning in a pattern")
        for at, each in enumerate(items):
            if not isinstance(each, Symbol) and (at != 1 or source in self._collections):
                self._constant(each)
        if source in self._collections:
            return
        if len(items) > 1:
            if not isinstance(items[1], (Keyword, Symbol)):
                raise unknown_form("The attribute of a pattern is a keyword or a variable")
            self._reading.attribute(items[1])
        else:
            self._reading.everything = True

    def _constant(self, value: Value) -> None:
        """A constant in a pattern or a call. A reference by a value may have a variable."""
        if isinstance(value, (Vector, List)):
            for each in value.items:
                if not is_variable(each):
                    self._constant(each)
        else:
            self._reading.data(value)

    def _call(self, call: tuple[Value, ...]) -> None:
        name = self._reading.function(call[0])
        arguments = call[1:]
        if name == NESTED:
            self._nested_query(arguments)
        elif name in OF_ENTITY:
            self._of_entity(name, arguments)
        elif name in SEARCHES:
            self._search(arguments)
        else:
            if name in MAKERS_OF_VALUES and any(map(is_variable, arguments)):
                self._reading.everything = True
            self._arguments(arguments)

    def _arguments(self, arguments: tuple[Value, ...]) -> None:
        for each in arguments:
            if is_variable(each):
                continue
            if _is_call(each):  # (and (= ?a 1) (like ?b "x")) in one predicate
                call = _items(each, "A call")
                name = self._reading.function(call[0])
                if name not in PLAIN:
                    raise function_refused(name, "it is called within a call")
                self._reading.everything |= name in MAKERS_OF_VALUES
                self._arguments(call[1:])
            else:
                self._constant(each)

    def _of_entity(self, name: str, arguments: tuple[Value, ...]) -> None:
        if len(arguments) < 3 or arguments[0] != self._database:
            raise unknown_form(f"{name} takes the database, an entity and an attribute")
        if not is_variable(arguments[1]):
            self._constant(arguments[1])
        rest = arguments[2:]
        if name == "get-some-else":
            default, attributes = rest[:1], rest[1:]
        elif name == "get-else":
            default, attributes = rest[1:], rest[:1]
        else:
            default, attributes = (), rest
        self._arguments(default)
        for each in attributes:
            self._reading.attribute(each)

    def _search(self, arguments: tuple[Value, ...]) -> None:
        if len(arguments) < 2 or arguments[0] != self._database:
            raise unknown_form("A search takes the database and what is searched for")
        self._reading.attribute(arguments[1])
        named = isinstance(arguments[1], Keyword)
        at = 2 if named else 1  # what is searched for, which may be a map itself
        for place, each in enumerate(arguments[1:], start=1):
            if is_variable(each) or (named and place == 1):
                continue
            if place > at and isinstance(each, Map):
                self._search_options(each)
            else:
                self._wanted(each)

    def _wanted(self, value: Value) -> None:
        """What is searched for: words, a vector, or a map with comparisons in it."""
        match value:
            case Symbol(name):
                if name not in _COMPARES:
                    raise function_refused(name, "a search compares by " + " ".join(_COMPARES))
            case Vector(items) | List(items):
                for each in items:
                    self._wanted(each)
            case Map(pairs):
                for key, each in pairs:
                    self._wanted(key)
                    self._wanted(each)
            case _:
                self._constant(value)

    def _search_options(self, options: Map) -> None:
        for key, value in options.pairs:
            if not isinstance(key, Keyword) or key.name not in (
                "display", "top", "limit", "offset", "domains", "proximity-expansion",
                "proximity-max-dist",
            ):  # fmt: skip
                raise unknown_form("A search has an option that is not known")
            if key.name == "domains":
                self._reading.everything = True
            if not isinstance(value, (Keyword, int, str, Vector)):
                raise unknown_form(f"The option :{key.name} does not fit")
            if isinstance(value, Vector):
                self._reading.data(value)

    def _nested_query(self, arguments: tuple[Value, ...]) -> None:
        if not arguments:
            raise unknown_form("q needs a query")
        query = arguments[0]
        if isinstance(query, List) and query.items[:1] == (Symbol("quote"),):
            query = query.items[1] if len(query.items) == 2 else None
        if not isinstance(query, (Vector, Map)):
            raise unknown_form("q needs a query as a vector or a map, without a quote")
        if arguments[1:2] != (self._database,):
            raise unknown_form("The first input of q is the database")
        _Query(self._reading, query, arguments[2:], nested=True).judge()

    # :find, :having, :order-by and numbers

    def _find_elements(self) -> tuple[Value, ...]:
        found = self._sections["find"]
        if len(found) == 1 and isinstance(found[0], Vector):
            found = found[0].items
            if found and found[-1] == Symbol("..."):
                found = found[:-1]
        elif found[-1] == Symbol("."):
            found = found[:-1]
        return found

    def _find(self, element: Value) -> None:
        if is_variable(element):
            return
        items = _items(element, "An element of :find")
        head = items[0]
        if not isinstance(head, Symbol) or not _is_plain(head):
            raise unknown_form("An element of :find is a variable, a pull or an aggregate")
        if head.name == "pull":
            self._find_pull(items[1:])
        elif head.name == "aggregate":
            raise function_refused("aggregate", "aggregates are named, not given")
        elif head.name in ARITHMETIC:
            self._arithmetic(items[1:], self._find)
        else:
            self._aggregate(head, items[1:])

    def _arithmetic(self, arguments: tuple[Value, ...], judge: Callable[[Value], None]) -> None:
        for each in arguments:
            if isinstance(each, (List, Vector)):
                judge(each)
            elif not is_variable(each):
                self._reading.data(each)

    def _aggregate(self, name: Symbol, arguments: tuple[Value, ...]) -> None:
        self._reading.aggregate(name)
        for each in arguments:
            if not is_variable(each):
                self._reading.data(each)

    def _find_pull(self, arguments: tuple[Value, ...]) -> None:
        if len(arguments) == 3:
            if arguments[0] != self._database:
                raise unknown_form("A pull is from the database")
            arguments = arguments[1:]
        if len(arguments) != 2 or not is_variable(arguments[0]):
            raise unknown_form("A pull takes a variable and a pattern")
        pattern = arguments[1]
        if isinstance(pattern, Symbol):
            if pattern not in self._patterns:
                raise unknown_form(f"{pattern} is not a pattern of :in")
            return
        judge_pull(pattern, self._reading)

    def _having(self, predicate: Value) -> None:
        items = _items(predicate, "A predicate of :having")
        call = _items(items[0], "A predicate of :having")
        if len(items) != 1 or not isinstance(call[0], Symbol) or call[0].name not in PLAIN:
            name = str(call[0]) if isinstance(call[0], Symbol) else ":having"
            raise function_refused(name)
        self._reading.function(call[0])
        self._arithmetic(call[1:], self._find)

    def _number(self, name: str) -> None:
        for each in self._sections.get(name, ()):
            plain = isinstance(each, int) and not isinstance(each, bool)
            if not plain and not is_variable(each):
                raise unknown_form(f":{name} takes a number")

    def _order(self) -> None:
        for each in self._sections.get("order-by", ()):
            parts = each.items if isinstance(each, (Vector, List)) else (each,)
            for part in parts:
                direction = isinstance(part, Keyword) and part.name in ("asc", "desc")
                plain = isinstance(part, int) and not isinstance(part, bool)
                if not (direction or plain or is_variable(part)):
                    raise unknown_form(":order-by takes variables, columns, :asc and :desc")


def _branch(rule: Value) -> tuple[str, tuple[Value, ...], tuple[Value, ...]]:
    """A branch of a rule: its name, its variables, its clauses."""
    items = _items(rule, "A rule")
    head = _items(items[0], "The head of a rule")
    name = head[0]
    if not isinstance(name, Symbol) or not _is_plain(name) or len(items) < 2 or len(head) < 2:
        raise unknown_form("A rule has a name, variables and clauses")
    if name.name in ("not", "or", "and", "not-join", "or-join"):
        raise unknown_form(f"{name.name} is no name for a rule")
    return name.name, head[1:], items[1:]


def _items(value: Value, what: str) -> tuple[Value, ...]:
    if not isinstance(value, (Vector, List)) or not value.items:
        raise unknown_form(f"{what} is a vector or a list that is not empty")
    return value.items


def _is_call(value: Value) -> bool:
    return (
        isinstance(value, (List, Vector))
        and bool(value.items)
        and isinstance(value.items[0], Symbol)
    )
