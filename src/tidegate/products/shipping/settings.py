"""Settings of shipping: the section `ship`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple
from urllib.parse import urlsplit

import msgspec

from tidegate.config.errors import invalid
from tidegate.config.model import Config, Count
from tidegate.config.receivers import check_ca_file, check_receiver
from tidegate.config.sections import Section
from tidegate.paths import expand
from tidegate.secrets.references import READ_ANYWHERE, check_references, hide_references

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_PORTS = {"syslog": 601, "syslog+tls": 6514}
"""By RFC 6587's registration and RFC 5425."""


class Host(NamedTuple):
    """Where a syslog receiver listens."""

    name: str
    port: int
    tls: bool


class DestinationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One destination of the record."""

    name: str
    """What figures, errors and the saved position call it: letters, digits, `-` and `_`. Another
    URL under the same name goes on where the former ended; another name begins with the oldest
    segment."""
    url: str
    """`file:///var/log/tidegate/record.jsonl`: JSON lines in a file. `syslog://HOST:PORT` and
    `syslog+tls://HOST:PORT`: RFC 5424 over TCP or TLS. `https://HOST:PORT/v1/logs`: OTLP logs over
    HTTP (`http://` on this machine alone), read from a settings file alone, as the path may be a
    secret; the secret part of it is better written as a reference."""
    ca_file: str | None = None
    """A PEM file with a further authority to trust."""
    cert: str | None = None
    """A PEM file with a certificate for the receiver of `syslog+tls` that asks for one."""
    key: str | None = None
    """The PEM file of its key."""
    headers: dict[str, str] = {}
    """Headers of OTLP requests. A secret in a value is written as a reference, `${FILE:/path}` or
    `${ENV:NAME}`."""

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0].lower()

    @property
    def path(self) -> Path:
        """The file of a `file:` URL."""
        return Path(expand(urlsplit(self.url).path))

    @property
    def host(self) -> Host:
        """The receiver of a syslog URL. Raises: ValueError."""
        parts = urlsplit(self.url)
        if not parts.hostname or parts.username or parts.query or parts.fragment:
            raise ValueError("not a host and a port")
        if parts.path not in ("", "/"):
            raise ValueError("has a path")
        scheme = self.scheme
        return Host(parts.hostname, parts.port or _PORTS[scheme], scheme == "syslog+tls")

    def check(self) -> None:
        """Raises: TidegateError CONFIG_INVALID, which does not hold the URL of HTTP."""
        if not _NAME.fullmatch(self.name):
            raise invalid(
                f"`ship.to` has the name `{self.name[:80]}`.",
                hint="Take up to 32 small letters, digits, - and _.",
            )
        setting = f"`ship.to` {self.name}:"
        if self.scheme == "file":
            parts = urlsplit(self.url)
            if parts.netloc or not parts.path.startswith("/") or parts.path.endswith("/"):
                raise invalid(f"{setting} the URL is not that of a file.", hint="file:///a/path")
        elif self.scheme in _PORTS:
            try:
                _ = self.host
            except ValueError:
                hint = f"Write it like {self.scheme}://siem.example.com:6514."
                raise invalid(f"{setting} the URL is not a host and a port.", hint=hint) from None
        elif self.scheme in ("http", "https"):
            checked = hide_references(self.url)
            check_receiver(setting, checked, self.headers, what="the record")
            check_references(self.url, READ_ANYWHERE)
        else:
            raise invalid(
                f"{setting} the URL has no known scheme.",
                hint="Known: file, syslog, syslog+tls, https (OTLP logs over HTTP).",
            )
        self._check_use(setting)

    def _check_use(self, setting: str) -> None:
        """Refuse what has no effect."""
        if self.headers and self.scheme not in ("http", "https"):
            raise invalid(f"{setting} `headers` are for OTLP alone.")
        if self.ca_file is not None and self.scheme not in ("syslog+tls", "https"):
            raise invalid(f"{setting} `ca_file` is for syslog+tls and https alone.")
        if (self.cert is not None or self.key is not None) and self.scheme != "syslog+tls":
            raise invalid(f"{setting} `cert` and `key` are for syslog+tls alone.")
        if (self.cert is None) != (self.key is None):
            raise invalid(f"{setting} `cert` and `key` are needed together.")


class ShipSettings(Section, frozen=True, forbid_unknown_fields=True):
    """Where the record is shipped. Every line is sent to each destination, in order, as an event of
    OCSF 1.8 with an id of its own. What was not acknowledged is sent again, with the same id.

    A destination that fails stops no call. Without `max_lag_bytes` that holds forever; with it,
    calls are withheld as `audit.failure_mode` says while a destination lacks more bytes of the
    record than this. An expired segment (`audit.keep_days`) stays until every destination has it.
    """

    NAME: ClassVar[str] = "ship"

    to: tuple[DestinationSettings, ...] = ()
    max_lag_bytes: Count | None = None
    poll_s: Annotated[float, msgspec.Meta(gt=0, le=60)] = 1.0
    """Between two looks for new lines."""

    def secret_addresses(self) -> Iterable[str]:
        # Some receivers of OTLP know their senders by the path alone.
        if any(each.scheme in ("http", "https") for each in self.to):
            yield "ship.to"

    def check(self, config: Config) -> None:
        """Raises: TidegateError CONFIG_INVALID."""
        names = [each.name for each in self.to]
        for each in self.to:
            each.check()
            if names.count(each.name) > 1:
                raise invalid(f"Two destinations of `ship.to` are named `{each.name}`.")

    def check_files(self, config: Config) -> None:
        """Read the certificates, and see that files can be made. Raises: TidegateError
        CONFIG_INVALID."""
        for each in self.to:
            setting = f"`ship.to` {each.name}:"
            if each.scheme == "file" and not each.path.parent.is_dir():
                raise invalid(f"{setting} there is no directory `{each.path.parent}`.")
            if each.scheme == "syslog+tls":
                from tidegate.products.shipping.syslog import tls_context

                tls_context(each)
            elif each.ca_file is not None:
                check_ca_file(f"{setting} `ca_file`", each.ca_file)
