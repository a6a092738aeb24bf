"""The section `approvals.webhook`: the server or the chat that gets messages about questions."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tidegate.config.addresses import HttpUrl, parse_http_url
from tidegate.config.errors import invalid
from tidegate.secrets.references import READ_ANYWHERE, check_references, is_reference


class WebhookSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message to a server of yours, or to a channel of Slack or Teams, when a call waits for
    approval, and when it was answered."""

    url: str
    """An https URL. It is read from a settings file alone, and is never shown whole, as it may hold
    a token. It may be a reference (`${ENV:NAME}` or `${FILE:/path}`) to the whole URL; that of a
    channel must be one, as it alone lets one post there."""
    secret: str = ""
    """For `standard`, which needs it, alone: a reference to the secret that signs each message,
    `whsec_` and the Base64 of 24 to 64 bytes."""
    format: Literal["standard", "slack", "teams"] = "standard"
    """`standard`: a signed message for a server of yours; `slack`: for an incoming webhook of
    Slack; `teams`: for a webhook of a Teams workflow."""
    events: tuple[Literal["asked", "decided"], ...] = ("asked", "decided")
    """When there is a message: `asked`, `decided` or both."""
    digest_minutes: Annotated[int, msgspec.Meta(ge=0, le=1_440)] = 0
    """One message in so many minutes, about all that wait, and none about answers; 0: one message
    for each."""
    addresses: tuple[str, ...] = ()
    """Addresses and networks. Nothing is sent to this machine or a private network, unless the
    address is one of these."""
    ca_file: str | None = None
    """A PEM file with a further authority to trust."""

    def __post_init__(self) -> None:
        self._check_url()
        self._check_secret()
        if not self.events:
            raise invalid(
                "`approvals.webhook.events` is empty.", hint="Name `asked`, `decided` or both."
            )
        for text in self.addresses:
            _check_network(text)

    @property
    def is_chat(self) -> bool:
        """Whether messages go to a channel, which people read."""
        return self.format != "standard"

    def _check_url(self) -> None:
        if is_reference(self.url, READ_ANYWHERE):
            check_references(self.url, READ_ANYWHERE)
            return
        if self.is_chat:
            raise invalid(
                f"`approvals.webhook.url` of the format {self.format} is not a reference to a"
                " secret.",
                hint="This URL alone lets one post in the channel. Keep it in a file, and write"
                " `${FILE:/path}`, or `${ENV:NAME}`.",
            )
        parse_webhook_url(self.url)

    def _check_secret(self) -> None:
        if self.is_chat and self.secret:
            raise invalid(
                f"`approvals.webhook.secret` has no effect: messages of the format {self.format}"
                " are not signed.",
                hint="Remove it. What must stay secret there is the URL.",
            )
        if not self.is_chat and not is_reference(self.secret, READ_ANYWHERE):
            raise invalid(
                "`approvals.webhook.secret` is not a reference to a secret.",
                hint="Write `${FILE:/path}` or `${ENV:NAME}`.",
            )
        check_references(self.secret, READ_ANYWHERE)


def parse_webhook_url(text: str) -> HttpUrl:
    """Take the URL of a webhook apart. Raises: TidegateError CONFIG_INVALID, which does not hold
    it."""
    try:
        url = parse_http_url(text)
    except ValueError:
        url = None
    if url is None or url.scheme != "https" or url.login is not None or url.fragment:
        raise invalid(
            "`approvals.webhook.url` is not an https URL without a login and a fragment.",
            hint="Write it like https://hooks.example.com/tidegate.",
        )
    return url


def _check_network(text: str) -> None:
    from ipaddress import ip_network

    try:
        network = ip_network(text)
    except ValueError:
        raise invalid(
            f"`approvals.webhook.addresses` has `{text[:80]}`, which is neither an address nor a"
            " network.",
            hint="Write an address, such as 10.0.0.5, or a network, such as 10.0.0.0/24.",
        ) from None
    if not network.prefixlen:
        raise invalid(
            f"`approvals.webhook.addresses` has `{text}`, which is every address.",
            hint="Name the address of your server.",
        )
