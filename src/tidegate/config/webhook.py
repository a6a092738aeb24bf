"""The section `approvals.webhook`: the server that gets messages about questions."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tidegate.config.addresses import HttpUrl, parse_http_url
from tidegate.config.errors import invalid
from tidegate.secrets import READ_ANYWHERE, is_reference


class WebhookSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message to a server of yours when a call waits for approval, and when it was answered.

    `url` is https, is read from a settings file alone, and is never shown whole, as it may hold a
    token. `secret` is a reference (`${ENV:NAME}` or `${FILE:/path}`) to the secret that signs each
    message: `whsec_` and the Base64 of 24 to 64 bytes. `events`: `asked`, `decided` or both. With
    `digest_minutes` there is one message in so many minutes, about all that wait, and none about
    answers. Nothing is sent to this machine or a private network, unless the address is one of
    `addresses` (addresses and networks). `ca_file` is a PEM file with a further authority to trust.
    """

    url: str
    secret: str
    events: tuple[Literal["asked", "decided"], ...] = ("asked", "decided")
    digest_minutes: Annotated[int, msgspec.Meta(ge=0, le=1_440)] = 0
    addresses: tuple[str, ...] = ()
    ca_file: str | None = None

    def __post_init__(self) -> None:
        try:
            url = parse_http_url(self.url)
        except ValueError:
            url = None
        if url is None or url.scheme != "https" or url.login is not None or url.fragment:
            raise invalid(
                "`approvals.webhook.url` is not an https URL without a login and a fragment.",
                hint="Write it like https://hooks.example.com/tidegate.",
            )
        if not is_reference(self.secret, READ_ANYWHERE):
            raise invalid(
                "`approvals.webhook.secret` is not a reference to a secret.",
                hint="Write `${FILE:/path}` or `${ENV:NAME}`.",
            )
        if not self.events:
            raise invalid(
                "`approvals.webhook.events` is empty.", hint="Name `asked`, `decided` or both."
            )
        for text in self.addresses:
            _check_network(text)

    @property
    def parts(self) -> HttpUrl:
        """The URL, taken apart."""
        return parse_http_url(self.url)


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
