"""What every user of the outgoing HTTP client holds to: each sends real requests over TLS."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from support.certificates import Authority
from support.cloud_api import write_farm
from support.http_site import Site, reply, serve_proxy, serve_site
from support.permits import permit_for
from support.webhook_receiver import SECRET as WEBHOOK_SECRET
from tidegate import file_fetcher as downloads
from tidegate.config.oauth import OAuthSettings
from tidegate.config.webhook import WebhookSettings
from tidegate.engines.registry import engine_of, language_of, open_engine
from tidegate.errors import Code, TidegateError
from tidegate.file_fetcher import Access, Downloader, Login, Origin
from tidegate.identity import jwks
from tidegate.identity.jwks import KeyFetcher, Keys
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Query
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.retrying_http import Endpoint, post_json
from tidegate.webhook.delivery import deliver

SECRET = "s3cret-of-the-caller"
MOST_BYTES = 300_000
SLOW_S = 0.4
LONG_S = 20.0


class Call(NamedTuple):
    """Where a user of the client is sent. `inside`: its settings allow this machine."""

    url: str
    folder: Path
    total_s: float = LONG_S
    inside: bool = True


def ask_model(call: Call) -> str:
    endpoint = Endpoint(
        "The model", call.url, {"x-api-key": SECRET}, (SECRET,), call.total_s, 0, MOST_BYTES
    )
    return str(asyncio.run(post_json(endpoint, "/embeddings", {})))


def send_message(call: Call) -> str:
    (call.folder / "webhook.secret").write_text(WEBHOOK_SECRET)
    settings = WebhookSettings(
        f"{call.url}/{SECRET}",
        f"${{FILE:{call.folder / 'webhook.secret'}}}",
        addresses=("127.0.0.1",) if call.inside else (),
    )
    attempt = asyncio.run(deliver(settings, "msg_1", b"{}", timeout_s=call.total_s))
    if attempt.reason:
        raise TidegateError(Code.WEBHOOK_FAILED, attempt.reason)
    return str(attempt.status)


def fetch_keys(call: Call) -> str:
    return str(KeyFetcher()(f"{call.url}/keys"))


def download(call: Call) -> str:
    origin = Origin("The repository", Code.DRIVER_REPOSITORY, "log in", "ask the proxy", "ca")
    access = Access(Login("me", SECRET))
    return str(Downloader(call.url, access, origin).get("file", MOST_BYTES))


def _make_registry(folder: Path, place: str) -> Path:
    """Documents of an API at `place` that asks for a login and is asked once."""
    registry = folder / f"registry-{place}"
    if not registry.exists():
        document = write_farm(registry) / "src" / "farm" / "v00.00.00000"
        login = "{type: bearer, credentialsenvvar: FARM_TOKEN}\n  retry: {maxAttempts: 1}"
        for path, old, new in (
            (document / "provider.yaml", "{type: null_auth}", login),
            (document / "services" / "live.yaml", "api.farm.example", place),
        ):
            path.write_text(path.read_text().replace(old, new))
    return registry


def run_statement(call: Call) -> str:
    place = call.url.removeprefix("https://")
    is_mapped = place.startswith("127.0.0.1:")
    settings: dict[str, Any] = {"private_hosts": [place] if call.inside else []}
    if is_mapped:
        settings = {"endpoints": {"https://api.farm.example": call.url}}
    registry = _make_registry(call.folder, "api.farm.example" if is_mapped else place)
    options = (("settings", json.dumps(settings)),)
    url = f"cloud://{registry}"
    source = Source("c", "c", url, *engine_of(url), access="write", options=options)
    query = Query(Statement("SELECT name FROM farm.live.animals", None))
    effect = language_of(source).classify(query, source).effect
    permit = permit_for(source, query, effect, limits=Limits(timeout_s=call.total_s))

    async def run() -> str:
        engine = await open_engine(source)
        try:
            cursor: Any = await engine.run(permit, Cancellation())
            try:
                return str(await cursor.fetch(10))
            finally:
                await cursor.close()
        finally:
            await engine.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.products.cloud.engine.provider_calls.MOST_REPLY_BYTES", MOST_BYTES)
        return asyncio.run(run())


class User(NamedTuple):
    name: str
    run: Callable[[Call], str]
    is_proxied: bool = False
    follows: bool = False
    reads_body: bool = True
    unpacks: bool = True
    checks: bool = False
    """Whether it refuses this machine unless a setting allows it."""


USERS = (
    User("model", ask_model),
    User("webhook", send_message, reads_body=False, unpacks=False, checks=True),
    User("keys", fetch_keys, is_proxied=True),
    User("download", download, is_proxied=True, follows=True, unpacks=False),
    User("cloud", run_statement, checks=True),
)
every_user = pytest.mark.parametrize("user", USERS, ids=[each.name for each in USERS])


def users(**wanted: bool) -> Any:
    found = [u for u in USERS if all(getattr(u, name) == value for name, value in wanted.items())]
    return pytest.mark.parametrize("user", found, ids=[each.name for each in found])


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "sites")


@pytest.fixture
def site(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Generator[Site]:
    """A site that every user trusts, also by the name `outside.example`."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    monkeypatch.setenv("FARM_TOKEN", SECRET)
    for name in ("https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    real = socket.getaddrinfo

    def look_up(host: str, port: int, *args: Any, **options: Any) -> Any:
        known = host.endswith(".example")
        return real("127.0.0.1" if known else host, port, *args, **options)

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    with serve_site(authority, reply(200)) as site:
        yield site


def refused(user: User, call: Call) -> str:
    """The error, without the secret of the call."""
    with pytest.raises((TidegateError, OSError, ValueError)) as caught:
        user.run(call)
    error = caught.value
    text = error.in_full if isinstance(error, TidegateError) else str(error)
    assert SECRET not in text and WEBHOOK_SECRET not in text
    return text


@every_user
def test_a_reply_is_taken(user: User, site: Site, tmp_path: Path) -> None:
    site.answer = reply(200, b'{"items": []}')
    assert user.run(Call(site.url(), tmp_path))
    (request,) = site.requests
    assert (SECRET in request) is (user.name in ("model", "webhook", "cloud"))


@every_user
def test_no_credential_follows_a_redirect_to_another_origin(
    user: User, site: Site, authority: Authority, tmp_path: Path
) -> None:
    with serve_site(authority, reply(200, b"found")) as other:
        site.answer = reply(302, location=f"{other.url()}/other")
        if user.follows:
            assert user.run(Call(site.url(), tmp_path)) == str(b"found")
            assert "authorization" in site.requests[0].lower()
            (request,) = other.requests
            assert "authorization" not in request.lower()
        else:
            refused(user, Call(site.url(), tmp_path))
            assert other.requests == []


@users(reads_body=True)
@pytest.mark.parametrize("announces", [True, False])
def test_a_body_larger_than_the_bound_is_refused_before_it_is_read(
    user: User, announces: bool, site: Site, tmp_path: Path
) -> None:
    sent: list[int] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        if announces:
            handler.send_header("content-length", str(1 << 30))
        handler.end_headers()
        sent.append(0)
        while sent[0] < 1 << 28:
            handler.wfile.write(b" " * 65_536)
            sent[0] += 65_536

    site.answer = answer
    assert "sent more than " in refused(user, Call(site.url(), tmp_path))
    assert sent[0] < 32 << 20  # what the sockets of both sides hold, and no more


@every_user
def test_a_reply_that_does_not_end_costs_no_more_than_its_time(
    user: User, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + (b"\r\n" if user.reads_body else b""))
        while True:
            handler.connection.settimeout(0.02)
            try:
                if not handler.connection.recv(1):
                    return
            except TimeoutError:
                handler.wfile.write(b"a")

    site.answer = drip
    monkeypatch.setattr(downloads, "_LONGEST_S", SLOW_S)
    monkeypatch.setattr(jwks, "_RULES", msgspec.structs.replace(jwks._RULES, total_s=SLOW_S))
    text = refused(user, Call(site.url(), tmp_path, total_s=SLOW_S))
    assert f"within {SLOW_S:g} s" in text or user.name == "cloud"


@every_user
def test_a_bomb_of_gzip_is_not_unpacked_into_memory(user: User, site: Site, tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(MOST_BYTES * 10))
    site.answer = reply(200, bomb, content_encoding="gzip")
    if user.unpacks:
        assert "sent more than " in refused(user, Call(site.url(), tmp_path))
    else:
        taken = user.run(Call(site.url(), tmp_path))
        assert taken == str(bomb if user.reads_body else 200)


@users(checks=True)
def test_a_name_that_leads_to_this_machine_is_refused(
    user: User, site: Site, tmp_path: Path
) -> None:
    text = refused(user, Call(site.url("outside.example"), tmp_path, inside=False))
    assert "127.0.0.1, an address of this machine" in text and "An operator may" in text
    assert site.requests == []


@users(is_proxied=True)
def test_what_the_public_network_names_does_not_lead_to_this_machine(
    user: User, site: Site, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_site(authority, reply(200)) as inside, serve_proxy() as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        call = Call(site.url("outside.example"), tmp_path)
        if user.follows:
            site.answer = reply(302, location=f"{inside.url()}/x")
            assert "127.0.0.1, an address of this machine" in refused(user, call)
        else:
            names = {"issuer": call.url, "jwks_uri": f"{inside.url()}/keys"}
            site.answer = reply(200, json.dumps(names).encode())
            keys = Keys(OAuthSettings(call.url, "https://db.example/mcp", {"db": "readOnly"}))
            with pytest.raises(TidegateError) as caught:
                asyncio.run(keys.find(None, "ES256"))
            assert caught.value.code is Code.AUTH_UNAVAILABLE
        assert len(site.requests) == 1 and inside.requests == []


@every_user
def test_a_proxy_of_the_environment_is_used_for_what_is_published_alone(
    user: User, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.answer = reply(200, b'{"items": []}')
    with serve_proxy() as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        user.run(Call(site.url("outside.example"), tmp_path))
        heads = list(proxy.heads)
        user.run(Call(site.url(), tmp_path))
    assert len(site.requests) == 2 and proxy.heads == heads
    assert len(heads) == user.is_proxied
    for head in heads:
        assert head.startswith("CONNECT outside.example:") and "uthorization" not in head


@users(is_proxied=True)
def test_a_proxy_that_refuses_is_named_and_its_login_is_not(
    user: User, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_proxy(407) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url.replace("//", f"//me:{SECRET}@"))
        text = refused(user, Call(site.url("outside.example"), tmp_path))
        assert "its proxy refused with HTTP status 407" in text
        assert "Proxy-Authorization: Basic" in proxy.heads[0]
    assert site.requests == []


@every_user
def test_a_server_whose_certificate_is_of_nobody_gets_nothing(
    user: User, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(Authority(tmp_path, "another").file))
    assert "certificate that is not trusted" in refused(user, Call(site.url(), tmp_path))
    assert site.requests == []
