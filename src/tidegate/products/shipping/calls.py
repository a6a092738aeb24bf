"""Lines of calls as events: Datastore Activity (6005), or API Activity (6003) without a source."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from tidegate.products.shipping.ocsf import (
    ALLOWED,
    DENIED,
    FAILURE,
    INFORMATIONAL,
    LOW,
    MEDIUM,
    OTHER,
    SUCCESS,
    Line,
    OcsfEvent,
    Policy,
    QueryInfo,
    actor,
    database,
    endpoint,
    metadata,
    milliseconds,
    operation,
)

_READ, _UPDATE, _CONNECT, _QUERY, _WRITE, _CREATE, _DELETE, _LIST = 1, 2, 3, 4, 5, 6, 7, 8
_BY_VERB = {
    "select": _QUERY, "insert": _CREATE, "update": _UPDATE, "delete": _DELETE, "truncate": _DELETE,
    "merge": _WRITE, "replace": _WRITE, "copy": _WRITE, "upsert": _WRITE,
}  # fmt: skip
_BY_REQUEST = {
    "browse": _LIST, "list": _LIST, "profiles": _READ, "rows": _READ, "sample": _READ,
    "more": _READ, "history": _READ, "connect": _CONNECT, "open": _CONNECT, "join": _QUERY,
    "change_rows": _WRITE, "undo": _WRITE,
}  # fmt: skip
_OF_API = {_CREATE: 1, _READ: 2, _QUERY: 2, _LIST: 2, _UPDATE: 3, _WRITE: 3, _DELETE: 4}
"""Activities of API Activity by those of Datastore Activity."""
_ALLOWED, _BLOCKED, _DELAYED, _ERROR = 1, 2, 14, 27
"""`disposition_id`."""
_REFUSALS = ("policy.", "auth.", "operator.", "approval.")


class _Rest(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the schema has no attribute for, by the names that the record has for it."""

    phase: str
    surface: str
    tool: str
    hash: str
    request: str = ""
    effect: str = ""
    verdict: str = ""
    approval: str = ""
    statement_class: str = ""
    statement_length: int | None = None
    arguments: dict[str, str] | None = None
    rows: int | None = None
    bytes: int | None = None
    elapsed_ms: float | None = None
    on_behalf_of: str = ""
    transaction: str = ""
    transaction_end: str = ""
    truncated: str = ""
    trace_id: str = ""
    outside_transaction: bool = False
    statement: str = ""
    digest: str = ""


def call_event(line: Line, uid: str) -> OcsfEvent:
    """The event of an intent, an outcome or a refusal. Raises: ValueError for its time."""
    activity = _activity(line.statement_class, line.request, line.effect)
    source, code = line.source, line.code
    if line.phase == "intent":
        status, action, disposition = OTHER, ALLOWED, _ALLOWED
    elif line.phase == "refusal":
        status, action, disposition = FAILURE, DENIED, _BLOCKED
        if code == "approval.needed":
            disposition = _DELAYED
    else:
        status, action, disposition = SUCCESS, ALLOWED, _ALLOWED
        if code:
            status, disposition = FAILURE, _ERROR
    if source:
        class_uid, api, place = 6005, None, database(source)
    else:
        class_uid, api, place = 6003, operation(line.tool or line.request), None
        activity = _OF_API.get(activity, OTHER)
    elapsed = line.elapsed_ms
    query = None
    if source and line.statement:
        query = QueryInfo(line.statement, line.digest or "unknown")
    rest = _Rest(
        line.phase, line.surface, line.tool, line.hash, line.request, line.effect, line.verdict,
        line.approval, line.statement_class, line.length, line.arguments, line.rows, line.bytes,
        elapsed, line.on_behalf_of, line.transaction, line.transaction_end, line.truncated,
        line.trace_id, line.outside_transaction,
        *(() if source else (line.statement, line.digest)),
    )  # fmt: skip
    return OcsfEvent(
        category_uid=6,
        class_uid=class_uid,
        activity_id=activity,
        type_uid=class_uid * 100 + activity,
        activity_name=(line.statement_class or line.request) if activity == OTHER else "",
        severity_id=INFORMATIONAL if not code else _severity(code),
        time=milliseconds(line.time),
        metadata=metadata(line, uid, f"call.{line.phase}"),
        status_id=status,
        status="intended" if status == OTHER else "",
        status_code=code,
        status_detail=line.error,
        action_id=action,
        disposition_id=disposition,
        duration=None if elapsed is None else int(elapsed),
        actor=actor(line.actor, line.actor_name, line.client),
        src_endpoint=endpoint(line.address, line.surface),
        database=place,
        query_info=query,
        policy=Policy(line.rule) if line.rule else None,
        api=api,
        unmapped=rest,
    )


@lru_cache(maxsize=1_024)
def _activity(verb: str, request: str, effect: str) -> int:
    found = _BY_VERB.get(verb) or _BY_REQUEST.get(request)
    if found is None:
        found = {"read": _QUERY, "write": _WRITE}.get(effect, OTHER)
    return found


@lru_cache(maxsize=256)
def _severity(code: str) -> int:
    return MEDIUM if code.startswith(_REFUSALS) and code != "approval.needed" else LOW
