"""The rounds of one stateless call that asks its client: `input_required`, and the retry.

Source: specification 2026-07-28, `basic/patterns/mrtr`.
"""

from __future__ import annotations

import msgspec

from tidegate.protocol import headers, render
from tidegate.protocol import params as p
from tidegate.protocol.jsonrpc import Message, encode
from tidegate.protocol.request import InputRequired, McpRequest
from tidegate.protocol.request_state import RequestState, bind


class MultiRoundTrip:
    """Issues and opens the sealed states of calls that ask their client."""

    def __init__(self, seal: RequestState) -> None:
        self._seal = seal

    async def take_answers(self, message: Message, params: p.Answered, request: McpRequest) -> None:
        """Open the state of a retry.

        Raises: RpcError INVALID_PARAMS if the state is not valid for this call.
        """
        given = params.input_responses or {}
        state = await self._seal.open(
            params.request_state or "", _binding(message, params, request)
        )
        fresh = {key: value for key, value in given.items() if key in state.asked}
        request.answers = {**state.answers, **fresh}

    async def require(
        self,
        message: Message,
        params: p.Params,
        request: McpRequest,
        required: InputRequired,
        server_meta: bytes,
    ) -> bytes:
        """The `InputRequiredResult` that asks for what the handler lacks."""
        state = await self._seal.seal(
            _binding(message, params, request), tuple(required.asks), request.answers
        )
        return encode(
            {
                "resultType": "input_required",
                "inputRequests": render.input_requests(required.asks),
                "requestState": state,
                "_meta": msgspec.Raw(server_meta),
            }
        )


def _binding(message: Message, params: p.Params, request: McpRequest) -> bytes:
    method = message.method or ""
    name = getattr(params, headers.NAMED.get(method, ""), "")
    given = params.fields if isinstance(params, p.BareParams) else None
    return bind(request.actor.id, method, name, getattr(params, "arguments", given))
