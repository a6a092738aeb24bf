"""Judges one operation of a Datalog source: its effect, and what it reads and writes.

One function per kind of operation; an operation that is not here has no judgement. Arguments are
those of the tools, as JSON values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from tidegate.errors import Code, TidegateError
from tidegate.model.statements import Effect
from tidegate.products.datalog.language.json_values import decode, keyword_name, plain_text
from tidegate.products.datalog.language.options import DOMAIN, check_options
from tidegate.products.datalog.language.pull import judge_pull
from tidegate.products.datalog.language.query import judge_query
from tidegate.products.datalog.language.reader import read
from tidegate.products.datalog.language.reading import ReadSet, unknown_form
from tidegate.products.datalog.language.transaction import (
    TUPLE_ATTRIBUTES,
    judge_transaction,
    name_parts,
)
from tidegate.products.datalog.language.values import Keyword, List, Map, Set, Value, Vector
from tidegate.products.datalog.requests import DatalogTarget

Arguments = Mapping[str, Any]

OWN_DBI = "datalevin/"
"""Names of the tables in which Datalevin keeps a Datalog database begin with this."""

_INDEX_TABLES = frozenset(
    {
        "terms", "docs", "positions", "rawtext", "vec-refs",
        "doc-ref", "doc-index", "path-dict",
    }
)  # fmt: skip
"""The tables of an index are named by its domain, a slash and one of these. The domain may be an
attribute's name, as in `person/name/terms`. Source: `datalevin.constants` 1.2.8."""

_KEY_OPERATIONS = frozenset({"put", "del"})
_TYPES = frozenset(
    {
        "data", "string", "long", "id", "int", "short", "byte", "float", "double", "bigint",
        "bigdec", "bytes", "keyword", "symbol", "boolean", "instant", "instant-pre-06", "uuid",
        "attr",
    }
)  # fmt: skip
"""Types of keys and values in a store. Source: `datalevin.bits/put-buffer` 1.2.8."""
_BOUNDS: Mapping[str, int] = {
    f"{kind}{back}": count
    for kind, count in {
        "all": 0, "at-least": 1, "at-most": 1, "greater-than": 1, "less-than": 1,
        "closed": 2, "open": 2, "closed-open": 2, "open-closed": 2,
    }.items()
    for back in ("", "-back")
}  # fmt: skip
"""How many keys bound each kind of range. With fewer the engine compares with nothing."""
_ATTRIBUTE_PLACES = {"eav": 1, "ave": 0, "vae": 1, "eavt": 1, "avet": 0}
"""Where the attribute is among the components of an index."""

_PROPERTIES = frozenset(
    {
        "db/valueType", "db/cardinality", "db/unique", "db/index", "db/noindex", "db/isComponent",
        "db/doc", "db/noHistory", "db/ident", "db/tupleAttrs", "db/tupleType", "db/tupleTypes",
        "db/fulltext", "db.fulltext/autoDomain", "db.fulltext/domains", "db.vec/domains",
        "db/domain", "db/idocFormat", "db.idoc/indexedPaths", "db.idoc/excludedPaths",
    }
)  # fmt: skip
"""What a schema may say of an attribute. Embeddings are left out, since a provider loads a model or
asks another service; so are predicates and functions, which are code."""
_DOMAINS = frozenset({"db.fulltext/domains", "db.vec/domains", "db/domain"})


class Judged(NamedTuple):
    """What an operation does. `reading` has what it reads or writes of a database."""

    effect: Effect
    reading: ReadSet


def judge_operation(
    operation: str,
    arguments: Arguments,
    *,
    target: DatalogTarget | None = None,
    create: bool = False,
) -> Judged:
    """Judge an operation by its name (that of the tool, without `datalevin_`).

    `target` is what it works on, with its options. `create`: what it opens may be made. Raises:
    TidegateError DATALOG_* and ARGUMENT_INVALID for what is refused in every mode.
    """
    if target is not None:
        check_options(f"open_{target.kind}", target.options)
        check_options("clientOpts", target.client)
    judge = _JUDGES.get(operation)
    if judge is None:
        raise unknown_form(f"There is no operation {operation[:40]!r}")
    judged = judge(operation, arguments)
    if create and judged.effect < Effect.WRITE:
        return Judged(Effect.WRITE, judged.reading)
    return judged


