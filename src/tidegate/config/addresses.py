"""Addresses in settings: where this server listens, and whom it may trust."""

from __future__ import annotations

from tidegate.config.errors import invalid

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def http_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` (`[::1]:8080` for IPv6; port 0 picks a free one).

    Raises: TidegateError CONFIG_INVALID.
    """
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise invalid(
            f"`{text}` is not an HTTP address.", hint="Write HOST:PORT, such as 127.0.0.1:7878."
        )
    return host, int(port)


def check_issuer_url(url: str, setting: str) -> None:
    """Raises: TidegateError CONFIG_INVALID unless it is https, or http on loopback, and plain."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    secure = parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK)
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if not (host and secure and plain and url.isascii() and url.isprintable() and '"' not in url):
        raise invalid(
            f"`{setting}` is not an address that can be trusted: `{url[:80]}`.",
            hint="Use https, without a query; http works for this machine alone.",
        )
