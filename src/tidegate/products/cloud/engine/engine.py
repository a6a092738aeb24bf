"""The provider documents of one folder, and their APIs, as a source."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from tidegate.engines.api import INSPECT_S, Capabilities, Cursor, StatementDescription
from tidegate.engines.common.errors import closed, stopped
from tidegate.engines.common.permit_checks import (
    check_cancelled,
    describe_of,
    prepare_of,
    query_of,
)
from tidegate.engines.common.roles import refuse_identity
from tidegate.engines.registry import resolve_options
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.joined_tables import OtherTables
from tidegate.model.requests import Explain
from tidegate.model.results import Column, Document
from tidegate.model.schema import (
    Catalog,
    ColumnInfo,
    Counts,
    Databases,
    Description,
    Status,
    Table,
)
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.products.cloud.documents.document_cache import DocumentCache
from tidegate.products.cloud.documents.document_catalog import DocumentCatalog
from tidegate.products.cloud.documents.registry import Registry, verifier_of
from tidegate.products.cloud.documents.registry_folder import RegistryFolder
from tidegate.products.cloud.engine.change_plan import PlannedChanges, carry_out, plan_changes
from tidegate.products.cloud.engine.cursor import RowsCursor
from tidegate.products.cloud.engine.explanation import COLUMNS as EXPLAINED
from tidegate.products.cloud.engine.explanation import explain
from tidegate.products.cloud.engine.joined_tables import find_other_tables
from tidegate.products.cloud.engine.options import CloudOptions, read_cloud_options
from tidegate.products.cloud.engine.preview import digest, new_state, preview, reads_resources
from tidegate.products.cloud.engine.provider_calls import ProviderCalls
from tidegate.products.cloud.engine.resource_table import ResourceTable
from tidegate.products.cloud.engine.statement_cursor import StatementCursor
from tidegate.products.cloud.engine.statement_text import parameter_count, with_literals
from tidegate.products.cloud.engine.statement_work import (
    ExecutionContext,
    OpenProviders,
    StatementWork,
)
from tidegate.products.cloud.language.descriptions import Rows, describe, show
from tidegate.products.cloud.language.statements import (
    CloudStatement,
    DescribeStatement,
    ReadStatement,
    RegistryStatement,
    ShowStatement,
    SqlStatement,
    read_judged_statement,
)

_PLAN_S = 10.0


class CloudEngine:
    """One source. Callers share it; each statement has a thread of its own for its SQL."""

    capabilities = Capabilities(
        upstream=True,
        transactions=False,
        schemas=True,
        explains=True,
        explains_changes=True,
        explains_as_json=False,
        primary_keys=False,
        foreign_keys=False,
        row_counts=False,
        prepares=True,
        max_concurrency=16,
        dry_runs=True,
        plans=True,
        joins=True,
    )

    def __init__(
        self,
        options: CloudOptions,
        folder: RegistryFolder,
        calls: ProviderCalls,
        *,
        writable: bool,
    ) -> None:
        self._options = options
        self._folder = folder
        self._documents = DocumentCatalog(folder, options.settings.providers)
        self._writable = writable
        self._closed = False
        self._calls = calls
        self._works: set[StatementWork] = set()
        self._executor = ThreadPoolExecutor(self.capabilities.max_concurrency, "tidegate-cloud")
        self._providers = OpenProviders(self._documents, calls, options, self._executor)

    @classmethod
    async def open(cls, source: Source) -> CloudEngine:
        options = read_cloud_options(source.url, resolve_options(source))
        verifier = await asyncio.to_thread(verifier_of, options.settings)
        cache = DocumentCache(options.settings.cache)
        folder = await asyncio.to_thread(RegistryFolder, Path(options.folder), verifier, cache)
        return cls(options, folder, ProviderCalls(options), writable=source.writable)

    @property
    def status(self) -> Status:
        return Status("cloud", None, "provider documents")

    async def inspect(
        self, statement: Statement, judgement: Judgement, timeout_s: float = INSPECT_S
    ) -> Judgement | None:
        self._check_open()
        return None

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor | Document:
        refuse_identity(permit)
        self._check_open()
        check_cancelled(cancellation)
        request, judgement = query_of(permit)
        read = read_judged_statement(request.statement.text)
        if judgement.effect is not Effect.READ and (
            permit.effect < Effect.WRITE or not self._writable
        ):
            raise TidegateError(
                Code.POLICY_READ_ONLY, "The statement changes something at a provider."
            )
        explains = read.is_explained or isinstance(request, Explain)
        statement = read.statement
        if explains and isinstance(
            statement, (ShowStatement, DescribeStatement, RegistryStatement)
        ):
            return _cursor(Rows(EXPLAINED, []))
        if isinstance(statement, ShowStatement):
            return _cursor(await asyncio.to_thread(show, statement, self._documents))
        if isinstance(statement, DescribeStatement):
            return _cursor(await asyncio.to_thread(describe, statement, self._documents))
        if isinstance(statement, RegistryStatement):
            return _cursor(await asyncio.to_thread(self._registry, statement, cancellation))
        if statement.awaits:
            raise TidegateError(
                Code.UNSUPPORTED,
                "/*+ AWAIT */ is not supported: provider documents do not say how an operation that"
                " goes on is looked up, so the statement would not wait.",
                hint="Leave it out, and read the resource until it has changed.",
            )
        cached_for = ""
        if isinstance(statement, SqlStatement) and statement.verb == "select":
            cached_for = "" if statement.is_fresh else permit.actor.id
        work = self._begin_work(permit, cancellation, cached_for)
        try:
            if read.explained in ("digest", "preview"):
                return _cursor(await self._explain_change(read, request.statement, work))
            if explains:
                return _cursor(await explain(statement, request.statement.params, work))
            if isinstance(statement, SqlStatement) and statement.verb == "select":
                work.fetches.skips_denied = statement.skips_denied
                run = await work.query(with_literals(statement.text, request.statement.params))
                return StatementCursor(run, work)
            changes = await plan_changes(statement, request.statement.params, work)
            _check_plan(changes, permit)
            cursor = await carry_out(changes, work)
            if permit.looks_after:
                cursor.new_state = await new_state(changes, work)
            self._end_work(work)
            return cursor
        except BaseException:
            self._end_work(work)
            raise

    async def _explain_change(
        self, read: ReadStatement, statement: Statement, work: StatementWork
    ) -> Rows:
        """What a change would send, for a server that has it approved before it sends the change
        here: the digest of `plan`, or the `DryRun` as JSON."""
        is_bound = not _has_query(read.statement, statement)
        if read.explained == "digest" and not is_bound:
            work.end()  # to plan it would send the requests of its query
            return Rows(("digest",), [("",)])
        planned = await plan_changes(read.statement, statement.params, work)
        if read.explained == "digest":
            found = digest(planned)
        else:
            shown = await preview(planned, work, is_bound=is_bound)
            found = msgspec.json.encode(shown).decode()
        work.end()
        return Rows((str(read.explained),), [(found,)])

    def _registry(self, statement: RegistryStatement, cancellation: Cancellation) -> Rows:
        """What the registry offers, or what was pulled from it into the source's folder.

        Raises: TidegateError UNSUPPORTED for a folder, CONFIG_INVALID; as `Registry`.
        """
        settings = self._options.settings
        if settings.registry is None:
            raise TidegateError(
                Code.UNSUPPORTED,
                f"'registry {statement.action}' is meaningless in local mode: the source is a"
                " folder.",
                hint="Set `cloud.registry` to the address of a registry.",
            )
        registry = Registry(settings, lambda: cancellation.cancelled)
        if statement.action == "list":
            offered = registry.available(statement.provider)
            if statement.provider:
                versions = ", ".join(version for _, version in offered)
                rows = [(statement.provider, versions)] if offered else []
                return Rows(("provider", "versions"), rows)
            return Rows(("provider", "version"), [tuple(each) for each in offered])
        pulled = registry.pull(statement.provider, statement.version, self._folder.src)
        self._documents.refresh()
        message = f"{pulled.provider} version '{pulled.version}' successfully installed"
        return Rows(("message",), [(message,)])

    def _begin_work(
        self, permit: Permit, cancellation: Cancellation, cached_for: str = ""
    ) -> StatementWork:
        for each in [each for each in self._works if each.has_ended]:
            self._works.discard(each)
        context = ExecutionContext(
            permit.limits.timeout_s,
            permit.request.engine_rules,
            self._calls.rates.of(permit.actor.id),
            permit.joined,
            permit.report,
            cached_for,
        )
        work = StatementWork(self._providers, context, cancellation)
        self._works.add(work)
        return work

    def _end_work(self, work: StatementWork) -> None:
        work.end()
        self._works.discard(work)

    async def other_tables(
        self, statement: Statement, is_source: Callable[[str], bool]
    ) -> OtherTables | None:
        """The tables of other sources that a SELECT names. Raises: TidegateError TABLE_UNKNOWN."""
        self._check_open()
        whole = read_judged_statement(statement.text)
        read, options = whole.statement, self._options
        if not isinstance(read, SqlStatement) or read.verb != "select":
            return None
        params = statement.params
        if params is None:  # it is described, and any value will do
            params = ("",) * parameter_count(read.text)
        text = with_literals(read.text, params)
        tables = await asyncio.to_thread(find_other_tables, text, self._documents, is_source)
        if not tables:
            return None
        return OtherTables(
            tables, options.join_rows, options.join_bytes, is_run=not whole.is_explained
        )

    async def prepare(self, permit: Permit, cancellation: Cancellation) -> StatementDescription:
        """Columns as the documents declare them. A parameter counts as bound."""
        refuse_identity(permit)
        self._check_open()
        check_cancelled(cancellation)
        request, _ = prepare_of(permit)
        read = read_judged_statement(request.statement.text)
        statement = read.statement
        if read.explained in ("digest", "preview"):
            return StatementDescription(_columns([str(read.explained)]))
        if read.is_explained or isinstance(request, Explain):
            return StatementDescription(_columns(EXPLAINED))
        if isinstance(statement, ShowStatement):
            return StatementDescription(
                await asyncio.to_thread(_shown, show, statement, self._documents)
            )
        if isinstance(statement, DescribeStatement):
            return StatementDescription(
                await asyncio.to_thread(_shown, describe, statement, self._documents)
            )
        if not isinstance(statement, SqlStatement) or statement.verb != "select":
            raise TidegateError(Code.UNSUPPORTED, "Only a query is prepared.")
        work = self._begin_work(permit, cancellation)
        try:
            count = parameter_count(statement.text)
            run = await work.new_run(with_literals(statement.text, ("",) * count))
            try:
                await work.in_thread(run.prepare)
                return StatementDescription(run.columns)
            finally:
                await work.in_thread(run.close)
        finally:
            self._end_work(work)

    async def dry_run(self, permit: Permit, cancellation: Cancellation) -> DryRun:
        """What would be sent, and what is there now. Changes nothing, but reads. Raises:
        TidegateError, as planning the change."""
        refuse_identity(permit)
        self._check_open()
        check_cancelled(cancellation)
        request, _ = query_of(permit)
        statement = read_judged_statement(request.statement.text).statement
        work = self._begin_work(permit, cancellation)
        try:
            planned = await plan_changes(statement, request.statement.params, work)
            _check_plan(planned, permit)
            is_bound = not _has_query(statement, request.statement)
            return await preview(planned, work, is_bound=is_bound)
        finally:
            self._end_work(work)

    async def plan(self, statement: Statement, source: Source) -> str:
        """A digest of the requests that a change means, to which an approval is bound; empty
        if its values come from other requests. Sends nothing.

        Raises: TidegateError, as planning the change.
        """
        self._check_open()
        read = read_judged_statement(statement.text).statement
        if _has_query(read, statement):
            return ""
        work = StatementWork(self._providers, ExecutionContext(_PLAN_S), Cancellation())
        try:
            return digest(await plan_changes(read, statement.params, work))
        finally:
            work.end()

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
            return await asyncio.to_thread(self._catalog, request.schema)
        raise TidegateError(
            Code.UNSUPPORTED,
            "A provider's resources have no definition in SQL.",
            hint="DESCRIBE provider.service.resource lists the columns.",
        )

    def _catalog(self, schema: str | None) -> Catalog:
        """The services as schemas, and the resources of `schema` alone: there are tens of
        thousands, in documents that are read when they are asked for."""
        schemas = [
            f"{provider.name}.{service.name}"
            for provider in self._documents.providers()
            for service in provider.services.values()
        ]
        tables = self._tables(schema) if schema is not None and "." in schema else ()
        return Catalog(self.status.database, "", tuple(schemas), tuple(tables), "")

    def _tables(self, schema: str) -> Iterator[Table]:
        provider, _, service = schema.partition(".")
        _, document = self._documents.service(self._documents.provider(provider), service)
        for name in document.resource_names:
            table = ResourceTable(self._documents.resource((provider, service, name)))
            columns = [
                ColumnInfo(each.name, each.declared, comment=table.requirement_of(place))
                for place, each in enumerate(table.columns)
                if not each.is_hidden
            ]
            yield Table(schema, name, "view" if table.views else "table", tuple(columns))

    async def schema_version(self) -> str:
        self._check_open()
        return ""

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for work in tuple(self._works):
            work.stop(stopped("closed"))
        await self._calls.close()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _check_open(self) -> None:
        if self._closed:
            raise closed()


def _has_query(read: CloudStatement, statement: Statement) -> bool:
    return isinstance(read, SqlStatement) and reads_resources(read, statement.params)


def _check_plan(changes: PlannedChanges, permit: Permit) -> None:
    """Refuse requests that are not those of the approval. Raises: TidegateError POLICY_DENIED."""
    if permit.plan and digest(changes) != permit.plan:
        raise TidegateError(
            Code.POLICY_DENIED,
            "The statement means other requests each time it is read, so an approval of some"
            " covers no others. Nothing was sent.",
            hint="Write its values out, without random() and the present time.",
        )


def _columns(names: Sequence[str]) -> tuple[Column, ...]:
    return tuple([Column(name, "text", "text") for name in names])


def _shown(
    answer: Callable[[Any, DocumentCatalog], Rows], statement: Any, documents: DocumentCatalog
) -> tuple[Column, ...]:
    return _columns(answer(statement, documents).columns)


def _cursor(rows: Rows) -> RowsCursor:
    return RowsCursor(_columns(rows.columns), rows.rows)