def _opens(operation: str, arguments: Arguments) -> Judged:
    reading = ReadSet()
    schema = arguments.get("schema")
    if schema is None:
        return Judged(Effect.READ, reading)
    _judge_schema(decode(schema), reading)
    return Judged(Effect.WRITE, reading)


def _judge_schema(schema: Value, reading: ReadSet) -> None:
    """Attributes and what they are, by name."""
    if not isinstance(schema, Map):
        raise unknown_form("A schema is a map of attributes")
    for attribute, definition in schema.pairs:
        if isinstance(attribute, str):
            attribute = Keyword(attribute.removeprefix(":"))
        if not isinstance(attribute, Keyword) or not isinstance(definition, Map):
            raise unknown_form("A schema is a map of attributes")
        reading.named(attribute.name)
        for key, value in definition.pairs:
            name = key.name if isinstance(key, Keyword) else str(key).removeprefix(":")
            if name not in _PROPERTIES:
                raise unknown_form(f"{str(key)[:40]} is no property of an attribute here")
            if name in _DOMAINS:
                _judge_domains(value)
            if name == TUPLE_ATTRIBUTES:
                name_parts(value, reading)
            ReadSet().data(value)  # refuses functions; what it names are types


def _judge_domains(value: Value) -> None:
    """Names of indexes: a part of the name of a file, for those of vectors."""
    names = value.items if isinstance(value, (Vector, List, Set)) else (value,)
    for each in names:
        if not isinstance(each, str) or DOMAIN.fullmatch(each) is None:
            raise unknown_form("A domain is a name of letters, digits, `.`, `_` and `-`")


def _closes(operation: str, arguments: Arguments) -> Judged:
    return Judged(Effect.READ, ReadSet())


def _query(operation: str, arguments: Arguments) -> Judged:
    inputs = [decode(each) for each in _array(arguments, "inputs", ())]
    return Judged(Effect.READ, judge_query(read(_text(arguments, "query")), inputs))


def _pull(operation: str, arguments: Arguments) -> Judged:
    reading = ReadSet()
    selector = decode(arguments.get("selector"))
    judge_pull(read(selector) if isinstance(selector, str) else selector, reading)
    entities: Sequence[Any] = (
        _array(arguments, "eids") if operation == "pull_many" else (arguments.get("eid"),)
    )
    for each in entities:
        _entity_reference(decode(each), reading)
    return Judged(Effect.READ, reading)


def _entity(operation: str, arguments: Arguments) -> Judged:
    reading = ReadSet()
    reading.everything = True
    _entity_reference(decode(arguments.get("eid")), reading)
    return Judged(Effect.READ, reading)


def _entity_reference(value: Value, reading: ReadSet) -> None:
    """An entity by its number, or by a value of an attribute."""
    if isinstance(value, Keyword):
        reading.named("db/ident")
    else:
        reading.data(value)


def _datoms(operation: str, arguments: Arguments) -> Judged:
    reading = ReadSet()
    index = keyword_name(_text(arguments, "index"))
    place = _ATTRIBUTE_PLACES.get(index)
    if place is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is no index {index[:20]!r}; there are eav and ave",
            details={"parameter": "index", "problem": "value", "required": True},
        )
    for at, name in enumerate(("c1", "c2", "c3")):
        if name not in arguments or at == place:
            continue
        if at == (0 if place == 1 else 2):
            _entity_reference(decode(arguments[name]), reading)
        else:
            _component(decode(arguments[name]), reading)
    _attribute(arguments.get(("c1", "c2", "c3")[place]), reading)
    return Judged(Effect.READ, reading)


def _search_datoms(operation: str, arguments: Arguments) -> Judged:
    reading = ReadSet()
    _entity_reference(decode(arguments.get("e")), reading)
    _component(decode(arguments.get("v")), reading)
    _attribute(arguments.get("a"), reading)
    return Judged(Effect.READ, reading)


