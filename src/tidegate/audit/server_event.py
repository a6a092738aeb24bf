"""What happens around calls and is put on record too: logins that fail, tokens, settings, the
server itself. And a bound on it, so that whoever has no token cannot fill the disk.

A name is `area.what`, such as `token.created`. Details are few and short; they are cut to size and
lose their secrets like every text of the record.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import msgspec

from tidegate.audit.sanitize import one_line, word
from tidegate.secrets import redact

MAX_DETAILS = 16
PERIOD_S = 60.0
EACH = 10
"""So many of one name are recorded each in a period; those after are counted."""
NAMED = 16
"""So many different origins of the counted ones are told apart."""

_encode = msgspec.json.Encoder().encode


class ServerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not a call of the gate. `actor` is the id of who did it, as in an event:
    a token's id, `stdio`, `cli`; empty if that is not known."""

    name: str
    actor: str = ""
    actor_name: str = ""
    client: str = ""
    details: dict[str, str] = {}
    phase: Literal["event"] = "event"


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """A happening as a line holds it; `count` says that the line stands for so many."""

    seq: int
    time: datetime
    phase: str
    name: str
    actor: str = ""
    actor_name: str = ""
    client: str = ""
    details: dict[str, str] = {}
    count: int | None = None


def encode_server_event(
    happening: ServerEvent, seq: int, now: float, count: int | None = None
) -> bytes:
    """The body of the line: a JSON object that starts with `seq`, without line breaks."""
    details = {
        word(name): word(redact(value))
        for name, value in list(happening.details.items())[:MAX_DETAILS]
    }
    return one_line(
        _encode(
            _Line(
                seq,
                datetime.fromtimestamp(now, UTC),
                "event",
                word(happening.name),
                word(happening.actor),
                word(happening.actor_name),
                word(happening.client),
                details,
                count,
            )
        )
    )


class RepeatCounter:
    """Decides for each happening that callers without a token can cause whether it gets a line.

    Of each name the first `EACH` in a period do. Those after are counted by their origin
    (`details["address"]`, else the actor), and one line tells the count when the period is over.
    Names come from us, so there are few.
    """

    def __init__(self) -> None:
        self._periods: dict[str, _Period] = {}

    def should_record(self, happening: ServerEvent, now: float) -> bool:
        """Whether the happening gets a line of its own; if not, it has been counted."""
        period = self._periods.get(happening.name)
        if period is None:
            period = self._periods[happening.name] = _Period(now)
        if period.recorded < EACH:
            period.recorded += 1
            return True
        period.count(happening)
        return False

    def over(self, now: float, *, all_of_them: bool = False) -> list[tuple[ServerEvent, int]]:
        """End the periods that are over and say what was counted in them."""
        told: list[tuple[ServerEvent, int]] = []
        for name, period in list(self._periods.items()):
            # Also if the clock was put back.
            if not all_of_them and 0 <= now - period.began < PERIOD_S:
                continue
            del self._periods[name]
            if period.counted:
                details = {origin: str(count) for origin, count in period.origins.items()}
                told.append((ServerEvent(name=name, details=details), period.counted))
        return told

    @property
    def waits(self) -> bool:
        """Whether a period is open that will have to be told."""
        return bool(self._periods)


class _Period:
    __slots__ = ("began", "counted", "origins", "recorded")

    def __init__(self, began: float) -> None:
        self.began = began
        self.recorded = 0
        self.counted = 0
        self.origins: dict[str, int] = {}

    def count(self, happening: ServerEvent) -> None:
        self.counted += 1
        origin = happening.details.get("address") or happening.actor or "unknown"
        if origin not in self.origins and len(self.origins) >= NAMED - 1:
            origin = "others"
        self.origins[origin] = self.origins.get(origin, 0) + 1
