"""Finds the source that a connection phrase means, or opens a temporary one where that is allowed.

A phrase that reaches the server and database of a source is that source, with its account, its
masks and its filters; the login of the phrase is not used then. Any other is opened as a temporary
source, by the operator's list of hosts.
"""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import parse_qsl

from tidegate.engines.common.url import parse_server_url
from tidegate.errors import Code, TidegateError
from tidegate.gateway.database_identities import host_of, place_of
from tidegate.model.requests import OpenTemporary
from tidegate.model.sources import Source
from tidegate.sql.dialects import find
from tidegate.surfaces.tool_context import ToolContext

_DIALECT = find("postgres")
_NAME_KEY = secrets.token_bytes(32)
_HARMLESS = frozenset({"sslmode", "connect_timeout"})


async def source_of(context: ToolContext, target: str, *, is_url: bool) -> str:
    """The name of the source that a phrase means. Raises: TidegateError."""
    entries = await context.sources()
    if not is_url:
        names = [entry.source.name for entry in entries]
        if target in names:
            return target
        raise TidegateError(
            Code.SOURCE_UNKNOWN,
            f"There is no source {target[:64]!r}",
            hint=f"Sources: {', '.join(names[:10])}." if names else "Ask the operator to add one.",
        )
    _check(target)
    # A temporary one has the login of its own phrase.
    saved = [entry.source for entry in entries if not entry.temporary]
    sources = [source for source in saved if find(source.dialect) is _DIALECT]
    known = frozenset(host_of(source.url) for source in sources)
    wanted = await place_of(target, may_look_up=known)
    for source in sources:
        if wanted.is_same(await place_of(source.url)):
            return source.name
    return await _open(context, target)


async def place_note(context: ToolContext, name: str) -> str:
    """Where a phrase with a URL ran, and by which account: of a saved source not by that of the
    URL."""
    for entry in await context.sources():
        if entry.source.name == name:
            if entry.temporary:
                return f"Ran on the temporary source {name}, with the login of the address."
            return (
                f"Ran on the source {name}, whose database the address is, with the account and"
                " the rules of that source."
            )
    return f"Ran on the source {name}."


def _check(url: str) -> None:
    """Raises: TidegateError SOURCE_URL for a URL with anything that could lead elsewhere."""
    server = parse_server_url(url)
    names = [name for name, _ in parse_qsl(server.query, keep_blank_values=True)]
    unfit = [name for name in names if name not in _HARMLESS]
    if unfit or "$" in url or len(server.places) != 1 or not server.places[0].host:
        what = f"the option {unfit[0][:40]!r}" if unfit else "no host, or several"
        raise TidegateError(
            Code.SOURCE_URL,
            f"The URL in the query has {what}, which is not taken from a query",
            hint="Write postgres://user@host/database, or name a source.",
        )


async def _open(context: ToolContext, url: str) -> str:
    """A temporary source, opened now unless this caller has it already. Its login is that of the
    URL alone."""
    # With a key: the name must not give away a digest of the URL's password.
    name = f"at-{hmac.digest(_NAME_KEY, url.encode(), 'sha256').hex()[:12]}"
    if all(entry.source.name != name for entry in await context.sources()):
        await context.handle(OpenTemporary(name, url), None, Source)
    return name
