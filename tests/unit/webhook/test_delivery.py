"""One message over real TLS: what is signed, where it may go, and how little of a reply is read."""

from __future__ import annotations

import asyncio
import base64
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.eventually import HANG_S
from support.thread_server import thread_http_server
from support.webhook_receiver import KEY, PATH, SECRET, Answer, Receiver, receiving, status
from tidegate.config.webhook import WebhookSettings
from tidegate.errors import TidegateError
from tidegate.http_client.connections import find_refused
from tidegate.webhook.credentials import read_secret, sign
from tidegate.webhook.delivery import Attempt, deliver

BODY = b'{"type":"webhook.test","data":{}}'


def settings(receiver: Receiver, **changes: Any) -> WebhookSettings:
    return msgspec.convert(receiver.settings(**changes), WebhookSettings)


def send(receiver: Receiver, *, timeout_s: float = HANG_S, **changes: Any) -> Attempt:
    made = settings(receiver, **changes)
    return asyncio.run(deliver(made, "msg_1", BODY, timeout_s=timeout_s))


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with receiving(tmp_path / "hooks") as receiver:
        yield receiver


def test_the_signature_is_the_one_of_the_published_example() -> None:
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_message_arrives_signed_and_whole(receiver: Receiver) -> None:
    before = int(time.time())
    attempt = send(receiver)
    got = receiver.next()
    assert attempt.is_sent and attempt.status == 204 and attempt.address == "127.0.0.1"
    assert got.is_signed and got.id == "msg_1" and got.body == BODY
    assert before <= got.timestamp <= int(time.time())
    assert got.headers["content-type"] == "application/json"
    assert receiver.paths == [PATH]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(tmp_path: Path, code: int) -> None:
    with receiving(tmp_path / "other") as other:
        with receiving(tmp_path / "hooks", status(code, location=other.url)) as receiver:
            attempt = send(receiver)
        assert not attempt.is_sent and attempt.status == code and "redirect" in attempt.reason
        assert other.is_quiet


def test_nothing_is_sent_to_an_address_that_is_not_listed(receiver: Receiver) -> None:
    for listed in ([], ["10.0.0.0/8"], ["127.0.0.2"]):
        attempt = send(receiver, addresses=listed)
        assert attempt.status is None and "approvals.webhook.addresses" in attempt.reason
    assert receiver.is_quiet
    assert send(receiver, addresses=["127.0.0.0/8"]).is_sent


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.1.2.3", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("0.0.0.1", "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0"),
        *("fd00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1"),
        *("2002:7f00:1::", "2001:0:1:2:3:4:5:6"),
    ],
)
def test_every_form_of_an_address_inside_is_refused(address: str) -> None:
    assert find_refused([address], ()) == address
    assert find_refused(["93.184.216.34", address], ("192.0.2.0/24",)) == address


def test_public_addresses_are_not_refused() -> None:
    assert find_refused(["93.184.216.34", "2606:4700::1111"], ()) is None


