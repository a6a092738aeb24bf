"""Judges transaction data: which attributes it writes, and what it must not call.

Source: `datalevin.db` 1.2.8: entity maps, and vectors that begin with an operation.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.products.datalog.language.reading import (
    ReadSet,
    function_refused,
    name_of,
    unknown_form,
)
from tidegate.products.datalog.language.values import Keyword, List, Map, Symbol, Value, Vector

_ONE_FACT = frozenset({"db/add", "db/retract"})
_ENTITY = frozenset({"db/retractEntity", "db.fn/retractEntity"})
_ATTRIBUTE = frozenset({"db.fn/retractAttribute", "db/retractAttribute"})
_SWAP = frozenset({"db/cas", "db.fn/cas"})
_CODE = frozenset({"db/fn", "db/ident-fn", "db.fn/call", "db.fn/patchIdoc"})

TUPLE_ATTRIBUTES = "db/tupleAttrs"

_DEFINING = frozenset({"db.install", "db.fulltext", "db.vec", "db.embedding", "db.idoc"})
_DEFINES = frozenset(
    {
        "db/valueType", "db/cardinality", "db/unique", "db/index", "db/noindex", "db/isComponent",
        "db/tupleAttrs", "db/tupleType", "db/tupleTypes", "db/fulltext", "db/domain",
        "db/idocFormat", "db/embedding", "db/noHistory",
    }
)  # fmt: skip
"""What says what an attribute is: in a schema, which a transaction does not change."""


class Change(ReadSet):
    """What a transaction writes. `everything` is set where it retracts facts that it does not
    name; `retracts`: it takes facts away."""

    def __init__(self) -> None:
        super().__init__()
        self.retracts = False

    def named(self, name: str) -> None:
        if name in _DEFINES or name.partition("/")[0] in _DEFINING:
            raise unknown_form(
                f"A transaction defines no attribute: Datalevin keeps :{name[:60]} as a fact and"
                " takes no notice of it. Give the definition as `schema` when the database is"
                " opened"
            )
        super().named(name)


def judge_transaction(data: Sequence[Value]) -> Change:
    """What transaction data writes. Raises: TidegateError DATALOG_UNKNOWN, DATALOG_FUNCTION."""
    change = Change()
    for each in data:
        match each:
            case Map(pairs):
                _entity(pairs, change)
            case Vector(items) | List(items):
                _operation(items, change)
            case _:
                raise unknown_form("Transaction data are maps and vectors")
    return change


def _entity(pairs: tuple[tuple[Value, Value], ...], change: Change) -> None:
    for key, value in pairs:
        name = key.name if isinstance(key, Keyword) else key
        if not isinstance(name, str):
            raise unknown_form("The keys of an entity are attributes")
        name = name.removeprefix(":")
        if name_of(name) in _CODE:
            raise function_refused(f":{name}", "a transaction keeps and calls no functions")
        change.named(name)
        _value(value, change)


def name_parts(value: Value, reading: ReadSet) -> None:
    """Note the attributes of which a tuple is made: a caller that sees it sees them."""
    for each in value.items if isinstance(value, (Vector, List)) else (value,):
        if isinstance(each, (Keyword, str)):
            reading.named(str(each).removeprefix(":"))


def _operation(items: tuple[Value, ...], change: Change) -> None:
    if not items:
        raise unknown_form("An operation of a transaction is empty")
    head = items[0]
    if isinstance(head, Symbol):
        raise function_refused(head.name, "a transaction calls no functions")
    name = head.name if isinstance(head, Keyword) else head
    if not isinstance(name, str):
        raise unknown_form("An operation of a transaction begins with its name")
    name = name.removeprefix(":")
    if name in _CODE:
        raise function_refused(f":{name}", "a transaction keeps and calls no functions")
    if name in _ENTITY:
        change.everything = change.retracts = True
        for each in items[1:]:
            _value(each, change)
        return
    if name not in _ONE_FACT | _SWAP | _ATTRIBUTE:
        raise unknown_form(
            f":{name[:40]} is no operation of a transaction;"
            " there are :db/add, :db/retract, :db/retractEntity, :db.fn/retractAttribute, :db/cas"
        )
    if len(items) < 3:
        raise unknown_form(f":{name} needs an entity and an attribute")
    change.retracts |= name != "db/add"
    _value(items[1], change)
    attribute = items[2]
    if isinstance(attribute, str):
        attribute = Keyword(attribute.removeprefix(":"))
    if isinstance(attribute, Keyword) and name_of(attribute.name) in _CODE:
        raise function_refused(f":{attribute.name}", "a transaction keeps no functions")
    change.attribute(attribute)
    if name in _ATTRIBUTE and isinstance(attribute, Keyword):
        change.followed.add(name_of(attribute.name))  # the parts of an entity go with it
    for each in items[3:]:
        _value(each, change)


def _value(value: Value, change: Change) -> None:
    """A value may be an entity of its own, or refer to one. Other keywords are values: an
    enumeration such as `:color/red` names no attribute that is read."""
    match value:
        case Map(pairs):
            _entity(pairs, change)
        case Vector((Keyword(name), other)) | List((Keyword(name), other)):
            change.named(name)
            _value(other, change)
        case Vector(items) | List(items):
            for each in items:
                _value(each, change)
        case Symbol(name):
            raise function_refused(name, "values hold no symbols")
        case _:
            return
