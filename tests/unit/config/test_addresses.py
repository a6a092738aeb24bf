"""HTTP URLs: one reader, and everything that takes a URL refuses the same ones."""

from __future__ import annotations

import argparse

import pytest

from tidegate.cli.commands import install, pair
from tidegate.config.addresses import (
    is_loopback_address,
    is_public_address,
    is_this_machine,
    may_hold_databases,
    parse_http_url,
)
from tidegate.config.model import Config
from tidegate.config.oauth import OAuthSettings
from tidegate.edges.http.www_authenticate import challenge_of
from tidegate.errors import Code, TidegateError
from tidegate.identity.jwks import KeyFetcher, metadata_urls

UNREADABLE = (
    "", "http", "http:", "http://", "http:///mcp", "http://:80/", "//host/mcp", "ftp://host/mcp",
    "http://host:0/", "http://host:65536/", "http://host:999999/", "http://host:/", "http://host:x/",
    "http://host:-1/", "http://host:+80/", "http://host: 80/", "http://host:\u0663/",
    "http://::1/", "http://[::1/", "http://[::g]/", "http://[1:2]/", "http://[::1%25eth0]/",
    "http://[::1]x/", "http://ho%73t/", "http://ho st/", "http://host\\@evil/", "http://host/%",
    "http://host/%zz", "http://host/a b", "http://host/\n", "http://host/\"", "http://h\u00f6st/",
    "http://host/\u00f6", "http://user@evil@host/", "http://user:p@ss@host/", "http://a..b@/",
    "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://0x7f.1/",
    "http://127.0.0.1./", "http://1.2.3.4.5/", "http://256.1.1.1/", "http://host.0x/", "http://a..b/",
    f"http://{'a' * 64}.example/", f"http://{'a.' * 130}example/",
    "http://-host/", " http://host/", "http://host/ ", "http://host#\x00", "http://host\t/",
)  # fmt: skip
NOT_PLAIN = (
    "https://user@host/mcp", "https://user:password@host/mcp", "https://@host/mcp",
    "https://host/mcp?a=b", "https://host/mcp#part", "https://host?a=b", "https://host#part",
)  # fmt: skip


def oauth(issuer: str) -> OAuthSettings:
    return OAuthSettings(issuer, "https://db.example/mcp", {"db": "readOnly"})


@pytest.mark.parametrize("url", UNREADABLE)
def test_what_is_no_http_url_is_refused_by_everything_that_takes_one(url: str) -> None:
    with pytest.raises(ValueError, match=r"HTTP URL|IPv6|Expected|Only hex|At least|Exactly|colon"):
        parse_http_url(url)
    with pytest.raises(TidegateError) as caught:
        oauth(url)
    assert caught.value.code is Code.CONFIG_INVALID
    with pytest.raises(TidegateError) as caught:
        KeyFetcher()(url)
    assert caught.value.code is Code.CONFIG_INVALID
    with pytest.raises(TidegateError) as caught:
        pair.run(argparse.Namespace(action="ask", url=url, expires=None, name="n"))
    assert caught.value.code is Code.ARGUMENT_INVALID
    with pytest.raises(TidegateError) as caught:
        install.check_address(url, None)
    assert caught.value.code in (Code.CONFIG_INVALID, Code.ARGUMENT_INVALID)


@pytest.mark.parametrize("url", NOT_PLAIN)
def test_a_login_a_query_and_a_fragment_are_refused_where_a_url_is_trusted(url: str) -> None:
    with pytest.raises(TidegateError):
        oauth(url)
    with pytest.raises(TidegateError):
        KeyFetcher()(url)
    with pytest.raises(TidegateError):
        install.check_address(url, None)


@pytest.mark.parametrize(
    ("url", "host", "port", "origin", "path"),
    [
        ("http://127.0.0.1:7878", "127.0.0.1", 7878, "http://127.0.0.1:7878", ""),
        ("HTTPS://Db.Example/mcp", "db.example", None, "https://Db.Example", "/mcp"),
        ("http://[::1]:80/mcp", "::1", 80, "http://[::1]:80", "/mcp"),
        ("http://[0:0:0:0:0:0:0:1]/", "::1", None, "http://[0:0:0:0:0:0:0:1]", "/"),
        ("https://host.:1/", "host.", 1, "https://host.:1", "/"),
        ("https://host:65535//a/%2e%2E/@b;c", "host", 65535, "https://host:65535",
         "//a/%2e%2E/@b;c"),
        ("https://user:a%40b@my_host/?x=/?y#z?", "my_host", None, "https://my_host", "/"),
    ],
)  # fmt: skip
def test_the_parts_of_a_url_are_read(
    url: str, host: str, port: int | None, origin: str, path: str
) -> None:
    parts = parse_http_url(url)
    assert (parts.host, parts.port, parts.origin, parts.path) == (host, port, origin, path)