def _component(value: Value, reading: ReadSet) -> None:
    if not isinstance(value, Keyword):  # an enumeration, which names no attribute
        reading.data(value)


def _attribute(given: Any, reading: ReadSet) -> None:
    """An attribute, as `:name` or `name`; without one, all of them."""
    reading.attribute(Keyword(keyword_name(given)) if isinstance(given, str) else decode(given))


def _searches(operation: str, arguments: Arguments) -> Judged:
    """A search of an index: of all that it holds."""
    check_options(operation, arguments.get("opts"))
    reading = ReadSet()
    reading.everything = True
    return Judged(Effect.READ, reading)


def _reads_index(operation: str, arguments: Arguments) -> Judged:
    reading = ReadSet()
    reading.everything = True
    return Judged(Effect.READ, reading)


def _writes_index(operation: str, arguments: Arguments) -> Judged:
    reading = ReadSet()
    reading.everything = True
    for name in ("docRef", "vectorRef"):
        ReadSet().data(decode(arguments.get(name)))
    return Judged(Effect.WRITE, reading)


def _transacts(operation: str, arguments: Arguments) -> Judged:
    change = judge_transaction([decode(each) for each in _array(arguments, "txData")])
    ReadSet().data(decode(arguments.get("txMeta")))
    return Judged(Effect.WRITE, change)


def _reads_key(operation: str, arguments: Arguments) -> Judged:
    reading = ReadSet()
    _check_types(arguments)
    _table(_text(arguments, "dbi"), reading)
    for name in ("key", "keyRange"):
        ReadSet().data(decode(arguments.get(name)))
    if "keyRange" in arguments:
        _check_range(_array(arguments, "keyRange"))
    return Judged(Effect.READ, reading)


def _check_range(given: Sequence[Any]) -> None:
    """The kind of a range, and that it has its bounds."""
    kind = keyword_name(given[0]) if given and isinstance(given[0], str) else ""
    bounds = _BOUNDS.get(kind)
    if bounds is None:
        problem = f"keyRange begins with one of {', '.join(f':{each}' for each in _BOUNDS)}"
    elif len(given) - 1 != bounds or None in given[1:]:
        keys = "no key" if bounds == 0 else "one key" if bounds == 1 else "two keys"
        problem = f"A range :{kind} has {keys}, and {len(given) - 1} are given"
        problem += " as null" if None in given[1:] else ""
    else:
        return
    details = {"parameter": "keyRange", "problem": "value", "required": True}
    raise TidegateError(Code.ARGUMENT_INVALID, problem, details=details)


def _writes_keys(operation: str, arguments: Arguments) -> Judged:
    """Entries of a key-value store: `[:put dbi key value]`, without the table where `dbi` is
    given. The tables of a Datalog database are written by transactions alone."""
    reading = ReadSet()
    _check_types(arguments)
    dbi = arguments.get("dbi")
    if dbi is not None:
        _written_table(_text(arguments, "dbi"), reading)
    for each in _array(arguments, "txs"):
        entry = cast("Sequence[Any]", each) if isinstance(each, (list, tuple)) else ()
        name = entry[0] if entry else None
        if not isinstance(name, str) or keyword_name(name) not in _KEY_OPERATIONS:
            known = ", ".join(f":{each}" for each in sorted(_KEY_OPERATIONS))
            raise unknown_form(f"An entry of txs begins with one of {known}")
        rest = entry[1:]
        if dbi is None:
            table = plain_text(rest[0]) if rest else None
            if not isinstance(table, str):
                raise unknown_form("An entry of txs without dbi names its table")
            _written_table(table, reading)
            rest = rest[1:]
        _check_entry(keyword_name(name), rest)
        for value in rest:
            ReadSet().data(decode(value))
    return Judged(Effect.WRITE, reading)


