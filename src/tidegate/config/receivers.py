"""A server of the operator to which the gate sends by HTTP: its URL, headers and authorities."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidegate.config.addresses import parse_http_url
from tidegate.config.errors import invalid
from tidegate.paths import expand
from tidegate.secrets.references import READ_ANYWHERE, check_references

_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_SECRET_HEADER = re.compile(r"(?i)auth|token|key|secret|cookie")


def check_receiver(setting: str, url: str, headers: Mapping[str, str], *, what: str) -> None:
    """Whether a URL is one to send `what` to, and its headers hold no literal secret. `setting`
    begins the errors. Raises: TidegateError CONFIG_INVALID, which does not hold the URL."""
    try:
        parsed = parse_http_url(url)
    except ValueError:
        raise invalid(f"{setting} the URL is not one of HTTP.") from None
    if parsed.login is not None or parsed.fragment or parsed.query:
        raise invalid(
            f"{setting} the URL has a login, a query or a fragment.",
            hint="Put what the receiver wants to know into `headers`, secrets as references.",
        )
    if not parsed.is_private:
        raise invalid(
            f"{setting} {what} would leave this machine without encryption.",
            hint="Use https, or a collector on 127.0.0.1, ::1 or localhost.",
        )
    for name, value in headers.items():
        if not _HEADER.fullmatch(name):
            raise invalid(f"{setting} `{name[:80]}` is not the name of a header.")
        if _SECRET_HEADER.search(name) and "${" not in value:
            raise invalid(
                f"{setting} the header `{name}` holds a literal secret.",
                hint="Write ${FILE:/path} or ${ENV:NAME} in its place.",
            )
        check_references(value, READ_ANYWHERE)


def check_ca_file(setting: str, path: str) -> None:
    """Read a file of authorities. Raises: TidegateError CONFIG_INVALID."""
    import ssl

    try:
        ssl.create_default_context(cafile=expand(path))
    except OSError as error:
        raise invalid(f"{setting} cannot be read: {error}.") from None
