"""Two tools: the accounts of a ledger, and the balance of one."""

from __future__ import annotations

import msgspec

from tidegate.config.model import Config
from tidegate.model.requests import Query
from tidegate.model.results import Page
from tidegate.model.statements import Statement
from tidegate.protocol.model import Info, RevisionPolicy, Settings, ToolResult
from tidegate.protocol.revisions import ALL
from tidegate.surfaces.api import OnRejectedCall, SurfaceTool
from tidegate.surfaces.core.errors import render_error
from tidegate.surfaces.surface import Primitives, Refusals, ServerProfile, Surface
from tidegate.surfaces.tool_context import Gate, ToolContext
from tidegate_ledger.settings import LedgerSettings


class NoArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class BalanceArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    account: str


async def _list_accounts(context: ToolContext, _: NoArgs) -> ToolResult:
    return await _query(context, "SELECT DISTINCT account FROM entries ORDER BY 1")


async def _balance(context: ToolContext, args: BalanceArgs, currency: str) -> ToolResult:
    if not currency:
        sql = "SELECT sum(cents) FROM entries WHERE account = ?"
        return await _query(context, sql, args.account)
    sql = "SELECT sum(cents), ? FROM entries WHERE account = ?"
    return await _query(context, sql, currency, args.account)


async def _query(context: ToolContext, sql: str, *values: str) -> ToolResult:
    page = await context.handle(Query(Statement(sql, values)), None, Page)
    return ToolResult(body=page.rows, structured=False)


def surface(
    gate: Gate, *, config: Config, on_rejected_call: OnRejectedCall | None = None
) -> Surface:
    currency = config.section(LedgerSettings).currency

    async def balance(context: ToolContext, args: BalanceArgs) -> ToolResult:
        return await _balance(context, args, currency)

    return Surface(
        gate,
        ServerProfile(
            name="ledger",
            info=Info("tidegate-ledger", "1"),
            settings=Settings(RevisionPolicy(ALL)),
            capabilities={"tools": {}},
        ),
        Primitives(
            (
                SurfaceTool("list_accounts", "List the accounts", NoArgs, _list_accounts),
                SurfaceTool("balance", "The balance of an account, in cents", BalanceArgs, balance),
            )
        ),
        Refusals(render_error),
        on_rejected_call=on_rejected_call,
    )
