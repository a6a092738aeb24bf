"""The HTTP conventions of the console: what every response of it says to the browser."""

from __future__ import annotations

from tidegate.edges.http.endpoint import JsonConventions
from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http.sse import HeaderList
from tidegate.errors import Code, TidegateError
from tidegate.products.console.advice import NO_ROLE, advice
from tidegate.protocol.transport import Answer

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types tidegate-worker"
)
"""The Content-Security-Policy: nothing but the console's own files, in no frame. A picture may be
one that the page has drawn itself (`blob:`), and `tidegate-worker` admits the address of the one
worker (decision 109)."""

PROTECTION: HeaderList = [
    (b"content-security-policy", POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
DATA: HeaderList = [*PROTECTION, (b"cache-control", b"no-store")]
"""The headers of the page's files, and those of what holds data."""


_STATUSES = {
    Code.ROWS_CONFLICT: 409,
    Code.UNDO_CONFLICT: 409,
    Code.UNDO_UNAVAILABLE: 409,
    Code.TAB_UNKNOWN: 404,
    Code.TABLE_UNKNOWN: 404,
    Code.RESULT_GONE: 410,
}
"""The HTTP status of errors that are answers over MCP, where it is not 400."""


class ConsoleConventions(JsonConventions):
    """JSON refusals, no page of another origin, and the protection of the browser."""

    shares = False

    def refusal_of(self, error: TidegateError) -> HttpRefusal:
        shown = error.with_hint(advice(error))
        if error.code is Code.POLICY_SOURCE:
            shown.message = NO_ROLE  # a person has no token; the same whether the source exists
        refusal = super().refusal_of(shown)
        if refusal.status == 200:  # over MCP, where errors of statements are answers
            refusal.status = _STATUSES.get(error.code, 400)
        return refusal

    def refuse(self, refusal: HttpRefusal) -> Answer:
        answer = super().refuse(refusal)
        return Answer(answer.frame, answer.status, [*answer.headers, *DATA])
