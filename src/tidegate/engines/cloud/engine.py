"""The provider documents of one folder, and what is behind them, as a source."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tidegate.cloud.descriptions import Rows, describe, show
from tidegate.cloud.document_catalog import DocumentCatalog
from tidegate.cloud.registry_folder import RegistryFolder
from tidegate.cloud.statements import (
    DescribeStatement,
    ReadStatement,
    ShowStatement,
    SqlStatement,
    read_statement,
)
from tidegate.engines.api import Capabilities, Cursor
from tidegate.engines.cloud.cursor import RowsCursor
from tidegate.engines.cloud.fetches import Fetches
from tidegate.engines.cloud.options import CloudOptions, read_cloud_options
from tidegate.engines.cloud.provider_calls import ProviderCalls
from tidegate.engines.cloud.statement_run import StatementCursor, StatementRun
from tidegate.engines.cloud.statement_text import bind_tables, has_limit, with_literals
from tidegate.engines.common.errors import closed, stopped
from tidegate.engines.common.permit_checks import check_cancelled, describe_of, query_of
from tidegate.engines.common.roles import refuse_identity
from tidegate.engines.registry import resolve_options
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.requests import Explain
from tidegate.model.results import Column, Document
from tidegate.model.schema import Catalog, Counts, Databases, Description, Status
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.sql.finding import Refusal


class CloudEngine:
    """One source. Callers share it; each statement has a thread of its own for its SQL."""

    capabilities = Capabilities(
        transactions=False,
        schemas=True,
        explains=True,
        explains_changes=True,
        explains_as_json=False,
        primary_keys=False,
        foreign_keys=False,
        row_counts=False,
        places=16,
    )

    def __init__(
        self,
        options: CloudOptions,
        documents: DocumentCatalog,
        calls: ProviderCalls,
        *,
        writable: bool,
    ) -> None:
        self._options = options
        self._documents = documents
        self._writable = writable
        self._closed = False
        self._calls = calls
        self._running: set[Callable[[TidegateError], None]] = set()
        self._executor = ThreadPoolExecutor(self.capabilities.places, "tidegate-cloud")

    @classmethod
    async def open(cls, source: Source) -> CloudEngine:
        options = read_cloud_options(source.url, resolve_options(source))
        folder = await asyncio.to_thread(RegistryFolder, Path(options.folder))
        documents = DocumentCatalog(folder)
        return cls(options, documents, ProviderCalls(options), writable=source.writable)

    @property
    def status(self) -> Status:
        return Status("cloud", None, "provider documents")

    async def inspect(self, statement: Statement, judgement: Judgement) -> Judgement | None:
        self._check_open()
        return None

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor | Document:
        refuse_identity(permit)
        self._check_open()
        check_cancelled(cancellation)
        request, judgement = query_of(permit)
        read = _read(request.statement.text)
        if judgement.effect is not Effect.READ and (
            permit.effect < Effect.WRITE or not self._writable
        ):
            raise TidegateError(
                Code.POLICY_READ_ONLY, "The statement changes something at a provider."
            )
        explains = read.is_explained or isinstance(request, Explain)
        statement = read.statement
        if explains:
            raise TidegateError(Code.UNSUPPORTED, "EXPLAIN is not there yet.")
        if isinstance(statement, SqlStatement) and statement.verb == "select":
            return await self._select(statement, permit, request.statement.params, cancellation)
        if isinstance(statement, ShowStatement):
            return _cursor(await asyncio.to_thread(show, statement, self._documents))
        if isinstance(statement, DescribeStatement):
            return _cursor(await asyncio.to_thread(describe, statement, self._documents))
        raise TidegateError(Code.UNSUPPORTED, "Only SELECT, SHOW and DESCRIBE are answered.")

    async def _select(
        self,
        statement: SqlStatement,
        permit: Permit,
        params: tuple[Any, ...] | None,
        cancellation: Cancellation,
    ) -> StatementCursor:
        """Begin a query: its first row is there, or it has none. Raises: TidegateError."""
        loop = asyncio.get_running_loop()
        fetches = self._new_fetches()
        run: StatementRun | None = None

        def stop(error: TidegateError) -> None:
            if run is not None:
                run.stop(error)
            fetches.stop(error)

        def cancel() -> None:
            stop(stopped(cancellation.reason or "cancelled"))

        limit_s = permit.limits.timeout_s
        timer = loop.call_later(limit_s, lambda: stop(stopped("time", limit_s)))

        def end() -> None:
            timer.cancel()
            cancellation.forget(cancel)
            self._running.discard(stop)
            fetches.stop(closed())

        self._running.add(stop)
        cancellation.listen(cancel)
        try:
            text = await loop.run_in_executor(
                self._executor, bind_tables, with_literals(statement.text, params), self._documents
            )
            run = StatementRun(text, fetches, has_limit=has_limit(text.sql))
            await loop.run_in_executor(self._executor, run.begin)
            return StatementCursor(run, fetches, self._executor, end)
        except BaseException:
            end()
            if run is not None:
                await loop.run_in_executor(self._executor, run.close)
            raise

    def _new_fetches(self) -> Fetches:
        return Fetches(
            self._calls,
            asyncio.get_running_loop(),
            most_calls=self._options.max_calls,
            page_limit=self._options.page_limit,
            concurrency=self._options.concurrency,
        )

    async def dry_run(self, permit: Permit, cancellation: Cancellation) -> DryRun:
        raise TidegateError(Code.UNSUPPORTED, "A source of cloud providers has no dry runs.")

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        refuse_identity(permit)
        request = describe_of(permit)
        self._check_open()
        check_cancelled(cancellation)
        if request.aspect == "databases":
            return Databases((self.status.database,))
        if request.aspect == "counts":
            return Counts({})
        if request.aspect == "catalog":
            return await asyncio.to_thread(self._catalog)
        raise TidegateError(
            Code.UNSUPPORTED,
            "A provider's resources have no definition in SQL.",
            hint="DESCRIBE provider.service.resource lists the columns.",
        )

    def _catalog(self) -> Catalog:
        """The services as schemas. Their resources are in documents that are read when a statement
        names them: there are tens of thousands."""
        schemas = [
            f"{provider.name}.{service.name}"
            for provider in self._documents.providers()
            for service in provider.services.values()
        ]
        return Catalog(self.status.database, "", tuple(schemas), (), "")

    async def schema_version(self) -> str:
        self._check_open()
        return ""

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for stop in tuple(self._running):
            stop(stopped("closed"))
        await self._calls.close()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _check_open(self) -> None:
        if self._closed:
            raise closed()


def _read(text: str) -> ReadStatement:
    try:
        return read_statement(text)
    except Refusal as refusal:
        code = refusal.finding.code or Code.SQL_UNREADABLE
        raise TidegateError(code, refusal.finding.reason, hint=refusal.finding.hint) from None


def _cursor(rows: Rows) -> RowsCursor:
    return RowsCursor([Column(name, "text", "text") for name in rows.columns], rows.rows)