def test_a_login_query_and_fragment_are_parts_of_their_own() -> None:
    parts = parse_http_url("https://user:a%40b@host/?x=/?y#z?")
    assert (parts.login, parts.query, parts.fragment) == ("user:a%40b", "x=/?y", "z?")
    assert not parts.is_plain and parts.is_private
    assert parts.tcp_port == 443 and parse_http_url("http://[::1]/").tcp_port == 80


def test_where_an_issuer_publishes_its_keys_follows_from_its_url() -> None:
    assert metadata_urls("https://[::1]:8443/tenant/") == [
        "https://[::1]:8443/.well-known/oauth-authorization-server/tenant",
        "https://[::1]:8443/.well-known/openid-configuration/tenant",
        "https://[::1]:8443/tenant/.well-known/openid-configuration",
    ]


def test_a_challenge_names_the_metadata_beside_a_prefix() -> None:
    settings = OAuthSettings(
        "https://login.example", "https://db.example:444/gate/mcp", {"db": "readOnly"}
    )
    value = challenge_of(settings, "/mcp/core", "r").to(TidegateError(Code.AUTH_MISSING, "none"))
    assert value is not None
    place = b"https://db.example:444/.well-known/oauth-protected-resource/gate/mcp/core"
    assert b'resource_metadata="%s"' % place in value


@pytest.mark.parametrize("address", [
    "127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "0.1.2.3", "224.0.0.1",
    "255.255.255.255", "192.0.0.192", "168.63.129.16", "::1", "::127.0.0.1", "::10.0.0.1",
    "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::a00:1",
    "2002:a00:1::", "2001::1", "fec0::2", "fd00::1", "fe80::1%eth0", "ff0e::1", "4000::1",
    "8000::1", "odd",
])  # fmt: skip
def test_what_is_not_assigned_to_the_public_network_is_no_public_address(address: str) -> None:
    assert not is_public_address(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_an_address_of_the_public_network_is_one(address: str) -> None:
    assert is_public_address(address)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "::1", "10.0.0.1", "192.168.1.7", "8.8.8.8", "2001:4860::1", "fd12::1"),
        *("::ffff:127.0.0.1", "64:ff9b::a00:1", "::ffff:0:10.0.0.1"),
    ],
)
def test_a_database_may_be_on_this_machine_and_in_private_and_public_networks(
    address: str,
) -> None:
    assert may_hold_databases(address)


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "169.254.1.1", "fe80::1", "fe80::1%eth0", "0.1.2.3", "::"),
        *("224.0.0.1", "ff02::1", "255.255.255.255", "100.100.100.200", "168.63.129.16"),
        *("192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "db.example.com", ""),
        *("::ffff:169.254.169.254", "::169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::"),
        *("::ffff:0:169.254.169.254", "64:ff9b:1::a9fe:a9fe"),
    ],
)
def test_no_database_is_at_an_address_of_the_link_or_of_a_clouds_secrets_however_written(
    address: str,
) -> None:
    assert not may_hold_databases(address)


HERE = (
    "127.0.0.1", "127.0.0.2", "127.1.2.3", "127.255.255.254", "::1", "0:0:0:0:0:0:0:1",
    "::ffff:127.0.0.1", "::ffff:7f00:2",
)  # fmt: skip
ELSEWHERE = (
    "0.0.0.0", "::", "10.0.0.5", "128.0.0.1", "126.255.255.255", "::2", "::ffff:10.0.0.5",  # noqa: S104
    "::127.0.0.1", "64:ff9b::7f00:1", "fe80::1", "gate.example", "localhost.example", "127.1",
    "127.0.0.1.", "127.0.0.1.example", "0x7f000001", "2130706433", "",
)  # fmt: skip


@pytest.mark.parametrize("host", (*HERE, "localhost"))
def test_every_address_of_loopback_is_this_machine_alone(host: str) -> None:
    assert is_this_machine(host)
    assert is_loopback_address(host) is (host != "localhost")
    listening = f"[{host}]:8080" if ":" in host else f"{host}:8080"
    assert Config(http=listening, auth=False).http == listening
    if host in HERE:
        assert parse_http_url(f"http://{listening}").is_private
        assert not is_public_address(host)


@pytest.mark.parametrize("host", ELSEWHERE)
def test_what_others_reach_or_may_mean_another_machine_is_not(host: str) -> None:
    assert not is_this_machine(host)
    if host:
        listening = f"[{host}]:8080" if ":" in host else f"{host}:8080"
        with pytest.raises(TidegateError) as caught:
            Config(http=listening, auth=False)
        assert caught.value.code is Code.CONFIG_INVALID
