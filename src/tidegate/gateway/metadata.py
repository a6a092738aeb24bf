"""Reads metadata, and shows of it what the caller may see."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from tidegate.engines.registry import language_of
from tidegate.errors import TABLE_LIST_RULE, Code, TidegateError, table_refused
from tidegate.gateway.call_traces import begin_statement, end_statement
from tidegate.gateway.context import CallContext
from tidegate.model.data_rules import DataRules, Show
from tidegate.model.decisions import Permit
from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog, Ddl, Description, Table
from tidegate.policy.visible_metadata import visible_metadata

_WHOLE = Browse("catalog")
_MOST_VISIBLE = 64


class VisibleCatalogs:
    """What callers may see of one catalog, by their rules and the schema that they are in."""

    def __init__(self, whole: Catalog) -> None:
        self.whole = whole
        self._kept: dict[tuple[DataRules, str | None], Catalog] = {}

    def find(self, rules: DataRules, schema: str | None) -> Catalog | None:
        """The one that was made for such callers, if it was."""
        return self._kept.get((rules, schema))

    def keep(self, rules: DataRules, schema: str | None, visible: Catalog) -> None:
        """Keep it for further calls, in the place of the one that was made first."""
        if len(self._kept) >= _MOST_VISIBLE:
            del self._kept[next(iter(self._kept))]
        self._kept[rules, schema] = visible


async def describe(ctx: CallContext, request: Browse) -> Description:
    """The metadata that `request` asks for, as the caller may see it, with masked columns marked.

    Raises: TidegateError POLICY_TABLE, and what the engine raises.
    """
    rules = ctx.data_rules
    if request == _WHOLE and rules is not None:
        return await _visible_catalog(ctx, rules)
    described = await _visible(ctx, request)
    if rules is None or not isinstance(described, Catalog):
        return described
    return _with_masks(ctx, described, rules, await read_catalog(ctx))


async def _visible_catalog(ctx: CallContext, rules: DataRules) -> Catalog:
    """The catalog as callers with these rules see it, made once of each catalog that is read."""
    catalog = await read_catalog(ctx)
    kept = ctx.connection.visible
    if kept is None or kept.whole is not catalog:
        kept = ctx.connection.visible = VisibleCatalogs(catalog)
    schema = ctx.connection.target_of(ctx.call.actor, ctx.call.surface).schema
    visible = kept.find(rules, schema)
    if visible is None:
        visible = visible_metadata(catalog, rules, schema, catalog)
        if not isinstance(visible, Catalog):
            raise TypeError(type(visible).__name__)
        visible = _with_masks(ctx, visible, rules, catalog)
        kept.keep(rules, schema, visible)
    return visible


def _with_masks(ctx: CallContext, visible: Catalog, rules: DataRules, whole: Catalog) -> Catalog:
    """The visible catalog with the masked columns marked."""
    if not rules.masks:
        return visible
    masks = language_of(ctx.source).masked_columns(whole, ctx.source, rules)
    tables = [_marked(table, masks.get((table.schema, table.name))) for table in visible.tables]
    return structs.replace(visible, tables=tuple(tables))


def _marked(table: Table, masks: Mapping[str, Show] | None) -> Table:
    if not masks:
        return table
    columns = [structs.replace(each, masked=masks.get(each.name)) for each in table.columns]
    return structs.replace(table, columns=tuple(columns))


async def _visible(ctx: CallContext, request: Browse) -> Description:
    rules = ctx.data_rules
    schema = ctx.connection.target_of(ctx.call.actor, ctx.call.surface).schema
    if rules is None or (rules.only is None and request.aspect not in ("catalog", "ddl")):
        return visible_metadata(await _read(ctx, request), rules, schema)
    if rules.only is None:
        catalog = await read_catalog(ctx)
        if request.aspect == "ddl":
            definition = _visible_definition(ctx, request, rules, catalog)
            if definition is not None:
                return definition
        return visible_metadata(await _read(ctx, request), rules, schema, catalog)
    check_home_database(ctx, rules, request.database)
    catalog = await read_catalog(ctx)
    if request.table is not None or request.aspect == "ddl":
        visible = visible_metadata(catalog, rules, schema)
        place = (request.schema or catalog.default_schema, request.table)
        tables = visible.tables if isinstance(visible, Catalog) else ()
        table = next((each for each in tables if (each.schema, each.name) == place), None)
        if table is None:
            raise table_refused(request.table or "")
        if request.aspect == "ddl":
            text = language_of(ctx.source).ddl(table, ctx.source)
            if text is None:
                raise table_refused(request.table or "")
            return Ddl(text)
    return visible_metadata(await _read(ctx, request), rules, schema, catalog)


def _visible_definition(
    ctx: CallContext, request: Browse, rules: DataRules, catalog: Catalog
) -> Ddl | None:
    """The definition of a table whose own would tell what is hidden: a default of a masked column,
    or the next number of its rows. None for other tables."""
    visible = visible_metadata(catalog, rules, None, catalog)
    if not isinstance(visible, Catalog) or request.table is None:
        return None
    filtered = {path.rpartition(".")[2].lower() for path, _ in rules.filters}
    wanted = request.table.lower()
    for whole, shown in zip(catalog.tables, visible.tables, strict=True):
        if whole.name.lower() != wanted or request.schema not in (None, whole.schema):
            continue
        if whole.columns != shown.columns or wanted in filtered:
            text = language_of(ctx.source).ddl(shown, ctx.source)
            return None if text is None or "view" in whole.kind else Ddl(text)
    return None


async def read_catalog(ctx: CallContext, *, checked_later: bool = False) -> Catalog:
    """The whole catalog of the database in which the call runs. Where the engine checks its version
    when the statement runs, the one that is kept need not be checked before.

    Raises: TidegateError, what the engine raises.
    """
    kept = ctx.connection.catalog
    if checked_later and kept is not None:
        return kept
    catalog = await _read(ctx, Browse("catalog", database=ctx.request.database))
    if not isinstance(catalog, Catalog):
        raise TidegateError(Code.INTERNAL, f"The engine {ctx.source.engine!r} gave no catalog")
    return catalog


def check_home_database(ctx: CallContext, rules: DataRules, database: str | None) -> None:
    """Raises: TidegateError POLICY_TABLE if the caller may use listed tables only, and `database`
    is not the one that its list is about."""
    if rules.only is not None and database not in (None, ctx.engine.status.database):
        raise TidegateError(
            Code.POLICY_TABLE,
            "This token may use listed tables of the source's own database only",
            hint="Leave out the name of the database.",
            details={"rule": TABLE_LIST_RULE},
        )


async def _read(ctx: CallContext, request: Browse) -> Description:
    """Ask the engine. The catalog of the source's own database is kept until it changes. A source
    that lists its tables schema by schema is asked for those of the schema each time."""
    if request.aspect == "catalog" and request.schema is not None and request.table is None:
        whole = await _read(ctx, structs.replace(request, schema=None))
        if not isinstance(whole, Catalog) or request.schema not in whole.schemas:
            return whole
        if any(table.schema == request.schema for table in whole.tables):
            return whole
        return await _ask(ctx, ctx.permit(request))
    permit = ctx.permit(request)
    if request.aspect != "catalog" or request.database is not None or request.table is not None:
        return await _ask(ctx, permit)
    connection = ctx.connection
    kept = connection.catalog
    if kept is not None:
        version = await connection.schema_check.ask(ctx.engine.schema_version)
        if kept.version == version:
            return kept
    description = await _ask(ctx, permit)
    connection.catalog = description if isinstance(description, Catalog) else None
    return description


async def _ask(ctx: CallContext, permit: Permit) -> Description:
    if ctx.trace is None or ctx.statement_trace is not None:
        description = await ctx.engine.describe(permit, ctx.call.cancellation)
    else:
        begin_statement(ctx, Browse.kind)
        try:
            description = await ctx.engine.describe(permit, ctx.call.cancellation)
        except BaseException as error:
            end_statement(ctx, error)
            raise
        end_statement(ctx)
    if isinstance(description, Catalog):
        return structs.replace(description, dialect=ctx.source.dialect)
    return description
