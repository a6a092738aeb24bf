"""Which id comes back to a caller that is refused: of a request, short, and valid JSON."""

from __future__ import annotations

import json

import pytest

from tidegate.protocol.jsonrpc import BYTE_ORDER_MARK, MOST_ID_BYTES, id_of_request

IDS = ["0", "-1", "1.5", "1e3", "18446744073709551616", '""', '"a"', '"é🌊"', '"\\u00e9\\n\\"\\\\"']
NO_REQUESTS = {
    "nothing": b"",
    "no JSON": b'{"id":1,"method":"x"',
    "a notification": b'{"jsonrpc":"2.0","method":"x"}',
    "a response": b'{"jsonrpc":"2.0","id":1,"result":{}}',
    "a batch": b'[{"jsonrpc":"2.0","id":1,"method":"x"}]',
    "a method that is no text": b'{"id":1,"method":2}',
    "null": b'{"id":null,"method":"x"}',
    "an object": b'{"id":{"a":1},"method":"x"}',
    "a list": b'{"id":[1],"method":"x"}',
    "a truth": b'{"id":true,"method":"x"}',
    "an id with a line break": b'{"id":"a\nb","method":"x"}',
    "an id that is no UTF-8": b'{"id":"\xff","method":"x"}',
    "half a surrogate pair": b'{"id":"\\ud800","method":"x"}',
    "two numbers": b'{"id":1 2,"method":"x"}',
    "a long id": b'{"id":"' + b"x" * MOST_ID_BYTES + b'","method":"x"}',
    "a deep one": b'{"id":1,"method":"x","params":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "a deep id": b'{"method":"x","id":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
}


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("mark", [b"", BYTE_ORDER_MARK])
def test_the_id_of_a_request_comes_back_as_it_was_sent(id: str, mark: bytes) -> None:
    frame = f' {{"jsonrpc":"2.0","method":"x","params":{{"id":9}},"id": {id} }}'.encode()
    assert id_of_request(mark + frame) == id.encode()
    json.loads(id)


@pytest.mark.parametrize("name", NO_REQUESTS)
def test_what_is_no_request_has_no_id_to_answer(name: str) -> None:
    assert id_of_request(NO_REQUESTS[name]) is None
