"""`tidegate embed SOURCE TABLE COLUMN`: fills a column with the vectors of a column of texts."""

from __future__ import annotations

import argparse
import asyncio
from functools import partial
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.cli.consent import require_consent
from tidegate.cli.local_actor import with_app
from tidegate.cli.progress import progress
from tidegate.cli.settings import load_for_query
from tidegate.cli.terminal import print_status, show, show_json
from tidegate.errors import Code, TidegateError, masking_refused
from tidegate.identity.builtin_actors import cli
from tidegate.model.actors import Scope
from tidegate.model.requests import Call, Request
from tidegate.search import embedding_job
from tidegate.search.embedding_job import Counts, Job, Stale
from tidegate.search.ranking import Handle


def run(arguments: argparse.Namespace) -> int:
    """Fill the column, or say how far it is filled."""
    with_app(App.open(load_for_query(arguments)), partial(_work, arguments=arguments))
    return 0


async def _work(app: App, arguments: argparse.Namespace) -> None:
    handle = handle_of(app, "embed", arguments.source, writes=not arguments.status)
    into: str | None = arguments.into
    if arguments.replace:
        into = f"{into or f'{arguments.column}_embedding'}{embedding_job.NEXT}"
    job = await embedding_job.plan(handle, arguments.table, arguments.column, into)
    counts = await embedding_job.count(handle, job)
    if arguments.status:
        stale = await embedding_job.find_stale(handle, job)
        _show(job, counts, stale, as_json=arguments.json)
        return
    if counts.other_model and not arguments.replace:
        raise TidegateError(
            Code.EMBEDDING_MODEL,
            f"{counts.other_model:,} vectors of `{job.vector}` are not by {job.model}",
            hint="Use --replace, which fills a second column and then takes it; or configure the"
            " model that made them.",
        )
    _refuse_masked(app, job, arguments.source)
    if job.missing:
        await embedding_job.check_ready(handle, job)
        _agree(app, job, arguments)
        await embedding_job.make_columns(handle, job)
    try:
        await _fill(handle, job, counts)
        while arguments.follow:
            await asyncio.sleep(arguments.every)
            await _fill(handle, job, await embedding_job.count(handle, job))
    except (KeyboardInterrupt, asyncio.CancelledError):
        print_status("stopped; the same command goes on from here")
        raise
    if arguments.replace:
        await embedding_job.switch(handle, job)
        print_status(f"{job.vector} has taken the place of the old column, which is kept")
    elif job.missing and job.index is not None:
        print_status(f"an index makes searches quick: {job.index};")


def _refuse_masked(app: App, job: Job, name: str) -> None:
    """Raises: TidegateError POLICY_MASKED if the texts are masked for some callers from whom the
    vectors and digests are not hidden: both tell of the texts that they are of."""
    source = next(
        (each for each in app.connections.sources() if name in (each.name, each.id)), None
    )
    masks = source.masks if source is not None else ()
    table = job.target.table.name.lower()

    def bound(column: str) -> set[tuple[object, ...]]:
        """Whom the masks of a column bind."""
        return {
            (
                *(mask.tokens, mask.except_tokens, mask.operators, mask.except_operators),
                *(mask.roles, mask.except_roles, mask.tag),
            )
            for mask in masks
            if mask.column.lower().split(".")[-2:] == [table, column.lower()]
        }

    hidden = bound(job.text)
    if hidden <= bound(job.vector) and hidden <= bound(job.digest):
        return
    raise masking_refused(
        f"The column `{job.text}` is masked for some callers, who could read what is made of it in"
        f" `{job.vector}` and `{job.digest}`",
        "source.masking",
        hint="Add these columns to the table, mask them for the same callers, and run this again.",
    )


async def _fill(handle: Handle, job: Job, counts: Counts) -> None:
    embedded = removed = 0
    with progress(f"embed {job.text}", max(counts.texts, 1)) as advance:
        read = 0
        async for done in embedding_job.fill(handle, job):
            advance(f"{done.embedded:,} embedded", done.read - read)
            read, embedded, removed = done
    print_status(f"{embedded:,} texts embedded, {removed:,} vectors removed, {read:,} rows read")


def _agree(app: App, job: Job, arguments: argparse.Namespace) -> None:
    names = " and ".join(f"{name} {type_}" for name, type_ in job.missing)
    table = job.target.table.name
    what = f"add {names} to the table {table}"
    host = job.host
    if host:
        what += f", and send the texts of {table}.{job.text} to {host}"
    require_consent(app, table, what, arguments)


def _show(job: Job, counts: Counts, stale: Stale | None, *, as_json: bool) -> None:
    changed = 0 if stale is None else stale.changed
    state: dict[str, Any] = {
        "table": f"{job.target.table.schema}.{job.target.table.name}",
        "column": job.vector,
        "model": job.model,
        **msgspec.structs.asdict(counts),
        "current": counts.current - changed,
        "changed": changed,
        "gone": 0 if stale is None else stale.gone,
    }
    if as_json:
        show_json(state)
        return
    for name, value in state.items():
        show(
            f"{name.replace('_', ' ')}: {value:,}" if isinstance(value, int) else f"{name}: {value}"
        )


def handle_of(app: App, tool: str, source: str, *, writes: bool = False) -> Handle:
    """Requests of the local operator about one source."""

    async def handle(request: Request, expected: type[Any]) -> Any:
        call = Call(
            *(cli(allow_writes=writes), "cli", tool, request, source),
            scope=Scope.READ_WRITE if writes else Scope.READ_ONLY,
        )
        payload = (await app.gateway.handle(call)).payload
        if not isinstance(payload, expected):
            raise TidegateError(Code.INTERNAL, f"Unexpected reply: {type(payload).__name__}.")
        return payload

    return handle
