"""Durations as Go's `time.ParseDuration` reads them: `1.5h`, `2m30s`, `300ms`."""

from __future__ import annotations

import re

from tidegate.config.errors import invalid

_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3_600}
_PART = r"(\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(ns|us|µs|μs|ms|s|m|h)"
_LONGEST_S = 86_400.0


def seconds(text: str, setting: str) -> float:
    """The duration in seconds, more than 0 and at most a day. `setting` names it in errors.

    Raises: TidegateError CONFIG_INVALID.
    """
    if not re.fullmatch(f"(?:{_PART})+", text):
        raise invalid(
            f"`{setting}` cannot be {text[:40]!r}, which is no duration.",
            hint="Write a number and its unit, such as `30s`, `1m30s` or `500ms`.",
        )
    total = sum(float(number) * _UNIT_S[unit] for number, unit in re.findall(_PART, text))
    if not 0 < total <= _LONGEST_S:
        raise invalid(f"`{setting}` cannot be {text[:40]}: it is more than 0 and at most 24h.")
    return total
