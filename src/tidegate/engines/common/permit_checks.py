"""Checks that a permit fits the operation of an engine, and that the call is not cancelled."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.engines.common.errors import stopped
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.requests import Browse, Explain, Operation, Prepare, Query
from tidegate.model.statements import Effect, Judgement

TuningCheck = Callable[[str, str], bool]


def query_of(permit: Permit, tunes: TuningCheck | None = None) -> tuple[Query | Explain, Judgement]:
    """What `run` is asked, and the gate's judgement of exactly this statement. `tunes` says whether
    the engine has a setting and may be given that value; without it there are none.

    Raises: TidegateError UNSUPPORTED, INTERNAL.
    """
    request = permit.request
    if isinstance(request, (Query, Explain)):
        judgement = _judgement_of(permit, request)
        for name, value in request.tuning:
            if tunes is None or not tunes(name, value):
                raise TidegateError(
                    Code.UNSUPPORTED, f"A search cannot set {name[:80]!r} to {value[:80]!r} here."
                )
        return request, judgement
    raise TidegateError(Code.UNSUPPORTED, "Only a query or an explanation can be run.")


def prepare_of(permit: Permit) -> tuple[Prepare | Query | Explain, Judgement]:
    """What `prepare` is asked, and the gate's judgement of it. Raises: TidegateError UNSUPPORTED,
    INTERNAL."""
    request = permit.request
    if isinstance(request, (Prepare, Query, Explain)):
        return request, _judgement_of(permit, request)
    raise TidegateError(Code.UNSUPPORTED, "Only a query can be prepared.")


def describes_change(permit: Permit) -> bool:
    """Whether `prepare` may describe a change: its request asks for it, and the gate took it for
    one that may run."""
    request, judgement = permit.request, permit.judgement
    return (
        isinstance(request, Prepare)
        and request.changes
        and judgement is not None
        and judgement.effect is Effect.WRITE
    )


def operation_of(permit: Permit) -> Operation:
    """The operation to perform. Raises: TidegateError UNSUPPORTED."""
    if isinstance(permit.request, Operation):
        return permit.request
    raise TidegateError(Code.UNSUPPORTED, "Only an operation can be performed.")


def _judgement_of(permit: Permit, request: Prepare | Query | Explain) -> Judgement:
    if permit.judgement is None or permit.judged_text != request.statement.text:
        raise TidegateError(Code.INTERNAL, "The permit is for another statement than this one.")
    return permit.judgement


def dry_run_query_of(permit: Permit) -> tuple[Query, Judgement]:
    """As `query_of`, for what `dry_run` is asked."""
    if isinstance(permit.request, Query):
        return permit.request, _judgement_of(permit, permit.request)
    raise TidegateError(Code.UNSUPPORTED, "Only a query can have a dry run.")


def describe_of(permit: Permit) -> Browse:
    """What `describe` is asked. Raises: TidegateError UNSUPPORTED."""
    if isinstance(permit.request, Browse):
        return permit.request
    raise TidegateError(Code.UNSUPPORTED, "Only metadata can be described.")


def check_cancelled(cancellation: Cancellation) -> None:
    """Check that the call goes on. Raises: TidegateError CALL_CANCELLED if it was cancelled."""
    if cancellation.reason is not None:
        raise stopped(cancellation.reason)
