"""Checks that a permit fits the operation of an engine, and that the call is not cancelled."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.engines.common.errors import stopped
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.requests import Browse, Explain, Operation, Query
from tidegate.model.statements import Judgement

TuningCheck = Callable[[str, str], bool]


def query_of(permit: Permit, tunes: TuningCheck | None = None) -> Query | Explain:
    """What `run` is asked, judged by the gate. `tunes` says whether the engine has a setting and
    may be given that value; without it there are none.

    Raises: TidegateError UNSUPPORTED, INTERNAL.
    """
    request = permit.request
    if isinstance(request, (Query, Explain)):
        judgement_of(permit, request)
        for name, value in request.tuning:
            if tunes is None or not tunes(name, value):
                raise TidegateError(
                    Code.UNSUPPORTED, f"A search cannot set {name[:80]!r} to {value[:80]!r} here."
                )
        return request
    raise TidegateError(Code.UNSUPPORTED, "Only a query or an explanation can be run.")


def operation_of(permit: Permit) -> Operation:
    """The operation to perform. Raises: TidegateError UNSUPPORTED."""
    if isinstance(permit.request, Operation):
        return permit.request
    raise TidegateError(Code.UNSUPPORTED, "Only an operation can be performed.")


def judgement_of(permit: Permit, request: Query | Explain) -> Judgement:
    """The gate's judgement of exactly this statement. Raises: TidegateError INTERNAL."""
    if permit.judgement is None or permit.judged_text != request.statement.text:
        raise TidegateError(Code.INTERNAL, "The permit is for another statement than this one.")
    return permit.judgement


def dry_run_query_of(permit: Permit) -> Query:
    """What `dry_run` is asked, judged by the gate. Raises: TidegateError UNSUPPORTED, INTERNAL."""
    if isinstance(permit.request, Query):
        judgement_of(permit, permit.request)
        return permit.request
    raise TidegateError(Code.UNSUPPORTED, "Only a query can have a dry run.")


def describe_of(permit: Permit) -> Browse:
    """What `describe` is asked. Raises: TidegateError UNSUPPORTED."""
    if isinstance(permit.request, Browse):
        return permit.request
    raise TidegateError(Code.UNSUPPORTED, "Only metadata can be described.")


def check_cancelled(cancellation: Cancellation) -> None:
    """Check that the call goes on. Raises: TidegateError CALL_CANCELLED if it was cancelled."""
    if cancellation.cancelled:
        raise stopped(cancellation.reason or "cancelled")
