"""Decides whether a permit asks what an engine's verb answers, and whether somebody still waits."""

from __future__ import annotations

from tidegate.calls import Browse, Explain, Query
from tidegate.cancellation import Cancellation
from tidegate.engines.faults import stopped
from tidegate.errors import Code, GateError
from tidegate.permits import Permit


def runnable(permit: Permit) -> Query | Explain:
    """What `run` is asked. Raises: GateError UNSUPPORTED."""
    if isinstance(permit.request, (Query, Explain)):
        return permit.request
    raise GateError(Code.UNSUPPORTED, "Only a query or an explanation can be run.")


def rehearsable(permit: Permit) -> Query:
    """What `rehearse` is asked. Raises: GateError UNSUPPORTED."""
    if isinstance(permit.request, Query):
        return permit.request
    raise GateError(Code.UNSUPPORTED, "Only a query can be rehearsed.")


def describable(permit: Permit) -> Browse:
    """What `describe` is asked. Raises: GateError UNSUPPORTED."""
    if isinstance(permit.request, Browse):
        return permit.request
    raise GateError(Code.UNSUPPORTED, "Only metadata can be described.")


def check_wanted(cancellation: Cancellation) -> None:
    """See that somebody waits for the answer. Raises: GateError CALL_CANCELLED."""
    if cancellation.cancelled:
        raise stopped(cancellation.reason or "cancelled")
