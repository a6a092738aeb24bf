"""Which of the gates on one state answers a browser, and the way there.

A page is served by what one process holds: results, files, the live stream, numbers of lines. With
a balancer before several gates each request may come to any of them. The first that answers a
browser gives it a cookie with the gate's id, and every other one sends its requests on: the same
request again (307), which the balancer brings to another gate. A gate that has ended is replaced by
the one that is asked next. The cookie opens nothing: who sends it has its session as before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http.router import HttpRequest, HttpResponse, HttpStream, cookie
from tidegate.products.console.gates import ServingGates
from tidegate.products.console.sign_in import PATH
from tidegate.store.calls import read_state

MOST_HOPS = 18
"""Browsers follow 20."""
MOST_BODY = 16 * 1024 * 1024
_HOPS = re.compile(r"(?:^|&)hops=(\d{1,2})(?=&|$)")
_GATE = re.compile(r"[0-9a-f]{16}")
AnswerT = TypeVar("AnswerT", bound=HttpResponse | HttpStream)


class HomeGate:
    """A gate among others. `instance` names the installation, and may read the state."""

    def __init__(self, gates: ServingGates, instance: Callable[[], str], *, secure: bool) -> None:
        self._gates = gates
        self._instance = instance
        self._secure = secure
        self._name = ""

    async def send_on(self, request: HttpRequest, *, begins: bool = False) -> HttpResponse | None:
        """What sends a request on to the gate that answers its browser; None if that is this one.
        `begins`: a page is loaded by it, which takes another gate if its own is not reached.

        Raises: HttpRefusal 421 if the balancer has not brought the request there, 413;
        TidegateError STATE_FAILED.
        """
        home = await self._home_of(request)
        if not await self._gates.serve(home):
            return None
        found = _HOPS.search(request.query_text)
        hops = int(found[1]) if found else 0
        if hops < MOST_HOPS:
            if request.method == "POST":
                await request.read(MOST_BODY)  # the whole of it comes again
            rest = without_hops(request).query_text
            query = f"{rest}&hops={hops + 1}" if rest else f"hops={hops + 1}"
            return HttpResponse(307, b"", [(b"location", f"?{query}".encode("latin-1"))])
        if begins:
            return None
        raise HttpRefusal(
            421,
            f"The gate {home} has this page, and the balancer has not brought the request there."
            " If that gate has ended, another one takes its place in a moment; if not, load the"
            " page again.",
            headers=[(b"retry-after", b"1")],
        )

    async def mark(self, request: HttpRequest, response: AnswerT) -> AnswerT:
        """The response with which this gate becomes the one that answers its browser."""
        if await self._home_of(request) == self._gates.own:
            return response
        header = cookie(self._name, self._gates.own, path=PATH, secure=self._secure)
        return response._replace(headers=[*response.headers, header])

    async def _home_of(self, request: HttpRequest) -> str:
        if not self._name:
            self._name = f"tidegate_{await read_state(self._instance)}_gate"
        found = request.cookies.get(self._name, "")
        return found if _GATE.fullmatch(found) else ""


def without_hops(request: HttpRequest) -> HttpRequest:
    """The request as the page has sent it."""
    if "hops=" not in request.query_text:
        return request
    pairs = request.query_text.split("&")
    return request._replace(
        query_text="&".join([pair for pair in pairs if not pair.startswith("hops=")])
    )
