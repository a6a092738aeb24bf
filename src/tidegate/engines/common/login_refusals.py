"""Logins that a server has refused, so that what is wrong is not tried until the account is locked.

That a secret of another place is wrong is seen by the server alone, and callers ask again and
again, each time by a new connection. So the same login is not sent again for a while, which grows
with each refusal, however often the source is opened meanwhile. Another secret is tried at once.
"""

from __future__ import annotations

import time
from collections import OrderedDict

from tidegate.errors import TidegateError

FIRST_S = 60.0
LONGEST_S = 600.0
_GROWTH = 4.0
_MOST = 512
"""Sources of which refusals are known."""


class _Refusal:
    """The last one of a source. `target` is the login that was refused; it is held in memory. None
    for an account on lease: to ask for another would leave one more there."""

    def __init__(self, target: object | None, error: TidegateError, wait_s: float) -> None:
        self.target = target
        self.error = error
        self.wait_s = wait_s
        self.until = time.monotonic() + wait_s


_refusals: OrderedDict[str, _Refusal] = OrderedDict()


def note_refusal(source_id: str, target: object | None, error: TidegateError) -> None:
    """The server refused a source this login; None: an account on lease."""
    last = _refusals.pop(source_id, None)
    again = last is not None and time.monotonic() < last.until + LONGEST_S
    wait_s = min(last.wait_s * _GROWTH, LONGEST_S) if last is not None and again else FIRST_S
    _refusals[source_id] = _Refusal(target, error, wait_s)
    while len(_refusals) > _MOST:
        _refusals.popitem(last=False)


def forget_refusal(source_id: str) -> None:
    """The source has logged in."""
    _refusals.pop(source_id, None)


def check_refusal(source_id: str, target: object | None = None) -> None:
    """Refuse a login that is not to be sent again now. Without a `target`: any of an account on
    lease. Raises: TidegateError, the refusal."""
    last = _refusals.get(source_id)
    if last is None or time.monotonic() >= last.until:
        return
    if last.target is None or last.target == target:
        raise _repeated(last)


def _repeated(last: _Refusal) -> TidegateError:
    """The refusal, as an error for a call that does not get to the server."""
    left_s = max(1, round(last.until - time.monotonic()))
    return TidegateError(
        last.error.code,
        f"{last.error.message} The same login is not sent again for {left_s} s, so that the account"
        " is not locked.",
        hint="Correct the secret where it is kept: another one is tried at once.",
        details=last.error.details,
    )
