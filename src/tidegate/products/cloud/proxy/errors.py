"""Failures of the backing server as coded errors: with its own code where it is a Tidegate."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from psycopg.pq import DiagnosticField
from psycopg.pq.abc import PGresult

from tidegate.engines.common.errors import ACCOUNT, LOGIN
from tidegate.engines.postgres import errors as postgres
from tidegate.errors import Code, TidegateError

SETTINGS: Final = "settings"
"""`details["cause"]` where the source's settings and the server do not fit together."""

_DETAIL: Final = re.compile(r"([a-z]+\.[a-z_]+)(?:, call ([\w-]+))?(?:, (\{.*\}))?", re.DOTALL)
_STACKQL: Final = re.compile(r"(?:upstream )?http error: (\{[^{}]*\}): *", re.IGNORECASE)
_CODES: Final = {code.value: code for code in Code}
_OF_THE_SERVER: Final = frozenset({"policy", "approval", "auth", "operator", "audit", "state"})
"""Areas of errors that are about the backing server, so they say which one that is."""

_TLS: Final = (
    ("root certificate file", "sslrootcert", "The file of `sslrootcert` cannot be read"),
    (
        "certificate verify failed",
        "sslrootcert",
        "Its certificate is not signed by an authority in the file of `sslrootcert`",
    ),
    (
        "does not match host name",
        "sslmode",
        "Its certificate is for another host, and `sslmode` is `verify-full`",
    ),
    ("could not load private key", "sslkey", "The file of `sslkey` does not fit `sslcert`"),
    ("private key file", "sslkey", "The file of `sslkey` cannot be used"),
    ("certificate does not match private", "sslkey", "`sslkey` is not the key of `sslcert`"),
    ("could not read certificate file", "sslcert", "The file of `sslcert` cannot be read"),
    ("certificate required", "sslcert", "It asks for a client certificate: set `sslcert`"),
    ("alert unknown ca", "sslcert", "It does not trust the authority of `sslcert`"),
    ("alert bad certificate", "sslcert", "It refuses the certificate of `sslcert`"),
    ("certificate expired", "sslcert", "The certificate of `sslcert` has expired"),
    ("does not support SSL", "sslmode", "It has no TLS, and `sslmode` asks for it"),
    ("wants TLS", "sslmode", "It wants TLS, and `sslmode` does without"),
    ("sslmode value", "sslmode", "The value of `sslmode` is not known"),
)  # fmt: skip
"""Words of libpq or of the server's TLS, the setting that they are about, and what is wrong."""


_PASSES: Final = ("starting up", "shutting down", "server stops", "too many", "which is the most")
"""Words of a server that answers and will take the login later."""


def refused_connection(message: str, place: str) -> TidegateError:
    """The coded error of a connection that could not be made, from libpq's own words. `details`
    have a `cause` where trying again would not help."""
    for words, setting, problem in _TLS:
        if words in message:
            return TidegateError(
                Code.SOURCE_UNREACHABLE,
                f"The backing server {place} cannot be used. {problem}.",
                hint=f"Correct `{setting}` in the URL of the backing server.",
                details={"cause": SETTINGS, "setting": setting},
            )
    error = postgres.unreachable(message)
    reason = error.message.partition(": ")[2] or error.message
    if error.code is Code.SOURCE_URL:
        return TidegateError(Code.SOURCE_URL, error.message, details={"cause": SETTINGS})
    answers = "FATAL:" in message and not any(each in reason for each in _PASSES)
    if "is no source that" in reason or 'database "' in reason:
        error.details["cause"] = SETTINGS
    elif answers or error.details.get("cause") in (ACCOUNT, LOGIN):
        error.details["cause"] = LOGIN
        return TidegateError(
            Code.SOURCE_UNREACHABLE,
            f"The backing server {place} refuses the login: {reason}",
            hint="The user is the name of a token there, and the password is the token: give it as"
            " ${ENV:NAME} or ${FILE:/path} in the URL, by PGPASSWORD or in a password file.",
            details=error.details,
        )
    return TidegateError(
        Code.SOURCE_UNREACHABLE,
        f"The backing server {place} cannot be reached: {reason}",
        hint="Check that it runs, and its address.",
        details=error.details,
    )


def lost(place: str, *, writing: bool) -> TidegateError:
    """The error of a connection that broke while a statement was under way."""
    if writing:
        return TidegateError(
            Code.SQL_OUTCOME,
            f"The connection to the backing server {place} broke after the change was sent: it may"
            " have taken effect.",
            hint="Look whether it did before you send it again.",
        )
    return TidegateError(
        Code.SOURCE_UNREACHABLE,
        f"The connection to the backing server {place} broke.",
        hint="Send it again: the next call makes a new connection.",
    )


def translate(result: PGresult, place: str, *, writing: bool) -> TidegateError:
    """The coded error of a failed result."""
    sqlstate = postgres.sqlstate_of(result)
    if not sqlstate or sqlstate.startswith("57P"):
        return lost(place, writing=writing)
    found = _DETAIL.fullmatch(_field(result, DiagnosticField.MESSAGE_DETAIL))
    code = _CODES.get(found[1]) if found is not None else None
    if found is None or code is None:
        return _foreign(result)
    details: dict[str, Any] = {"sqlstate": sqlstate, **_read(found[3])}
    if found[2]:
        details["backing_call"] = found[2]
    message = _field(result, DiagnosticField.MESSAGE_PRIMARY)
    if code.value.partition(".")[0] in _OF_THE_SERVER:
        message = f"The backing server {place} says: {message}"
    position = _field(result, DiagnosticField.STATEMENT_POSITION)
    if position.isdecimal():
        details["position"] = int(position)
    hint = _field(result, DiagnosticField.MESSAGE_HINT)
    return TidegateError(code, message, hint=hint or None, details=details)


def _foreign(result: PGresult) -> TidegateError:
    """The error of a server that is no Tidegate."""
    error = postgres.translate(result)
    found = _STACKQL.search(error.message)
    if found is not None:
        error.message = error.message[found.end() :]
        error.details |= _read(found[1])
    return error


def _read(text: str | None) -> dict[str, Any]:
    """What a provider answered: `http_status` and `retryable`."""
    try:
        reply: Any = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        return {}
    status, retryable = reply.get("http_status"), reply.get("retryable")
    found: dict[str, Any] = {"http_status": status} if isinstance(status, int) else {}
    return found | ({"retryable": retryable} if isinstance(retryable, bool) else {})


def _field(result: PGresult, field: DiagnosticField) -> str:
    return (result.error_field(field) or b"").decode(errors="replace")
