"""Fetching keys: over https or on loopback, no redirect, no flood, from a real HTTP server."""

from http.server import BaseHTTPRequestHandler

import pytest

from support.thread_server import thread_http_server
from tidegate.config.oauth import OAuthSettings
from tidegate.errors import TidegateError
from tidegate.identity.jwks import MOST_BYTES, KeyFetcher, Keys

visited: list[str] = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        visited.append(self.path)
        answers = {
            "/keys": (200, b'{"keys": []}'),
            "/text": (200, b"keys"),
            "/large": (200, b" " * (MOST_BYTES + 1)),
            "/deep": (200, b"[" * 200_000),
            "/missing": (404, b"{}"),
            "/redirect": (302, b"{}"),
        }
        status, body = answers[self.path]
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/keys")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given):
        pass


@pytest.fixture(scope="module")
def url():
    with thread_http_server(Handler) as port:
        yield f"http://127.0.0.1:{port}"


def test_a_key_set_is_fetched(url):
    assert KeyFetcher()(url + "/keys") == {"keys": []}


@pytest.mark.parametrize("path", ["/text", "/large", "/deep", "/missing", "/redirect"])
def test_an_answer_that_is_no_key_set_of_a_bearable_size_is_refused(url, path):
    visited.clear()
    with pytest.raises((OSError, ValueError)) as caught:
        KeyFetcher()(url + path)
    assert not isinstance(caught.value, TidegateError)
    getattr(caught.value, "close", int)()
    assert visited == [path]


@pytest.mark.parametrize(
    "address", ["http://192.0.2.1/keys", "file:///etc/passwd", "ftp://localhost/keys", "/keys"]
)
def test_an_address_that_others_could_answer_for_is_not_asked(address):
    with pytest.raises(TidegateError):
        KeyFetcher()(address)


@pytest.mark.parametrize("operations", [None, 1, "verify", {}, ["sign"]])
async def test_a_key_whose_operations_do_not_include_to_verify_is_passed_over(operations):
    odd = {"kty": "RSA", "kid": "k", "key_ops": operations}
    sound = {"kty": "RSA", "kid": "k", "n": "x", "e": "AQAB"}
    settings = OAuthSettings("https://a.example", "https://b.example/mcp", {"db": "readOnly"})
    keys = Keys(settings, lambda url: {"issuer": settings.issuer, "jwks_uri": "https://a.example/k",
                                       "keys": [odd, sound]})  # fmt: skip
    assert await keys.find("k", "RS256") == sound
