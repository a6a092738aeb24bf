"""HTTP conventions of documents that know JSON over POST and nothing else.

Refusals are `{"error": TEXT}`, and a caller without a valid token gets the one word
`Unauthorized`. No Content-Type is demanded: clients of such documents are shell commands and
`fetch`, which often send another one or none. Errors of the protocol come with status 200.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from tidegate.edges.http.endpoint import HttpConventions
from tidegate.edges.http.responses import HttpRefusal
from tidegate.errors import TidegateError
from tidegate.model.actors import Actor
from tidegate.protocol.transport import Answer


class PlainJsonConventions(HttpConventions):
    """POST alone, JSON bodies, and an event stream for those who ask for one by name."""

    methods = frozenset({"POST"})
    streams_json = True
    names_requests = False

    @property
    def finishes(self) -> bool:
        return True

    def takes_events(self, headers: Mapping[bytes, bytes]) -> bool:
        return b"text/event-stream" in headers.get(b"accept", b"")

    def refusal_of(self, error: TidegateError) -> HttpRefusal:
        refusal = super().refusal_of(error)
        if refusal.status == HTTPStatus.UNAUTHORIZED:
            refusal.message = HTTPStatus.UNAUTHORIZED.phrase
        return refusal

    def refuse(self, refusal: HttpRefusal) -> Answer:
        body = msgspec.json.encode({"error": refusal.message})
        return Answer(body, refusal.status, refusal.headers)

    def finish(self, answer: Answer, actor: Actor) -> Answer:
        return Answer(answer.frame, 200, answer.headers)
