"""Decides how much one call may take: rows, bytes, seconds. What a caller asks for is clamped to
what the operator set, never refused.
"""

from __future__ import annotations

import msgspec

from tidegate.pages import Limits

MIN_TIMEOUT_S = 1.0
MAX_TIMEOUT_S = 300.0


class Budgets(msgspec.Struct, frozen=True):
    """The operator's settings. Rows are counts, `max_bytes` bytes of encoded rows."""

    default_rows: int = 500
    max_rows: int = 10_000
    default_timeout_s: float = 30.0
    max_timeout_s: float = MAX_TIMEOUT_S
    max_bytes: int = 4_194_304

    def limits(
        self,
        rows: int | None = None,
        timeout_s: float | None = None,
        max_bytes: int | None = None,
    ) -> Limits:
        """What a call gets that asked for this much; None asks for the default."""
        return Limits(
            max_rows=clamp(self.default_rows if rows is None else rows, 1, self.max_rows),
            max_bytes=clamp(self.max_bytes if max_bytes is None else max_bytes, 1, self.max_bytes),
            timeout_s=self._seconds(timeout_s),
        )

    def _seconds(self, timeout_s: float | None) -> float:
        asked = self.default_timeout_s if timeout_s is None else timeout_s
        ceiling = min(self.max_timeout_s, MAX_TIMEOUT_S)
        if not asked >= MIN_TIMEOUT_S:  # also true of NaN, which would end no statement
            return MIN_TIMEOUT_S
        return float(min(asked, ceiling))


def clamp(value: int, lowest: int, highest: int) -> int:
    """The value, or the bound that it is beyond."""
    return max(lowest, min(value, highest))
