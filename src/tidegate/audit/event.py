"""Audit events and how they are encoded: cut to size and without secrets.

Result rows and parameters of statements are never recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import Any, Literal

import msgspec

from tidegate.audit.sanitize import one_line, word
from tidegate.model.language import Language
from tidegate.secrets import MASK, mentions_secret, redact

MAX_STATEMENT_CHARS = 4_096
MAX_ERROR_CHARS = 1_024
MAX_ARGUMENTS = 16
MAX_ARGUMENT_CHARS = 1_024

_encode = msgspec.json.Encoder().encode
_encode_argument = msgspec.json.Encoder(enc_hook=repr).encode


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened, as the gate knows it; events of one call share its `call_id`.

    `intent`: will run, and could change data. `outcome`: ran; for a read, the only event.
    `refusal`: did not run, for `code`. `request` is the kind of request (`query`, `browse`, ...),
    `statement` the text as it came, `language` and `dialect` what redacts it (without a language
    it is redacted as any text), `client` the caller's software, `code` a refusal's or failure's,
    `approval` the id of the grant that was asked for or used, `statement_class` the statement's
    verb (`select`, `update`, ...), `arguments` those of an operation that is not a statement.
    Sizes and times are those of the result: rows, encoded bytes, milliseconds.
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


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event as a line holds it. `seq` counts the lines of a segment from 1.

    `digest` is the SHA-256 of the statement as it came or, where secrets were taken out of it,
    of the recorded text: the digest of a secret is a means to guess it. `length` is the
    statement's length in characters, if it was cut.
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


def encode(event: Event, seq: int, now: float) -> bytes:
    """The body of the event's line: a JSON object that starts with `seq`, without line breaks."""
    digest, statement, length = "", "", None
    error = event.error
    if event.statement is not None:
        digest, statement, length, redacted = _statement(
            event.statement, event.language, event.dialect
        )
        if redacted:
            # A database quotes the statement in its errors, and out of context no secret shows.
            error = ""
    if error:
        error = redact(error[:MAX_ERROR_CHARS])
    entry = Entry(
        seq, datetime.fromtimestamp(now, UTC), event.phase,
        event.call_id, event.actor, event.actor_name, word(event.client), event.surface,
        word(event.tool), word(event.source), event.request, event.effect, event.verdict,
        event.rule, event.code, digest, statement, length, event.rows, event.bytes,
        event.elapsed_ms, error, event.approval, event.statement_class,
        {} if event.arguments is None else _arguments(event.arguments),
    )  # fmt: skip
    return one_line(_encode(entry))


def _arguments(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Each argument as short text, without secrets."""
    return {
        word(name): MASK if mentions_secret(name) else _argument(value)
        for name, value in islice(arguments.items(), MAX_ARGUMENTS)
    }


def _argument(value: Any) -> str:
    text = value if isinstance(value, str) else _encode_argument(value).decode()
    return word(redact(text[:MAX_ARGUMENT_CHARS]))


def _statement(
    text: str, language: Language | None, dialect: str
) -> tuple[str, str, int | None, bool]:
    """Digest, recorded text, length if it was cut, and whether secrets were taken out."""
    # Long texts seldom come twice, and the cache must stay small.
    if len(text) <= 2_048:
        return _record_cached(text, language, dialect)
    return _record(text, language, dialect)


def _record(
    text: str, language: Language | None, dialect: str
) -> tuple[str, str, int | None, bool]:
    kept = text[:MAX_STATEMENT_CHARS]
    recorded = redact(kept) if language is None else language.redact(kept, dialect)
    redacted = recorded != kept
    digest = sha256((recorded if redacted else text).encode("utf-8", "replace")).hexdigest()
    return f"sha256:{digest}", recorded, None if len(kept) == len(text) else len(text), redacted


_record_cached = lru_cache(maxsize=1_024)(_record)
