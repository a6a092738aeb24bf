"""Sends one message over HTTPS, once, by the rule of `http_client`.

No redirect is followed, no proxy is used, and of the reply no more is read than its head, except
for the word that Slack answers. No text here holds the URL.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from tidegate.config.kept_secrets import secrets_of
from tidegate.config.webhook import WebhookSettings
from tidegate.errors import Code, TidegateError
from tidegate.http_client.client import HttpClient
from tidegate.http_client.rules import ClientRules, HttpRequest, RequestFailed
from tidegate.retrying_http import retry_after
from tidegate.webhook.chat import render
from tidegate.webhook.chat_replies import read_reply
from tidegate.webhook.credentials import make_headers, read_secret, read_url

TIMEOUT_S = 10.0
"""For one attempt: looking up the name, connecting, and the head of the reply."""
MOST_HEAD = 16_384
MOST_BODY = 262_144
"""Of a reply of Slack. One word is expected, and errors on the way there are pages."""
GONE = 410


class Attempt(NamedTuple):
    """What came of sending a message. `status` is that of the reply, None if none came; `reason`
    says in words why the message counts as not sent, empty if it was."""

    status: int | None
    reason: str = ""
    retry_after_s: float | None = None
    address: str = ""
    elapsed_ms: float = 0.0

    @property
    def is_sent(self) -> bool:
        return not self.reason

    @property
    def is_gone(self) -> bool:
        """Whether the receiver wants no message any more."""
        return self.status == GONE


async def deliver(
    settings: WebhookSettings, id: str, body: bytes, *, timeout_s: float = TIMEOUT_S
) -> Attempt:
    """Send a message of `messages`, in the format of the settings. Raises only CancelledError."""
    began = time.perf_counter()
    reads_body = settings.format == "slack"
    rules = ClientRules(
        max_bytes=MOST_BODY if reads_body else 0,
        total_s=timeout_s,
        max_head_bytes=MOST_HEAD,
        reads_body=reads_body,
        ca_file=settings.ca_file,
        ca_setting="approvals.webhook.ca_file",
        networks_setting="approvals.webhook.addresses",
    )
    try:
        async with secrets_of(settings.url, settings.secret):
            request = _request(settings, id, body)
        reply = await HttpClient(rules).send(request)
    except RequestFailed as failure:
        hint = f". {failure.hint}" if failure.code is Code.HOST_REFUSED else ""
        return Attempt(None, f"it {failure.what}{hint}")
    except TidegateError as error:
        return Attempt(None, error.without_secrets().message)
    elapsed_ms = (time.perf_counter() - began) * 1000
    after = retry_after(reply.headers.get("retry-after"))
    reason = _reason(settings.format, reply.status, reply.body)
    return Attempt(reply.status, reason, after, reply.peer, elapsed_ms)


def _reason(format: str, status: int, body: bytes) -> str:
    if 300 <= status < 400:
        return f"it answered with a redirect ({status}), which is not followed"
    if format != "standard":
        return read_reply(format, status, body)
    if 200 <= status < 300:
        return ""
    if status == GONE:
        return "it answered 410: it wants no more messages"
    return f"it answered with HTTP status {status}"


def _request(settings: WebhookSettings, id: str, body: bytes) -> HttpRequest:
    """Raises: TidegateError CONFIG_INVALID."""
    url, _ = read_url(settings)
    credentials = ()
    if settings.is_chat:
        body = render(settings.format, body)
    else:
        credentials = make_headers(read_secret(settings.secret), id, body)
    return HttpRequest(
        url=url,
        verb="POST",
        headers=(("Content-Type", "application/json"),),
        credentials=credentials,
        body=body,
        networks=settings.addresses,
    )
