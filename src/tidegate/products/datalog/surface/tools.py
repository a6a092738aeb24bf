"""The 32 tools of the document as data: names, arguments, what each is for.

An argument is written as in `name: type`, with `*` where it is required. `any` takes every JSON
value, and is listed as a string: `argument_texts.py` says how a text is read. Schemas and the
structs that arguments are converted to come from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from tidegate.model.actors import Scope
from tidegate.protocol.model import Annotations
from tidegate.surfaces.arguments import NO_WORDS

PREFIX = "datalevin_"

_TARGET = "dir:string uri:string"
_INDEX_REF = "searchIndex:string*"
_VECTOR_REF = "vectorIndex:string*"
_PAGE = "limit:integer offset:integer"
_TYPES = "keyType:string valueType:string"


class ToolSpec(NamedTuple):
    """A tool without the prefix of its name; `writes`: it is refused while writes are off."""

    name: str
    arguments: str
    description: str
    writes: bool = False


SPECS = (
    ToolSpec("api_info", "", "What this server and its Datalevin can do."),
    ToolSpec(
        "open_database",
        f"{_TARGET} create:boolean schema:object opts:object clientOpts:object",
        "Open a Datalog database: a directory, the name of a saved source, or a dtlv:// URI."
        " Returns the id for the other tools.",
    ),
    ToolSpec("close_database", "database:string*", "Close a database."),
    ToolSpec(
        "query",
        "database:string* query:string* inputs:array",
        "Run a Datalog query, such as [:find ?n :in $ ?a :where [?e :age ?a] [?e :name ?n]];"
        " inputs are the values for :in after $, rules among them as a string.",
    ),
    ToolSpec("pull", "database:string* selector:any* eid:any*", "Attributes of one entity."),
    ToolSpec(
        "pull_many", "database:string* selector:any* eids:array*", "Attributes of several entities."
    ),
    ToolSpec("entity", "database:string* eid:any*", "All attributes of one entity."),
    ToolSpec(
        "datoms",
        f"database:string* index:string* c1:any c2:any c3:any {_PAGE}",
        "Facts in the order of an index, eav or ave, that begin with the given components.",
    ),
    ToolSpec(
        "search_datoms",
        f"database:string* e:any a:any v:any {_PAGE}",
        "Facts by entity, attribute and value.",
    ),
    ToolSpec(
        "count_datoms",
        "database:string* e:any a:any v:any",
        "How many facts there are by entity, attribute and value.",
    ),
    ToolSpec(
        "fulltext_datoms",
        "database:string* query:string* opts:object",
        "Facts by the words in their text, best first.",
    ),
    ToolSpec(
        "transact",
        "database:string* txData:array* txMeta:any",
        "Add, change and retract facts, all of them or none.",
        writes=True,
    ),
    ToolSpec(
        "open_kv",
        f"{_TARGET} opts:object clientOpts:object",
        "Open a key-value store: a directory, the name of a saved source, or a dtlv:// URI."
        " Returns the id for the other tools.",
    ),
    ToolSpec("close_kv", "kv:string*", "Close a key-value store and the indexes in it."),
    ToolSpec(
        "kv_get",
        f"kv:string* dbi:string* key:any* {_TYPES} returnPair:boolean",
        "The value of one key.",
    ),
    ToolSpec(
        "kv_range",
        f"kv:string* dbi:string* keyRange:array* {_TYPES} {_PAGE}",
        'Keys and values of a range, such as [":all"] or [":closed", 1, 9]; a range that ends in'
        " -back comes backwards.",
    ),
    ToolSpec(
        "kv_transact",
        f"kv:string* txs:array* dbi:string {_TYPES}",
        'Put and delete keys, such as [":put", dbi, key, value], all of them or none.',
        writes=True,
    ),
    ToolSpec(
        "open_search_index",
        "kv:string* opts:object",
        "Open a full-text index in a key-value store. Returns its id.",
    ),
    ToolSpec("close_search_index", f"{_INDEX_REF}", "Close a full-text index."),
    ToolSpec(
        "add_document",
        f"{_INDEX_REF} docRef:any* docText:string* checkExist:boolean",
        "Add a document, or replace the one with that reference.",
        writes=True,
    ),
    ToolSpec("remove_document", f"{_INDEX_REF} docRef:any*", "Remove a document.", writes=True),
    ToolSpec("clear_documents", f"{_INDEX_REF}", "Remove all documents.", writes=True),
    ToolSpec("document_count", f"{_INDEX_REF}", "How many documents there are."),
    ToolSpec("document_indexed", f"{_INDEX_REF} docRef:any*", "Whether there is a document."),
    ToolSpec(
        "search_documents",
        f"{_INDEX_REF} query:string* opts:object",
        "References of documents by their words, best first.",
    ),
    ToolSpec(
        "open_vector_index",
        "kv:string* opts:object*",
        'Open a vector index in a key-value store; opts need {":dimensions": n}. Returns its id.',
    ),
    ToolSpec("close_vector_index", f"{_VECTOR_REF}", "Close a vector index."),
    ToolSpec(
        "add_vector",
        f"{_VECTOR_REF} vectorRef:any* vectorData:array*",
        "Add a vector under a reference.",
        writes=True,
    ),
    ToolSpec(
        "remove_vector",
        f"{_VECTOR_REF} vectorRef:any*",
        "Remove the vectors under a reference.",
        writes=True,
    ),
    ToolSpec("vector_index_info", f"{_VECTOR_REF}", "Size, dimensions and metric of an index."),
    ToolSpec("vector_indexed", f"{_VECTOR_REF} vectorRef:any*", "Whether there is a vector."),
    ToolSpec(
        "vector_search",
        f"{_VECTOR_REF} queryVector:array* opts:object",
        "References of the vectors that are nearest to one.",
    ),
)

_Wordless = Annotated[Any, Meta(extra=NO_WORDS)]
_PYTHON: Mapping[str, Any] = {
    "string": str | dict[str, Any],  # or {"~str": "…"}
    "boolean": bool,
    "integer": _Wordless,  # its own code says which numbers it takes
    "array": list[Any],
    "object": dict[str, Any],
    "any": Any,
}
_WORDLESS = frozenset({"e", "a", "c1", "txMeta"})
"""Arguments of any type of which neither an empty text nor a word for nothing is a value."""
_ITEMS: Mapping[str, Mapping[str, Any]] = {
    "vectorData": {"type": "number"},
    "queryVector": {"type": "number"},
    "txs": {"type": "array", "items": {"type": "string"}},
}
"""Items of arrays that are no values, each of which is listed as a text."""
_MEANINGS: Mapping[str, str] = {
    "eid": 'An entity: its number, or a unique value as in [:name "Ann"]',
    "eids": 'Entities: their numbers, or unique values as in [:name "Ann"]',
    "e": "An entity, by its number",
    "a": "An attribute, as :name",
    "v": "A value, read by the type of the attribute",
    "c1": "An entity in eav, an attribute in ave",
    "c2": "An attribute in eav, a value in ave",
    "c3": "A value in eav, an entity in ave",
    "selector": "A pull pattern in EDN, as [:name {:parent [:name]}]",
    "inputs": "Values for :in after $; a collection or rules in EDN",
    "txData": 'Maps and vectors in EDN, as {:db/id -1 :name "Ann"} or [:db/retract 1 :name "Ann"]',
    "key": "A key, read by keyType; text without one",
    "keyType": "As :string or :long",
    "valueType": "As :string or :long",
    "docRef": "What the document is known by",
    "vectorRef": "What the vector is known by",
}
"""What a text means, where its name does not say it."""


class Argument(NamedTuple):
    name: str
    type: str
    required: bool


def arguments_of(spec: ToolSpec) -> tuple[Argument, ...]:
    """The arguments that a line of the table names."""
    found: list[Argument] = []
    for word in spec.arguments.split():
        name, _, kind = word.partition(":")
        found.append(Argument(name, kind.removesuffix("*"), kind.endswith("*")))
    return tuple(found)


def schema_of(spec: ToolSpec) -> Mapping[str, Any]:
    """The input schema as it is listed. What it does not name is refused all the same."""
    arguments = arguments_of(spec)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {each.name: _property(each) for each in arguments},
    }
    required = [each.name for each in arguments if each.required]
    return {**schema, "required": required} if required else schema


def _property(argument: Argument) -> dict[str, Any]:
    """One type, and items where it is an array: some converters of schemas take no more."""
    shown: dict[str, Any] = {"type": "string" if argument.type == "any" else argument.type}
    if argument.type == "array":
        shown["items"] = _ITEMS.get(argument.name, {"type": "string"})
    meaning = _MEANINGS.get(argument.name)
    return {**shown, "description": meaning} if meaning else shown


def struct_of(spec: ToolSpec) -> type[msgspec.Struct]:
    """The struct of the arguments; one that was left out is UNSET."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for each in sorted(arguments_of(spec), key=lambda each: not each.required):
        kind = _Wordless if each.name in _WORDLESS else _PYTHON[each.type]
        if each.required:
            fields.append((each.name, kind))
        else:
            fields.append((each.name, kind | msgspec.UnsetType, msgspec.UNSET))
    return msgspec.defstruct(
        f"{spec.name.title().replace('_', '')}Args", fields, forbid_unknown_fields=True
    )


def annotations_of(spec: ToolSpec) -> Annotations:
    """What a tool does to its environment, for clients that ask before it is called."""
    opens = spec.name in ("open_database", "open_kv")
    if spec.writes:
        clears = not spec.name.startswith("add_")
        return Annotations(read_only_hint=False, destructive_hint=clears, open_world_hint=False)
    return Annotations(read_only_hint=not opens, destructive_hint=False, open_world_hint=opens)


def scope_of(spec: ToolSpec) -> Scope:
    """The scope that every call of a tool needs."""
    return Scope.READ_WRITE if spec.writes else Scope.READ_ONLY
