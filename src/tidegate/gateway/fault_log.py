"""Lines of the server's log about calls that failed for a reason the operator should know of.

What a caller did wrong is in the audit log alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tidegate.errors import Code, TidegateError

logger = logging.getLogger("tidegate.gateway")

LOGGED = frozenset(
    {
        *(Code.SOURCE_UNREACHABLE, Code.SOURCE_URL, Code.SOURCE_LOCKED, Code.ENGINE_MISSING),
        *(Code.KEYRING_FAILED, Code.SECRET_UNAVAILABLE),
        *(Code.CREDENTIAL_UNAVAILABLE, Code.CREDENTIAL_REFUSED),
        *(Code.DRIVER_UNRESOLVED, Code.DRIVER_REPOSITORY, Code.DRIVER_UNTRUSTED),
        *(Code.PROVIDER_UNREACHABLE, Code.PROVIDER_REFUSED),
        *(Code.AUDIT_UNAVAILABLE, Code.AUDIT_OUTCOME, Code.STATE_FAILED),
        *(Code.SQL_OUTCOME, Code.INTERNAL),
    }
)
PERIOD_S = 60.0
"""A cause, which is a code and a source, gets one line in this time; the next one counts the
others."""
MAX_CAUSES = 1_024


class FaultLog:
    """Writes the lines. Used on the event loop only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._causes: dict[tuple[Code, str], tuple[float, int]] = {}

    def note(self, error: TidegateError, source: str, call_id: str) -> None:
        """Take note that a call failed."""
        if error.code not in LOGGED:
            return
        cause = error.code, source
        now = self._clock()
        logged_at, more = self._causes.get(cause, (None, 0))
        if logged_at is not None and now < logged_at + PERIOD_S:
            self._causes[cause] = logged_at, more + 1
            return
        if len(self._causes) >= MAX_CAUSES:
            self._causes.clear()
        self._causes[cause] = now, 0
        logger.warning(
            "%s%s: %s%s",
            f"source {source}: " if source else "",
            error.code.value,
            error.without_secrets().message,
            f" ({more} more since the line before)" if more else "",
            extra={"call": call_id},
        )
