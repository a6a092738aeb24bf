"""The HTTP conventions of the console: what every response of it says to the browser."""

from __future__ import annotations

from tidegate.edges.http.endpoint import JsonConventions
from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http.sse import HeaderList
from tidegate.errors import Code, TidegateError
from tidegate.protocol.transport import Answer

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
"""The Content-Security-Policy: nothing but the console's own files, in no frame."""

PROTECTION: HeaderList = [
    (b"content-security-policy", POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
DATA: HeaderList = [*PROTECTION, (b"cache-control", b"no-store")]
"""The headers of the page's files, and those of what holds data."""


_CONFLICTS = frozenset({Code.UNDO_CONFLICT, Code.UNDO_UNAVAILABLE})


class ConsoleConventions(JsonConventions):
    """JSON refusals, no page of another origin, and the protection of the browser."""

    shares = False

    def refusal_of(self, error: TidegateError) -> HttpRefusal:
        refusal = super().refusal_of(error)
        if refusal.status == 200:  # over MCP, where errors of statements are answers
            refusal.status = 409 if error.code in _CONFLICTS else 400
        return refusal

    def refuse(self, refusal: HttpRefusal) -> Answer:
        answer = super().refuse(refusal)
        return Answer(answer.frame, answer.status, [*answer.headers, *DATA])
