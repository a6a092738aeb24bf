"""The client's address behind proxies: only what trusted proxies wrote counts."""

from __future__ import annotations

import pytest

from tidegate.config.model import Config
from tidegate.edges.http.forwarded import MOST_HOPS, TrustedProxies
from tidegate.errors import Code, TidegateError

PROXIES = TrustedProxies(["10.0.0.0/24", "127.0.0.1", "fd00:7::/64"])


def plain(*values: str, peer: str = "10.0.0.5") -> str:
    pairs = [(b"x-forwarded-for", value.encode("latin-1")) for value in values]
    return PROXIES.client_address(peer, pairs)


def rfc7239(*values: str, peer: str = "10.0.0.5") -> str:
    pairs = [(b"forwarded", value.encode("latin-1")) for value in values]
    return PROXIES.client_address(peer, pairs)


@pytest.mark.parametrize(
    ("value", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        (" 203.0.113.9\t", "203.0.113.9"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("2001:db8::1", "2001:db8::1"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9, 10.0.0.7", "203.0.113.9"),
        ("203.0.113.9, fd00:7::2, 10.0.0.7", "203.0.113.9"),
        ('"garbage, 203.0.113.9', "203.0.113.9"),
        ("10.0.0.8, 10.0.0.7", "10.0.0.8"),
    ],
)
def test_the_rightmost_hop_that_is_no_trusted_proxy_is_the_client(value: str, client: str) -> None:
    assert plain(value) == client


@pytest.mark.parametrize(
    ("value", "client"),
    [
        ("for=203.0.113.9", "203.0.113.9"),
        ("For=203.0.113.9;proto=https;by=10.0.0.5", "203.0.113.9"),
        ('proto=https ; for="203.0.113.9:4711"', "203.0.113.9"),
        ('for="[2001:db8::1]"', "2001:db8::1"),
        ('for="[2001:db8::1]:4711";host="gate.example.com:443"', "2001:db8::1"),
        ("for=198.51.100.1, for=203.0.113.9", "203.0.113.9"),
        ("for=203.0.113.9, for=10.0.0.7", "203.0.113.9"),
        ('for="198.51.100.1, for=203.0.113.9', "203.0.113.9"),
        ('for=198.51.100.1;by=", for=203.0.113.9;host="a"', "203.0.113.9"),
    ],
)
def test_forwarded_is_read_as_rfc_7239_writes_it(value: str, client: str) -> None:
    assert rfc7239(value) == client


@pytest.mark.parametrize(
    "value",
    [
        "", ",", "unknown", "_hidden", "localhost", "203.0.113", "203.0.113.999", "0xcb007109",
        "203.0.113.9 198.51.100.1", "203.0.113.9:port", "203.0.113.9:", "[2001:db8::1",
        "fe80::1%eth0", "\xff\xfe", "1" * 5_000, "198.51.100.1,", "198.51.100.1, unknown",
    ],
)  # fmt: skip
def test_a_hop_that_is_no_address_leaves_the_last_known_proxy(value: str) -> None:
    assert plain(value) == "10.0.0.5"
    assert plain(f"{value}, 10.0.0.7") == "10.0.0.7"
    assert rfc7239(f"for={value}" if value else "") == "10.0.0.5"


@pytest.mark.parametrize(
    "value",
    [
        "203.0.113.9", "for", "for=", "for=203.0.113.9;for=198.51.100.1", "by=203.0.113.9",
        "for=unknown", "for=_x1", 'for="203.0.113.9', "for=203.0.113.9;", 'for="\\203.0.113.9"',
        "for=[2001:db8::1]", "for = 203.0.113.9",
    ],
)  # fmt: skip
def test_an_element_that_is_no_forwarded_element_leaves_the_proxy(value: str) -> None:
    assert rfc7239(value) == "10.0.0.5"


def test_lines_of_one_header_are_read_as_one_list() -> None:
    assert plain("198.51.100.1", "203.0.113.9", "10.0.0.7") == "203.0.113.9"
    assert rfc7239("for=198.51.100.1", "for=203.0.113.9") == "203.0.113.9"


@pytest.mark.parametrize("peer", ["203.0.113.1", "10.0.1.5", "2001:db8::7", "", "not an address"])
def test_headers_of_a_peer_that_is_not_trusted_change_nothing(peer: str) -> None:
    assert plain("198.51.100.1", peer=peer) == peer
    assert rfc7239("for=198.51.100.1", peer=peer) == peer


def test_without_trusted_proxies_no_header_counts() -> None:
    pairs = [(b"x-forwarded-for", b"198.51.100.1"), (b"forwarded", b"for=198.51.100.1")]
    assert TrustedProxies().client_address("127.0.0.1", pairs) == "127.0.0.1"


def test_a_trusted_proxy_may_connect_by_an_ipv4_address_written_as_ipv6() -> None:
    assert plain("203.0.113.9", peer="::ffff:10.0.0.5") == "203.0.113.9"


def test_headers_that_name_different_clients_do_not_count() -> None:
    def both(one: bytes, other: bytes) -> str:
        pairs = [(b"x-forwarded-for", one), (b"forwarded", other)]
        return PROXIES.client_address("10.0.0.5", pairs)

    assert both(b"203.0.113.9", b"for=203.0.113.9") == "203.0.113.9"
    assert both(b"203.0.113.9", b"for=198.51.100.1") == "10.0.0.5"
    assert both(b"203.0.113.9", b"for=unknown") == "10.0.0.5"


def test_a_client_elsewhere_cannot_take_an_address_of_this_machine() -> None:
    assert plain("127.0.0.1") == "10.0.0.5"
    assert plain("127.0.0.1, 10.0.0.7") == "10.0.0.7"
    assert plain("127.0.0.1", peer="127.0.0.1") == "127.0.0.1"
    assert plain("127.0.0.1, 10.0.0.7", peer="127.0.0.1") == "10.0.0.7"
    assert plain("::1, 203.0.113.9", peer="127.0.0.1") == "203.0.113.9"


def test_a_client_elsewhere_cannot_take_the_address_at_which_this_machine_listens() -> None:
    def behind(peer: str, *clients: str, listens_at: str = "192.0.2.7") -> str:
        proxies = TrustedProxies(["10.0.0.0/24", "192.0.2.7"], listens_at=listens_at)
        return proxies.client_address(peer, [(b"x-forwarded-for", ", ".join(clients).encode())])

    assert behind("10.0.0.5", "192.0.2.7") == "10.0.0.5"
    assert behind("10.0.0.5", "192.0.2.7", "10.0.0.7") == "10.0.0.7"
    assert behind("192.0.2.7", "192.0.2.7") == "192.0.2.7"
    assert behind("10.0.0.5", "192.0.2.7", listens_at="192.0.2.8") == "192.0.2.7"


def test_so_many_hops_are_read_and_no_more() -> None:
    assert plain(",".join(["203.0.113.9"] + ["10.0.0.7"] * (MOST_HOPS - 1))) == "203.0.113.9"
    assert plain(",".join(["203.0.113.9"] + ["10.0.0.7"] * MOST_HOPS)) == "10.0.0.7"
    assert plain("203.0.113.9", *["10.0.0.7"] * MOST_HOPS) == "10.0.0.7"


@pytest.mark.parametrize("wrong", ["", "proxy", "10.0.0.5/24", "10.0.0.0/33", "0.0.0.0/0", "::/0"])
def test_what_is_no_address_of_proxies_is_refused_in_the_settings(wrong: str) -> None:
    with pytest.raises(TidegateError) as caught:
        Config(trusted_proxies=("10.0.0.5", wrong))
    assert caught.value.code is Code.CONFIG_INVALID
    assert "trusted_proxies" in caught.value.message
