"""Lines that are not calls as events: sign-ins, rights, approvals, and what the gate itself does.

Each name has a class of the schema; a name that is not listed here, such as that of a package, is
an API Activity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tidegate.products.shipping.ocsf import (
    ALLOWED,
    DENIED,
    FAILURE,
    HIGH,
    INFORMATIONAL,
    LOW,
    MEDIUM,
    OTHER,
    SERVICE,
    SUCCESS,
    Line,
    OcsfEvent,
    actor,
    encode,
    endpoint,
    lifecycle,
    metadata,
    milliseconds,
    operation,
    user_fields,
)

AUTHENTICATION, ACCOUNT, RIGHTS, ENTITY, API, LIFECYCLE = 3002, 3001, 3005, 3004, 6003, 6002
_LOGON, _LOGOFF, _TICKET = 1, 2, 3
_CREATE, _ENABLE, _PASSWORD, _DISABLE, _DELETE, _LOCK = 1, 2, 3, 5, 6, 9
_ASSIGN, _REVOKE = 1, 2
_ADD, _CHANGE, _REMOVE = 1, 3, 4
_INSTALL, _UNINSTALL, _START, _STOP = 1, 2, 3, 4


class EventKind(NamedTuple):
    """The class and activity of a server event; `failed`: it says that something was refused."""

    class_uid: int
    activity: int
    severity: int = INFORMATIONAL
    failed: bool = False


KINDS: Mapping[str, EventKind] = {
    "console.signed_in": EventKind(AUTHENTICATION, _LOGON),
    "console.signed_out": EventKind(AUTHENTICATION, _LOGOFF),
    "console.session_ended": EventKind(AUTHENTICATION, _LOGOFF),
    "console.sign_in_failed": EventKind(AUTHENTICATION, _LOGON, MEDIUM, failed=True),
    "console.link_made": EventKind(AUTHENTICATION, _TICKET),
    "login.failed": EventKind(AUTHENTICATION, _LOGON, MEDIUM, failed=True),
    "login.locked_out": EventKind(AUTHENTICATION, _LOGON, HIGH, failed=True),
    "bridge.admitted": EventKind(AUTHENTICATION, _TICKET),
    "operator.refused": EventKind(AUTHENTICATION, OTHER, MEDIUM, failed=True),
    "pairing.asked": EventKind(AUTHENTICATION, OTHER),
    "pairing.exchanged": EventKind(AUTHENTICATION, _TICKET),
    "pairing.failed": EventKind(AUTHENTICATION, _TICKET, MEDIUM, failed=True),
    "pairing.locked_out": EventKind(AUTHENTICATION, _TICKET, HIGH, failed=True),
    "pairing.refused": EventKind(AUTHENTICATION, _TICKET, LOW, failed=True),
    "operator.added": EventKind(ACCOUNT, _CREATE),
    "operator.removed": EventKind(ACCOUNT, _DELETE),
    "operator.passphrase_changed": EventKind(ACCOUNT, _PASSWORD),
    "operator.passphrase_set": EventKind(ACCOUNT, _PASSWORD),
    "operator.passphrase_removed": EventKind(ACCOUNT, _PASSWORD, LOW),
    "token.created": EventKind(ACCOUNT, _CREATE),
    "token.revoked": EventKind(ACCOUNT, _DISABLE),
    "token_file.read": EventKind(ACCOUNT, OTHER),
    "token.changed": EventKind(RIGHTS, OTHER),
    "operator.roles_changed": EventKind(RIGHTS, OTHER),
    "pairing.approved": EventKind(RIGHTS, _ASSIGN),
    "pairing.denied": EventKind(RIGHTS, OTHER, failed=True),
    "approval.asked": EventKind(RIGHTS, OTHER),
    "approval.allowed": EventKind(RIGHTS, _ASSIGN),
    "approval.denied": EventKind(RIGHTS, OTHER, LOW, failed=True),
    "approval.used": EventKind(RIGHTS, OTHER),
    "approval.returned": EventKind(RIGHTS, OTHER),
    "approval.revoked": EventKind(RIGHTS, _REVOKE),
    "approval.expired": EventKind(RIGHTS, _REVOKE),
    "approval.late": EventKind(RIGHTS, OTHER, LOW),
    "source.added": EventKind(ENTITY, _ADD),
    "source.changed": EventKind(ENTITY, _CHANGE),
    "source.renamed": EventKind(ENTITY, _CHANGE),
    "source.hardened": EventKind(ENTITY, _CHANGE),
    "source.removed": EventKind(ENTITY, _REMOVE),
    "settings.changed": EventKind(ENTITY, _CHANGE),
    "audit.key_replaced": EventKind(ENTITY, _CHANGE, MEDIUM),
    "audit.retired": EventKind(ENTITY, _REMOVE),
    "state.backed_up": EventKind(ENTITY, 2),
    "state.copied": EventKind(ENTITY, _CHANGE, MEDIUM),
    "state.restored": EventKind(ENTITY, _CHANGE, MEDIUM),
    "state.row_refused": EventKind(ENTITY, _CHANGE, HIGH, failed=True),
    "state.sealed": EventKind(ENTITY, _CHANGE, MEDIUM),
    "gates.seen": EventKind(LIFECYCLE, OTHER),
    "gate.forgotten": EventKind(LIFECYCLE, OTHER, MEDIUM),
    "server.started": EventKind(LIFECYCLE, _START),
    "server.stopped": EventKind(LIFECYCLE, _STOP),
    "checkpoint.failed": EventKind(LIFECYCLE, OTHER, HIGH, failed=True),
    "retirement.failed": EventKind(LIFECYCLE, OTHER, MEDIUM, failed=True),
    "driver.fetched": EventKind(LIFECYCLE, _INSTALL),
    "driver.imported": EventKind(LIFECYCLE, _INSTALL),
    "driver.removed": EventKind(LIFECYCLE, _UNINSTALL),
    "webhook.failed": EventKind(LIFECYCLE, OTHER, LOW, failed=True),
    "webhook.stopped": EventKind(LIFECYCLE, OTHER, MEDIUM, failed=True),
    "webhook.dropped": EventKind(LIFECYCLE, OTHER, MEDIUM, failed=True),
    "webhook.works": EventKind(LIFECYCLE, OTHER),
    "webhook.tested": EventKind(LIFECYCLE, OTHER),
    "ship.rejected": EventKind(LIFECYCLE, OTHER, HIGH, failed=True),
    "request_state.used": EventKind(API, OTHER),
    "call.cancelled": EventKind(API, OTHER),
    "call.rejected": EventKind(API, OTHER, LOW, failed=True),
    "request.limited": EventKind(API, OTHER, LOW, failed=True),
    "console.exported": EventKind(API, 2),
    "access.previewed": EventKind(API, 2),
    "source.tried": EventKind(API, OTHER),
}
_UNKNOWN = EventKind(API, OTHER)
_NONE: Mapping[str, str] = {}


class _Rest(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    phase: str
    name: str
    hash: str
    details: dict[str, str] | None = None
    missed: int | None = None
    record: msgspec.Raw | None = None


def server_event(line: Line, uid: str) -> OcsfEvent:
    """The event of a line of the phase `event`. Raises: ValueError for its time."""
    kind = KINDS.get(line.name, _UNKNOWN)
    details = line.details or _NONE
    rest = _Rest(line.phase, line.name, line.hash, line.details)
    if kind.class_uid == LIFECYCLE:
        found = lifecycle(
            line, uid, line.name, kind.activity, severity=kind.severity, message=line.name,
            unmapped=rest,
        )  # fmt: skip
        return msgspec.structs.replace(
            found, status_id=FAILURE if kind.failed else SUCCESS, count=line.count
        )
    address = line.address or details.get("address", "")
    return OcsfEvent(
        category_uid=kind.class_uid // 1_000,
        class_uid=kind.class_uid,
        activity_id=kind.activity,
        type_uid=kind.class_uid * 100 + kind.activity,
        activity_name=line.name if kind.activity == OTHER else "",
        severity_id=kind.severity,
        time=milliseconds(line.time),
        metadata=metadata(line, uid, line.name),
        status_id=FAILURE if kind.failed else SUCCESS,
        status_code=details.get("code", ""),
        status_detail=details.get("reason", ""),
        action_id=DENIED if kind.failed else ALLOWED,
        message=line.name,
        count=line.count,
        actor=actor(line.actor, line.actor_name, line.client),
        src_endpoint=endpoint(address, "local"),
        **_of_class(kind.class_uid, line, details),
        unmapped=rest,
    )


def control_event(line: Line, uid: str, text: bytes) -> OcsfEvent:
    """The event of a line about the record itself, which it holds whole: a receiver that keeps
    checkpoints can prove later that the record was not cut. Raises: ValueError for its time."""
    gap = line.phase == "gap"
    message = f"{line.missed} events are missing." if gap else f"record: {line.phase}"
    rest = _Rest(line.phase, "", line.hash, None, line.missed, msgspec.Raw(text))
    return lifecycle(
        line, uid, f"record.{line.phase}", OTHER, severity=HIGH if gap else INFORMATIONAL,
        message=message, unmapped=rest,
    )  # fmt: skip


def _of_class(class_uid: int, line: Line, details: Mapping[str, str]) -> dict[str, Any]:
    """The attributes of the class."""
    if class_uid == AUTHENTICATION:
        found: dict[str, Any] = {"user": _user(line, details), "service": SERVICE}
        if session := details.get("session"):
            found["session"] = _raw({"uid": session})
        if line.address or "address" in details:
            found["is_remote"] = True
        return found
    if class_uid == ACCOUNT:
        return {"user": _user(line, details)}
    if class_uid == RIGHTS:
        found = {"user": _user(line, details), "privileges": _privileges(details)}
        if source := details.get("source"):
            found["resources"] = _raw([{"name": source, "type": "source"}])
        return found
    if class_uid == ENTITY:
        what = line.name.partition(".")[0]
        name = details.get("source") or details.get("name") or what
        return {"entity": _raw({"name": name, "type": what})}
    return {"api": operation(line.name)}


def _user(line: Line, details: Mapping[str, str]) -> msgspec.Raw:
    """Whose account it is: the token or the operator that details name, else the one that acted."""
    if operator := details.get("operator"):
        return _raw({"name": operator})
    if caller := details.get("caller"):
        return _raw(user_fields(caller, details.get("caller_name", "")))
    if line.name.startswith(("token.", "pairing.")):
        name = details.get("name") or details.get("token") or details.get("client", "")
        return _raw(user_fields(details.get("id", ""), name))
    return _raw(user_fields(line.actor, line.actor_name))


def _privileges(details: Mapping[str, str]) -> list[str]:
    found = [details[name] for name in ("roles", "scope") if details.get(name)]
    return found or ["call" if "approval" in details else "none"]


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(encode(value))
