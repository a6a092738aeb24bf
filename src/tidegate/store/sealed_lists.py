"""The seals of rows: what a gate writes down of each row that gives rights, and only gates can.

For each area there are some lists, the parts of it. A list has for each row the MAC of what the row
means, a number that grows with each change, and a MAC of its own. So a row that was written past
the gates has no MAC there, one that was put back to what it was has another one, and of one that
was removed the entry stays. A list that was put back as well has a lower number than a gate has
seen.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from tidegate.secrets.cluster_key import ClusterKey

SealedArea = Literal[
    "approvals", "budgets", "operator_links", "operator_sessions", "operators", "pairings",
    "sources", "tokens", "unrecorded_events",
]  # fmt: skip
"""An area is a table."""
USED: Final = "used_values"
"""The area of the lists of what counts once and was used. Their entries are all there is of it."""
StampedArea = Literal[
    "about", "answers", "changes", "confirmed_pairs", "query_runs", "query_versions",
    "webhook_messages",
]  # fmt: skip
"""Tables whose rows have stamps (`stamps.py`)."""
ListArea = SealedArea | Literal["used_values"]

MEANING: dict[SealedArea, tuple[str, ...]] = {
    "approvals": (
        "id", "digest", "state", "actor", "subject", "asked_at", "decided_at", "decided_by",
        "reason", "ended_at", "dry_run", "until", "uses", "most_uses",
    ),
    "budgets": (
        "id", "token", "owner", "source", "measure", "span", "amount", "changed_at", "changed_by",
    ),
    "operator_links": ("digest", "operator", "expires_at"),
    "operator_sessions": (
        "id", "digest", "operator", "signed_in_by", "created_at", "ends_at", "confirmed_at",
        "address", "browser",
    ),
    "operators": (
        "id", "name", "salt", "hash", "roles", "created_at", "inviter", "roles_by",
    ),
    "pairings": (
        "id", "digest", "client", "address", "challenge", "wanted", "asked_at", "expires_at",
        "state", "token_name", "granted",
    ),
    "sources": (
        "id", "name", "url", "engine", "dialect", "access", "agents", "approval_for", "tags",
        "rules",
    ),
    "tokens": (
        "id", "name", "prefix", "digest", "scope", "sources", "created_at", "expires_at",
        "revoked_at", "tags", "tables", "scram_verifier", "proxy", "owner", "max_rows_changed",
        "maker",
    ),
    "unrecorded_events": ("id", "event"),
}  # fmt: skip
"""The columns under the MAC; the first tells a row from the others. The others say when something
was last used, and what became of a call."""

PARTS = 16
"""Lists of an area, so that a change of one row writes a sixteenth of the entries."""
_BYTES = 16
_TYPES = (
    (type(None), b"n"), (int, b"i"), (float, b"f"), (str, b"s"), (bytes, b"b"),
)  # fmt: skip


class SealedList(NamedTuple):
    """One list: its number, and the MACs of the rows by the names of their keys."""

    number: int
    macs: Mapping[str, bytes]


class SealKeys:
    """Makes and checks seals in one life of the state. Safe to use from any thread."""

    def __init__(self, key: ClusterKey, life: str) -> None:
        self._rows = key.derive("rows", life)
        self._lists = key.derive("lists", life)

    def row(self, area: str, values: Iterable[Any]) -> bytes:
        """The MAC of a row, of its `MEANING` in order."""
        return hmac.digest(self._rows, _encode((area, *values)), hashlib.sha256)[:_BYTES]

    def write(self, area: str, part: int, made: SealedList) -> tuple[bytes, bytes]:
        """A list as it is kept: its body and its MAC."""
        body = msgspec.msgpack.encode(made.macs)
        return body, self._mac(area, part, made.number, body)

    def read(
        self, area: str, part: int, number: int, kept: tuple[bytes, bytes]
    ) -> SealedList | None:
        """The list; None if no gate with this key has made it, or it is another part's."""
        body, mac = kept
        if not hmac.compare_digest(self._mac(area, part, number, body), mac):
            return None
        return SealedList(number, msgspec.msgpack.decode(body, type=dict[str, bytes]))

    def _mac(self, area: str, part: int, number: int, body: bytes) -> bytes:
        return hmac.digest(self._lists, _encode((area, part, number, body)), hashlib.sha256)


def same(one: Any, other: Any) -> bool:
    """Whether two values are one under a MAC."""
    return _encode_one(one) == _encode_one(other)


def name_of(key: Any) -> str:
    """The name in a list of the row with that key."""
    return key.hex() if isinstance(key, bytes) else str(key)


def part_of(name: str) -> int:
    """The part of its area with the row of that name."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[0] % PARTS


def _encode(values: Iterable[Any]) -> bytes:
    """The values so that no others give the same bytes, and both states give the same."""
    return b"".join(map(_encode_one, values))


def _encode_one(value: Any) -> bytes:
    if isinstance(value, bool):  # a number in SQLite
        value = int(value)
    for kind, letter in _TYPES:
        if isinstance(value, kind):
            content = _content(value)
            return letter + len(content).to_bytes(8, "big") + content
    raise TypeError(type(value).__name__)


def _content(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        return struct.pack(">d", value)
    return b"" if value is None else str(value).encode("utf-8", "surrogatepass")
