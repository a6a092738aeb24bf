"""What the tools take and give, by the names of the document. An optional argument may be left out
or empty, as its clients send them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

RowLimit = Annotated[int, msgspec.Meta(ge=0, description="The most rows to return.")]


class _Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class NoArgs(_Args, frozen=True):
    """Nothing."""


class ListArgs(_Args, frozen=True):
    row_limit: RowLimit = 0


class ServiceArgs(_Args, frozen=True):
    provider: str
    row_limit: RowLimit = 0


class ResourceArgs(_Args, frozen=True):
    provider: str
    service: str
    row_limit: RowLimit = 0


class MethodArgs(_Args, frozen=True):
    provider: str
    service: str
    resource: str
    row_limit: RowLimit = 0


class DescribeMethodArgs(_Args, frozen=True):
    provider: str
    service: str
    resource: str
    method: str
    row_limit: RowLimit = 0


class RegistryArgs(_Args, frozen=True):
    provider: str = ""
    version: str = ""


class PullArgs(_Args, frozen=True):
    provider: str
    version: str = ""


class QueryArgs(_Args, frozen=True):
    sql: Annotated[str, msgspec.Meta(description="One statement.")]
    row_limit: RowLimit = 0


class SearchArgs(_Args, frozen=True):
    words: Annotated[str, msgspec.Meta(description="Words of the path, such as `s3 bucket`.")]
    row_limit: RowLimit = 0


def with_format(args: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """The arguments and `format`, by which a call says in which form it wants the text."""
    return msgspec.defstruct(
        args.__name__,
        [("format", Annotated[str, msgspec.Meta(description="`markdown` or `json`.")], "")],
        bases=(args,),
        frozen=True,
        forbid_unknown_fields=True,
    )


class Kept(msgspec.Struct, frozen=True):
    """Lists that came from the cache, and how many seconds old the oldest was."""

    hits: int
    age_s: float


class Cut(msgspec.Struct, frozen=True):
    """One way in which a result was cut."""

    kind: str
    limit: int
    returned: int


class ServerInfo(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Who the server is. What is not known is left out; `is_read_only` is always there."""

    version: str
    commit: str = ""
    build_date: str = ""
    platform: str
    transport: str
    sql_backend: str
    provider_registry: str = ""
    mode: str
    is_read_only: bool


class Validation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether a query could run. `explain_output` has a row for each resource, as EXPLAIN gives;
    the document has it in the text alone, which clients that read payloads do not see."""

    valid: bool
    errors: list[str] = []
    explain_output: list[dict[str, Any]] = []


VALIDATION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "valid": {"type": "boolean"},
        "errors": {"type": "array", "items": {"type": "string"}},
        "explain_output": {
            "type": "array",
            "items": {"type": "object"},
            "description": "For each resource the method, its parameters and its calls.",
        },
    },
    "required": ["valid"],
}
ROWS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "rows": {"type": "array", "items": {"type": "object"}},
        "truncated": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "kind": {"type": "string"},
                    "limit": {"type": "integer"},
                    "returned": {"type": "integer"},
                },
            },
            "description": "Only where something was cut.",
        },
        "skipped": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "resource": {"type": "string"},
                    "error": {"type": "string"},
                    "account": {"type": "string"},
                    "region": {"type": "string"},
                    "http_status": {"type": "integer"},
                },
            },
            "description": "Only where accounts or regions were denied and left out.",
        },
        "calls": {"type": "integer", "description": "Requests that were made, where cut."},
        "pages": {"type": "integer", "description": "Pages that were read, where cut."},
        "cached": {
            "type": "object",
            "properties": {"hits": {"type": "integer"}, "age_s": {"type": "number"}},
            "description": "Only where replies came from the cache.",
        },
        "messages": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Only where the statement was a change.",
        },
    },
    "required": ["rows"],
}
MESSAGES_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "messages": {"type": "array", "items": {"type": "string"}},
        "timestamp": {"type": "string"},
        "rows": {
            "type": "array",
            "items": {"type": "object"},
            "description": "What RETURNING gave.",
        },
    },
    "required": ["messages", "timestamp"],
}
