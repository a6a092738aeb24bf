"""Audit events and their encoding as one line of JSON each: limited in size, without secrets.

Result rows and parameters of statements are never recorded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import Any, Literal

import msgspec

from tidegate.model.language import Language
from tidegate.secrets.redaction import MASK, cut_and_redact, mentions_secret, redact

MAX_STATEMENT_CHARS = 4_096
MAX_ERROR_CHARS = 1_024
MAX_ARGUMENTS = 16
MAX_ARGUMENT_CHARS = 1_024

_encode = msgspec.json.Encoder().encode
_encode_argument = msgspec.json.Encoder(enc_hook=repr).encode


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a call. Events of one call share its `call_id`.

    Phases: `intent` is recorded before a statement that could change data, `outcome` after a
    statement ran (for a read it is the only event), `refusal` when it did not run because of
    `code`. `request` is the kind of request (`query`, `browse`, ...), `statement` the text as
    received, `language` and `dialect` redact it (without a language it is redacted as plain text),
    `client` the caller's software, `code` the error code of a refusal or failure, `approval` the id
    of the approval that was requested or used, `statement_class` the statement's verb (`select`,
    `update`, ...), `arguments` those of an operation that is not a statement,
    `address` the client's IP address if it called over HTTP, `outside_transaction` that nothing
    undoes the statement if it fails or is stopped, `on_behalf_of` the caller that a proxy named as
    the one for whom it speaks. `rows`, `bytes` (encoded) and
    `elapsed_ms` describe the result. `transaction` is the id of the transaction over several
    statements that the call belongs to. A change in one has its outcome when that ends:
    `transaction_end` says how, `committed`, `rolled back` or `unknown`. `truncated` says at which
    bounds the result was cut: `rows`, `bytes`, `value`, `pages`, with commas between. `trace_id` is
    the trace that the call belongs to, where traces are sent somewhere.
    """

    call_id: str
    phase: Literal["intent", "outcome", "refusal"]
    actor: str
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
    statement: str | None = None
    language: Language | None = None
    dialect: str = ""
    rows: int | None = None
    bytes: int | None = None
    elapsed_ms: float | None = None
    error: str = ""
    approval: str = ""
    statement_class: str = ""
    arguments: Mapping[str, Any] | None = None
    address: str = ""
    outside_transaction: bool = False
    on_behalf_of: str = ""
    transaction: str = ""
    transaction_end: str = ""
    truncated: str = ""
    trace_id: str = ""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event as a line holds it. `seq` counts the lines of a segment from 1.

    `digest` is the SHA-256 of the statement as received. If secrets were removed from it, it is
    the digest of the recorded text, because a digest of a secret helps to guess the secret.
    `length` is the full length of a shortened statement, in characters.
    """

    seq: int
    time: datetime
    phase: str
    call_id: str
    actor: str
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
    arguments: dict[str, str] = {}
    address: str = ""
    outside_transaction: bool = False
    on_behalf_of: str = ""
    transaction: str = ""
    transaction_end: str = ""
    truncated: str = ""
    trace_id: str = ""


def encode(event: Event, seq: int, now: float) -> bytes:
    """The body of the event's line: a JSON object that starts with `seq`, without line breaks."""
    digest, statement, length = "", "", None
    error = event.error
    if event.statement is not None:
        digest, statement, length, redacted = _statement(
            event.statement, event.language, event.dialect
        )
        if redacted:
            # The error may quote a part of the statement in which the secret cannot be recognized.
            error = ""
    if error:
        error = redact(error[:MAX_ERROR_CHARS])
    client, tool, source, address = event.client, event.tool, event.source, event.address
    together = f"{client}{tool}{source}{address}"
    if len(together) > MAX_SHORT_TEXT_CHARS or not together.isascii():
        client, tool = short_text(client), short_text(tool)
        source, address = short_text(source), short_text(address)
    entry = Entry(
        seq, datetime.fromtimestamp(now, UTC), event.phase,
        event.call_id, event.actor, event.actor_name, client, event.surface,
        tool, source, event.request, event.effect,
        event.verdict, event.rule, event.code, digest, statement, length, event.rows, event.bytes,
        event.elapsed_ms, error, event.approval, event.statement_class,
        {} if event.arguments is None else _arguments(event.arguments), address,
        event.outside_transaction, short_text(event.on_behalf_of), event.transaction,
        event.transaction_end, event.truncated, event.trace_id,
    )  # fmt: skip
    return escape_invisible(_encode(entry))


def _arguments(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Each argument as short text, without secrets."""
    return {
        short_text(name): MASK if mentions_secret(name) else _argument(value)
        for name, value in islice(arguments.items(), MAX_ARGUMENTS)
    }


def _argument(value: Any) -> str:
    text = value if isinstance(value, str) else _encode_argument(value).decode()
    return short_text(redact(text[:MAX_ARGUMENT_CHARS]))


def _statement(
    text: str, language: Language | None, dialect: str
) -> tuple[str, str, int | None, bool]:
    """Digest, recorded text, full length if it was shortened, whether secrets were removed."""
    # Long statements are rarely repeated, and caching them would cost memory.
    if len(text) <= 2_048:
        return _record_cached(text, language, dialect)
    return _record(text, language, dialect)


def _record(
    text: str, language: Language | None, dialect: str
) -> tuple[str, str, int | None, bool]:
    recorded, redacted = cut_and_redact(text, MAX_STATEMENT_CHARS, language, dialect)
    digest = sha256((recorded if redacted else text).encode("utf-8", "replace")).hexdigest()
    length = len(text) if len(text) > MAX_STATEMENT_CHARS else None
    return f"sha256:{digest}", recorded, length, redacted


_record_cached = lru_cache(maxsize=1_024)(_record)


MAX_SHORT_TEXT_CHARS = 256

_INVISIBLE = "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"


def escape_invisible(line: bytes) -> bytes:
    """Escape control and bidirectional characters, which change how a terminal shows the line."""
    if line.isascii():
        return line
    return re.sub(_INVISIBLE, lambda found: f"\\u{ord(found[0]):04x}", line.decode()).encode()


def short_text(text: str) -> str:
    """Text from outside, limited to `MAX_SHORT_TEXT_CHARS` and encodable as UTF-8."""
    if len(text) > MAX_SHORT_TEXT_CHARS:
        text = text[:MAX_SHORT_TEXT_CHARS]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