def _check_entry(operation: str, rest: Sequence[Any]) -> None:
    """The parts of an entry after its table: the key, the value of a put, and their types."""
    values = 2 if operation == "put" else 1
    if len(rest) < values:
        wanted = "a key and a value" if values == 2 else "a key"
        raise unknown_form(f"An entry :{operation} has {wanted}")
    types = rest[values:]
    if len(types) > values:
        raise unknown_form(f"An entry :{operation} has at most {values} types after its values")
    for each in types:
        if not isinstance(each, str) or keyword_name(each) not in _TYPES:
            known = ", ".join(f":{name}" for name in sorted(_TYPES))
            raise unknown_form(f"{str(each)[:40]!r} is no type of a key or value: {known}")


def _check_types(arguments: Arguments) -> None:
    """The types of keys and values: the engine takes an unknown one for `:data`."""
    for field in ("keyType", "valueType"):
        given = arguments.get(field)
        if given is None:
            continue
        name = keyword_name(given) if isinstance(given, str) else ""
        if name not in _TYPES:
            known = ", ".join(f":{each}" for each in sorted(_TYPES))
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"{field} must be one of {known}",
                details={"parameter": field, "problem": "value", "required": False},
            )


def _reads_all(operation: str, arguments: Arguments) -> Judged:
    reading = ReadSet()
    reading.everything = True
    return Judged(Effect.READ, reading)


def _loads(operation: str, arguments: Arguments) -> Judged:
    return Judged(Effect.WRITE, _reads_all(operation, arguments).reading)


def _table(name: str, reading: ReadSet) -> None:
    """A table that is read. One with a slash in its name may be of an index, and hold the words of
    any attribute."""
    if "/" in name:
        reading.everything = True
    else:
        reading.named(name)


def _written_table(name: str, reading: ReadSet) -> None:
    if name.startswith(OWN_DBI):
        raise TidegateError(
            Code.POLICY_DENIED,
            f"The table {name[:60]!r} belongs to the Datalog database in this directory",
            hint="Change its facts with datalevin_transact.",
            details={"rule": "datalog.own_table"},
        )
    domain, _, table = name.rpartition("/")
    if domain and table in _INDEX_TABLES:
        raise TidegateError(
            Code.POLICY_DENIED,
            f"The table {name[:60]!r} belongs to an index",
            hint="Change the index by its own tools, such as datalevin_add_document.",
            details={"rule": "datalog.own_table"},
        )
    reading.named(name)


def _text(arguments: Arguments, name: str) -> str:
    given = plain_text(arguments.get(name))
    if isinstance(given, str):
        return given
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        f"{name} must be a string",
        details={"parameter": name, "problem": "type", "required": True},
    )


def _array(arguments: Arguments, name: str, default: Sequence[Any] | None = None) -> Sequence[Any]:
    given = arguments.get(name, default)
    if isinstance(given, (list, tuple)):
        return cast("Sequence[Any]", given)
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        f"{name} must be an array",
        details={"parameter": name, "problem": "type", "required": True},
    )


_JUDGES: Mapping[str, Callable[[str, Arguments], Judged]] = {
    "open_database": _opens,
    "open_kv": _opens,
    "open_search_index": _opens,
    "open_vector_index": _opens,
    "close_database": _closes,
    "close_kv": _closes,
    "close_search_index": _closes,
    "close_vector_index": _closes,
    "query": _query,
    "pull": _pull,
    "pull_many": _pull,
    "entity": _entity,
    "datoms": _datoms,
    "search_datoms": _search_datoms,
    "count_datoms": _search_datoms,
    "fulltext_datoms": _searches,
    "transact": _transacts,
    "kv_get": _reads_key,
    "kv_range": _reads_key,
    "kv_transact": _writes_keys,
    "search_documents": _searches,
    "document_count": _reads_index,
    "document_indexed": _reads_index,
    "add_document": _writes_index,
    "remove_document": _writes_index,
    "clear_documents": _writes_index,
    "vector_search": _searches,
    "vector_index_info": _reads_index,
    "vector_indexed": _reads_index,
    "add_vector": _writes_index,
    "remove_vector": _writes_index,
    "copy": _reads_all,
    "dump": _reads_all,
    "stat": _reads_all,
    "load": _loads,
}