def test_a_name_that_leads_elsewhere_at_the_second_look_is_looked_up_once(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    found = ["192.0.2.1", "127.0.0.1"]
    real = socket.getaddrinfo

    def look_up(host: str, port: int, *args: Any, **options: Any) -> Any:
        if host != "hooks.example":
            return real(host, port, *args, **options)
        looks.append(host)
        return real(found[min(len(looks), 2) - 1], port, *args, **options)

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    url = receiver.url.replace("127.0.0.1", "hooks.example")
    attempt = send(receiver, url=url, addresses=["192.0.2.1"], timeout_s=0.2)
    assert not attempt.is_sent and looks == ["hooks.example"] and receiver.is_quiet
    found[0] = "127.0.0.1"
    looks.clear()
    assert send(receiver, url=url).is_sent and looks == ["hooks.example"]


def test_a_certificate_of_an_unknown_authority_or_another_name_is_refused(
    receiver: Receiver, tmp_path: Path
) -> None:
    attempt = send(receiver, ca_file=None)
    assert attempt.status is None and "certificate" in attempt.reason
    url = receiver.url.replace("127.0.0.1", "localhost")
    attempt = send(receiver, url=url, addresses=["127.0.0.1", "::1"])
    assert attempt.status is None and "certificate" in attempt.reason
    assert receiver.is_quiet


def test_a_server_that_never_answers_costs_no_more_than_the_time_of_one_attempt(
    tmp_path: Path,
) -> None:
    gone = threading.Event()

    def say_nothing(handler: BaseHTTPRequestHandler) -> None:
        with suppress(OSError):
            handler.rfile.read(1)  # ends when the client leaves
        gone.set()

    with receiving(tmp_path / "hooks", say_nothing) as receiver:
        attempt = send(receiver, timeout_s=0.3)
        assert attempt.status is None and "did not answer within 0.3 s" in attempt.reason
        assert gone.wait(HANG_S)


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Send headers without an end."""
    with suppress(OSError):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            handler.wfile.write(b"x-more: " + b"a" * 1_000 + b"\r\n")


def test_a_head_without_an_end_is_not_read_on(tmp_path: Path) -> None:
    with receiving(tmp_path / "hooks", drip) as receiver:
        attempt = send(receiver)
    assert attempt.status is None and "16,384 bytes" in attempt.reason


def test_of_an_endless_packed_body_nothing_is_read(tmp_path: Path) -> None:
    sent: list[int] = []

    def bomb(handler: BaseHTTPRequestHandler) -> None:
        total = 0
        handler.wfile.write(
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        with suppress(OSError):
            while total < 1 << 30:
                handler.wfile.write(b"10000\r\n" + b"\x1f\x8b" * 0x8000 + b"\r\n")
                total += 0x10000
        sent.append(total)

    with receiving(tmp_path / "hooks", bomb) as receiver:
        assert send(receiver).is_sent
    # What the sockets of both sides hold, and no more.
    assert sent[0] < 32 << 20


def raw(reply: bytes) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(reply)

    return answer


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"", "closed the connection before its reply was whole"),
        (b"SSH-2.0-x\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 500 Oops\r\ncontent-length: 3\r\n\r\nwhy", "HTTP status 500"),
        (b"HTTP/1.1 404 Not\r\n\r\n", "HTTP status 404"),
    ],
)
def test_a_reply_that_is_no_yes_says_why(tmp_path: Path, reply: bytes, reason: str) -> None:
    with receiving(tmp_path / "hooks", raw(reply)) as receiver:
        attempt = send(receiver)
    assert not attempt.is_sent and reason in attempt.reason


def test_the_reply_after_an_interim_one_counts(tmp_path: Path) -> None:
    reply = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
    with receiving(tmp_path / "hooks", raw(reply)) as receiver:
        assert send(receiver).status == 202


def test_no_reason_holds_the_secret_or_the_path(tmp_path: Path) -> None:
    with receiving(tmp_path / "hooks", status(500), status(410)) as receiver:
        attempts = [send(receiver), send(receiver), send(receiver, addresses=[])]
        attempts.append(send(receiver, ca_file=str(tmp_path / "none.pem")))
        receiver.secret_file.write_text("whsec_short\n")
        attempts.append(send(receiver))
    assert all(each.reason for each in attempts)
    for each in attempts:
        assert SECRET not in each.reason and "T0KEN" not in each.reason
        assert "short" not in each.reason


@pytest.mark.parametrize(
    "text", ["", "whsec_", "whsec_AAAA", SECRET.removeprefix("whsec_"), "whsec_not base64!", "x"]
)
def test_a_secret_of_another_form_is_refused_without_being_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "secret"
    file.write_text(text)
    with pytest.raises(TidegateError, match=r"approvals\.webhook\.secret") as refused:
        read_secret(f"${{FILE:{file}}}")
    assert len(text) < 8 or text not in refused.value.in_full


def test_the_secret_is_read_without_its_line_end(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET + "\r\n")
    assert read_secret(f"${{FILE:{file}}}") == KEY


def test_a_server_without_tls_gets_nothing(tmp_path: Path) -> None:
    came: list[bytes] = []

    class Plain(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(self.rfile.read(1))

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing on stderr."""

    with receiving(tmp_path / "hooks") as receiver, thread_http_server(Plain) as port:
        made = settings(receiver, url=f"https://127.0.0.1:{port}/")
        attempt = asyncio.run(deliver(made, "msg_1", BODY, timeout_s=5.0))
    assert attempt.status is None and not came
