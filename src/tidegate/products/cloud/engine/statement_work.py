"""What one statement has under way, until it ends: by itself, by its time limit, by its caller, or
because the source is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor
from typing import Any, Final, NamedTuple, TypeVar

from tidegate.engines.api import Row
from tidegate.engines.common.errors import closed, stopped
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.data_rules import EngineRules
from tidegate.model.joined_tables import JoinedTable
from tidegate.model.results import UpstreamUse
from tidegate.products.cloud.documents.document_catalog import DocumentCatalog
from tidegate.products.cloud.engine.call_limits import CallCounts, CallRate
from tidegate.products.cloud.engine.fetches import Fetches
from tidegate.products.cloud.engine.hidden_rows import HiddenRows
from tidegate.products.cloud.engine.options import CloudOptions
from tidegate.products.cloud.engine.provider_calls import ProviderCalls
from tidegate.products.cloud.engine.statement_run import StatementRun
from tidegate.products.cloud.engine.statement_text import bind_tables, has_limit

MOST_VALUES: Final = 10_000
"""Rows that a query inside a change may give."""

Result = TypeVar("Result")


class OpenProviders(NamedTuple):
    """The providers of an open source, which all its statements share.

    `documents` say what the providers have, and `calls` sends the requests, as `options` bound
    them. What blocks runs on `executor`.
    """

    documents: DocumentCatalog
    calls: ProviderCalls
    options: CloudOptions
    executor: Executor


class ExecutionContext(NamedTuple):
    """What one statement runs with, for which caller and for how long.

    `timeout_s` is how many seconds it may take. `rules` say what is hidden from its caller, and
    `rate` bounds the caller's requests; None: nothing does. `joined` are the tables of other
    sources that its query may name. `report` is called on the event loop with what was sent so far.
    `cached_for` is the actor for whom replies may come from the cache; empty: none do.
    """

    timeout_s: float
    rules: EngineRules | None = None
    rate: CallRate | None = None
    joined: Sequence[JoinedTable] = ()
    report: Callable[[UpstreamUse], None] | None = None
    cached_for: str = ""


class StatementWork:
    """One statement. `end` is called once it is over, whatever came of it."""

    def __init__(
        self, providers: OpenProviders, context: ExecutionContext, cancellation: Cancellation
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.executor = providers.executor
        self.documents = providers.documents
        self.calls = providers.calls
        options, timeout_s = providers.options, context.timeout_s
        counts = CallCounts(options.max_calls, context.rate, context.report)
        self.fetches = Fetches(self.calls, self.loop, options, counts, context.cached_for)
        self._cancellation = cancellation
        self._stoppers: list[Callable[[TidegateError], None]] = []
        self._stopped: TidegateError | None = None
        self.has_ended = False
        self._given_rules = context.rules
        self._hidden: HiddenRows | None = None
        self._joined = context.joined
        self._timer = self.loop.call_later(timeout_s, lambda: self.stop(stopped("time", timeout_s)))
        cancellation.listen(self._cancel)

    def _cancel(self) -> None:
        self.stop(stopped(self._cancellation.reason or "cancelled"))

    def stop(self, error: TidegateError) -> None:
        """End what is under way, on the event loop."""
        if self._stopped is None:
            self._stopped = error
        for stopper in tuple(self._stoppers):
            stopper(error)
        self.fetches.stop(error)

    def end(self) -> None:
        """Forget the limits, and end what is still fetched. Safe to call twice."""
        self.has_ended = True
        self._timer.cancel()
        self._cancellation.forget(self._cancel)
        self.fetches.stop(closed())

    @property
    def hidden(self) -> HiddenRows:
        """What is hidden from the statement's caller. Reads documents when it is first asked for.
        Raises: TidegateError POLICY_MASKED if a rule fits no resource."""
        if self._hidden is None:
            self._hidden = HiddenRows(self._given_rules, self.documents)
        return self._hidden

    async def in_thread(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """The result of a function that blocks."""
        return await self.loop.run_in_executor(self.executor, function, *arguments)

    async def new_run(self, text: str) -> StatementRun:
        """A query over resources, not begun. Raises: TidegateError."""

        def bind() -> StatementRun:
            bound = bind_tables(text, self.documents, self.hidden, self._joined)
            return StatementRun(bound, self.fetches, self.hidden, has_limit=has_limit(bound.sql))

        run = await self.in_thread(bind)
        self._stoppers.append(run.stop)
        if self._stopped is not None:
            raise self._stopped
        return run

    async def query(self, text: str) -> StatementRun:
        """A query that has begun. Raises: TidegateError."""
        run = await self.new_run(text)
        try:
            await self.in_thread(run.begin)
        except BaseException:
            await self.in_thread(run.close)
            raise
        return run

    async def rows(self, text: str) -> list[Row]:
        """All rows of a query inside a change. Raises: TidegateError."""
        run = await self.query(text)
        try:
            rows: list[Row] = []
            while not run.has_ended and len(rows) <= MOST_VALUES:
                rows += await self.in_thread(run.take, MOST_VALUES + 1)
        finally:
            await self.in_thread(run.close)
        if len(rows) > MOST_VALUES:
            raise TidegateError(
                Code.ARGUMENT_INVALID, f"The change means more than {MOST_VALUES} requests."
            )
        for cut in self.fetches.truncations:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The query inside the change was cut at {cut.returned:,} pages of a list, so it"
                " would cover some of the requests only. Nothing was sent.",
                hint="Narrow the query.",
            )
        return rows

    async def send(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of `work`, which is cancelled when the statement is stopped. Raises:
        TidegateError, what `work` raises; of one that was stopped before it began, why."""
        task = self.loop.create_task(work)

        def cancel(error: TidegateError) -> None:
            task.cancel()

        self._stoppers.append(cancel)
        try:
            return await task
        except asyncio.CancelledError:
            if self._stopped is not None:
                raise self._stopped from None
            raise
        finally:
            self._stoppers.remove(cancel)
