"""Which names and pages reach a server on loopback."""

from __future__ import annotations

import pytest

from tidegate.edges.http.origin_checks import OriginChecks
from tidegate.edges.http.responses import HttpRefusal


def admits(checks: OriginChecks, host: str) -> bool:
    try:
        checks.check_host(host.encode())
    except HttpRefusal:
        return False
    return True


@pytest.mark.parametrize("bound", ["127.0.0.2", "127.3.4.5"])
def test_a_server_at_another_address_of_loopback_is_reached_by_that(bound: str) -> None:
    checks = OriginChecks(bound=bound, port=8080)
    assert admits(checks, f"{bound}:8080")
    assert not admits(checks, f"{bound}:8081")
    assert checks.admits_origin(f"http://{bound}:8080".encode())


@pytest.mark.parametrize("bound", ["127.0.0.1", "127.0.0.2", "0.0.0.0", "10.0.0.5"])  # noqa: S104
@pytest.mark.parametrize("name", ["127.0.0.3", "[::ffff:127.0.0.1]", "evil.example", "127.1"])
def test_an_address_of_loopback_where_another_server_may_be_is_no_name_of_this_one(
    bound: str, name: str
) -> None:
    """Anyone on the machine may serve a page at one of the others."""
    checks = OriginChecks(bound=bound, port=8080)
    assert not admits(checks, f"{name}:8080")
    assert not checks.admits_origin(f"http://{name}:8080".encode())


def test_a_page_at_the_public_address_of_a_server_is_no_page_of_this_machine() -> None:
    checks = OriginChecks(bound="10.0.0.5", port=8080)
    assert admits(checks, "10.0.0.5:8080")
    assert not checks.admits_origin(b"http://10.0.0.5:8080")
