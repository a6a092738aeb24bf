"""Checks the names in an allowlist, because a misspelt name would grant nothing without a message.

Sources and tags are compared with the saved and configured sources, tables with the catalogs of
the sources in the list. If a source cannot be opened, a note reports it and the name is accepted: a
name that does not exist grants nothing.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

from tidegate.cli.local_actor import ask
from tidegate.cli.terminal import print_status
from tidegate.engines.registry import entry_of
from tidegate.errors import Code, TidegateError
from tidegate.identity.tokens import check_tables
from tidegate.model.actors import Actor, Scope
from tidegate.model.data_rules import admitted
from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.policy.allowlist import admits

if TYPE_CHECKING:
    from tidegate.app import App

MOST_OPENED = 20
"""The number of sources that are opened to find a table, as a token may be for a thousand."""
_AHEAD = "--allow-unknown accepts names that do not exist yet."


class Allowlist(NamedTuple):
    """The sources, tags and tables of a token; None means all of them."""

    sources: frozenset[str] | None
    tags: frozenset[str] | None
    tables: frozenset[str] | None

    def words(self) -> str:
        """For people: names first, then tags with a `#`, then the tables there."""
        tags = (f"#{tag}" for tag in sorted(self.tags or ()))
        places = ", ".join([*sorted(self.sources or ()), *tags]) or "no source"
        if self.sources is None and self.tags is None:
            places = "every source"
        if self.tables is None:
            return places
        return f"{places} (only {', '.join(sorted(self.tables)) or 'no table'})"


def given(arguments: argparse.Namespace) -> Allowlist:
    """The list that `--source`, `--tag` and `--table` make. Raises: TidegateError
    ARGUMENT_INVALID."""
    check_tables(arguments.table)
    return Allowlist(
        frozenset(arguments.source) or None,
        frozenset(getattr(arguments, "tag", ())) or None,
        frozenset(arguments.table) or None,
    )


async def refuse_unknown(app: App, tool: str, listed: Allowlist) -> None:
    """Raises: TidegateError SOURCE_UNKNOWN, TABLE_UNKNOWN or ARGUMENT_INVALID for the first unknown
    name, with the nearest known name."""
    sources = app.connections.sources()
    named = {source.name: source for source in sources}
    for name in sorted(listed.sources or ()):
        if name not in named:
            raise _unknown(Code.SOURCE_UNKNOWN, f"There is no source {name!r}", name, named)
    tags = {tag for source in sources for tag in source.tags}
    for tag in sorted(listed.tags or ()):
        if tag not in tags:
            raise _unknown(Code.ARGUMENT_INVALID, f"No source has the tag {tag!r}", tag, tags)
    caller = Actor("", "", Scope.READ_ONLY, listed.sources, tags=listed.tags)
    seen = [source for source in sources if admits(caller, source)]
    loose: set[str] = set()
    for entry in sorted(listed.tables or ()):
        where, colon, table = entry.partition(":")
        if not colon:
            loose.add(entry)
        elif where not in named:
            raise _unknown(Code.SOURCE_UNKNOWN, f"There is no source {where!r}", where, named)
        elif named[where] not in seen:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"`{entry}` is on a source that is not in the list.",
                hint=f"Add --source {where}, or leave the table out.",
            )
        else:
            await _find(app, tool, {table}, [named[where]])
    await _find(app, tool, loose, seen)


async def _find(app: App, tool: str, tables: Collection[str], sources: Iterable[Source]) -> None:
    """Look for each table in the sources until all are found."""
    missing, names, closed = set(tables), set[str](), list[str]()
    for number, source in enumerate(sources):
        if not missing:
            return
        if number >= MOST_OPENED:
            closed.append(f"only {MOST_OPENED} sources were searched")
            break
        try:
            catalog = await ask(app, tool, Browse("catalog"), source.name, Catalog)
        except TidegateError as error:
            closed.append(f"{source.name}: {error.message.rstrip('.')}")
            continue
        missing -= {table for table in missing if admitted((table,), catalog)}
        entry = entry_of(source)
        if entry is not None and entry.table_form:
            missing -= await _resources(app, tool, missing, source, catalog)
        names |= set(_spelled(catalog))
    for table in sorted(missing):
        if not closed:
            raise _unknown(Code.TABLE_UNKNOWN, f"There is no table `{table}`", table, names)
        print_status(f"note: cannot check that table {table} exists ({'; '.join(closed)})")


async def _resources(
    app: App, tool: str, tables: Collection[str], source: Source, catalog: Catalog
) -> set[str]:
    """Those of `tables` that name a provider, a service or a resource: the catalog of cloud
    providers has the names of services, and resources only of one that is asked for."""
    found: set[str] = set()
    for table in tables:
        path = table.removesuffix(".*")
        service, _, name = path.rpartition(".")
        if any(f"{each}.".startswith(f"{path}.") for each in catalog.schemas):
            found.add(table)
        elif name != "*" and service in catalog.schemas:
            request = Browse("catalog", schema=service)
            if admitted((path,), await ask(app, tool, request, source.name, Catalog)):
                found.add(table)
    return found


def _spelled(catalog: Catalog) -> Iterable[str]:
    """The tables as a list would name them."""
    for table in catalog.tables:
        at_home = table.schema in ("", catalog.default_schema)
        yield table.name if at_home else f"{table.schema}.{table.name}"


def _unknown(code: Code, message: str, name: str, known: Collection[str]) -> TidegateError:
    bare = name.rpartition(".")[2]
    same = [each for each in sorted(known) if each.rpartition(".")[2].lower() == bare.lower()]
    near = same or difflib.get_close_matches(name, known, 1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Known: {_some(known)}."
    return TidegateError(code, message, hint=f"{hint} {_AHEAD}")


def _some(known: Collection[str]) -> str:
    names = sorted(known)
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "") if names else "none"
