"""Answers requests about the database server: what it is busy with, and cancelling what one of its
sessions runs.

What runs is a statement of the dialect's own (`Dialect.server_panels`), never a caller's text. The
statements of other sessions can spell out any value, and so can a size: see `check_server_request`.
"""

from __future__ import annotations

import msgspec
from msgspec import structs

from tidegate.engines.registry import language_of
from tidegate.errors import Code, TidegateError
from tidegate.gateway.context import CallContext
from tidegate.model.actors import role_on
from tidegate.model.requests import Query
from tidegate.model.results import Document, Limits, Page
from tidegate.model.server_requests import (
    READS_STATE,
    TELLS_OF_DATA,
    CancelSession,
    Panel,
    ReadServer,
    ServerRequest,
)
from tidegate.model.statements import Statement
from tidegate.results.page import PageBuilder
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect

PANEL = Limits(max_rows=500, max_bytes=1_048_576, timeout_s=5.0)
"""What one panel may take."""
MOST_SHOWN = 100
_ROWS = msgspec.json.Decoder(list[list[str | None]])


def check_server_request(ctx: CallContext) -> None:
    """Refuse what could show the caller something that is hidden from it.

    Raises: TidegateError POLICY_MASKED, POLICY_TABLE, POLICY_SCOPE, UNSUPPORTED.
    """
    request, rules = ctx.call.request, ctx.data_rules
    dialect = find(ctx.source.dialect)
    if isinstance(request, CancelSession):
        if not dialect.cancel_session:
            raise _unsupported("This database has no sessions of others to cancel.")
        return
    if not isinstance(request, ReadServer):
        raise TypeError(type(request).__name__)
    if not _texts_of(dialect, request.panel, texts=True):
        raise _unsupported(f"This database shows no {request.panel}.")
    if rules is not None and request.panel in TELLS_OF_DATA:
        code = Code.POLICY_TABLE if rules.only is not None else Code.POLICY_MASKED
        raise TidegateError(
            code,
            "Some of this source is hidden from this caller, and this part could tell of it.",
            hint="Ask an operator from whom nothing is hidden.",
            details={"rule": "server.hidden"},
        )
    if request.texts or not _texts_of(dialect, request.panel, texts=False):
        _check_texts(ctx)


def _check_texts(ctx: CallContext) -> None:
    """Only an admin of the source, from whom nothing is hidden, reads what others run."""
    actor = ctx.call.actor
    if ctx.data_rules is not None:
        raise TidegateError(
            Code.POLICY_MASKED,
            "Statements of others can hold values that are hidden from this caller.",
            details={"rule": "server.texts"},
        )
    role = None if actor.roles is None else role_on(actor.roles, ctx.source.name)
    if actor.kind != "human" or role != "admin":
        raise TidegateError(
            Code.POLICY_SCOPE,
            "Only an admin of the source reads the statements of others.",
            hint="Ask an admin of the source.",
            details={"rule": "server.texts"},
        )


async def answer_server(ctx: CallContext, request: ServerRequest) -> Page:
    """The panel, or what came of cancelling. Raises: TidegateError, what the engine raises;
    ARGUMENT_INVALID for a session that is not there now."""
    dialect = find(ctx.source.dialect)
    if isinstance(request, ReadServer):
        page = await _read(ctx, _texts_of(dialect, request.panel, texts=request.texts))
        return _without_secrets(ctx, page)
    if not isinstance(request, CancelSession):
        raise TypeError(type(request).__name__)
    await _check_there(ctx, request, dialect)
    literal = dialect.literal
    number = request.session if request.session.isdigit() else literal(request.session)
    text = dialect.cancel_session.format(session=number, started=literal(request.started))
    return await _run(ctx, text)


async def _check_there(ctx: CallContext, request: CancelSession, dialect: Dialect) -> None:
    """Raises: TidegateError ARGUMENT_INVALID unless the session is the one that was shown."""
    if request.session.isascii() and request.session.isdigit():
        page = await _read(ctx, _texts_of(dialect, "sessions", texts=False))
        names = [column.name for column in page.columns]
        at, started = names.index("id"), names.index("started")
        for row in _ROWS.decode(page.rows):
            if (row[at], row[started]) == (request.session, request.started):
                return
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        f"The session {request.session[:MOST_SHOWN]} is not there now, or is another one by now.",
        hint="Read the sessions again. Nothing was cancelled.",
    )


def _texts_of(dialect: Dialect, panel: Panel, *, texts: bool) -> tuple[str, ...]:
    """The statements for a panel: the first that the server knows is the one to run."""
    plain = dialect.server_panels.get(panel, ())
    return (dialect.server_texts.get(panel) or plain) if texts else plain


async def _read(ctx: CallContext, texts: tuple[str, ...]) -> Page:
    """The panel by the first statement that the server knows. Raises: TidegateError of the first,
    if it knows none."""
    failed: TidegateError | None = None
    for text in texts:
        try:
            return await _run(ctx, text)
        except TidegateError as error:
            if error.code is not Code.SQL_FAILED:
                raise
            failed = failed or error
    raise failed or _unsupported("This database has no such view.")


def _without_secrets(ctx: CallContext, page: Page) -> Page:
    """The page with its statements as records keep them: without the secrets that are seen."""
    names = [column.name for column in page.columns]
    if "query" not in names:
        return page
    at, language = names.index("query"), language_of(ctx.source)
    rows = _ROWS.decode(page.rows)
    for row in rows:
        row[at] = language.redact(row[at] or "", ctx.source.dialect) or None
    return structs.replace(page, rows=msgspec.json.encode(rows))


async def _run(ctx: CallContext, text: str) -> Page:
    """Run one of the dialect's own statements, under the permit of the call."""
    query = Query(Statement(text), limits=PANEL, database=ctx.request.database, cells="text")
    # Each is a query, whatever a function in it does: that was decided on as the request's effect.
    ctx.judged_text, ctx.text_judgement = text, READS_STATE
    permit = ctx.permit(query)
    ctx.sent = True
    cursor = await ctx.engine.run(permit, ctx.call.cancellation)
    if isinstance(cursor, Document):
        raise TidegateError(Code.INTERNAL, "The panel of a server is no table")
    try:
        builder = PageBuilder(cursor.columns, PANEL, "text")
        await cursor.fetch_into(builder)
    finally:
        await cursor.close()
    return builder.page(affected=cursor.affected, elapsed_ms=ctx.elapsed_ms)


def _unsupported(message: str) -> TidegateError:
    return TidegateError(Code.UNSUPPORTED, message)
