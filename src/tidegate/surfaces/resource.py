"""A resource of a surface, or a family of them, given as data."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.protocol.model import Resource, ResourceTemplate
from tidegate.surfaces.api import Completer
from tidegate.surfaces.tool_context import ToolContext


class SurfaceResource(msgspec.Struct, frozen=True):
    """A resource, or a family of them if `uri` has `{variables}`; `read` returns JSON.

    `read` gets the tool context and the values of the variables. A variable matches one path
    segment. `completers` complete variables of a template, by name. One that is not `announced` is
    read and not listed: the surface lists members of the family for each caller.
    """

    uri: str
    name: str
    read: Callable[[ToolContext, Mapping[str, str]], Awaitable[bytes]]
    title: str | None = None
    description: str | None = None
    mime_type: str = "application/json"
    completers: Mapping[str, Completer] = {}
    announced: bool = True

    @property
    def templated(self) -> bool:
        return "{" in self.uri

    def listed(self) -> Resource:
        return Resource(
            uri=self.uri,
            name=self.name,
            title=self.title,
            description=self.description,
            mime_type=self.mime_type,
        )

    def listed_template(self) -> ResourceTemplate:
        return ResourceTemplate(
            uri_template=self.uri,
            name=self.name,
            title=self.title,
            description=self.description,
            mime_type=self.mime_type,
        )

    def matches(self, uri: str) -> bool:
        """Whether the URI is this resource, or one of this family."""
        return self._match(uri) is not None

    def variables(self, uri: str) -> dict[str, str]:
        """The values of the variables in a URI that matches.

        `{?a,b}` at the end of a template matches a query (RFC 6570); of its parameters those
        that the URI has are among the values. Raises: TidegateError ARGUMENT_INVALID for others.
        """
        match = self._match(uri)
        values = {} if match is None else match.groupdict()
        _, _, named = self.uri.partition("{?")
        if named:
            values |= _parameters(uri.partition("?")[2], named.rstrip("}").split(","))
        return values

    def _match(self, uri: str) -> re.Match[str] | None:
        path, _, named = self.uri.partition("{?")
        pieces = re.split(r"\{(\w+)\}", path)
        for place, piece in enumerate(pieces):
            pieces[place] = f"(?P<{piece}>[^/?#]+)" if place % 2 else re.escape(piece)
        return re.fullmatch("".join(pieces), uri.partition("?")[0] if named else uri)


def _parameters(query: str, known: Sequence[str]) -> dict[str, str]:
    """The parameters of a URI's query. Raises: TidegateError ARGUMENT_INVALID for unknown ones."""
    from urllib.parse import parse_qsl  # only such resources need it

    values = dict(parse_qsl(query, keep_blank_values=True))
    for name in values:
        if name not in known:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The resource has no parameter {name[:40]!r}",
                hint=f"Parameters: {', '.join(known)}.",
            )
    return values
