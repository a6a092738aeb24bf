"""The tools that ask an open database, store or index for something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse
from tidegate.model.results import Document, Limits
from tidegate.model.schema import Catalog
from tidegate.products.datalog.language.json_values import keyword_name, plain_text
from tidegate.products.datalog.language.judge import judge_operation
from tidegate.products.datalog.requests import DatalogOperation, DatalogRequest, TargetKind
from tidegate.products.datalog.surface.argument_texts import read_texts
from tidegate.products.datalog.surface.errors import invalid
from tidegate.products.datalog.surface.handles import ARGUMENT, HandleTable, unknown
from tidegate.products.datalog.surface.opening import text_of
from tidegate.products.datalog.surface.reply_size import first_fitting
from tidegate.products.datalog.surface.truncation import TruncationLimits, forms
from tidegate.protocol.model import ToolResult
from tidegate.surfaces.tool_context import ToolContext

_DONE = {
    "add_document": "added",
    "remove_document": "removed",
    "clear_documents": "cleared",
    "add_vector": "added",
    "remove_vector": "removed",
}
"""The member that says that a change of an index took effect; it has no result."""

_NAMES_ATTRIBUTES = frozenset(
    {
        DatalogOperation.QUERY,
        DatalogOperation.PULL,
        DatalogOperation.DATOMS,
        DatalogOperation.SEARCH_DATOMS,
        DatalogOperation.COUNT_DATOMS,
    }
)
_NOTHING = (b"[]", b"{}", b"null", b"0")
"""Results that a misspelt attribute has: it is no error."""

_CORRECTED = (
    "The planner of Datalevin found nothing for this query. The answer was computed from the facts"
    " of the attributes that it names."
)

_TEXTS = ("query", "docText", "dbi", "index")
_KEYWORDS = ("keyType", "valueType")
_NUMBERS = ("limit", "offset")


def kind_of(given: Mapping[str, Any]) -> TargetKind:
    """What kind of id the arguments of a tool have."""
    for kind, name in ARGUMENT.items():
        if name in given:
            return kind
    raise invalid("database", "An id is missing.")


class Operations:
    """Sends the requests and shapes the results."""

    def __init__(self, handles: HandleTable, limits: Limits, truncation: TruncationLimits) -> None:
        self._handles = handles
        self._limits = limits
        self._truncation = truncation

    async def run(
        self, context: ToolContext, operation: DatalogOperation, given: Mapping[str, Any]
    ) -> ToolResult:
        """Ask for one operation. Raises: TidegateError."""
        kind = kind_of(given)
        id = text_of(given, ARGUMENT[kind])
        own = {name: each for name, each in given.items() if name != ARGUMENT[kind]}
        arguments = _checked(read_texts(operation.value, own))
        handle = await self._handles.find(context, kind, id)
        request = DatalogRequest(
            operation=operation,
            target=handle.target,
            arguments=arguments,
            create=operation is DatalogOperation.KV_TRANSACT,  # a table that it writes to is made
            max_items=self._truncation.items,
            text=_text(operation, arguments),
            limits=self._limits,
        )
        try:
            document = await context.handle(request, handle.source, Document)
        except TidegateError as error:
            if error.code is Code.SOURCE_UNKNOWN:  # its time is over
                raise unknown(kind, id) from None
            raise
        fields: dict[str, Any] = {ARGUMENT[kind]: handle.id}
        done = _DONE.get(operation.value)
        if done is not None:
            return ToolResult(body=msgspec.json.encode({**fields, done: True}))
        if bytes(document.json) in _NOTHING and operation in _NAMES_ATTRIBUTES:
            note = await _note(context, request, handle.source)
            if note:
                nothing = msgspec.Raw(document.json)
                return ToolResult(
                    body=msgspec.json.encode({**fields, "result": nothing, "meta": {"note": note}})
                )
        if operation in (DatalogOperation.KV_GET, DatalogOperation.KV_RANGE):
            fields["dbi"] = arguments["dbi"]
        meta = {"note": _CORRECTED} if document.corrected else {}
        meta |= {"budget": document.budget} if document.budget else {}
        shown = forms(fields, document.json, self._truncation, original=document.items, meta=meta)
        return first_fitting(shown, self._truncation.reply_bytes)


async def _note(context: ToolContext, request: DatalogRequest, source: str) -> str:
    """Which attributes of a request that found nothing the database does not have."""
    from tidegate.products.datalog.attributes import unknown_attributes  # only after a mistake

    try:
        placed = judge_operation(request.operation.value, request.arguments).reading.placed
        catalog = await context.handle(Browse("catalog"), source, Catalog)
    except TidegateError:
        return ""
    return unknown_attributes(placed, catalog)


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments, each in the one spelling that an engine takes. Raises: TidegateError."""
    arguments: dict[str, Any] = {}
    for name, value in given.items():
        if name in _TEXTS:
            value = text_of(given, name)
        elif name in _KEYWORDS:
            value = f":{keyword_name(text_of(given, name))}"
        elif name in _NUMBERS and (
            isinstance(value, bool) or not isinstance(value, int) or value < 0
        ):
            problem = f"{name} must be a non-negative integer."
            raise invalid(name, problem, ":invalid-request")
        arguments[name] = value
    if "index" in arguments:
        arguments["index"] = keyword_name(arguments["index"])
    return arguments


def _text(operation: DatalogOperation, arguments: Mapping[str, Any]) -> str:
    """What a person and the records are shown: of a query its text, of all else its arguments."""
    if operation is not DatalogOperation.QUERY:
        return f"{operation.value} {msgspec.json.encode(arguments).decode()}"
    inputs = plain_text(arguments.get("inputs"))
    query = str(arguments.get("query", ""))
    return query if not inputs else f"{query} {msgspec.json.encode(inputs).decode()}"
