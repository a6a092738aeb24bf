"""The address of the console that is told to people is one at which it is served."""

from __future__ import annotations

import pytest

from tidegate.edges.http.responses import HttpRefusal
from tidegate.products.console.request_checks import RequestChecks


@pytest.mark.parametrize(
    ("host", "tls", "origin", "address"),
    [
        ("127.0.0.1", False, None, "http://127.0.0.1:8765"),
        ("localhost", False, None, "http://127.0.0.1:8765"),
        ("::1", False, None, "http://[::1]:8765"),
        ("127.0.0.2", False, None, "http://127.0.0.2:8765"),
        ("::ffff:127.0.0.1", False, None, "http://[::ffff:127.0.0.1]:8765"),
        ("127.0.0.1", True, None, "https://127.0.0.1:8765"),
        ("127.0.0.1", False, "https://gate.example.com", "http://127.0.0.1:8765"),
        ("0.0.0.0", True, "https://gate.example.com/", "https://gate.example.com"),  # noqa: S104
        ("::", True, "https://gate.example.com", "https://gate.example.com"),
    ],
)
def test_the_address_is_one_where_it_is_served(
    host: str, tls: bool, origin: str | None, address: str
) -> None:
    checks = RequestChecks(host, 8765, tls=tls, origin=origin)
    assert checks.address == address
    checks.check_page({b"host": address.partition("://")[2].encode()})


def test_a_console_at_an_address_of_loopback_of_its_own_has_no_other_name() -> None:
    checks = RequestChecks("127.0.0.2", 8765, tls=False)
    for host in (b"127.0.0.1:8765", b"localhost:8765", b"127.0.0.3:8765", b"evil.example:8765"):
        with pytest.raises(HttpRefusal):
            checks.check_page({b"host": host})
