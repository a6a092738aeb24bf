"""The parts of OCSF 1.8 that events of ours are made of, and how a line becomes an event.

OCSF is the Open Cybersecurity Schema Framework (schema.ocsf.io). Its schema has no further names:
what it knows nothing of is in `unmapped`. Every line of the record becomes one event, so that a
receiver sees from the numbers that none is missing. The id of an event (`metadata.uid`) is
`GATE/SEGMENT/NUMBER`, the same however often the event is sent.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

import msgspec

from tidegate import __version__
from tidegate.typed_values import json_decoder

VERSION = "1.8.0"
PROFILES = ["security_control"]

SUCCESS, FAILURE, OTHER = 1, 2, 99
"""`status_id`; 99 is also an `activity_id` that the schema has no word for."""
ALLOWED, DENIED = 1, 2
"""`action_id`."""
INFORMATIONAL, LOW, MEDIUM, HIGH = 1, 2, 3, 4
"""`severity_id`."""

_EPOCH, _MILLISECOND = datetime.fromtimestamp(0, UTC), timedelta(milliseconds=1)
encode = msgspec.json.Encoder().encode


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line of the record of any kind: `audit.event.Entry`, a server event, a control record."""

    seq: int
    time: str
    phase: str
    call_id: str = ""
    actor: str = ""
    actor_name: str = ""
    client: str = ""
    surface: str = ""
    tool: str = ""
    source: str = ""
    request: str = ""
    effect: str = ""
    verdict: str = ""
    rule: str = ""
    code: str = ""
    digest: str = ""
    statement: str = ""
    length: int | None = None
    rows: int | None = None
    bytes: int | None = None
    elapsed_ms: float | None = None
    error: str = ""
    approval: str = ""
    statement_class: str = ""
    arguments: dict[str, str] | None = None
    address: str = ""
    outside_transaction: bool = False
    on_behalf_of: str = ""
    transaction: str = ""
    transaction_end: str = ""
    truncated: str = ""
    trace_id: str = ""
    name: str = ""
    details: dict[str, str] | None = None
    count: int | None = None
    missed: int | None = None
    hash: str = ""


decode = json_decoder(Line).decode


class Metadata(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    product: msgspec.Raw
    version: str
    uid: str
    sequence: int
    profiles: list[str]
    log_name: str
    original_time: str
    event_code: str
    correlation_uid: str = ""


class QueryInfo(msgspec.Struct, frozen=True, gc=False):
    query_string: str
    uid: str


class Policy(msgspec.Struct, frozen=True, gc=False):
    name: str


class OcsfEvent(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """The base event with the attributes of the classes that we use; `omit_defaults` leaves out
    those that a class has not."""

    category_uid: int
    class_uid: int
    activity_id: int
    type_uid: int
    severity_id: int
    time: int
    metadata: Metadata
    status_id: int = 0
    status: str = ""
    status_code: str = ""
    status_detail: str = ""
    activity_name: str = ""
    action_id: int | None = None
    disposition_id: int | None = None
    message: str = ""
    duration: int | None = None
    count: int | None = None
    actor: msgspec.Raw | None = None
    src_endpoint: msgspec.Raw | None = None
    database: msgspec.Raw | None = None
    query_info: QueryInfo | None = None
    policy: Policy | None = None
    api: msgspec.Raw | None = None
    user: msgspec.Raw | None = None
    service: msgspec.Raw | None = None
    session: msgspec.Raw | None = None
    app: msgspec.Raw | None = None
    entity: msgspec.Raw | None = None
    resources: msgspec.Raw | None = None
    privileges: list[str] | None = None
    is_remote: bool | None = None
    unmapped: Any = None


PRODUCT = msgspec.Raw(
    encode({"name": "Tidegate", "vendor_name": "Tidegate", "version": __version__})
)
SERVICE = msgspec.Raw(encode({"name": "Tidegate", "version": __version__}))


@lru_cache(maxsize=4_096)
def actor(id: str, name: str, client: str) -> msgspec.Raw:
    """Who acted, with what software."""
    found: dict[str, Any] = {"user": user_fields(id, name)}
    if client:
        found["app_name"] = client
    return msgspec.Raw(encode(found))


def user_fields(id: str, name: str) -> dict[str, str]:
    """A user of the schema, which has an id or a name."""
    given = {"uid": id, "name": name}
    return {key: value for key, value in given.items() if value} or {"name": "unknown"}


@lru_cache(maxsize=4_096)
def endpoint(address: str, surface: str) -> msgspec.Raw:
    """From where it came: an address, else the name of how it was called, such as `stdio`."""
    try:
        place = {"ip": str(ip_address(address.partition("%")[0]))} if address else {}
    except ValueError:
        place = {"name": address}
    return msgspec.Raw(encode(place or {"name": surface or "local"}))


@lru_cache(maxsize=1_024)
def database(source: str) -> msgspec.Raw:
    """A source. Its kind is not on record."""
    return msgspec.Raw(encode({"name": source, "type_id": 0}))


@lru_cache(maxsize=1_024)
def operation(name: str) -> msgspec.Raw:
    """What was called, where that is about no source."""
    return msgspec.Raw(encode({"operation": name or "unknown"}))


def milliseconds(text: str) -> int:
    """A time of the record in Unix milliseconds. Raises: ValueError."""
    return (datetime.fromisoformat(text).astimezone(UTC) - _EPOCH) // _MILLISECOND


def metadata(line: Line, uid: str, code: str) -> Metadata:
    return Metadata(
        PRODUCT, VERSION, uid, line.seq, PROFILES, "audit", line.time, code, line.call_id
    )


def lifecycle(
    line: Line, uid: str, code: str, activity: int, *, severity: int, message: str, unmapped: Any
) -> OcsfEvent:
    """An event of the gate itself: Application Lifecycle (6002)."""
    return OcsfEvent(
        category_uid=6,
        class_uid=6002,
        activity_id=activity,
        type_uid=600_200 + activity,
        activity_name=code if activity == OTHER else "",
        severity_id=severity,
        time=milliseconds(line.time),
        metadata=metadata(line, uid, code),
        status_id=SUCCESS,
        message=message,
        app=PRODUCT,
        unmapped=unmapped,
    )
