"""The requests of one statement, each made once, and the rows that they give.

Requests run on the event loop; the statement's SQL runs in a thread of its own, which waits here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import partial
from math import inf
from threading import Condition
from typing import Any, Final

from tidegate.errors import Code, TidegateError
from tidegate.model.results import SkippedCall, Truncation
from tidegate.products.cloud.documents.accounts import Values, account_of
from tidegate.products.cloud.documents.document_catalog import Found
from tidegate.products.cloud.documents.model import Method
from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.engine.call_limits import CallCounts
from tidegate.products.cloud.engine.options import CloudOptions
from tidegate.products.cloud.engine.provider_calls import ProviderCalls, ReplyPage
from tidegate.products.cloud.http.responses import SqlValue

LOOKAHEAD: Final = 3
"""Pages of a list that are fetched before the ones in front of them were read."""

_DENIALS: Final = frozenset({
    Code.PROVIDER_REFUSED, Code.CREDENTIAL_REFUSED, Code.CREDENTIAL_UNAVAILABLE,
})  # fmt: skip

TableRow = tuple[SqlValue, ...]
MakeRows = Callable[[Iterable[Mapping[str, SqlValue]]], list[TableRow]]
"""Makes rows of the cells of a response by their names."""


class Fetch:
    """The rows of one call of a method, all pages, as they come."""

    def __init__(
        self,
        path: str,
        is_cut: Callable[[int, int], None],
        is_skipped: Callable[[TidegateError], bool],
    ) -> None:
        """`is_cut` is called where the list has more pages, with how many were read and how many
        could be; `is_skipped` says whether the result
        goes without the rows of a call that was refused at its first page."""
        self._path = path
        self._is_cut = is_cut
        self._is_skipped = is_skipped
        self._changed = Condition()
        self._rows: list[TableRow] = []
        self._error: BaseException | None = None
        self._pages = 0
        self._read_pages = 0.0
        self._wanted = asyncio.Event()
        self._ends = False
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def has_ended(self) -> bool:
        """Whether all rows are there, or no more will come."""
        return self._ends

    async def run(
        self,
        pages: AsyncIterator[ReplyPage],
        make_rows: MakeRows,
        turns: asyncio.Semaphore,
        page_limit: int,
    ) -> None:
        """Fetch the pages, `page_limit` at most, each in one of the statement's `turns`. What fails
        is raised where the rows are read."""
        self.loop = asyncio.get_running_loop()
        try:
            while True:
                async with turns:
                    page = await anext(pages, None)
                if page is None:
                    break
                rows = (
                    make_rows(page.page.rows)
                    if len(page.response.body) < 16_384
                    else await asyncio.to_thread(make_rows, page.page.rows)
                )
                with self._changed:
                    self._rows += rows
                    self._pages += 1
                    self._changed.notify_all()
                if page.following is None:
                    if page.says_more:
                        self._is_cut(self._pages, self._pages)
                    break
                if self._pages >= page_limit:
                    self._is_cut(self._pages, page_limit)
                    break
                await self._room()
        except BaseException as error:
            if not isinstance(error, TidegateError) or self._pages or not self._is_skipped(error):
                self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            with self._changed:
                self._ends = True
                self._changed.notify_all()

    async def _room(self) -> None:
        """Wait until the pages that are there are about to be read."""
        while self._pages >= self._read_pages + LOOKAHEAD:
            self._wanted.clear()
            await self._wanted.wait()

    def rows(self) -> Iterator[TableRow]:
        """The rows, in the order in which they came. Blocks its thread for those to come.

        Raises: TidegateError, also when some rows were given out: the result is not whole.
        """
        at = 0
        while True:
            with self._changed:
                while at >= len(self._rows) and not self._ends:
                    self._want(self._pages + 1)
                    self._changed.wait()
                ready, ended = self._rows[at:], self._ends
                self._want(self._pages)
            yield from ready
            at += len(ready)
            if ended and at >= len(self._rows):
                self._check()
                return

    def all_rows(self) -> list[TableRow]:
        """All rows. Blocks, and raises, as `rows`."""
        self.wait()
        self._check()
        return self._rows

    def wait(self) -> None:
        """Block until the fetch has ended, well or not."""
        with self._changed:
            self._want(inf)
            while not self._ends:
                self._changed.wait()

    def _want(self, pages: float) -> None:
        if pages > self._read_pages:
            self._read_pages = pages
            if self.loop is not None and not self._ends:
                self.loop.call_soon_threadsafe(self._wanted.set)

    def fail(self, error: BaseException) -> None:
        """End what waits for rows, with an error."""
        with self._changed:
            self._error = self._error or error
            self._ends = True
            self._changed.notify_all()

    def _check(self) -> None:
        error = self._error
        if error is None:
            return
        if isinstance(error, TidegateError):
            raise _copy(error)
        raise TidegateError(Code.INTERNAL, f"A fault: {type(error).__name__}") from error


def _copy(error: TidegateError) -> TidegateError:
    """The error once more: one that was raised twice would show both ways it took."""
    return TidegateError(
        error.code,
        error.message,
        hint=error.hint,
        retry_after_s=error.retry_after_s,
        details=dict(error.details),
    )


class Fetches:
    """The fetches of one statement. `begin` is called in the statement's thread."""

    def __init__(
        self,
        calls: ProviderCalls,
        loop: asyncio.AbstractEventLoop,
        options: CloudOptions,
        counts: CallCounts,
        cached_for: str = "",
    ) -> None:
        """`counts` are those of the statement. `cached_for` is the actor for whom replies may come
        from the cache; empty: none do."""
        self._calls = calls
        self._loop = loop
        self._page_limit = options.page_limit
        self._cached_for = cached_for
        self._turns = asyncio.Semaphore(options.concurrency)
        self._tasks: set[asyncio.Task[None]] = set()
        self._made: dict[tuple[str, str, Values], Fetch] = {}
        self._failure: TidegateError | None = None
        self.counts = counts
        self.truncations: list[Truncation] = []
        self.skips_denied = False
        """Whether the statement wants what comes where an account or a region is denied."""
        self._skipped: dict[tuple[str, str, str], SkippedCall] = {}
        self._denied: dict[str, list[TidegateError]] = {}

    def find(self, found: Found, method: Method, values: Values) -> Fetch | None:
        """The fetch of this call, if there is one."""
        return self._made.get((found.path, method.name, values))

    def begin(self, found: Found, method: Method, values: Values, make_rows: MakeRows) -> Fetch:
        """The fetch of this call, which is begun if it is new. Waits for nothing.

        Raises: TidegateError LIMIT_RATE: `max_calls`; what the statement was stopped by.
        """
        key = (found.path, method.name, values)
        fetch = self._made.get(key)
        if fetch is not None:
            return fetch
        if self._failure is not None:
            raise _copy(self._failure)
        self.counts.check(1 + self._not_sent())
        fetch = Fetch(found.path, self._cut, partial(self._skip, found.path, method, values))
        self._made[key] = fetch
        pages = self._calls.pages(found, method, dict(values), self.counts, self._cached_for)
        work = fetch.run(pages, make_rows, self._turns, self._page_limit)
        self._loop.call_soon_threadsafe(self._start, work)
        return fetch

    def check_room(self, count: int) -> None:
        """Raises: TidegateError LIMIT_RATE before any is sent, if `count` more calls are too
        many."""
        self.counts.check(count + self._not_sent())

    def _not_sent(self) -> int:
        return max(0, len(self._made) - self.counts.calls - self.counts.hits)

    def _start(self, work: Any) -> None:
        if self._failure is not None:
            work.close()
            return
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def skipped(self) -> tuple[SkippedCall, ...]:
        """What the result lacks, each account and region of a resource once."""
        return tuple(self._skipped.values())

    def check_partial(self) -> None:
        """Refuse a result to which a resource gave nothing but refusals. Raises: TidegateError, the
        first of them."""
        for path, denied in tuple(self._denied.items()):
            made = sum(1 for key in self._made if key[0] == path)
            if len(denied) == made:
                raise _copy(denied[0])

    def _skip(self, path: str, method: Method, values: Values, error: TidegateError) -> bool:
        """Note a call that was denied, where the statement goes on without its rows: only what an
        account or a region may not read, for which others are asked as well."""
        given = {folded(name): str(value) for name, value in values}
        account, region = account_of(method, dict(values)), given.get("region", "")
        if not self.skips_denied or error.code not in _DENIALS or not (account or region):
            return False
        status = error.details.get("http_status", 0)
        self._skipped[path, account, region] = SkippedCall(
            path, error.code.value, account, region, status
        )
        self._denied.setdefault(path, []).append(error)
        return True

    def _cut(self, pages: int, most: int) -> None:
        self.truncations.append(Truncation("pages", most, pages))

    def stop(self, error: TidegateError) -> None:
        """End all fetches. Called on the event loop, also when the statement has ended."""
        if self._failure is None:
            self._failure = error
        for task in tuple(self._tasks):
            task.cancel()
        for fetch in tuple(self._made.values()):
            if not fetch.has_ended:
                fetch.fail(error)
