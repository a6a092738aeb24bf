"""A request goes to a host that its document or an operator means, and nowhere else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config.addresses import parse_http_url
from tidegate.errors import Code, TidegateError
from tidegate.http_client.connections import find_refused
from tidegate.products.cloud.documents.hosts import HostRules, redirected
from tidegate.products.cloud.documents.model import Server
from tidegate.products.cloud.settings import CloudSettings

OKTA = Server("https://{subdomain}.okta.com/", {"subdomain": "my-org"})
AWS = Server("https://s3.{region}.amazonaws.com", {"region": "us-east-1"})
OPEN = Server("https://{endpoint}", {"endpoint": "agent.example.com"})
SCHEME = Server("{protocol}://{host}.example.com/v1", {"protocol": "https", "host": "a"})
FIXED = Server("https://api.github.com", {})


def rules(**settings: Any) -> HostRules:
    return HostRules(msgspec.convert(settings, CloudSettings))


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://acme.okta.com/api/v1/users", OKTA),
        ("https://a.b.okta.com/", OKTA),
        ("https://s3.eu-west-1.amazonaws.com/bucket", AWS),
        ("https://agent.example.com/x", OPEN),
        ("https://b.example.com/v1/x", SCHEME),
        ("https://api.github.com/repos/a/b", FIXED),
    ],
)
def test_the_hosts_of_the_documents_pattern_are_reached(url: str, server: Server) -> None:
    assert rules().check(url, server, "p").host in url


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://evil.example/.okta.com/", OKTA),
        ("https://evil.example#.okta.com/", OKTA),
        ("https://evil.example?.okta.com/", OKTA),
        ("https://evil.example\\.okta.com/", OKTA),
        ("https://me@evil.example/.okta.com/", OKTA),
        ("https://me@acme.okta.com/", OKTA),
        ("https://acme.okta.com:8443/", OKTA),
        ("https://acme.okta.com.evil.example/", OKTA),
        ("https://okta.com/", OKTA),
        ("https://.okta.com/", OKTA),
        ("https://evil-okta.com/", OKTA),
        ("https://s3.x.evil.example/.amazonaws.com", AWS),
        ("https://evil.example/", OPEN),
        ("https://agent.example.com:8443/", OPEN),
        ("http://b.example.com/v1/x", SCHEME),
        ("http://api.github.com/", FIXED),
        ("https://api.github.com:8443/", FIXED),
        ("ftp://acme.okta.com/", OKTA),
        ("https://a.com/", Server("https://{name}.com/", {"name": "example"})),
        ("https://okta.com.evil/", Server("https://okta.com.{end}/", {"end": "au"})),
    ],
)
def test_a_value_does_not_choose_whose_host_gets_the_credential(url: str, server: Server) -> None:
    with pytest.raises(TidegateError) as refusal:
        rules().check(url, server, "p")
    assert refusal.value.code is Code.HOST_REFUSED


@given(st.text(max_size=40))
def test_whatever_fills_a_variable_the_host_ends_as_the_document_says(value: str) -> None:
    try:
        parts = rules().check(f"https://{value}.okta.com/api", OKTA, "p")
    except TidegateError as refusal:
        assert refusal.code is Code.HOST_REFUSED
        return
    assert parts.host.endswith(".okta.com") and parts.login is None and parts.tcp_port == 443


def test_an_operator_lists_hosts_that_a_document_leaves_open() -> None:
    listed = rules(providers={"p": {"hosts": ["*.example.net", "one.example.org:8443"]}})
    for url in ("https://x.example.net/", "https://one.example.org:8443/"):
        listed.check(url, OPEN, "p")
    for url in (
        "https://example.net/", "https://x.example.net:444/", "https://one.example.org/",
        "http://x.example.net/", "https://xexample.net/",
    ):  # fmt: skip
        with pytest.raises(TidegateError):
            listed.check(url, OPEN, "p")
    with pytest.raises(TidegateError) as refusal:
        listed.check("https://x.example.net/", OPEN, "q")
    assert "cloud.providers.q.hosts" in refusal.value.hint


PRIVATE = [
    "localhost", "127.0.0.1", "127.1", "0x7f000001", "2130706433", "169.254.169.254", "10.0.0.1",
    "192.168.1.1", "172.16.0.1", "100.64.0.1", "0.0.0.1", "[::1]", "[::]", "[fe80::1]", "[fd00::1]",
    "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "metadata.google.internal",
    "db", "printer.local", "a.localhost", "224.0.0.1",
]  # fmt: skip


@pytest.mark.parametrize("host", PRIVATE)
def test_a_private_host_is_refused_although_the_document_names_it(host: str) -> None:
    server = Server(f"https://{host}", {})
    with pytest.raises(TidegateError) as refusal:
        rules().check(f"https://{host}/", server, "p")
    assert refusal.value.code is Code.HOST_REFUSED
    with pytest.raises(TidegateError):
        rules().check_token_url(f"https://{host}/token")


def test_an_operator_lists_private_hosts_and_no_other_is_reached() -> None:
    server = Server("http://{endpoint}", {"endpoint": "localhost:9090"})
    with pytest.raises(TidegateError, match="without encryption"):
        rules().check("http://localhost:9090/api", server, "p")
    listed = rules(private_hosts=["localhost:9090"])
    listed.check("http://localhost:9090/api", server, "p")
    assert listed.networks(parse_http_url("http://localhost:9090/api"), "p") is None
    assert listed.networks(parse_http_url("http://localhost:9091/api"), "p") == ()
    for url in ("http://localhost:9091/api", "http://10.0.0.1:9090/api"):
        with pytest.raises(TidegateError):
            listed.check(url, server, "p")
    own = rules(providers={"p": {"hosts": ["10.0.0.5:9090"]}})
    own.check("http://10.0.0.5:9090/api", server, "p")
    with pytest.raises(TidegateError):
        own.check("http://10.0.0.5:9090/api", server, "q")


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fe80::1%eth0", "::ffff:10.0.0.1", "odd"],
)
def test_a_public_name_that_leads_to_a_private_address_is_refused(address: str) -> None:
    url = parse_http_url("https://acme.okta.com/api")
    networks = rules().networks(url, "p")
    assert networks == ()
    assert find_refused(["93.184.216.34", address], networks) == address
    assert find_refused(["93.184.216.34", "2606:2800:220:1::1"], networks) is None


def test_a_redirect_is_an_error_that_names_the_hosts_and_no_query() -> None:
    error = redirected(
        "https://s3.eu-west-1.amazonaws.com/b?key=1", 301, "https://evil.example/?token=2"
    )
    assert "evil.example" in error.message and "301" in error.message
    assert "token" not in error.message and "key=1" not in error.message


def test_a_setting_leads_a_providers_urls_to_this_machine() -> None:
    mapped = rules(
        endpoints={
            "https://*.amazonaws.com": "http://127.0.0.1:5000",
            "https://api.github.com/graphql": "http://127.0.0.1:5001/g",
            "https://api.github.com": "http://127.0.0.1:5002/",
        }
    )
    for url, target in (
        ("https://s3.eu-west-1.amazonaws.com/b?x=1", "http://127.0.0.1:5000/b?x=1"),
        ("https://api.github.com/graphql", "http://127.0.0.1:5001/g"),
        ("https://api.github.com/repos", "http://127.0.0.1:5002/repos"),
        ("https://api.github.com?x", "http://127.0.0.1:5002?x"),
    ):
        found = mapped.destination(url)
        assert (found.url, found.is_mapped) == (target, True)
        assert found.host_header in url
    for url in (
        "https://api.github.com.evil.example/", "https://amazonaws.com/", "http://a.amazonaws.com/",
        "https://evil.example/https://api.github.com/",
    ):  # fmt: skip
        assert not mapped.destination(url).is_mapped


@pytest.mark.parametrize(
    "endpoints",
    [
        {"https://api.github.com": "https://evil.example"},
        {"https://api.github.com": "http://10.0.0.1"},
        {"https://api.github.com": "file:///etc"},
        {"api.github.com": "http://127.0.0.1"},
        {"https://api.github.com": "http://me@127.0.0.1"},
    ],
)
def test_no_setting_leads_to_another_machine(endpoints: dict[str, str]) -> None:
    with pytest.raises((TidegateError, msgspec.ValidationError)):
        rules(endpoints=endpoints)


LOOPBACK = "http://127.0.0.1:5000"


@pytest.mark.parametrize(
    ("prefix", "target", "address", "restored"),
    [
        ("https://a.example", LOOPBACK, "/v2/x?n=2", "https://a.example/v2/x?n=2"),
        ("https://a.example", LOOPBACK, f"{LOOPBACK}/v2/y?n=2", "https://a.example/v2/y?n=2"),
        ("https://a.example", LOOPBACK, "http://a.example/v2/y", "https://a.example/v2/y"),
        ("https://a.example", LOOPBACK, "https://a.example/v2/y", "https://a.example/v2/y"),
        ("https://*.example", LOOPBACK, f"{LOOPBACK}/v2/y", "https://a.example/v2/y"),
        ("https://a.example/v2", LOOPBACK, "/y", "https://a.example/v2/y"),
        ("https://a.example/v2", LOOPBACK, "/v2/y", "https://a.example/v2/y"),
        ("https://a.example", f"{LOOPBACK}/base", "/base/v2/y", "https://a.example/v2/y"),
        ("https://a.example", f"{LOOPBACK}/base", "/v2/y", "https://a.example/v2/y"),
        ("https://a.example", f"{LOOPBACK}/base", f"{LOOPBACK}/v2", f"{LOOPBACK}/v2"),
        ("https://a.example", LOOPBACK, "http://127.0.0.1:5001/y", "http://127.0.0.1:5001/y"),
        ("https://a.example", LOOPBACK, "http://evil.example/y", "http://evil.example/y"),
        ("https://b.example", LOOPBACK, f"{LOOPBACK}/v2/y", f"{LOOPBACK}/v2/y"),
        ("https://b.example", LOOPBACK, "http://a.example/y", "http://a.example/y"),
    ],
)
def test_what_a_mapped_server_calls_itself_is_the_documents_address(
    prefix: str, target: str, address: str, restored: str
) -> None:
    mapped = rules(endpoints={prefix: target})
    assert mapped.restore(address, "https://a.example/v2/x") == restored
